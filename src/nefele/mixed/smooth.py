"""Smooth functions of single features, common to all nodes: penalised cubic splines.

The model of node i is x^T w_i + s(x): personal in what is linear, common in what is not. The
curves have no constant and no linear part at the training rows, and their coefficients have a
ridge of their own for each feature, so that a straight line costs nothing (Ruppert, Wand and
Carroll 2003, Sec. 4.9 and 13.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.mixed.coupling import Index

_TAIL = 0.005  # share of the rows beyond the outermost values on either side
_FEWEST = 6  # distinct values from which a feature has a curve
_KNOTS = 8
_ROWS = 50  # rows from which there are curves


@dataclass(frozen=True, eq=False)
class Curve:
    """One feature's basis: |x - knot|^3 turned, less the line of least squares.

    Attributes
    ----------
    column : int
    knots : array of shape (k,)
        In units of the feature's standard deviation from its mean.
    turn : array of shape (k, k)
    line : array of shape (2, k)
        Constant and slope that are taken off.
    """

    column: int
    knots: Array
    turn: Array
    line: Array
    mean: float
    deviation: float

    def basis(self, x: Array) -> Array:
        """Values of the k functions at x, shape (n_rows, k)."""
        t = (x - self.mean) / self.deviation
        bent = np.abs(t[:, None] - self.knots) ** 3 @ self.turn
        return np.asarray(bent - self.line[0] - t[:, None] * self.line[1])

    @classmethod
    def of(cls, column: int, x: Array, weight: Array) -> Curve | None:
        """The basis of a feature, from its values at the training rows; None if it has too few."""
        if len(np.unique(x)) < _FEWEST:
            return None
        share = weight / weight.sum()
        mean = float(share @ x)
        deviation = float(np.sqrt(share @ (x - mean) ** 2))
        t = (x - mean) / deviation
        knots = np.unique(_quantiles(t, weight, np.linspace(0, 1, _KNOTS + 2)[1:-1]))
        if len(knots) < 3:
            return None
        # A coefficient's variance then measures bending: u^T |k_i - k_j|^3 u is its energy.
        left, values, right = np.linalg.svd(np.abs(knots[:, None] - knots) ** 3)
        turn = (left / np.sqrt(values)) @ right
        bent = np.abs(t[:, None] - knots) ** 3 @ turn
        line = np.stack([share @ bent, (share * t) @ bent])
        size = float(np.sqrt(share @ ((bent - line[0] - t[:, None] * line[1]) ** 2).mean(axis=1)))
        if not size > 0:
            return None
        return cls(column, knots, turn / size, line / size, mean, deviation)


@dataclass(frozen=True, eq=False)
class Smooth:
    """The curves of some features.

    Beyond the outermost values that it knows, half a percent of the rows on either side, a
    feature counts as if it were there: so a single far row neither bends a curve nor gets an
    extrapolation.

    Attributes
    ----------
    low, high : arrays of shape (d,)
        Outermost values of each feature; infinite for features without a curve.
    curves : tuple of Curve
    weights : array of shape (n_functions,) or None
        Coefficients of all functions, once they are known.

    Examples
    --------
    >>> x = np.linspace(0.0, 1.0, 50)[:, None]
    >>> smooth = Smooth.of(x, np.array([0]), np.ones(50))
    >>> smooth.basis(x).shape, smooth.groups.tolist()
    ((50, 8), [0, 0, 0, 0, 0, 0, 0, 0])
    """

    low: Array
    high: Array
    curves: tuple[Curve, ...]
    weights: Array | None = None

    @classmethod
    def of(cls, X: Array, columns: Index, weight: Array) -> Smooth | None:
        """Curves of the given columns at training rows X (n_rows, d); None if there are none."""
        if weight.sum() < _ROWS:
            return None
        low, high = np.full(X.shape[1], -np.inf), np.full(X.shape[1], np.inf)
        curves = []
        for j in columns:
            ends = _quantiles(X[:, j], weight, np.array([_TAIL, 1 - _TAIL]))
            found = Curve.of(int(j), np.clip(X[:, j], *ends), weight)
            if found is not None:
                curves.append(found)
                low[j], high[j] = ends
        return cls(low, high, tuple(curves)) if curves else None

    def take(self, kept: NDArray[np.bool_]) -> Smooth | None:
        """Some of the curves, by a mask; None if there are none. All features stay clipped."""
        curves = tuple(c for c, keep in zip(self.curves, kept, strict=True) if keep)
        return Smooth(self.low, self.high, curves) if curves else None

    def clip(self, X: Array) -> Array:
        """Features within their outermost values, shape (n_rows, d)."""
        return np.clip(X, self.low, self.high)

    def basis(self, X: Array) -> Array:
        """All functions at the rows, shape (n_rows, n_functions)."""
        X = self.clip(X)
        return np.hstack([curve.basis(X[:, curve.column]) for curve in self.curves])

    @property
    def groups(self) -> Index:
        """Curve of each function, shape (n_functions,)."""
        sizes = [len(curve.knots) for curve in self.curves]
        return np.repeat(np.arange(len(sizes)), sizes)

    def __call__(self, X: Array) -> Array:
        """s(x) of each row, shape (n_rows,)."""
        assert self.weights is not None
        return np.asarray(self.basis(X) @ self.weights)


def _quantiles(x: Array, weight: Array, shares: Array) -> Array:
    """Quantiles of weighted rows: a row of weight k is k equal rows."""
    return np.asarray(np.quantile(x, shares, weights=weight, method="inverted_cdf"))
