"""Entry-wise total variation (NFL, Sec. IV)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._kernels.short_rows import row_largest
from nefele.penalties.base import _INSIDE, Penalty


@dataclass(frozen=True)
class L1Norm(Penalty):
    """Sum of absolute differences, phi(v) = ||v||_1: each parameter fuses on its own.

    Dual update: clip each entry to [-lam*A_e, lam*A_e] (NFL, Sec. IV).

    Examples
    --------
    >>> L1Norm().value(np.array([[3.0, -4.0]]))
    array([7.])
    """

    is_norm = True
    twice = True
    entrywise = True

    def value(self, v: Array) -> Array:
        return np.abs(v).sum(axis=1)

    def dual_norm(self, u: Array) -> Array:
        return row_largest(u)

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        return np.clip(v, -scale[:, None], scale[:, None])

    def give(self, u: Array, scale: Array, unit: float, least: float) -> Array:
        room = np.clip(1.0 - np.abs(u) / scale[:, None], least, 1.0)
        return scale[:, None] * room / unit

    def fused(self, u: Array, scale: Array) -> NDArray[np.bool_]:
        return np.abs(u) <= _INSIDE * scale[:, None]

    def gradient(self, v: Array) -> Array:
        return np.sign(v)

    def curvature(self, v: Array) -> Array:
        return np.zeros((*v.shape, v.shape[1]))
