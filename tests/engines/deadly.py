"""Checkpoints whose parts kill their own process, as a machine that fails would."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from nefele.runtime.checkpoints import Checkpoints, PartStore


def die_once(folder: Path, name: str) -> None:
    """End this process at once, unless it has happened before."""
    mark = folder / f"died-{name}"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Deadly(Checkpoints):
    """Dies in iterations `at` of the parts given there, once each, and while writing `writing`."""

    at: tuple[tuple[int, int], ...] = ()  # iteration, part
    writing: tuple[tuple[int, int], ...] = ()

    def store(self, part, number, parts):
        return DeadlyStore(self, part, number, parts)


class DeadlyStore(PartStore):
    def due(self, k):
        if (k, self.number) in self.made.at:
            die_once(self.made.folder, f"{k}-{self.number}")
        return super().due(k)

    def save(self, saved):
        if (saved.k, self.number) in self.made.writing:
            path = self._file(saved.k, self.number)
            if not (self.made.folder / f"died-writing-{saved.k}-{self.number}").exists():
                path.write_bytes(b"half a file")
            die_once(self.made.folder, f"writing-{saved.k}-{self.number}")
        yield from super().save(saved)
