"""Sums of numbers of which nobody sees one alone: pairwise masks in fixed point.

Of each node a member hears the sum over its neighbouring members. Every two of these share a secret
and draw from it, for this node and this round, the same random integers modulo 2^64: one adds them,
the other subtracts them. In the sum all masks cancel exactly; one message alone is as good as
random to whoever does not have the secrets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

Words = NDArray[np.uint64]

RESOLUTION = 2.0**-32  # of the bound that was agreed to
LIMIT = 2**54  # largest number of one member, in units of the resolution
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def fixed(values: Array, unit: float) -> Words:
    """Numbers as integers modulo 2^64, in units of `unit`.

    Examples
    --------
    >>> from_fixed(fixed(np.array([1.5, -2.0]), 0.5), 0.5, 1).tolist()
    [1.5, -2.0]
    """
    scaled = np.rint(np.asarray(values, dtype=float) / unit)
    if not (np.abs(scaled) < LIMIT).all():
        raise ValueError(
            f"Parameters must be below {LIMIT * unit:.3g} in absolute value to be masked; got "
            f"{np.abs(values).max():.3g}. Scale the features, raise l2, or use masked = false."
        )
    return scaled.astype(np.int64).view(np.uint64)


def from_fixed(total: Words, unit: float, count: int) -> Array:
    """The sum of `count` numbers; a ValueError when it cannot be one, as with masks left over."""
    signed = total.view(np.int64)
    if signed.size and not (
        int(signed.max()) < count * LIMIT and int(signed.min()) > -count * LIMIT
    ):
        raise ValueError(
            "The masks of a sum must cancel; they do not. Some neighbour has begun anew with "
            "another key, or sends what it should not. Agree to a new run."
        )
    return signed.astype(float) * unit


def mask(secret: bytes, context: Iterable[str], n: int) -> Words:
    """Random integers modulo 2^64 that only those with the secret can draw, for one use.

    Examples
    --------
    >>> bool((mask(bytes(32), ["a", "1"], 2) == mask(bytes(32), ["a", "1"], 2)).all())
    True
    >>> bool((mask(bytes(32), ["a", "1"], 2) == mask(bytes(32), ["a1", ""], 2)).any())
    False
    """
    if len(secret) != 32:
        raise ValueError(f"A secret must have 32 bytes; got {len(secret)}.")
    words = [word.encode() for word in ("nefele mask", *context)]
    text = b"".join(len(word).to_bytes(4, "little") + word for word in words)
    stream = hashlib.shake_256(secret + text).digest(8 * n)
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64)


def masked(
    values: Words, me: str, crowd: Iterable[str], secrets: Mapping[str, bytes], context: list[str]
) -> Words:
    """Some member's share of a sum, covered by its masks with all others of the crowd.

    Parameters
    ----------
    values : array of uint64, shape (d,)
    me : str
    crowd : iterable of str
        Names of the members whose shares are added up, this one included.
    secrets : dict of member to bytes
        What this member shares with each other one.
    context : list of str
        What tells this sum apart from all others of the run: its node and its number.
    """
    out = values.copy()
    for other in crowd:
        if other == me:
            continue
        drawn = mask(secrets[other], [*context, *sorted((me, other))], len(values))
        out = out + drawn if me < other else out - drawn
    return out


def halves(words: Words) -> Array:
    """Integers modulo 2^64 as two exact floats each, along the last axis.

    Examples
    --------
    >>> halves(np.array([2**32 + 5], dtype=np.uint64)).tolist()
    [5.0, 1.0]
    """
    return np.concatenate([words & _LOW, words >> _HALF], axis=-1).astype(float)


def from_halves(values: Array) -> Words:
    """The integers of `halves`; a ValueError for what is none."""
    whole = (values >= 0) & (values < 2**32) & (values == np.floor(values))
    if values.shape[-1] % 2 or not whole.all():
        raise ValueError("A masked message must hold integers below 2^32; a neighbour's does not.")
    low, high = np.split(values.astype(np.uint64), 2, axis=-1)
    return low | high << _HALF
