"""Processes that all end with the program that started them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_SIGNALS = ("SIGTERM", "SIGHUP")  # besides Ctrl-C; the latter is not on every system
_FAREWELL = 10.0  # seconds until a process that was killed counts as lost


class Processes:
    """Commands by name, each with a file for what it prints; none is left at the end.

    Parameters
    ----------
    commands : dict of name to list of str
    logs : dict of name to Path

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     command = [sys.executable, "-c", "import time; time.sleep(60)"]
    ...     with Processes({"a": command}, {"a": Path(folder) / "log"}) as processes:
    ...         processes.start("a")
    ...         first = processes.running
    ...     first, processes.running
    (['a'], [])
    """

    def __init__(self, commands: Mapping[str, Sequence[str]], logs: Mapping[str, Path]) -> None:
        self.commands, self.logs = commands, logs
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Processes:
        if threading.current_thread() is threading.main_thread():
            for name in _SIGNALS:
                if hasattr(signal, name):
                    number = getattr(signal, name)
                    self._before[number] = signal.signal(number, _leave)
        return self

    def __exit__(self, *args: object) -> None:
        try:
            for process in self._processes.values():
                with suppress(OSError):
                    process.kill()
            for process in self._processes.values():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_FAREWELL)
        finally:
            for number, before in self._before.items():
                signal.signal(number, before)

    def start(self, name: str) -> None:
        """Start a command, for the first time or again."""
        with self.logs[name].open("ab") as log:
            self._processes[name] = subprocess.Popen(
                self.commands[name], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self, name: str) -> None:
        """End a process at once, without a chance to tidy up (SIGKILL)."""
        self._processes[name].kill()
        self._processes[name].wait(_FAREWELL)

    @property
    def running(self) -> list[str]:
        """Names of those that have not ended."""
        return [name for name, one in self._processes.items() if one.poll() is None]

    def codes(self) -> dict[str, int]:
        """Exit codes of those that have ended."""
        found = {name: one.poll() for name, one in self._processes.items()}
        return {name: code for name, code in found.items() if code is not None}

    def check(self, good: Sequence[int]) -> None:
        """A ValueError when one has ended with an exit code that is not among the good ones."""
        for name, code in self.codes().items():
            if code not in good:
                lines = self.logs[name].read_text(encoding="utf-8", errors="replace").split("\n")
                last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
                raise ValueError(
                    f"{name} must run to its end; it stopped (exit code {code}): {last}"
                )


def _leave(number: int, frame: object) -> None:
    sys.exit(128 + number)
