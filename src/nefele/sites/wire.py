"""Messages between sites as bytes: a header of fixed size and one array of numbers.

Numbers are of 8, 4 or 2 bytes, as the array has them. Nothing is unpickled. A declared shape is
compared with the bytes that came before anything is made of it, so that a message costs its own
size and no more.
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.runtime.messages import CONTENTS

VERSION = 1
_HEADER = struct.Struct("<BBBBIQ16sB")
_MOST_AXES = 3
_FLOATS = tuple(np.dtype(name) for name in ("<f8", "<f4", "<f2"))
_KIND_AT = 2  # bit of the flags from which on they say the kind of numbers


class Kind(IntEnum):
    """What a message is for."""

    ROWS = 1  # an exchange
    UP = 2  # a sum of the subtree below the sender
    DOWN = 3  # a sum over all
    ABSENT = 4  # numbers of members that have been away too long
    BYE = 5  # the sender has ended
    HERE = 6  # the sender has not come so far yet
    NEWS = 7  # rows of one who does not wait


class RefusedError(ValueError):
    """A message that is not believed; `reason` is one word or two, for counting."""

    def __init__(self, reason: str, about: str = "") -> None:
        super().__init__(f"{reason}: {about}" if about else reason)
        self.reason = reason


@dataclass(frozen=True, eq=False)
class Packet:
    """One message.

    Attributes
    ----------
    kind : Kind
    content : str
        One of `nefele.runtime.messages.CONTENTS`.
    epoch, number : int
        Who has left, as a number, and which request of the program this belongs to.
    values : array
    again : bool
        The sender has said this before and still waits.
    old : bool
        An answer to such a message from one who is further.
    raw : bytes
        The bytes that it was made of, if it came in some.
    """

    kind: Kind
    content: str
    epoch: int
    number: int
    values: Array
    again: bool = False
    old: bool = False
    raw: bytes = b""


def run_mark(federation: str, run: str, sender: str, receiver: str) -> bytes:
    """What ties a message to one run, its sender and its receiver, 16 bytes.

    Examples
    --------
    >>> run_mark("f", "1", "a", "b") == run_mark("f", "1", "b", "a")
    False
    """
    text = "\0".join((federation, run, sender, receiver))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def encode(packet: Packet, mark: bytes) -> bytes:
    """The bytes of a message.

    Examples
    --------
    >>> packet = Packet(Kind.ROWS, "parameters", 0, 7, np.ones((1, 2)))
    >>> decode(encode(packet, bytes(16)), bytes(16)).values.tolist()
    [[1.0, 1.0]]
    """
    kind = next((k for k in _FLOATS[1:] if packet.values.dtype == k), _FLOATS[0])
    values = np.ascontiguousarray(packet.values, dtype=kind)
    flags = packet.again | packet.old << 1 | _FLOATS.index(kind) << _KIND_AT
    head = _HEADER.pack(
        VERSION,
        packet.kind,
        flags,
        CONTENTS.index(packet.content),
        packet.epoch,
        packet.number,
        mark,
        values.ndim,
    )
    return b"".join((head, struct.pack(f"<{values.ndim}Q", *values.shape), values.tobytes()))


def decode(blob: bytes, mark: bytes) -> Packet:
    """The message of some bytes; a `RefusedError` if they are none, or of another run."""
    if len(blob) < _HEADER.size:
        raise RefusedError("too short")
    version, kind, flags, content, epoch, number, found, axes = _HEADER.unpack_from(blob)
    if version != VERSION:
        raise RefusedError("other version", f"{version}, this is {VERSION}")
    if found != mark:
        raise RefusedError("other run", "or another sender or receiver")
    known = kind in Kind._value2member_map_ and content < len(CONTENTS) and axes <= _MOST_AXES
    if not known or flags >> _KIND_AT >= len(_FLOATS):
        raise RefusedError("malformed")
    return Packet(
        Kind(kind),
        CONTENTS[content],
        epoch,
        number,
        _values(blob, axes, _FLOATS[flags >> _KIND_AT]),
        bool(flags & 1),
        bool(flags & 2),
        blob,
    )


def _values(blob: bytes, axes: int, kind: np.dtype[Any]) -> Array:
    """The numbers of a message, none of them copied."""
    start = _HEADER.size + 8 * axes
    if len(blob) < start:
        raise RefusedError("too short")
    shape: tuple[Any, ...] = struct.unpack_from(f"<{axes}Q", blob, _HEADER.size)
    if math.prod(shape) * kind.itemsize != len(blob) - start:
        raise RefusedError("wrong size", f"{math.prod(shape)} numbers in {len(blob) - start} bytes")
    if not math.prod(shape):  # one axis may be 0 and another one beyond all limits
        if max(shape) > len(blob):
            raise RefusedError("wrong size", "no numbers, along an axis that is too long")
        return np.zeros(shape, dtype=kind)
    return np.frombuffer(blob, dtype=kind, offset=start).reshape(shape)


def most_bytes(numbers: int) -> int:
    """The longest message that holds so many numbers, sealed.

    Examples
    --------
    >>> most_bytes(0) < 200
    True
    """
    return _HEADER.size + 8 * _MOST_AXES + 8 * numbers + 64
