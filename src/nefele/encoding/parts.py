"""How one column becomes features: numbers with their gaps filled, levels, parts of a date.

Each part is plain data, so that it can be written as JSON, and gives its features' names, values
and gaps: the entries that were missing and hold a fill.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._words import short
from nefele.encoding.kinds import BOOLEAN, DATE, EMPTY, NUMBER, TEXT, Column, as_kind

_SMALL = 0.05  # share of the rows that a level needs at most, in small tables
_MANY = 10  # rows from which as many different texts as rows are no levels
_DAY, _YEAR = 1.0, 365.0  # in days
MISSING, RARE = "(missing)", "(rare)"


class Encoded(NamedTuple):
    """Features of a column, shape (n_rows, k), and which entries are fills."""

    values: Array
    gaps: NDArray[np.bool_]


@dataclass(frozen=True)
class Numbers:
    """Numbers or truth values; `flagged` adds a column that says where they were missing."""

    name: str
    kind: str
    fill: float
    flagged: bool

    @property
    def features(self) -> list[str]:
        return [self.name, *([f"{self.name} {MISSING}"] if self.flagged else [])]

    def encode(self, column: Column) -> Encoded:
        column = as_kind(column, self.kind, self.name)
        return _flagged(column.values[:, None], [self.fill], column.missing, self.flagged)

    def how(self) -> str:
        what = "truth values as 0 and 1" if self.kind == BOOLEAN else "numbers"
        if not self.flagged:
            return what
        return f"{what}; missing ones filled in by {self.fill:.6g}, with an indicator"


@dataclass(frozen=True)
class Levels:
    """Text: one column of 0 and 1 for each level but the commonest, the reference.

    Rare levels have a column together, and missing text one of its own, if there were any. What
    was never seen counts as rare, or without rare ones as an average row: `shares` of the levels.
    """

    name: str
    reference: str
    levels: tuple[str, ...]
    rare: int  # how many levels are taken together
    lost: bool
    shares: tuple[float, ...]

    kind = TEXT

    @property
    def features(self) -> list[str]:
        found = [f"{self.name}={level}" for level in self.levels]
        found += [f"{self.name} {RARE}"] if self.rare else []
        return found + ([f"{self.name} {MISSING}"] if self.lost else [])

    def encode(self, column: Column) -> Encoded:
        column = as_kind(column, TEXT, self.name)
        place = {level: j for j, level in enumerate(self.levels)}
        values = np.zeros((len(column.missing), len(self.features)))
        odd = len(self.levels) if self.rare else -1
        for row, (text, gone) in enumerate(
            zip(column.values.tolist(), column.missing.tolist(), strict=True)
        ):
            if text == self.reference and not gone:
                continue
            at = place.get(text, odd) if not gone else (-1 if self.lost else odd)
            if gone and self.lost:
                values[row, -1] = 1.0
            elif at >= 0:
                values[row, at] = 1.0
            else:
                values[row] = self.shares
        return Encoded(values, np.zeros(values.shape, dtype=bool))

    def new(self, column: Column) -> list[str]:
        """Texts of a column that are no level; a level that was rare is not told apart."""
        column = as_kind(column, TEXT, self.name)
        known = {self.reference, *self.levels}
        return sorted(set(column.values[~column.missing].tolist()) - known)

    def how(self) -> str:
        words = f"text, {len(self.levels) + 1} levels against {short(self.reference)}"
        words += f"; {self.rare} rare ones together" if self.rare else ""
        return words + ("; missing is a level" if self.lost else "")


@dataclass(frozen=True)
class Dates:
    """Dates: years since `origin`, about their middle, and the season as sine and cosine."""

    name: str
    origin: float
    parts: tuple[str, ...]
    fills: tuple[float, ...]
    flagged: bool

    kind = DATE

    @property
    def features(self) -> list[str]:
        found = [f"{self.name} {part}" for part in self.parts]
        return found + ([f"{self.name} {MISSING}"] if self.flagged else [])

    def encode(self, column: Column) -> Encoded:
        column = as_kind(column, DATE, self.name)
        values = date_parts(column.values, self.parts, self.origin)
        return _flagged(values, self.fills, column.missing, self.flagged)

    def how(self) -> str:
        names = {"year": f"years since {self.origin:.0f}", "sin": "season (sine and cosine)"}
        words = f"dates as {' and '.join(names[part] for part in self.parts if part in names)}"
        return words + ("; missing ones filled in, with an indicator" if self.flagged else "")


Part = Numbers | Levels | Dates


def fit_part(name: str, column: Column, min_count: int, max_levels: int) -> Part | str:
    """How the column becomes features, or why it becomes none."""
    if column.kind == EMPTY:
        return "it is empty"
    if column.kind == DATE:
        return _fit_dates(name, column)
    if column.kind == TEXT:
        return _fit_levels(name, column, min_count, max_levels)
    gaps = bool(column.missing.any())
    fill = float(np.median(column.values[~column.missing]))
    return Numbers(name, column.kind, fill, gaps)


def _fit_levels(name: str, column: Column, min_count: int, max_levels: int) -> Levels | str:
    known = column.values[~column.missing].tolist()
    counts = Counter(known)
    if len(known) >= _MANY and len(counts) >= 0.9 * len(known):
        return "almost every row has a text of its own"
    n = len(column.missing)
    least = min(min_count, math.ceil(_SMALL * n))
    ordered = sorted(counts, key=lambda level: (-counts[level], level))
    kept = [level for level in ordered[:max_levels] if counts[level] >= least]
    rare = len(counts) - len(kept)
    if not kept:
        return f"no text is in {least} rows or more"
    lost = n > len(known)
    if len(kept) + bool(rare) + lost < 2:
        return "it has one value only"
    shares = [counts[level] / n for level in kept[1:]]
    shares += [(len(known) - sum(counts[level] for level in kept)) / n] if rare else []
    shares += [(n - len(known)) / n] if lost else []
    return Levels(name, kept[0], tuple(kept[1:]), rare, lost, tuple(shares))


def _fit_dates(name: str, column: Column) -> Dates | str:
    known = column.values[~column.missing]
    days = (known - known.min()) / np.timedelta64(1, "D")
    if not days.max() >= _DAY:
        return (
            "its times lie within one day, so that neither year nor season differ (give the hour "
            "as a number)"
        )
    parts = ("year", "sin", "cos") if days.max() >= _YEAR else ("year",)
    if len(parts) > 1 and np.ptp(date_parts(known, ("sin", "cos")), axis=0).max() < 0.1:
        parts = ("year",)  # the same days of each year
    origin = float(np.round(np.median(date_parts(known, ("year",)))))
    fills = np.median(date_parts(known, parts, origin), axis=0)
    return Dates(name, origin, parts, tuple(fills.tolist()), bool(column.missing.any()))


def date_parts(moments: NDArray[Any], parts: tuple[str, ...], origin: float = 0.0) -> Array:
    """Years since the origin, sine and cosine of their fraction; shape (n, len(parts)).

    Examples
    --------
    >>> date_parts(np.array(["2024-07-02"], dtype="datetime64[us]"), ("year",)).tolist()
    [[2024.5]]
    """
    start = moments.astype("datetime64[Y]")
    length = (start + 1).astype("datetime64[us]") - start.astype("datetime64[us]")
    with np.errstate(invalid="ignore"):
        part = (moments - start.astype("datetime64[us]")) / length
        year = np.where(np.isnat(moments), np.nan, start.astype(np.int64) + 1970.0) + part
    found: dict[str, Callable[[], Array]] = {
        "year": lambda: year - origin,
        "sin": lambda: np.sin(2 * np.pi * part),
        "cos": lambda: np.cos(2 * np.pi * part),
    }
    return np.column_stack([found[name]() for name in parts])


def _flagged(values: Array, fills: Any, missing: NDArray[np.bool_], flagged: bool) -> Encoded:
    """Gaps filled, and a column of 0 and 1 where there may be gaps."""
    out = np.where(missing[:, None], np.asarray(fills), values)
    gaps = np.repeat(missing[:, None], out.shape[1], axis=1)
    if flagged:
        out = np.column_stack([out, missing.astype(np.float64)])
        gaps = np.column_stack([gaps, np.zeros(len(missing), dtype=bool)])
    return Encoded(out, gaps)


_PARTS: dict[str, type[Any]] = {"numbers": Numbers, "levels": Levels, "dates": Dates}
_NAMES = {kind: name for name, kind in _PARTS.items()}


def to_plain(part: Part) -> dict[str, Any]:
    """A part as JSON has it."""
    return {"is": _NAMES[type(part)], **{k: _listed(v) for k, v in vars(part).items()}}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def from_plain(state: Any) -> Part:
    """A part from JSON; a ValueError for anything that no part can be."""
    kind = _PARTS[state["is"]]
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in state.items() if k != "is"}
    part: Part = kind(**values)
    if not _is_sound(part):
        raise ValueError(f"no part of an encoder: {state!r}")
    return part


def _is_sound(part: Part) -> bool:
    if not isinstance(part.name, str):
        return False
    if isinstance(part, Numbers):
        return (
            part.kind in (NUMBER, BOOLEAN) and _finite([part.fill]) and type(part.flagged) is bool
        )
    if isinstance(part, Dates):
        known = part.parts in (("year",), ("year", "sin", "cos"))
        return (
            known
            and type(part.flagged) is bool
            and _finite([part.origin])
            and len(part.fills) == len(part.parts)
            and _finite(part.fills)
        )
    texts = (part.reference, *part.levels)
    return (
        all(isinstance(text, str) for text in texts)
        and len(set(texts)) == len(texts)
        and type(part.rare) is int
        and part.rare >= 0
        and type(part.lost) is bool
        and len(part.shares) == len(part.features)
        and _finite(part.shares)
        and all(0.0 <= share <= 1.0 for share in part.shares)
    )


def _finite(values: Any) -> bool:
    return all(type(v) is float and math.isfinite(v) and abs(v) < 1e150 for v in values)
