"""Poisson loss for counts: a networked exponential family."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from nefele._checks import Array
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, check_labels
from nefele.losses.constraints import Constraint
from nefele.losses.pointwise import BoundPointwise, PointwiseLoss
from nefele.losses.starts import counts_start, counts_within


@dataclass(frozen=True)
class Poisson(PointwiseLoss):
    """f(z, y) = exp(z) - y z for counts y >= 0 (log link, without the constant log y!).

    Examples
    --------
    >>> Poisson().f(np.array([0.0]), np.array([3.0]))
    array([1.])
    """

    def f(self, z: Array, y: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(z) - y * z

    def slope(self, z: Array, y: Array) -> Array:
        return np.exp(z) - y

    def bend(self, z: Array, y: Array) -> Array:
        return np.exp(z)

    def conjugate(self, a: Array, y: Array) -> Array:
        mean = a + y
        positive = np.maximum(mean, 0.0)
        return np.where(mean >= -1e-12 * y, xlogy(positive, positive) - positive, np.inf)

    def domain_ratio(self, a: Array, y: Array) -> Array:
        safe = np.where(y > 0, y, 1.0)
        return np.where(a >= 0, 0.0, np.where(y > 0, -a / safe, np.inf))

    def kernel(self) -> tuple[str, float] | None:
        return ("POISSON", 0.0) if type(self) is Poisson else None

    def check(self, data: LocalData) -> None:
        check_labels(data.y >= 0, data, "Labels of the Poisson loss must be >= 0")

    def escapes(self, y: Array) -> tuple[NDArray[np.bool_], Array]:
        return y > 0, -np.ones(len(y))

    def _bound(self, data: LocalData) -> BoundLoss:
        return BoundPoisson(self, data)


class BoundPoisson(BoundPointwise):
    """A Poisson loss bound to local datasets."""

    def start(self) -> Array:
        return counts_start(self)

    def start_within(self, within: Constraint, w: Array) -> Array:
        return counts_within(self, within, w)
