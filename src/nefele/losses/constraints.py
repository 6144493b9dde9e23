"""Convex sets for local models: bounds on entries, and the simplex."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_name, check_number

_ROUNDED = 1e-9  # how far outside, relative to its size, a point counts as inside
_AT = 1e-12  # how near to a bound, relative to its size, an entry counts as at it


class Constraint(ABC):
    """A closed convex set C for each node's parameters, of which every entry has an interval."""

    @abstractmethod
    def check_dimension(self, d: int) -> None:
        """Raise when it does not fit d parameters.

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """

    def recession(self, d: int) -> tuple[Array, Array]:
        """Matrices P and R: going on along t stays in C if P t = 0 and R t >= 0.

        Here: for bounded sets, which leave no such direction.

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """
        return np.eye(d), np.zeros((0, d))

    @abstractmethod
    def inside(self, w: Array) -> NDArray[np.bool_]:
        """Whether each w_i is in C, up to rounding, shape (n_nodes,).

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        """

    @abstractmethod
    def minimise(self, A: Array, g: Array, l1: Array, start: Array) -> Array:
        """Argmin over C of 1/2 z^T A_i z - g_i^T z + sum_j l1_ij |z_j|, shape (n_nodes, d).

        Parameters
        ----------
        A : array of shape (n_nodes, d, d)
            Positive definite.
        g, start : arrays of shape (n_nodes, d)
        l1 : array of shape (n_nodes, d)
        """

    @abstractmethod
    def normal(self, w: Array, rest: Array, l1: Array) -> Array:
        """What of `rest` the term l1 ||.||_1 and the set's normal cone at w can be.

        Parameters
        ----------
        w, rest, l1 : arrays of shape (n_nodes, d)
        """

    @abstractmethod
    def support(self, nu: Array, l1: Array) -> Array:
        """Sup over C of <nu_i, z> - sum_j l1_ij |z_j|, shape (n_nodes,).

        Parameters
        ----------
        nu, l1 : arrays of shape (n_nodes, d)
        """


@dataclass(frozen=True)
class Box(Constraint):
    """low <= w <= high, entry by entry; numbers, or one for each parameter. Infinity is none.

    Parameters
    ----------
    low, high : float or array of shape (d,)
        Bounds of all parameters, or of each; -inf and inf for none.

    Examples
    --------
    >>> Box(0.0, 1.0).inside(np.array([[0.5, 1.0], [0.5, 1.1]]))
    array([ True, False])
    """

    low: Any = -np.inf
    high: Any = np.inf

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            ends = np.atleast_1d(as_float_array(value, name, None if np.ndim(value) else 0))
            if ends.ndim != 1 or np.isnan(ends).any():
                raise ValueError(f"{name} must be a number or one per parameter; got {value!r}.")
            plain = float(ends[0]) if np.ndim(value) == 0 else tuple(ends.tolist())
            object.__setattr__(self, name, plain)
        low, high = self.ends
        sizes = {len(low), len(high)} - {1}
        if len(sizes) > 1:
            raise ValueError(f"low and high must be equally long; got {len(low)}, {len(high)}.")
        if not (low <= high).all() or np.isposinf(low).any() or np.isneginf(high).any():
            raise ValueError(f"low must be <= high, and a point between; got {self!r}.")

    @property
    def ends(self) -> tuple[Array, Array]:
        """Low and high as arrays of shape (1,) or (d,)."""
        return np.atleast_1d(np.array(self.low)), np.atleast_1d(np.array(self.high))

    def check_dimension(self, d: int) -> None:
        for name, ends in zip(("low", "high"), self.ends, strict=True):
            if len(ends) not in (1, d):
                raise ValueError(f"{name} must have {d} entries, or be a number; got {len(ends)}.")

    def recession(self, d: int) -> tuple[Array, Array]:
        low, high = (np.isfinite(np.broadcast_to(end, d)) for end in self.ends)
        eye = np.eye(d)
        return eye[low & high], np.concatenate([eye[low & ~high], -eye[high & ~low]])

    def inside(self, w: Array) -> NDArray[np.bool_]:
        low, high = self.ends
        slack = _ROUNDED * np.maximum(1.0, np.abs(w))
        return np.asarray(((w >= low - slack) & (w <= high + slack)).all(axis=1))

    def minimise(self, A: Array, g: Array, l1: Array, start: Array) -> Array:
        from nefele._kernels.bounded import box_quadratic

        low, high = (np.broadcast_to(end, g.shape) for end in self.ends)
        return box_quadratic(A, g, l1, np.ascontiguousarray(low), np.ascontiguousarray(high), start)

    def normal(self, w: Array, rest: Array, l1: Array) -> Array:
        low, high = self.ends
        near = _AT * np.maximum(1.0, np.abs(w))
        least = np.where(w <= low + near, -np.inf, -l1)
        most = np.where(w >= high - near, np.inf, l1)
        return np.clip(rest, least, most)

    def support(self, nu: Array, l1: Array) -> Array:
        low, high = self.ends
        middle = np.clip(0.0, low, high)
        found = nu * middle - l1 * np.abs(middle)
        for end in (low, high):
            push = np.sign(end) * nu - l1  # slope on the way out
            with np.errstate(invalid="ignore"):
                there = np.where(np.isinf(end), np.where(push > 0, np.inf, -np.inf), 0.0)
                finite = np.where(np.isinf(end), 0.0, end)
                there = there + nu * finite - l1 * np.abs(finite)
            found = np.maximum(found, there)
        return np.asarray(found.sum(axis=1))


