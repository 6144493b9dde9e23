"""Tables that are read only as far as they are needed, and what their columns must hold."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_MOST_ID = 2**63 - 1
_MOST_WHOLE = 2.0**53  # up to which a float is its own whole number


class Source:
    """A Parquet or CSV file, or one of an object store.

    Attributes
    ----------
    name, path : str
        What it is called among the arguments, and where it is.
    scan : polars LazyFrame
    """

    def __init__(self, path: Any, name: str) -> None:
        import polars as pl

        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ValueError(f"{name} must be the path of a Parquet or CSV file; got {path!r}.")
        self.name, self.path = name, os.fspath(path)
        if "://" not in self.path and not Path(self.path).is_file():
            raise ValueError(f"{name} must be a file; there is no file {self.path!r}.")
        read = pl.scan_csv if self.path.endswith((".csv", ".csv.gz")) else pl.scan_parquet
        try:
            self.scan = read(self.path)
            self.kinds = dict(self.scan.collect_schema())
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ValueError(
                f"{name} must be a Parquet or CSV file; {self.path!r} is none: {_first(error)}"
            ) from None

    def collect(self, lazy: Any) -> Any:
        """What was asked of the table, by the engine that holds little at a time."""
        import polars as pl

        try:
            try:
                return lazy.collect(engine="streaming")
            except TypeError:  # polars before 1.23
                return lazy.collect(streaming=True)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise ValueError(
                f"{self.name} must be a table whose columns hold what they begin with; in "
                f"{self.path!r}: {_first(error)} Mend that row, or write the table as Parquet."
            ) from None

    def ids(self, name: str) -> Any:
        """A column of ids as 64-bit numbers or as text, however many bytes a file has for them.

        A ValueError where it holds anything else.
        """
        import polars as pl

        kind, column = self.kinds[name], pl.col(name)
        if isinstance(kind, pl.Categorical | pl.Enum):
            column = column.cast(pl.String)
        elif kind.is_integer() or kind.is_float():
            column = column.cast(pl.Int64)
        elif kind != pl.String:
            raise ValueError(
                f"Column {name!r} of {self.name} must hold ids, whole numbers or text; it holds "
                f"{kind}. Write it as text in both tables."
            )
        return column

    def checked_ids(self, name: str) -> Any:
        """The same, after a look whether one is missing, or a number not whole or too large."""
        import polars as pl

        ids = self.ids(name)

        kind, column = self.kinds[name], pl.col(name)
        bad = column.is_null()
        if kind.is_float():
            far = (column.abs() > _MOST_WHOLE) | (column != column.floor())
            bad = bad | column.is_nan() | far
        elif kind == pl.UInt64:
            bad = bad | (column > _MOST_ID)
        rows = self.scan.select(column).with_row_index("the row").filter(bad.fill_null(True))
        found = self.collect(rows.head(1))
        if not len(found):
            return ids
        row, value = found["the row"][0], found[name][0]
        if value is None or value != value:
            raise ValueError(
                f"Column {name!r} of {self.name} must have an id in every row; row {row} of "
                f"{self.path!r} has none. Drop such rows."
            )
        raise ValueError(
            f"Column {name!r} of {self.name} must hold whole numbers below 2^63 (2^53 where they "
            f"are floats); row {row} of {self.path!r} has {value}. Write the ids as text in both "
            "tables."
        )


def _first(error: Exception) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0].rstrip(".") + "."


def check_columns(
    rows: Source, node: str, target: str, features: list[str] | None, by: str | None
) -> list[str]:
    """The features, after a look whether all columns are there and are numbers."""
    kinds = rows.kinds
    if features is None:
        features = [name for name in kinds if name not in (node, target, by)]
    elif not isinstance(features, list | tuple):
        raise ValueError(f"features must be a list of columns; got {features!r}.")
    for name in [node, target, *features, *([by] if by is not None else [])]:
        if name not in kinds:
            raise ValueError(f"data must have a column {name!r}; it has {', '.join(kinds)}.")
    if not features:
        raise ValueError("data must have a column with a feature; it has none besides the others.")
    used = [node, target, *features]
    twice = next((name for name in used if used.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"Node, target and features must be different columns; {twice!r} is named twice."
        )
    for name in [target, *features]:
        if not kinds[name].is_numeric():
            raise ValueError(
                f"Column {name!r} must hold numbers; it holds {kinds[name]}. Encode it, or name "
                "the features that are meant."
            )
    return list(features)
