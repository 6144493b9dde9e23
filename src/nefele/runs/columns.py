"""Which columns of a file are features, how they are used, and which are left out and why."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele.encoding.kinds import BOOLEAN, DATE, NUMBER, TEXT, read_column
from nefele.encoding.parts import Part, fit_part
from nefele.runs.config import check_features
from nefele.runs.tables import Table

_FEW = 10  # rows below which 1, 2, 3, ... may well be a measurement
_UNNAMED = re.compile(
    r"^(|unnamed(: ?\d+)?|_duplicated_\d+|row ?names|row[._](names|number|id)|rowid)$"
)
_NUMBERS = "it only numbers the rows"
_STRANGE = "it holds neither numbers, truth values, dates nor text"
_TRUTH = {"true": True, "false": False}
MIN_COUNT, MAX_LEVELS = 5, 30  # as the encoder of the estimators has them


@dataclass(frozen=True, eq=False)
class Uses:
    """The features of a file, in numbers, text, dates or truth values.

    Attributes
    ----------
    frame : polars.DataFrame
        One column for each, null where a value is missing.
    left_out : dict of str to str
        Columns that are no features, and why.
    """

    frame: Any
    left_out: dict[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are features."""
        return tuple(self.frame.columns)

    def take(self, keep: Any) -> Uses:
        """Some of the rows; a column that says nothing in these is left out."""
        import polars as pl

        frame = self.frame.filter(pl.Series(keep)) if self.names else self.frame
        left_out = dict(self.left_out)
        for name in frame.columns:
            why = _part(name, frame[name])
            if isinstance(why, str):
                left_out[name] = why
                frame = frame.drop(name)
        return Uses(frame, left_out)

    def parts(self) -> list[Part]:
        """How each column becomes features."""
        found = [_part(name, self.frame[name]) for name in self.names]
        return [part for part in found if not isinstance(part, str)]


def use_columns(table: Table, taken: Iterable[Any], features: Iterable[str] | None) -> Uses:
    """The features of a table: those named, or all columns that are not taken and say something."""
    import polars as pl

    found, left_out = {}, {}
    if features is not None:
        for name in features:
            column = named_column(table, table.check_column(name))
            why = _part(name, column)
            if isinstance(why, str):
                raise ValueError(
                    f'{table.name}: column "{name}" cannot be a feature: {why}. Drop it from '
                    "--features."
                )
            found[name] = column
    else:
        for name in table.columns:
            if name not in set(taken):
                column = used_column(table, name)
                if isinstance(column, str):
                    left_out[name] = column
                else:
                    found[name] = column
        check_features(found)
    return Uses(pl.DataFrame(found), left_out)


def used_column(table: Table, name: str) -> Any:
    """A column as a feature (polars Series), or why it is none; a ValueError for typing errors."""
    if table.is_boxed(name):
        return _STRANGE
    column = named_column(table, name)
    if column.dtype.is_numeric() and numbers_rows(name, column):
        return _NUMBERS
    why = _part(name, column)
    return why if isinstance(why, str) else column


def named_column(table: Table, name: str) -> Any:
    """A column with its kind: numbers, dates or truth values where all of it is, else text.

    A ValueError for a few texts among numbers, which are typing errors.
    """
    import polars as pl

    column = table.frame[name]
    if column.dtype == pl.Boolean or column.dtype in (pl.Date, pl.Datetime):
        return column
    numbers, odd = table.parsed(name)
    if not odd.any():
        huge = table.huge_message(name, numbers.to_numpy())
        if huge:
            raise ValueError(huge)
        return numbers.rename(name)
    n_odd, n_numbers = int(odd.sum()), len(numbers) - numbers.null_count()
    few = 2 * n_odd < n_numbers + n_odd
    if column.dtype.is_numeric() or few or table.has_commas(name, odd):
        raise ValueError(table.odd_message(name, odd, optional=True))
    text = _text(table, name)
    words = text.str.to_lowercase()
    if len(text) > text.null_count() and words.drop_nulls().is_in(list(_TRUTH)).all():
        return words.replace_strict(_TRUTH, return_dtype=pl.Boolean).rename(name)
    return text


def _text(table: Table, name: str) -> Any:
    import polars as pl

    text = table.text(name)
    return text.set(pl.Series(table.says_missing(name)), None).rename(name)


def fitted_column(table: Table, part: Part) -> Any:
    """A column of new rows as that of the rows that were fitted; errors name the line."""
    import polars as pl

    column = table.frame[part.name]
    if part.kind == NUMBER:
        return pl.Series(part.name, table.numbers(part.name), nan_to_null=True)
    if part.kind in (TEXT, DATE):
        temporal = column.dtype in (pl.Date, pl.Datetime)
        return column if temporal else _text(table, part.name)
    found = named_column(table, part.name)
    if part.kind == BOOLEAN and found.dtype == pl.String:
        known = found.is_not_null() & ~found.str.to_lowercase().is_in(list(_TRUTH))
        row = int(known.arg_true()[0])
        raise ValueError(
            f'{table.name}: column "{part.name}" must hold true or false; got '
            f"{str(column[row])!r} at {table.line(row)}. Correct it, or leave it empty."
        )
    return found


def numbers_rows(name: str, numbers: Any) -> bool:
    """Whether a column of numbers only counts the rows of the file.

    So do 0, 1, 2, ... and 1, 2, 3, ... in the order of the file, and different whole numbers under
    a name for them, or under none.

    Examples
    --------
    >>> import polars as pl
    >>> numbers_rows("x", pl.Series(range(1, 13))), numbers_rows("x", pl.Series([3.0, 1.0]))
    (True, False)
    """
    if len(numbers) < 2 or numbers.null_count():
        return False
    values = np.asarray(numbers.to_numpy(), dtype=np.float64)
    if not (values % 1 == 0).all():
        return False
    if len(values) >= _FEW and values[0] in (0.0, 1.0) and (np.diff(values) == 1).all():
        return True
    called = _UNNAMED.match(name.strip().lower()) is not None
    return called and len(np.unique(values)) == len(values)


def _part(name: str, column: Any) -> Part | str:
    try:
        return fit_part(name, read_column(column, name), MIN_COUNT, MAX_LEVELS)
    except ValueError:
        return _STRANGE
