"""Members that share no edge get each other's signed keys through a neighbour of both.

Whoever passes a hello on cannot change it: its signature is checked by who gets it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program
from nefele.sites._secrets import write
from nefele.sites.federation import Federation
from nefele.sites.sealing import Seal
from nefele.sites.wire import RefusedError

BYTES = 6144  # of a hello, at most
_EACH = 6  # bytes in a number, which is exact below 2^53
NUMBERS = BYTES // _EACH


class Card:
    """The hello of a member in one run, signed once, and what it makes of those of others.

    Parameters
    ----------
    seal : Seal
    path : Path, optional
        Where the hello is kept: a signature is not the same twice, and a run that goes on must say
        what it said.
    """

    def __init__(self, seal: Seal, path: Path | None = None) -> None:
        self.seal = seal
        if path is not None and path.exists():
            self.hello = path.read_bytes()
            return
        self.hello = seal.hello(ask=False)
        if path is not None:
            write(path, self.hello)

    def secret(self, name: str, hello: bytes) -> bytes:
        """What is shared with the member that signed a hello; a ValueError if it did not."""
        try:
            return self.seal.secret(name, hello)
        except RefusedError as error:
            raise ValueError(
                f"The hello of {name!r} must be signed by it for this run; it is refused: {error}. "
                "Ask the people of the members between."
            ) from None


def introduced(
    federation: Federation, name: str, card: Card, wanted: list[str]
) -> Program[dict[str, bytes]]:
    """The secrets of a member with some others: own neighbours, or neighbours of these."""
    near = federation.neighbours(name)
    heard: Heard = yield Exchange("keys", {q: packed(card.hello) for q in near})
    hellos: dict[str, set[bytes]] = {q: {unpacked(heard.rows[q])} for q in near}
    most = max(len(federation.neighbours(member.name)) for member in federation.members)
    table = np.zeros((most, NUMBERS))
    for row, other in enumerate(near):
        table[row] = heard.rows[other]
    heard = yield Exchange("keys", {q: table for q in near})
    for between in near:
        for row, other in enumerate(federation.neighbours(between)):
            if other != name and other not in near:
                hellos.setdefault(other, set()).add(unpacked(heard.rows[between][row]))
    return {other: _one(other, hellos.get(other, set()), card.secret) for other in wanted}


def _one(name: str, hellos: set[bytes], secret: Callable[[str, bytes], bytes]) -> bytes:
    found = {secret(name, hello) for hello in hellos}
    if len(found) != 1:
        raise ValueError(
            f"All neighbours must pass on the same key of {name!r}; {len(found)} different ones "
            "came. It may have begun anew: agree to a new run."
        )
    return found.pop()


def packed(hello: bytes) -> Array:
    """Bytes as numbers, always as many.

    Examples
    --------
    >>> unpacked(packed(b"hello"))
    b'hello'
    """
    if len(hello) > BYTES - 4:
        raise ValueError(f"A hello must have at most {BYTES - 4} bytes; got {len(hello)}.")
    whole = (len(hello).to_bytes(4, "little") + hello).ljust(BYTES, b"\0")
    digits = np.frombuffer(whole, dtype=np.uint8).reshape(NUMBERS, _EACH)
    return np.asarray(digits @ 256.0 ** np.arange(_EACH))


def unpacked(numbers: Array) -> bytes:
    """The bytes of `packed`; a ValueError for what is none."""
    good = (numbers >= 0) & (numbers < 256.0**_EACH) & (numbers == np.floor(numbers))
    if numbers.shape != (NUMBERS,) or not good.all():
        raise ValueError("A hello must hold whole numbers; a neighbour sent another kind.")
    digits = numbers.astype(np.int64)[:, None] >> 8 * np.arange(_EACH) & 255
    whole = digits.astype(np.uint8).tobytes()
    return whole[4 : 4 + int.from_bytes(whole[:4], "little")]
