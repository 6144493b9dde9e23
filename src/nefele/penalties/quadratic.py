"""General quadratic penalty (NFL, Sec. IV): couples predictions on a shared set (AGN, Eq. (16))."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_finite
from nefele.penalties.base import Penalty

_AT_ONCE = 256  # rows of a product


@dataclass(frozen=True, eq=False)
class Quadratic(Penalty):
    """phi(v) = 1/2 v^T Q v for a symmetric positive semidefinite Q of shape (d, d).

    Dual update: ((sigma/scale) Q^-1 + I)^-1 v, zero outside range(Q) (NFL, Sec. IV).

    Parameters
    ----------
    Q : array of shape (d, d)
        Symmetric, positive semidefinite.

    Examples
    --------
    >>> Quadratic([[2.0, 0.0], [0.0, 0.0]]).value(np.array([[3.0, 4.0]]))
    array([9.])
    """

    twice = True

    Q: Any
    _values: Array = field(init=False, repr=False)
    _vectors: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        Q = as_float_array(self.Q, "Q", 2)
        check_finite(Q, lambda at: f"Q[{at[0]}, {at[1]}]")
        if Q.shape[0] != Q.shape[1] or not np.allclose(Q, Q.T, rtol=1e-10, atol=0):
            raise ValueError(f"Q must be symmetric; got shape {Q.shape}. Use (Q + Q.T) / 2.")
        values, vectors = np.linalg.eigh(Q)
        floor = 1e-12 * max(values.max(initial=0.0), np.finfo(float).tiny)
        if values.min(initial=0.0) < -floor:
            raise ValueError(f"Q must be positive semidefinite; got eigenvalue {values.min():g}.")
        object.__setattr__(self, "Q", Q)
        object.__setattr__(self, "_values", np.where(values > floor, values, 0.0))
        object.__setattr__(self, "_vectors", vectors)

    def personal(self, d: int) -> Array:
        return np.asarray(self._vectors[:, self._values == 0])

    def value(self, v: Array) -> Array:
        return np.asarray(0.5 * (times(v, self._vectors) ** 2 * self._values).sum(axis=1))

    def conjugate(self, u: Array, scale: Array) -> Array:
        along = times(u, self._vectors)
        inside = self._values > 0
        outside = np.sqrt((along[:, ~inside] ** 2).sum(axis=1))
        # Beside the largest flow, not that of the edge: a flow of zero is rounding errors.
        feasible = outside <= 1e-12 * np.sqrt((along**2).sum(axis=1).max(initial=0.0))
        finite = 0.5 * (along[:, inside] ** 2 / self._values[inside]).sum(axis=1) / scale
        return np.where(feasible, finite, np.inf)

    def prox_conjugate(self, v: Array, scale: Array, step: Array) -> Array:
        curvature = scale[:, None] * self._values
        shares = curvature / (curvature + step[:, None])
        return times(times(v, self._vectors) * shares, self._vectors.T)

    def mix(self, v: Array) -> Array:
        return times(times(v, self._vectors) * self._values, self._vectors.T)

    def within(self, u: Array) -> Array:
        if (self._values > 0).all():
            return u
        return times(times(u, self._vectors) * (self._values > 0), self._vectors.T)

    @property
    def mixing(self) -> dict[str, Any]:
        return {"mix": self.mix, "stretch": self.Q.diagonal()}

    def gradient(self, v: Array) -> Array:
        return self.mix(v)

    def curvature(self, v: Array) -> Array:
        return np.broadcast_to(self.Q, (*v.shape, v.shape[1]))

    def check_dimension(self, d: int) -> None:
        if len(self.Q) != d:
            raise ValueError(f"Q must have shape {(d, d)} for {d} parameters; got {self.Q.shape}.")


def times(rows: Array, matrix: Array) -> Array:
    """Rows times a matrix, so many at a time that the bits of one do not depend on the others.

    A product of all at once takes other sums for other numbers of rows, so that parts of a network
    would round unlike a whole.
    """
    n, d = rows.shape
    whole, out = n - n % _AT_ONCE, np.empty((n, matrix.shape[1]))
    blocks = np.ascontiguousarray(rows[:whole]).reshape(-1, _AT_ONCE, d)
    np.matmul(blocks, matrix, out=out[:whole].reshape(-1, _AT_ONCE, matrix.shape[1]))
    if whole < n:
        rest = np.zeros((1, _AT_ONCE, d))
        rest[0, : n - whole] = rows[whole:]
        out[whole:] = (rest @ matrix)[0, : n - whole]
    return out
