"""The p-norm as penalty, 1 <= p <= inf."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

import numpy as np

from nefele._checks import Array
from nefele._kernels.short_rows import row_largest
from nefele.penalties.base import Penalty
from nefele.penalties.l1 import L1Norm
from nefele.penalties.l2 import L2Norm
from nefele.penalties.linf import LinfNorm

_EXACT: dict[float, Penalty] = {1.0: L1Norm(), 2.0: L2Norm(), math.inf: LinfNorm()}


def _p_norm(v: Array, p: float) -> Array:
    largest = row_largest(v)
    safe = np.where(largest > 0, largest, 1.0)
    return largest * ((np.abs(v) / safe[:, None]) ** p).sum(axis=1) ** (1 / p)


def _relative(v: Array, p: float) -> Array:
    """|v| / ||v||_p for each row, zero where v = 0."""
    norm = _p_norm(v, p)
    return np.abs(v) / np.where(norm > 0, norm, 1.0)[:, None]


@dataclass(frozen=True)
class Lp(Penalty):
    """The p-norm of the difference, phi(v) = ||v||_p for p >= 1 (math.inf allowed).

    Dual update: project on the ball of the conjugate exponent q = p/(p-1), of radius lam*A_e.
    p = 1, 2 and inf use the closed forms; other p a safeguarded Newton iteration.

    Parameters
    ----------
    p : float
        Exponent, >= 1 or `math.inf`.

    Examples
    --------
    >>> Lp(3).value(np.array([[1.0, 1.0]])).round(4)
    array([1.2599])
    """

    p: float
    is_norm = True

    def __post_init__(self) -> None:
        if not (isinstance(self.p, Real) and self.p >= 1):
            raise ValueError(f"p must be >= 1 for a norm; got {self.p!r}.")

    def value(self, v: Array) -> Array:
        exact = _EXACT.get(float(self.p))
        return exact.value(v) if exact else _p_norm(v, self.p)

    def dual_norm(self, u: Array) -> Array:
        exact = _EXACT.get(float(self.p))
        return exact.dual_norm(u) if exact else _p_norm(u, self.p / (self.p - 1))

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        exact = _EXACT.get(float(self.p))
        if exact:
            return exact.prox_conjugate(v, scale, step)
        out = np.where(scale[:, None] > 0, v, 0.0)
        outside = (scale > 0) & (self.dual_norm(v) > scale)
        if outside.any():
            radius = scale[outside][:, None]
            unit = _project_unit_ball(np.abs(v[outside]) / radius, self.p / (self.p - 1))
            out[outside] = np.sign(v[outside]) * radius * unit
        return out

    @property
    def twice(self) -> bool:  # type: ignore[override]
        """For p < 2 the curvature has no bound where an entry of v is zero."""
        exact = _EXACT.get(float(self.p))
        return exact.twice if exact else self.p > 2

    def gradient(self, v: Array) -> Array:
        if self.p in _EXACT:
            return _EXACT[self.p].gradient(v)
        if not self.twice:
            return super().gradient(v)
        return np.sign(v) * _relative(v, self.p) ** (self.p - 1)

    def curvature(self, v: Array) -> Array:
        """(p-1)/||v|| (diag(r^(p-2)) - g g^T) with r = |v|/||v|| and g the gradient.

        Parameters
        ----------
        v : array of shape (n_edges, d)
            Differences over the edges.
        """
        if self.p in _EXACT:
            return _EXACT[self.p].curvature(v)
        if not self.twice:
            return super().curvature(v)
        g = np.sign(v) * _relative(v, self.p) ** (self.p - 1)
        diagonal = _relative(v, self.p)[:, :, None] ** (self.p - 2) * np.eye(v.shape[1])
        norm = np.maximum(_p_norm(v, self.p), np.finfo(float).tiny)[:, None, None]
        return (self.p - 1) * (diagonal - g[:, :, None] * g[:, None, :]) / norm


def _project_unit_ball(a: Array, q: float) -> Array:
    """Rows of a >= 0 outside the unit q-ball, projected on it.

    KKT: z + t z^(q-1) = a with t > 0 such that ||z||_q = 1; t by bisection on a log scale.
    """
    low = np.full(len(a), -60.0)
    high = np.log(np.maximum(a.max(axis=1) * a.shape[1] ** abs(1 - 2 / q), 1.0)) + 60.0
    z = a
    for _ in range(80):
        middle = 0.5 * (low + high)
        z = _stationary(a, np.exp(middle)[:, None], q)
        inside = _p_norm(z, q) < 1.0
        high = np.where(inside, middle, high)
        low = np.where(inside, low, middle)
    return z / np.maximum(_p_norm(z, q), 1.0)[:, None]


def _stationary(a: Array, t: Array, q: float) -> Array:
    """Solve z + t z^(q-1) = a for z >= 0 by Newton on the convex form, monotone from above."""
    if q >= 2:
        z = np.minimum(a, (a / t) ** (1 / (q - 1)))
        for _ in range(60):
            power = z ** (q - 2)
            new = np.maximum(z - (z + t * power * z - a) / (1 + t * (q - 1) * power), 0.0)
            if np.all(np.abs(new - z) <= 1e-15 * (1 + z)):
                break
            z = new
        return z
    r = 1 / (q - 1)  # s = z^(q-1): s^r + t s = a is convex in s
    s = np.minimum(a / t, a ** (1 / r))
    for _ in range(60):
        power = s ** (r - 1)
        new = np.maximum(s - (power * s + t * s - a) / (r * power + t), 0.0)
        if np.all(np.abs(new - s) <= 1e-15 * (1 + s)):
            break
        s = new
    return s**r
