"""What a run prints line by line and writes as Markdown."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from pathlib import Path

from targets import TARGETS

PEER_COLUMNS = (
    "instance",
    "peer",
    "setting",
    "nefele: gap",
    "nefele: s",
    "peer: error",
    "peer: s",
    "ratio",
)
PACKAGES = ("numpy", "scipy", "numba", "cvxpy", "clarabel", "scs")


class Report:
    """Tables in the order they were begun, and the figures that targets ask for."""

    def __init__(self, target: Path) -> None:
        self.target, self.figures = target, dict[str, float]()
        self.parts, self.notes = list[list[str]](), list[list[str]]()
        self.solved = dict[int, float]()  # seconds of large solves by number of nodes
        self.started = time.perf_counter()

    def table(self, title: str, columns=PEER_COLUMNS) -> None:
        """Begin a table."""
        self.parts.append([f"## {title}", "", line(columns), line(["---"] * len(columns))])
        self.notes.append([])
        self.say(f"\n{title}")

    def row(self, *cells) -> None:
        self.parts[-1].append(line(cells))
        self.say(self.parts[-1][-1])

    def note(self, text: str) -> None:
        """A paragraph below the present table."""
        self.notes[-1] += ["", text]
        self.say(text)

    def say(self, text: str) -> None:
        """Progress: printed, not written."""
        print(text, flush=True)

    def against(
        self, instance, peer, setting, gap, ours, error, theirs, reached=True, *, key=None
    ) -> None:
        """One comparison; `reached`: whether the peer came to the error asked for."""
        ratio = theirs / ours
        more = "" if reached else "> "
        self.row(
            instance,
            peer,
            setting,
            f"{gap:.1e}",
            f"{ours:.3g}",
            f"{error:.1e}",
            f"{theirs:.3g}",
            f"{more}{ratio:.3g}",
        )
        if key is not None:
            self.figures[key] = ratio
        self.write()

    def figure(self, key: str, value: float) -> None:
        """A number that a target asks for."""
        self.figures[key] = value
        self.write()

    def write(self) -> None:
        """The report so far, so that a run that is cut short leaves what it has measured."""
        lines = [self._head(), "", *self._targets()]
        for part, notes in zip(self.parts, self.notes, strict=True):
            lines += ["", *part, *notes]
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self.target.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _head(self) -> str:
        versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in PACKAGES)
        minutes = (time.perf_counter() - self.started) / 60
        return (
            f"Measured on {time.strftime('%Y-%m-%d')} in {minutes:.0f} minutes: {processor()}, "
            f"{os.cpu_count()} cores, one thread each; Python {platform.python_version()}, "
            f"{versions}."
        )

    def _targets(self) -> list[str]:
        lines = ["## Targets", "", line(("target", "asked", "measured", "met"))]
        lines.append(line(["---"] * 4))
        for target in TARGETS:
            value = self.figures.get(target.key)
            if value is not None:
                met = "yes" if target.met(value) else "no"
                lines.append(line((target.what, target.asked, f"{value:.3g}", met)))
        missing = [target.what for target in TARGETS if target.key not in self.figures]
        if missing:
            lines += ["", f"Not measured in this run: {'; '.join(missing)}."]
        return lines


def line(cells) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def processor() -> str:
    """Model name of the processor where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
