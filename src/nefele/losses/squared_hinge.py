"""Squared hinge loss: a support vector machine with a gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.data import LocalData
from nefele.losses.base import check_signs
from nefele.losses.pointwise import PointwiseLoss


@dataclass(frozen=True)
class SquaredHinge(PointwiseLoss):
    """f(z, y) = max(0, 1 - y z)^2 for labels y in {-1, 1}.

    Examples
    --------
    >>> SquaredHinge().f(np.array([0.5, 2.0]), np.array([-1.0, 1.0]))
    array([2.25, 0.  ])
    """

    def f(self, z: Array, y: Array) -> Array:
        return np.maximum(0.0, 1 - y * z) ** 2

    def slope(self, z: Array, y: Array) -> Array:
        return -2 * y * np.maximum(0.0, 1 - y * z)

    def bend(self, z: Array, y: Array) -> Array:
        return np.where(y * z < 1, 2.0, 0.0)

    def conjugate(self, a: Array, y: Array) -> Array:
        b = -y * a
        return np.where(b >= 0, b * (b / 4 - 1), np.inf)

    def domain_ratio(self, a: Array, y: Array) -> Array:
        return np.where(-y * a >= 0, 0.0, np.inf)

    def kernel(self) -> tuple[str, float] | None:
        return ("SQUARED_HINGE", 0.0) if type(self) is SquaredHinge else None

    def check(self, data: LocalData) -> None:
        check_signs(data, "squared hinge")
