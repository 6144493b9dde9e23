"""Records: named arrays and JSON in one npz file that shows whether it is what was written.

A hash over names, types, shapes and bytes of all arrays goes with them, since zip's own checksums
do not cover what an array is declared to be. Nothing is compressed, so that a file cannot hold
more than its size, and nothing is allocated before its declared size was compared with that.
Nothing is ever unpickled. Whoever makes a file on purpose can make its hash too: what the arrays
mean is for the reader of each kind to check.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nefele._files import write_whole

Arrays = dict[str, NDArray[Any]]

_FACTS, _HASH = "facts", "sha256"
_KINDS = "biufU"  # of numbers and text
_MOST_CODE = 0x10FFFF
_CHUNK = 2**20


class DamagedError(ValueError):
    """A file is no record of this kind, or not as it was written."""


class VersionError(ValueError):
    """A record has another format version."""

    def __init__(self, found: Any) -> None:
        super().__init__(f"format version {found!r}")
        self.found = found


def write_record(
    path: Path, kind: str, version: int, facts: dict[str, Any], arrays: Arrays
) -> None:
    """Write a record, whole or not at all; `facts` is anything that JSON can hold."""
    text = json.dumps({**facts, "format": kind, "version": version}).encode()
    content = {**arrays, _FACTS: np.frombuffer(text, dtype=np.uint8)}
    content = {name: np.ascontiguousarray(a).reshape(np.shape(a)) for name, a in content.items()}
    for name, array in content.items():
        if array.dtype.kind not in _KINDS:
            raise ValueError(f"{name} must hold numbers or text; got dtype {array.dtype}.")
    content[_HASH] = np.frombuffer(_digest(content), dtype=np.uint8)

    def fill(part: Path) -> None:
        with part.open("wb") as file:
            np.savez(file, **content)  # type: ignore[arg-type]

    write_whole(path, fill)


def read_record(path: Path, kind: str, version: int) -> tuple[dict[str, Any], Arrays]:
    """The facts and arrays of a record; DamagedError or VersionError when it is none of these.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.npz"
    ...     write_record(path, "pair", 1, {"of": "numbers"}, {"x": np.arange(2.0)})
    ...     facts, arrays = read_record(path, "pair", 1)
    >>> facts["of"], arrays["x"].tolist()
    ('numbers', [0.0, 1.0])
    """
    with path.open("rb") as opened:
        try:
            with zipfile.ZipFile(opened) as file:
                content = _read_all(file, path.stat().st_size)
            facts = json.loads(bytes(content[_FACTS]).decode())
            if facts["format"] != kind:
                raise DamagedError("another kind of record")
            found = facts["version"]
            whole = bytes(content.pop(_HASH)) == _digest(content)
        except MemoryError:
            raise
        except Exception:  # whatever a damaged or foreign file provokes, OSError as well
            raise DamagedError("damaged, or another kind of file") from None
    if found != version:
        raise VersionError(found)
    if not whole:
        raise DamagedError("not as it was written")
    del content[_FACTS]
    return facts, content


def _digest(content: Arrays) -> bytes:
    found = hashlib.sha256()
    for name in sorted(content):
        array = content[name]
        found.update(repr((name, array.dtype.str, array.shape)).encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.digest()


def _read_all(file: zipfile.ZipFile, size: int) -> Arrays:
    members = file.infolist()
    if sum(member.file_size for member in members) > size:
        raise DamagedError("more than the file can hold")
    found: Arrays = {}
    for member in members:
        name = member.filename.removesuffix(".npy")
        if member.compress_type != zipfile.ZIP_STORED or name in found:
            raise DamagedError("not written by nefele")
        with file.open(member) as opened:
            found[name] = _read_array(opened, member.file_size)
    return found


def _read_array(file: IO[bytes], size: int) -> NDArray[Any]:
    """One array in NumPy's format, which must fill its member of `size` bytes exactly."""
    version = np.lib.format.read_magic(file)
    reader = {(1, 0): np.lib.format.read_array_header_1_0}[version]
    shape, fortran, dtype = reader(file)
    count = 1
    for length in shape:
        count *= int(length)
    plain = (
        dtype.kind in _KINDS and dtype.itemsize > 0 and not fortran and min(shape, default=1) >= 0
    )
    if not plain or count * dtype.itemsize != size - file.tell():
        raise DamagedError("an array of another size than declared")
    out = np.empty(shape, dtype=dtype)
    raw, at = out.reshape(-1).view(np.uint8).data, 0
    while chunk := file.read(_CHUNK):  # to the end, where zip's checksum is compared
        raw[at : at + len(chunk)] = chunk
        at += len(chunk)
    if at != len(raw):
        raise DamagedError("an array that is cut off")
    if dtype.kind == "U" and (out.reshape(-1).view(np.uint32) > _MOST_CODE).any():
        raise DamagedError("text of no characters")
    return out
