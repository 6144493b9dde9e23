"""Logistic loss for two classes (NFL, Appendix B)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlogy

from nefele._checks import Array
from nefele.data import LocalData
from nefele.losses.base import check_signs
from nefele.losses.pointwise import PointwiseLoss


@dataclass(frozen=True)
class Logistic(PointwiseLoss):
    """f(z, y) = log(1 + exp(-y z)) for labels y in {-1, 1}.

    Examples
    --------
    >>> Logistic().f(np.array([0.0]), np.array([1.0])).round(4)
    array([0.6931])
    """

    def f(self, z: Array, y: Array) -> Array:
        return np.logaddexp(0.0, -y * z)

    def slope(self, z: Array, y: Array) -> Array:
        return -y * expit(-y * z)

    def bend(self, z: Array, y: Array) -> Array:
        return expit(z) * expit(-z)

    def conjugate(self, a: Array, y: Array) -> Array:
        b = -y * a
        inside = (b >= 0) & (b <= 1)
        b = np.clip(b, 0.0, 1.0)
        return np.where(inside, xlogy(b, b) + xlogy(1 - b, 1 - b), np.inf)

    def domain_ratio(self, a: Array, y: Array) -> Array:
        b = -y * a
        return np.where(b >= 0, b, np.inf)

    def kernel(self) -> tuple[str, float] | None:
        return ("LOGISTIC", 0.0) if type(self) is Logistic else None

    def check(self, data: LocalData) -> None:
        check_signs(data, "logistic")

    def escapes(self, y: Array) -> tuple[NDArray[np.bool_], Array]:
        return np.zeros(len(y), dtype=bool), y
