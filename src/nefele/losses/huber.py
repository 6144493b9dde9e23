"""Huber loss: squared for small residuals, absolute for outliers (LN, Sec. 2.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array, check_number
from nefele.losses.pointwise import PointwiseLoss


@dataclass(frozen=True)
class HuberLoss(PointwiseLoss):
    """f(z, y) = r^2/2 for |r| <= delta, else delta (|r| - delta/2), with r = z - y.

    Parameters
    ----------
    delta : float
        Residual, > 0, from which the loss is linear: outliers then pull no harder.

    Examples
    --------
    >>> HuberLoss(delta=1.0).f(np.array([0.5, 3.0]), np.zeros(2))
    array([0.125, 2.5  ])
    """

    delta: float = 1.0
    shifts = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number(self.delta, "delta", low=0.0, strict=True, advice="Use the absolute loss.")

    def f(self, z: Array, y: Array) -> Array:
        r = np.abs(z - y)
        return np.where(r <= self.delta, 0.5 * r * r, self.delta * (r - 0.5 * self.delta))

    def slope(self, z: Array, y: Array) -> Array:
        return np.clip(z - y, -self.delta, self.delta)

    def bend(self, z: Array, y: Array) -> Array:
        return (np.abs(z - y) <= self.delta).astype(float)

    def conjugate(self, a: Array, y: Array) -> Array:
        inside = np.abs(a) <= self.delta * (1 + 1e-12)
        return np.where(inside, a * (0.5 * a + y), np.inf)

    def domain_ratio(self, a: Array, y: Array) -> Array:
        return np.abs(a) / self.delta

    def kernel(self) -> tuple[str, float] | None:
        return ("HUBER", float(self.delta)) if type(self) is HuberLoss else None
