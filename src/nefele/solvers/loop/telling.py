"""What a solve says of itself with `verbose`: a line about each examined point."""

from __future__ import annotations

import math
from typing import Any

from nefele._progress import Line
from nefele.result import Record
from nefele.solvers.loop.loop import Callback


def record_words(record: Record, tol: float | None = None) -> str:
    """An examined point in words.

    Examples
    --------
    >>> record_words(Record(50, 3.5, gap=1e-3, seconds=1.0, guess=1e-3, rate=2.0), 1e-6)
    'iteration 50: gap 1.0e-03 (until 1.0e-06), 2 digits/s, about 1.5 s left'
    >>> record_words(Record(10, 3.5, gap=float("inf"), seconds=1.0, guess=0.2, rate=0.0))
    'iteration 10: no gap proven yet, guess 2.0e-01'
    """
    until = "" if tol is None else f" (until {tol:.1e})"
    words = f"iteration {record.iteration}: gap {record.gap:.1e}{until}"
    if not math.isfinite(record.gap):
        words = f"iteration {record.iteration}: no gap proven yet, guess {record.guess:.1e}{until}"
    if not (math.isfinite(record.rate) and record.rate > 0):
        return words
    left = math.inf if tol is None else record.seconds_left(tol)
    more = f", about {left:.2g} s left" if 0 < left < math.inf else ""
    return f"{words}, {record.rate:.2g} digits/s{more}"


def telling(callback: Callback | None, line: Line, tol: float | None) -> Callback | None:
    """The callback of a solve that also shows each point; the same one where nothing is shown."""
    if not line.on:
        return callback

    def tell(record: Record) -> Any:
        line.show(record_words(record, tol))
        return None if callback is None else callback(record)

    return tell
