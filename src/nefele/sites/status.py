"""How a run is going, in a small file that another terminal can read."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path
from typing import Any

from nefele._files import is_alive
from nefele.sites._secrets import write
from nefele.sites.driver import Driver

FILE = "status.json"
_EVERY = 0.5  # seconds


class Status:
    """Collects what a run is doing and writes it down now and then.

    Parameters
    ----------
    folder : Path
        Of the run.
    told : callable, optional
        Is given the same facts, for a line on a terminal.
    """

    def __init__(self, folder: Path, facts: dict[str, Any], told: Any = None) -> None:
        self.path, self.told = folder / FILE, told
        self.facts = {**facts, "process": os.getpid(), "state": "starting", "started": _now()}
        self._stage, self._round, self._gap, self._change = "starting", 0, math.inf, math.inf
        self._rounds, self._since = 0, time.monotonic()
        self._due = 0.0
        self._late: dict[str, float] = {}

    def report(self, stage: str, k: int, gap: float, change: float = math.inf) -> None:
        """A round is done."""
        self._stage, self._round, self._gap, self._change = stage, k, gap, change
        self._rounds += 1

    def update(self, driver: Driver) -> None:
        """Write what there is to say, if it is time."""
        now = time.monotonic()
        waiting = {name: self._late.get(name, now) for name in driver.waiting}
        self._late = waiting
        if driver.resumed and "went_on" not in self.facts:
            where = {"stage": self._stage, "round": self._round, "request": driver.resumed}
            self.facts["went_on"] = where  # here the process before was stopped
        if now < self._due:
            return
        self._due = now + _EVERY
        late = {name: round(now - since, 1) for name, since in waiting.items() if now > since + 1}
        self.write(
            state="waiting" if late else "running",
            gap=self._gap,
            change=self._change if math.isfinite(self._change) else None,
            rounds_per_second=round(self._rounds / max(now - self._since, 1e-9), 1),
            requests=driver.number,
            gone=driver.gone,
            late=late,
            why=driver.why,
            messages=driver.ledger.messages,
            **driver.books.over_all(),
        )

    def write(self, **facts: Any) -> None:
        """Write facts down at once."""
        self.facts.update(stage=self._stage, round=self._round, at=_now())
        self.facts.update(facts)
        gap = self.facts.get("gap")
        self.facts["gap"] = None if gap is None or not math.isfinite(gap) else float(gap)
        text = json.dumps(self.facts, indent=2, allow_nan=False)
        write(self.path, text.encode())
        if self.told is not None:
            self.told(self.facts)


def read_status(folder: Path) -> dict[str, Any]:
    """The facts of a run; a run whose process is gone says so."""
    try:
        facts = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"No run in {str(folder)!r}. Start one by: nefele site run") from None
    except (OSError, ValueError):
        raise ValueError(f"{str(folder / FILE)!r} cannot be read. Wait a second.") from None
    if facts.get("state") in ("starting", "running", "waiting", "ending") and not is_alive(
        int(facts["process"])
    ):
        facts["state"] = "stopped"
    return dict(facts)


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S")
