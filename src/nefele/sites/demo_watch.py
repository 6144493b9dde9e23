"""Watches the processes of a demo by the files in which they say where they are; kills one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nefele.sites.demo_processes import Processes
from nefele.sites.status import read_status

_LOOK = 0.1  # seconds between two looks
_TELL = 2.0  # and between two lines
_LONGEST = 1800.0  # seconds after which something must be wrong
_SHARE = 0.6  # of all requests, after which the kill comes: in the final fit
_DONE = (0, 1)  # exit codes of a site that has run to its end


@dataclass(eq=False)
class Story:
    """What happened.

    Attributes
    ----------
    killed : dict
        Which site, when (seconds), where it was (stage and round, from its own status file and,
        as `went_on`, by its journal), where the others waited for it, and when it was restarted.
    trace : dict of member to list of (seconds, requests)
    """

    killed: dict[str, Any] = field(default_factory=dict)
    trace: dict[str, list[tuple[float, int]]] = field(default_factory=dict)


def watch(
    processes: Processes,
    folder: Path,
    requests: int,
    victim: str,
    tell: Callable[[str], object] = lambda text: None,
) -> Story:
    """Start all sites, kill one in the middle, start it again when all wait, see them end.

    Nothing depends on how fast they are: the kill comes when the victim says that it has done more
    than half of its requests, the restart when all others say that they wait.

    Parameters
    ----------
    processes : Processes
    folder : Path
        With the folders of the sites.
    requests : int
        Of each program until its end.
    victim : str
    tell : callable, optional
    """
    return _Watch(processes, folder, requests, victim, tell).run()


class _Watch:
    def __init__(
        self, processes: Processes, folder: Path, requests: int, victim: str, tell: Any
    ) -> None:
        self.processes, self.folder, self.requests = processes, folder, requests
        self.victim, self.tell = victim, tell
        self.names = list(processes.commands)
        self.story = Story(trace={name: [] for name in self.names})
        self.began = time.monotonic()
        self._due = 0.0

    @property
    def now(self) -> float:
        return round(time.monotonic() - self.began, 2)

    def run(self) -> Story:
        for name in self.names:
            self.processes.start(name)
        self._until(lambda seen: seen[self.victim].get("requests", 0) >= _SHARE * self.requests)
        self._kill()
        others = [name for name in self.names if name != self.victim]
        self._until(lambda seen: all(seen[name].get("state") == "waiting" for name in others))
        self._restart(others)
        self._until(lambda seen: not self.processes.running)
        self._look()
        self.story.killed["went_on"] = self._facts(self.victim).get("went_on")
        return self.story

    def _kill(self) -> None:
        self.processes.kill(self.victim)
        seen = self._facts(self.victim)
        if seen["state"] in ("ending", "finished"):
            raise ValueError(f"{self.victim} must be killed on the way; it had ended before.")
        killed = {"site": self.victim, "seconds": self.now}
        self.story.killed = {**killed, "stage": seen["stage"], "round": seen["round"]}
        self.tell(
            f"{self.now:5.1f} s: {self.victim} is killed (SIGKILL) in the {seen['stage']} after "
            f"round {seen['round']}."
        )

    def _restart(self, others: list[str]) -> None:
        where = {name: self._facts(name) for name in others}
        at = {name: {"stage": f["stage"], "round": f["round"]} for name, f in where.items()}
        self.story.killed |= {"others": at, "restarted": self.now}
        self.tell(
            f"{self.now:5.1f} s: all others wait, "
            + ", ".join(f"{name} after round {f['round']}" for name, f in at.items())
            + f". {self.victim} is started again."
        )
        self.processes.start(self.victim)

    def _until(self, happened: Callable[[dict[str, dict[str, Any]]], bool]) -> None:
        """Look again and again until something has happened."""
        while not happened(self._look()):
            self.processes.check(good=(*_DONE, *self._killed()))
            if not self.processes.running:
                raise ValueError(f"{self.victim} must be killed on the way; all had ended before.")
            if self.now > _LONGEST:
                raise ValueError(
                    f"The sites must end within {_LONGEST:g} s; {', '.join(self.processes.running)}"
                    f" did not. See the log.txt in {str(self.folder)!r}."
                )
            time.sleep(_LOOK)
        self.processes.check(good=(*_DONE, *self._killed()))

    def _killed(self) -> tuple[int, ...]:
        """The exit code of the victim, while it is away."""
        away = self.story.killed and "restarted" not in self.story.killed
        code = self.processes.codes().get(self.victim)
        return (code,) if away and code is not None else ()

    def _look(self) -> dict[str, dict[str, Any]]:
        seen = {name: self._facts(name) for name in self.names}
        for name, facts in seen.items():
            if "requests" in facts and facts.get("state") != "stopped":
                self.story.trace[name].append((self.now, int(facts["requests"])))
        if self.now >= self._due:
            self._due = self.now + _TELL
            self.tell(
                f"{self.now:5.1f} s: " + ", ".join(map(self._where, self.names, seen.values()))
            )
        return seen

    def _where(self, name: str, facts: dict[str, Any]) -> str:
        if "requests" not in facts:
            return f"{name} starting"
        if facts["state"] in ("ending", "finished"):
            return f"{name} done"
        waits = ", waits" if facts["state"] == "waiting" else ""
        return f"{name} {100 * facts['requests'] // max(self.requests, 1)}%{waits}"

    def _facts(self, name: str) -> dict[str, Any]:
        try:
            return read_status(self.folder / name / "run-1")
        except ValueError:  # not there yet, or being written
            return {}
