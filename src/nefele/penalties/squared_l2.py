"""The MOCHA penalty (NFL, Sec. IV), also graph signal recovery."""

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.penalties.base import Penalty


@dataclass(frozen=True)
class SquaredL2(Penalty):
    """Half the squared Euclidean norm, phi(v) = 1/2 ||v||_2^2.

    Papers that write ||v||^2 without the half: pass twice their lam.
    Dual update: v / (1 + sigma_e / (lam*A_e)) (NFL, Sec. IV).

    Examples
    --------
    >>> SquaredL2().value(np.array([[3.0, 4.0]]))
    array([12.5])
    """

    twice = True

    def value(self, v: Array) -> Array:
        return 0.5 * np.einsum("ij,ij->i", v, v)

    def conjugate(self, u: Array, scale: Array) -> Array:
        return self.value(u) / scale

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        return v * (scale / (scale + step))[:, None]

    def gradient(self, v: Array) -> Array:
        return v

    def curvature(self, v: Array) -> Array:
        return np.broadcast_to(np.eye(v.shape[1]), (*v.shape, v.shape[1]))
