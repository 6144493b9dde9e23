"""From a file to columns: CSV in UTF-8, perhaps packed by gzip, or Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nefele.runs.names import check_file_name
from nefele.runs.quotes import misplaced_mark, stray_mark
from nefele.runs.spreadsheets import unguarded_names

_SEPARATORS = (",", ";", "\t", "|")
_PACKED = {
    b"PK\x03\x04": "a zip or Excel file",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}
_ARROW = (b"ARROW1", b"FEA1", b"\xff\xff\xff\xff")
_LONG = 200  # bytes of a cell from which it may be rows behind a stray quotation mark


def read_parquet(path: Path) -> Any:
    """The table of a Parquet file; a ValueError when it is none."""
    import polars as pl

    check_file_name(path)
    with path.open("rb") as file:
        _refuse_arrow(path, file.read(8))
    try:
        return pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path.name} must be a Parquet file; {_first_line(error)}.") from None


def _open(path: Path) -> Any:
    """The bytes of a file, unpacked if it is of gzip."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def _refuse_arrow(path: Path, head: bytes) -> None:
    if head.startswith(_ARROW):
        raise ValueError(
            f"{path.name} must be CSV or Parquet; it is an Arrow (Feather, IPC) file. Convert it "
            "to Parquet or CSV."
        )


def _head(path: Path) -> tuple[bytes, int]:
    """The first line that is not empty, and its number; other kinds of files are an error."""
    try:
        with _open(path) as file:
            number, line = 1, bytes(file.readline())
            while line and not line.strip(b"\r\n\xef\xbb\xbf"):
                number, line = number + 1, bytes(file.readline())
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ValueError(f"{path.name} is compressed, but damaged. Copy it again.") from None
    if line[:4] == b"PAR1":
        raise ValueError(f"{path.name} is a Parquet file; give it the suffix .parquet.")
    for start, kind in _PACKED.items():
        if line.startswith(start):
            raise ValueError(
                f"{path.name} must be CSV or Parquet; it is {kind}. Unpack it, or save it as CSV."
            )
    _refuse_arrow(path, line)
    return line, number


def _header(path: Path) -> tuple[str, int]:
    """The text of the first line that is not empty, and its number."""
    line, number = _head(path)
    if not line.strip():
        raise ValueError(f"{path.name} must have a header and rows; it is empty.")
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} must be UTF-8 text; it is not. Save it as UTF-8.") from None
    if "\r" in text:
        raise ValueError(
            f"{path.name} must end its lines by LF or CRLF, as files do today; it has CR alone. "
            "Save it again with other line ends, or convert it by: tr '\\r' '\\n'."
        )
    if text.count('"') % 2:
        raise ValueError(
            f"{path.name} must have its header in one line; a quotation mark opens there and does "
            "not close. Remove it, or the line break in the name of the column."
        )
    return text, number


def read_csv(path: Path) -> tuple[Any, str, int]:
    """All columns as text, how messages call the file, and the line of the first row."""
    import polars as pl

    check_file_name(path)
    first, number = _header(path)
    separator = sniff(first)
    names = unguarded_names([name.strip() for name in _fields(first, separator)])
    _check_distinct(path, names)
    try:
        frame = pl.read_csv(
            path, separator=separator, infer_schema=False, new_columns=names, glob=False
        )
    except pl.exceptions.PolarsError as error:
        if "utf" in str(error).lower():
            raise ValueError(f"{path.name} must be UTF-8 text; it is not. Save it so.") from None
        raise ValueError(_ragged(path, separator, len(names), error)) from None
    if _has_long_cells(frame):
        _check_marks(path, separator, len(names))
    return frame, path.name, number + 1


def _check_distinct(path: Path, names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'{path.name} must have distinct columns; "{twice}" is there twice.')


def _has_long_cells(frame: Any) -> bool:
    """Whether a cell is so long that it may hold rows."""
    import polars as pl

    longest = frame.select(pl.max_horizontal(pl.all().str.len_bytes().max())).item()
    return bool(longest is not None and longest >= _LONG)


def _check_marks(path: Path, separator: str, width: int) -> None:
    """A ValueError when a quotation mark swallows rows."""
    with _open(path) as lines:
        found = stray_mark(lines, separator, width)
    if found is None:
        return
    raise ValueError(
        f"{path.name}: a quotation mark must be closed in its cell; one at line {found} is not, "
        "and the rows after it become a part of its cell. Remove it, or close it."
    )


def _ragged(path: Path, separator: str, width: int, error: Exception) -> str:
    """Error text for a file that cannot be cut into columns."""
    _check_marks(path, separator, width)
    with _open(path) as lines:
        misplaced = misplaced_mark(lines, separator)
    if misplaced is not None:
        return (
            f"{path.name}: a quotation mark must open and close a cell; one at line {misplaced} is "
            "inside it. Remove it, or write it twice in a cell between quotation marks."
        )
    with (
        _long_fields(),
        _open(path) as raw,
        io.TextIOWrapper(raw, encoding="utf-8-sig", errors="replace", newline="") as file,
    ):
        reader = csv.reader(file, delimiter=separator)
        for fields in reader:
            if len(fields) > width:
                return (
                    f"{path.name} must have {width} fields in each line, as its header; line "
                    f"{reader.line_num} has {len(fields)}. If its numbers have decimal commas, "
                    "write them with decimal points, or separate the columns by semicolons."
                )
    return f"{path.name} cannot be read as CSV; {_first_line(error)}."


def sniff(header: str) -> str:
    """The separator that cuts the header into most columns, comma if there is only one.

    Examples
    --------
    >>> sniff('station;"tmin, tmax";wind')
    ';'
    """
    return max(_SEPARATORS, key=lambda s: len(_fields(header, s)))


def _fields(line: str, separator: str) -> list[str]:
    with _long_fields():
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=separator))


@contextmanager
def _long_fields() -> Iterator[None]:
    """Lets Python's reader of CSV take cells of any length."""
    usual = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
