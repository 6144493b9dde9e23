"""Times as numbers that sort: ISO 8601 text is read, everything else is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

_START = datetime(1, 1, 1)
_TICK = timedelta(microseconds=1)
_MONTH = re.compile(r"^(\d{4})(?:[-/](\d{2}))?$")
_SLASHES = re.compile(r"^(\d{4})/(\d{2})/(\d{2})")
_PARTED = re.compile(r"^[\dW-]{7,10}(?:[ T].+)?$")
ACCEPTED = (
    "numbers, or dates and times in the form of ISO 8601: 2026, 2026-01, 2026-01-31, 2026/01/31, "
    "2026-01-31 09:30, 2026-01-31T09:30:00+02:00"
)


def read_times(column: Any, line: Callable[[int], str], where: str) -> NDArray[np.int64]:
    """Microseconds of each time since year 1, offsets taken off.

    Of a column of text; `line` says where a row is in the file, `where` is how messages call the
    column.

    Examples
    --------
    >>> import polars as pl
    >>> column = pl.Series(["2024-01-01T03:00+02:00", "2024-01-01T02:00Z"])
    >>> np.diff(read_times(column, str, "t")).tolist() == [3_600_000_000]
    True
    """
    text = column.to_numpy().astype(str)
    values, first, place = np.unique(text, return_index=True, return_inverse=True)
    ticks = np.empty(len(values), dtype=np.int64)
    shifted = np.empty(len(values), dtype=bool)
    for k in np.argsort(first, kind="stable"):  # errors name the first row
        found = _moment(str(values[k]))
        if found is None:
            raise ValueError(
                f"{where}: times must be {ACCEPTED}; got {str(values[k])!r} at "
                f"{line(int(first[k]))}. Write the year first and two digits for each other part."
            )
        ticks[k], shifted[k] = found
    if shifted.any() and not shifted.all():
        rows = [int(first[shifted].min()), int(first[~shifted].min())]
        raise ValueError(
            f"{where}: times must all have a UTC offset or all have none; got "
            f"{str(text[rows[0]])!r} at {line(rows[0])} and {str(text[rows[1]])!r} at "
            f"{line(rows[1])}. Write them alike."
        )
    return ticks[place]


def _moment(text: str) -> tuple[int, bool] | None:
    """Microseconds since year 1, and whether there was an offset; None if it is no such time."""
    month = _MONTH.match(text)
    if month:
        text = f"{month[1]}-{month[2] or '01'}-01"
    text = _SLASHES.sub(r"\1-\2-\3", text)
    if not _PARTED.match(text):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    offset = found.utcoffset()
    since = found.replace(tzinfo=None) - _START - (offset or timedelta(0))
    return since // _TICK, offset is not None
