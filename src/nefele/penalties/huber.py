"""Huber penalty: quadratic for small differences, a norm for large ones."""

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array, check_number
from nefele.penalties.base import Penalty
from nefele.penalties.l2 import L2Norm, project_rows, row_norm


@dataclass(frozen=True)
class HuberPenalty(Penalty):
    """phi(v) = ||v||^2 / (2 delta) for ||v|| <= delta, else ||v|| - delta/2.

    Dual update: project v / (1 + sigma*delta/scale) on the ball of radius scale.

    Parameters
    ----------
    delta : float
        Distance, > 0, up to which the penalty is quadratic.

    Examples
    --------
    >>> HuberPenalty(delta=1.0).value(np.array([[0.0, 0.5], [3.0, 4.0]]))
    array([0.125, 4.5  ])
    """

    delta: float = 1.0
    twice = True

    def __post_init__(self) -> None:
        check_number(self.delta, "delta", low=0.0, strict=True, advice="For delta = 0 use l2.")

    def value(self, v: Array) -> Array:
        norm = row_norm(v)
        return np.where(norm <= self.delta, norm**2 / (2 * self.delta), norm - self.delta / 2)

    def conjugate(self, u: Array, scale: Array) -> Array:
        inside = self.domain_ratio(u, scale) <= 1 + 1e-12
        return np.where(inside, 0.5 * self.delta * row_norm(u) ** 2 / scale, np.inf)

    def domain_ratio(self, u: Array, scale: Array) -> Array:
        return row_norm(u) / scale

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        return project_rows(v / (1 + step * self.delta / scale)[:, None], scale)

    def give(self, u: Array, scale: Array, unit: float, least: float) -> Array:
        room = np.clip(1.0 - self.domain_ratio(u, scale), least, 1.0)
        return (scale * room / self.delta)[:, None]

    def gradient(self, v: Array) -> Array:
        return v / np.maximum(row_norm(v), self.delta)[:, None]

    def curvature(self, v: Array) -> Array:
        small = row_norm(v) <= self.delta
        inner = np.broadcast_to(np.eye(v.shape[1]) / self.delta, (*v.shape, v.shape[1]))
        return np.where(small[:, None, None], inner, L2Norm().curvature(v))
