"""Reading tables: CSV or Parquet, ids as text, numbers with the line of what is none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from nefele._checks import LARGEST, Array, check_name
from nefele._words import short
from nefele.runs.reading import read_csv, read_parquet
from nefele.runs.spreadsheets import merged, unguarded
from nefele.runs.times import read_times

_MISSING = ("", "na", "n/a", "nan", "null", "none", "<na>")
_COMMA = r"^[+-]?(\d{1,3}([.' ]\d{3})+|\d*),\d+([eE][+-]?\d+)?$"
_THOUSANDS = r"^[+-]?\d{1,3},\d{3}$"
_EXACT = 2.0**53  # whole floating-point numbers below it are exact
_SUFFIXES = {".parquet": "parquet", ".pq": "parquet"}


class Table:
    r"""A file as columns of text (CSV) or of the file's own types (Parquet).

    Attributes
    ----------
    frame : polars.DataFrame
    columns : list of str
    name : str
        How messages call the file.
    first_line : int or None
        Line of the first row in a text file; None for Parquet, whose rows are counted from 1.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv"
    ...     _ = path.write_text("id;x\n007;1.5\n7;2\n")
    ...     table = Table.read(path)
    >>> table.ids("id").tolist(), table.numbers("x").tolist()
    (['007', '7'], [1.5, 2.0])
    """

    def __init__(self, frame: Any, name: str, first_line: int | None, places: Any = None) -> None:
        self.frame, self.name, self.first_line = frame, name, first_line
        self.places = places  # of the rows in the file, when some were left out
        self.columns = list(frame.columns)
        self._known = frozenset(self.columns)
        self.merged: dict[str, str] = {}  # by column: a text with and without its apostrophe

    @classmethod
    def read(cls, path: Path, *, empty: bool = False) -> Table:
        """Read a file; what is wrong with it is a ValueError, also no rows unless `empty`."""
        if not path.exists():
            raise ValueError(f"No file {str(path)!r}.")
        if path.is_dir():
            raise ValueError(f"{str(path)!r} must be a file; it is a folder.")
        if not path.is_file():  # a pipe would be waited for, for ever
            raise ValueError(f"{str(path)!r} must be a file on a disk; it is a pipe or a device.")
        try:
            if _SUFFIXES.get(path.suffix.lower()) == "parquet":
                table = cls(read_parquet(path), path.name, None)
            else:
                table = cls(*read_csv(path)).without_apostrophes().without_blank_lines()
        except OSError as error:
            why = error.strerror or str(error)
            raise ValueError(f"{str(path)!r} cannot be read ({why}).") from None
        if not (table.frame.height or empty):
            raise ValueError(f"{path.name} must have at least one row; it has a header only.")
        return table

    def without_blank_lines(self) -> Table:
        """Without rows that hold nothing at all, such as an empty last line."""
        import polars as pl

        blank = self.frame.select(pl.all_horizontal(pl.all().is_null())).to_series()
        return self.take(~blank.to_numpy()) if blank.any() else self

    def without_apostrophes(self) -> Table:
        """Without what guards text from spreadsheets, see `nefele.runs.spreadsheets`."""
        bare = unguarded(self.frame)
        found = Table(bare, self.name, self.first_line, self.places)
        for name in self.columns if bare is not self.frame else ():
            both = merged(self.frame[name], bare[name])
            if both is not None:
                found.merged[name] = both
        return found

    def check_column(self, name: str) -> str:
        """The name, if there is such a column; otherwise an error with a suggestion."""
        if name in self._known:
            return name
        try:
            return check_name(name, self.columns, "column")
        except ValueError as error:
            text = str(error).replace(f'No column "{name}".', f'No column "{name}" in {self.name}.')
            raise ValueError(text.replace("Available:", "Columns:")) from None

    def line(self, row: int) -> str:
        """Where a row is in the file."""
        row = row if self.places is None else int(self.places[row])
        return f"row {row + 1}" if self.first_line is None else f"line {row + self.first_line}"

    def take(self, keep: Any) -> Table:
        """The rows where `keep` is true."""
        import polars as pl

        frame = self.frame.filter(pl.Series(keep))
        places = np.flatnonzero(keep) if self.places is None else self.places[np.asarray(keep)]
        found = Table(frame, self.name, self.first_line, places)
        found.merged = self.merged
        return found

    def text(self, name: str) -> Any:
        """A column as text (polars Series); a number of Parquet is written as an integer if whole.

        Empty text is missing.
        """
        import polars as pl

        column = self.frame[self.check_column(name)]
        if _is_boxed(column):
            raise ValueError(
                f'{self.name}: column "{name}" must hold text or numbers; it holds '
                f"{_kind(column)}. Name another column, or take it apart first."
            )
        if column.dtype.is_float():
            column = column.fill_nan(None)
            whole = ((column % 1 == 0) & (column.abs() < _EXACT)).fill_null(True).all()
            column = column.cast(pl.Int64) if whole else column
        column = column.cast(pl.String)
        stripped = column.str.strip_chars()
        return stripped.set(stripped == "", None)

    def labels(self, name: str) -> Any:
        """A column of ids or classes as text (polars Series), missing where it is empty.

        What could be mistaken for another one is an error.
        """
        column = self.frame[self.check_column(name)]
        if column.dtype.is_float():
            vague = (column.abs() >= _EXACT).fill_null(False) & ~column.is_nan().fill_null(False)
            if vague.any():
                row = int(vague.arg_true()[0])
                raise ValueError(
                    f'{self.name}: column "{name}" must hold text or whole numbers below 2**53; '
                    f"got {column[row]} at {self.line(row)}. Floating-point numbers of that size "
                    "lose digits: store the column as text or as integers."
                )
        if name in self.merged:
            text = self.merged[name]
            raise ValueError(
                f'{self.name}: column "{name}" must write an id in one way; it has {text!r} with '
                "and without an apostrophe in front, which guards it from spreadsheets. Rename one."
            )
        return self.text(name)

    def is_boxed(self, name: str) -> bool:
        """Whether a column of Parquet holds lists, structs or bytes."""
        return _is_boxed(self.frame[self.check_column(name)])

    def ids(self, name: str) -> Any:
        """A column of node ids as text, shape (n_rows,); none may be missing."""
        column = self.labels(name)
        if column.null_count():
            row = int(column.is_null().arg_true()[0])
            raise ValueError(
                f'{self.name}: the node id must not be missing; column "{name}" is empty in '
                f"{column.null_count()} row(s), the first at {self.line(row)}. Drop these rows, "
                "or use --drop-missing."
            )
        return column.to_numpy().astype(str)

    def says_missing(self, name: str) -> Any:
        """Which rows of a column hold a word for a missing value, such as NA."""
        text = self.text(name).str.to_lowercase()
        return text.is_in(_MISSING).fill_null(False).to_numpy()

    def parsed(self, name: str) -> tuple[Any, Any]:
        """Numbers of a column (null where missing), and which rows hold something else."""
        import polars as pl

        column = self.frame[self.check_column(name)]
        if column.dtype == pl.Boolean or column.dtype.is_numeric():
            found = column.cast(pl.Float64).fill_nan(None)
            return found, found.is_infinite().fill_null(False)
        if column.dtype.is_temporal() or _is_boxed(column):
            return pl.Series(name, [None] * len(column), dtype=pl.Float64), column.is_not_null()
        text = column.cast(pl.String).str.strip_chars()
        found = text.cast(pl.Float64, strict=False).fill_nan(None)
        if found.null_count() == column.null_count():
            return found, found.is_infinite().fill_null(False)
        missing = text.is_null() | text.str.to_lowercase().is_in(_MISSING)
        odd = (found.is_null() & ~missing) | found.is_infinite().fill_null(False)
        return found, odd

    def numbers(self, name: str, *, optional: bool = False) -> Array:
        """A numeric column, shape (n_rows,), NaN where missing; other text is an error.

        `optional` columns are features, which can be left out; the error then says so.
        """
        found, odd = self.parsed(name)
        if odd.any():
            raise ValueError(self.odd_message(name, odd, optional=optional))
        values = np.array(found.to_numpy(), dtype=np.float64)
        text = self.huge_message(name, values)
        if text:
            raise ValueError(text)
        return values

    def huge_message(self, name: str, values: Array) -> str:
        """Error text for numbers of a column whose squares would overflow; empty without any."""
        huge = np.abs(values) > LARGEST
        if not huge.any():
            return ""
        row = int(huge.argmax())
        return (
            f'{self.name}: column "{name}" must hold numbers up to {LARGEST:g} in size, or their '
            f"squares overflow; got {values[row]:g} at {self.line(row)}. Correct it, or use "
            "another unit."
        )

    def has_commas(self, name: str, odd: Any) -> bool:
        """Whether the values that are no numbers are numbers with decimal commas."""
        import polars as pl

        text = self.frame[name].filter(odd)
        if not len(text) or text.dtype != pl.String:
            return False
        return bool(text.str.strip_chars().str.contains(_COMMA).all())

    def odd_message(self, name: str, odd: Any, *, optional: bool = False) -> str:
        """Error text for values of a column that are no numbers."""
        row = int(odd.arg_true()[0])
        if _is_boxed(self.frame[name]):
            kind = _kind(self.frame[name])
            return f'{self.name}: column "{name}" must hold numbers; it holds {kind}. Leave it out.'
        value = str(self.frame[name][row])
        text = (
            f'{self.name}: column "{name}" must hold numbers; got {short(value)} at '
            f"{self.line(row)}, "
            f"{int(odd.sum())} such value(s) in all."
        )
        if re.match(_COMMA, value.strip()):
            bare = re.sub("[.' ]", "", value.strip())
            point, whole = bare.replace(",", "."), bare.replace(",", "")
            if re.match(_THOUSANDS, bare):
                return (
                    f"{text} This is a decimal comma, or one between thousands: write the numbers "
                    f"as {point}, or as {whole}."
                )
            return f"{text} This is a decimal comma: write the numbers as {point}."
        if optional:
            return f"{text} Correct it, leave it empty, or leave the column out by --features."
        return f"{text} Correct it, or leave it empty and use --drop-missing."

    def times(self, name: str) -> Any:
        """Times that sort: numbers, or dates of ISO 8601, shape (n_rows,); see `read_times`."""
        import polars as pl

        column = self.frame[self.check_column(name)]
        if _is_boxed(column):
            self.text(name)  # raises
        if column.null_count():
            row = int(column.is_null().arg_true()[0])
            raise ValueError(
                f'{self.name}: the time must not be missing; column "{name}" is empty at '
                f"{self.line(row)}. Use --drop-missing."
            )
        if column.dtype.is_temporal():
            return column.to_physical().to_numpy()
        found, odd = self.parsed(name)
        if not odd.any() and not found.null_count():
            return found.to_numpy()
        text = column.cast(pl.String).str.strip_chars()
        return read_times(text, self.line, f'{self.name}, column "{name}"')


def _is_boxed(column: Any) -> bool:
    """Whether the values of a column of Parquet are neither numbers, times nor text."""
    import polars as pl

    return bool(column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object))


def _kind(column: Any) -> str:
    """What such a column holds."""
    return short(str(column.dtype)).strip("'")