@dataclass(frozen=True)
class Nonnegative(Box):
    """w >= 0, entry by entry.

    Examples
    --------
    >>> Nonnegative().inside(np.array([[0.0, 2.0], [-1.0, 2.0]]))
    array([ True, False])
    """

    low: Any = 0.0


@dataclass(frozen=True)
class Simplex(Constraint):
    """w >= 0 with entries that sum to `total`: shares, such as of a mixture or a portfolio.

    Parameters
    ----------
    total : float
        What the entries sum to, > 0.

    Examples
    --------
    >>> Simplex().inside(np.array([[0.25, 0.75], [0.5, 0.75]]))
    array([ True, False])
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.total, "total", low=0.0, strict=True)

    def check_dimension(self, d: int) -> None:
        return None

    def inside(self, w: Array) -> NDArray[np.bool_]:
        slack = _ROUNDED * self.total
        full = np.abs(w.sum(axis=1) - self.total) <= slack
        return np.asarray(full & (w >= -slack).all(axis=1))

    def minimise(self, A: Array, g: Array, l1: Array, start: Array) -> Array:
        from nefele._kernels.simplex import simplex_quadratic

        return simplex_quadratic(A, g, l1, float(self.total), start)

    def normal(self, w: Array, rest: Array, l1: Array) -> Array:
        """Mu on the support of w, at most mu elsewhere; l1 adds a constant, of no effect.

        Parameters
        ----------
        w, rest, l1 : arrays of shape (n_nodes, d)
        """
        on = w > _AT * self.total
        mu = (rest * on).sum(axis=1) / np.maximum(on.sum(axis=1), 1)
        return np.where(on, mu[:, None], np.minimum(rest, mu[:, None]))

    def support(self, nu: Array, l1: Array) -> Array:
        return np.asarray(self.total * (nu - l1).max(axis=1))


_BY_NAME: dict[str, type[Constraint]] = {"nonnegative": Nonnegative, "simplex": Simplex}


def as_constraint(within: Any) -> Constraint:
    """The set itself, or the one of this name."""
    if isinstance(within, str):
        return _BY_NAME[check_name(within, _BY_NAME, "constraint")]()
    if not isinstance(within, Constraint):
        raise ValueError(
            f"within must be one of {', '.join(_BY_NAME)}, a Box or a Simplex; got {within!r}."
        )
    return within
