"""Network Lasso penalty (NFL, Sec. IV)."""

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.penalties.base import Penalty

_COMPILED = 20_000  # numbers from which a compiled loop pays off


def row_norm(v: Array) -> Array:
    """Euclidean norm of each row."""
    if v.shape[1] == 1:
        return np.abs(v[:, 0])
    square = np.einsum("ij,ij->i", v, v)
    return np.asarray(np.sqrt(square, out=square))


def project_rows(v: Array, radius: Array) -> Array:
    """Each row projected on the Euclidean ball of its radius: NFL's clipping operator (1)."""
    norm = row_norm(v)
    return v * (radius / np.maximum(norm, np.maximum(radius, np.finfo(float).tiny)))[:, None]


def _positive(norm: Array) -> Array:
    return np.where(norm > 0, norm, 1.0)


@dataclass(frozen=True)
class L2Norm(Penalty):
    """Network Lasso, phi(v) = ||v||_2: the parameters of two nodes fuse as a whole or not at all.

    Dual update: project on the ball of radius lam*A_e (NFL, Sec. IV).

    Examples
    --------
    >>> L2Norm().value(np.array([[3.0, 4.0]]))
    array([5.])
    """

    is_norm = True
    twice = True

    def value(self, v: Array) -> Array:
        return row_norm(v)

    def dual_norm(self, u: Array) -> Array:
        return row_norm(u)

    def domain_ratio(self, u: Array, scale: Array) -> Array:
        if u.size < _COMPILED or u.dtype != float or not u.flags.c_contiguous:
            return row_norm(u) / scale
        from nefele._kernels.certificate import lengths

        out = np.empty(len(u))
        lengths(u, scale, out)
        return out

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        return project_rows(v, scale)

    def gradient(self, v: Array) -> Array:
        return v / _positive(row_norm(v))[:, None]

    def curvature(self, v: Array) -> Array:
        norm = _positive(row_norm(v))[:, None, None]
        unit = v[:, :, None] / norm
        return (np.eye(v.shape[1]) - unit * np.swapaxes(unit, 1, 2)) / norm
