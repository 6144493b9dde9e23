"""From a file to columns: CSV in UTF-8, perhaps packed by gzip, or Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from pathlib import Path
from typing import Any

_SEPARATORS = (",", ";", "\t", "|")
_PACKED = {
    b"PK\x03\x04": "a zip or Excel file",
    b"BZh": "compressed by bzip2",
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}


def read_parquet(path: Path) -> Any:
    """The table of a Parquet file; a ValueError when it is none."""
    import polars as pl

    try:
        return pl.read_parquet(path)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path.name} must be a Parquet file; {_first_line(error)}.") from None


def _open(path: Path) -> Any:
    """The bytes of a file, unpacked if it is of gzip."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def _head(path: Path) -> bytes:
    """The first bytes of a text file; other kinds of files are an error."""
    try:
        with _open(path) as file:
            head = bytes(file.read(1 << 16))
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise ValueError(f"{path.name} is compressed, but damaged. Copy it again.") from None
    if head[:4] == b"PAR1":
        raise ValueError(f"{path.name} is a Parquet file; give it the suffix .parquet.")
    for start, kind in _PACKED.items():
        if head.startswith(start):
            raise ValueError(
                f"{path.name} must be CSV or Parquet; it is {kind}. Unpack it, or save it as CSV."
            )
    return head


def read_csv(path: Path) -> tuple[Any, str, int]:
    """All columns as text, how messages call the file, and the line of the first row."""
    import polars as pl

    head = _head(path)
    if not head.strip():
        raise ValueError(f"{path.name} must have a header and rows; it is empty.")
    try:
        first = head.decode("utf-8-sig", errors="strict" if len(head) < 1 << 16 else "ignore")
    except UnicodeDecodeError:
        raise ValueError(f"{path.name} must be UTF-8 text; it is not. Save it as UTF-8.") from None
    bare = first.lstrip("\r\n")
    line = 2 + first[: len(first) - len(bare)].count("\n")
    first = bare.splitlines()[0]
    separator = sniff(first)
    names = [name.strip() for name in next(csv.reader(io.StringIO(first), delimiter=separator))]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(f'{path.name} must have distinct columns; "{twice[0]}" is there twice.')
    try:
        frame = pl.read_csv(
            path, separator=separator, infer_schema=False, new_columns=names, glob=False
        )
        return frame, path.name, line
    except pl.exceptions.PolarsError as error:
        if "utf" in str(error).lower():
            raise ValueError(f"{path.name} must be UTF-8 text; it is not. Save it so.") from None
        raise ValueError(_ragged(path, separator, len(names), error)) from None


def _ragged(path: Path, separator: str, width: int, error: Exception) -> str:
    """Error text for a file that cannot be cut into columns."""
    with (
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
    cut = {s: len(next(csv.reader(io.StringIO(header), delimiter=s))) for s in _SEPARATORS}
    return max(_SEPARATORS, key=lambda s: cut[s])


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")
