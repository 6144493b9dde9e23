"""The tables: CSV, and text for the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from math import isfinite
from typing import Any

from nefele.experiments.base import Row

_COLUMNS = (
    "what",
    "quantity",
    "printed",
    "where",
    "ours",
    "deviation",
    "seeds",
    "gap",
    "converged",
    "stops",
    "failed",
    "verdict",
    "quick",
)


def as_csv(rows: Sequence[Row], quick: bool = False) -> str:
    """All rows, numbers in full; the last column says whether it was a quick run.

    Examples
    --------
    >>> print(as_csv([Row("local", "error", 6.5)]).splitlines()[1])
    local,error,,,6.5,,1,,True,False,False,,False
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({**row.as_dict(), "quick": quick})
    return out.getvalue()


def number(value: float | None) -> str:
    """A number for people.

    Examples
    --------
    >>> number(5.4329), number(4.8528e-05), number(1258.0), number(None)
    ('5.433', '4.85e-05', '1258', '')
    """
    if value is None or not isfinite(value):
        return "" if value is None or value != value else str(value)
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    return f"{value:.2e}" if abs(value) < 1e-2 or abs(value) >= 1e5 else f"{value:.4g}"


def with_deviation(row: Row) -> str:
    """Mean and deviation.

    Examples
    --------
    >>> with_deviation(Row("local", "error", 6.5, 0.25))
    '6.5 +- 0.25'
    """
    spread = "" if row.deviation is None else f" +- {row.deviation:.2g}"
    return number(row.ours) + spread


def as_table(title: str, rows: Sequence[Row], narrow: bool = False) -> Any:
    """The rows that are not points of long curves, as a rich table.

    A narrow one leaves out the verdicts, for `verdicts` to list them below.

    Examples
    --------
    >>> as_table("Table III", [Row("local", "error", 6.5)]).row_count
    1
    """
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    table.add_column("setting")
    table.add_column("quantity")
    for name in ("printed", "nefele", "seeds", "gap"):
        table.add_column(name, justify="right", no_wrap=True)
    if not narrow:
        table.add_column("verdict")
    for row in rows:
        if not row.minor:
            gap = "" if row.gap is None else f"{row.gap:.0e}"
            cells = [row.what, row.quantity, number(row.printed), with_deviation(row)]
            cells += [str(row.seeds), gap]
            cells += [] if narrow else [row.verdict]
            table.add_row(*(escape(cell) for cell in cells))
    return table


def verdicts(rows: Sequence[Row]) -> list[str]:
    """What is to say about the rows, each text once.

    Examples
    --------
    >>> print(*verdicts([Row("a", "e", 1.0, printed=1.0), Row("b", "e", 2.0, printed=2.0)]))
    same: a; b
    """
    found: dict[str, list[str]] = {}
    for row in rows:
        if not row.minor and row.verdict:
            found.setdefault(row.verdict, []).append(row.what)
    return [f"{text}: {'; '.join(dict.fromkeys(names))}" for text, names in found.items()]
