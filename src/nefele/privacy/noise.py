"""Gaussian noise from the system's generator, and results on a public grid.

A seeded generator can be run again by whoever learns its state, and the last bits of a noisy
double tell which number it was made from. So noise comes from the system's random bytes, and what
is released is rounded to multiples of a power of two that depends on the noise's deviation only.
"""

from __future__ import annotations

import math
import os
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtri

from nefele._checks import Array, check_count

_FINE = 12  # the grid has 2^12 to 2^13 steps in one deviation


class Source(Protocol):
    """Where noise comes from: `SystemNoise`, or a NumPy generator in tests."""

    def standard_normal(self, size: Any = None) -> Any: ...


class SystemNoise:
    """Standard normal numbers from the system's random bytes, 64 bits for each.

    One bit is the sign, the others the tail probability, so that both tails reach to 9 deviations:
    the distance to a normal distribution is below 2^-62 in total variation.

    Examples
    --------
    >>> SystemNoise().standard_normal((2, 3)).shape
    (2, 3)
    """

    def standard_normal(self, size: Any = None) -> Array:
        """An array of independent numbers."""
        shape = () if size is None else size if isinstance(size, tuple) else (size,)
        count = math.prod(shape)
        bits = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        tail = ((bits >> np.uint64(1)).astype(np.float64) + 0.5) * 2.0**-64
        sign = np.where(bits & np.uint64(1), 1.0, -1.0)
        return np.asarray((sign * ndtri(tail)).reshape(shape))


def source_of(insecure_testing: bool, seed: Any) -> Source:
    """The system's generator; a seeded one for tests only.

    Examples
    --------
    >>> source_of(False, 7)
    Traceback (most recent call last):
    ...
    ValueError: seed must be left out: noise that can be drawn again protects nobody. For tests
    pass insecure_testing=True as well.
    """
    if seed is None:
        return SystemNoise()
    if not insecure_testing:
        raise ValueError(
            "seed must be left out: noise that can be drawn again protects nobody. For tests pass "
            "insecure_testing=True as well."
        )
    return np.random.default_rng(check_count(seed, "seed"))


def noisy(values: Array, deviation: Any, source: Source) -> Array:
    """Values with independent noise of this deviation, on the public grid of the deviation.

    Parameters
    ----------
    values : array
    deviation : float or array that spreads over values
        Above 0, and public.
    source : Source

    Examples
    --------
    >>> found = noisy(np.array([1 / 3]), 1.0, SystemNoise())
    >>> bool((found * 2**12 == np.rint(found * 2**12)).all())
    True
    """
    spread = np.broadcast_to(np.asarray(deviation, dtype=np.float64), np.shape(values))
    if not (np.isfinite(spread).all() and (spread > 0).all()):
        raise ValueError("The deviation of noise must be a finite number above 0.")
    if not np.isfinite(values).all():
        raise ValueError("What is released must be finite.")
    step = grid(spread)
    return np.asarray(np.rint((values + spread * source.standard_normal(spread.shape)) / step)) * (
        step
    )


def grid(deviation: Any) -> Array:
    """The step of the public grid, a power of two."""
    return np.asarray(np.exp2(np.floor(np.log2(deviation)) - _FINE))
