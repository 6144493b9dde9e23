"""Largest absolute difference as penalty; its dual ball is the l1 ball."""

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele._kernels.short_rows import row_largest
from nefele.penalties.base import Penalty


def project_l1_rows(v: Array, radius: Array) -> Array:
    """Each row projected on the l1 ball of its radius, by sorting (Held, Wolfe, Crowder 1974)."""
    size = np.abs(v)
    ordered = -np.sort(-size, axis=1)
    excess = np.cumsum(ordered, axis=1) - radius[:, None]
    threshold = excess / np.arange(1, v.shape[1] + 1)
    last = np.count_nonzero(ordered > threshold, axis=1) - 1
    cut = np.take_along_axis(threshold, np.maximum(last, 0)[:, None], axis=1)
    shrunk = np.sign(v) * np.maximum(size - np.maximum(cut, 0.0), 0.0)
    return np.where((size.sum(axis=1) <= radius)[:, None], v, shrunk)


@dataclass(frozen=True)
class LinfNorm(Penalty):
    """Largest absolute difference, phi(v) = max_j |v_j|.

    Dual update: project on the l1 ball of radius lam*A_e (NFL, Eq. (33) with the dual norm).

    Examples
    --------
    >>> LinfNorm().value(np.array([[3.0, -4.0]]))
    array([4.])
    """

    is_norm = True

    def value(self, v: Array) -> Array:
        return row_largest(v)

    def dual_norm(self, u: Array) -> Array:
        return np.abs(u).sum(axis=1)

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        return project_l1_rows(v, scale)
