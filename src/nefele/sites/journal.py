"""What a site has said and heard, on disk before it is sent: a killed program goes on from it.

The program itself is not saved. It is deterministic, so feeding it once more what it has heard
brings it where it was; what it says on the way is compared with what it had said.
"""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MAGIC = b"nefele journal 1\n"
_RECORD = struct.Struct("<cQHII")  # kind, number, place of the peer, length, checksum
SAID, HEARD = b"S", b"H"


@dataclass(frozen=True)
class Record:
    """One message of a request: said to a peer, or heard from one."""

    kind: bytes
    number: int
    peer: int
    payload: bytes


class Journal:
    """An append-only file of records; a torn end, after a crash, is cut off.

    Parameters
    ----------
    path : Path
    meta : bytes
        What the records belong to; a journal of something else is a ValueError.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "journal"
    ...     with Journal(path, b"run 1") as journal:
    ...         journal.add(Record(SAID, 1, 0, b"hello"))
    ...     with Journal(path, b"run 1") as journal:
    ...         print([record.payload for record in journal.records()])
    [b'hello']
    """

    def __init__(self, path: Path, meta: bytes) -> None:
        head = _MAGIC + struct.pack("<I", len(meta)) + meta
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._file = os.fdopen(handle, "r+b", buffering=0)
        self.path, self._start = path, len(head)
        self._places = array("Q")  # where the records of each request begin, from number 1 on
        found = self._file.read(len(head))
        if len(found) < len(head) and head.startswith(found):  # new, or torn at its beginning
            self._file.truncate(0)
            self._write(head)
            found = head
        if found != head:
            self._file.close()
            raise ValueError(
                f"{str(path)!r} must belong to this run with these rows and this version; it does "
                "not. Put the files back, or agree with all members on a new run: --run NAME."
            )
        self._kept: list[Record] = []
        self._end = self._start
        for record in self.records():
            self._note(record.number)
            self._end += _RECORD.size + len(record.payload)
        self._file.truncate(self._end)
        self.empty = self._end == self._start

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def _note(self, number: int, more: int = 0) -> None:
        while len(self._places) < number:
            self._places.append(self._end + more)

    def records(self, number: int = 1) -> Iterator[Record]:
        """All that is there from some request on, in order."""
        place = self._start if number == 1 else self._places[number - 1]
        with self.path.open("rb") as file:
            file.seek(place)
            while len(head := file.read(_RECORD.size)) == _RECORD.size:
                kind, number, peer, length, check = _RECORD.unpack(head)
                payload = file.read(min(length, 2**31))
                if len(payload) < length or zlib.crc32(head[:-4] + payload) != check:
                    return
                yield Record(kind, number, peer, payload)

    def keep(self, *records: Record) -> None:
        """Keep records until the next ones are written: nothing that was said rests on them yet."""
        self._kept += records

    def add(self, *records: Record) -> None:
        """Write records, in one piece."""
        out, records, self._kept = bytearray(), (*self._kept, *records), []
        for record in records:
            self._note(record.number, len(out))
            head = _RECORD.pack(record.kind, record.number, record.peer, len(record.payload), 0)
            check = zlib.crc32(head[:-4] + record.payload)
            out += head[:-4] + struct.pack("<I", check) + record.payload
        self._write(out)
        self._end += len(out)

    def _write(self, content: bytes | bytearray) -> None:
        left = memoryview(content)
        while left:
            left = left[self._file.write(left) :]

    def sync(self) -> None:
        """Let what is written outlive a crash of the machine."""
        os.fsync(self._file.fileno())

    def said(self, number: int, peer: int) -> list[bytes]:
        """What was said to a peer in some request."""
        found: list[bytes] = []
        if not 1 <= number <= len(self._places):
            return found
        for record in self.records(number):
            if record.number > number:
                break
            if record.kind == SAID and record.peer == peer:
                found.append(record.payload)
        return found

    def close(self) -> None:
        """Write all of it to the disk."""
        if not self._file.closed:
            if self._kept:
                self.add()
            os.fsync(self._file.fileno())
            self._file.close()
