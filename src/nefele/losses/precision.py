"""Graphical Lasso as a local model: a precision matrix at each node.

Friedman, Hastie and Tibshirani (2008); over a chain of times with a penalty on differences it is
the time-varying graphical Lasso (Hallac, Park, Boyd and Leskovec, KDD 2017).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_flag, check_number
from nefele._kernels.groups import group_sums
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, DualPoint, Loss
from nefele.losses.rows import _line_search

_STEPS, _TOL = 100, 1e-12
_MOST_COLUMNS = 40  # of a lasso's Newton system, whose blocks have the fourth power of numbers
_FAR = 0.1  # least eigenvalue, relative to the largest, of a point that replaces one outside
_SINGULAR = 1e-12  # least eigenvalue, relative to their sum, that is none
_RARE = 0.1  # least size of a node's covariance, relative to the mean, for steps
_OUT = 100.0  # units of curvature of a ridge that holds a node: W hardly goes beyond 1e2 / size
_LADDER = (1.0, 1e2, 1e4, 1e6)  # steps of the proximal point method for local minimisers


@dataclass(frozen=True)
class GraphicalLasso(Loss):
    """L_i(W) = tr(S_i W) - log det W + l1 sum_{j != k} |W_jk|, S_i the covariance of node i's rows.

    A node's parameters are its precision matrix W, given by W_jj and sqrt(2) W_jk for j < k, row
    by row: their Euclidean norm is the Frobenius norm of W. `matrices` gives W back. Zeros off the
    diagonal are conditional independences. Labels play no part. A penalty of the differences
    couples the matrices, "l2" by their Frobenius distance, "l1" entry by entry.

    Parameters
    ----------
    l1 : float
        Weight of the absolute values off the diagonal, at nodes with data; times what the data's
        `shrink` says of the two columns.
    centre : bool
        Subtract the node's mean from its rows first; S_i is the mean of products in both cases.

    Examples
    --------
    >>> rows = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
    >>> data = LocalData.from_list([(rows, [0.0] * 4)])
    >>> matrices(GraphicalLasso().bind(data).minimise())[0].round(6).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    l1: float = 0.0
    centre: bool = True

    def __post_init__(self) -> None:
        check_number(self.l1, "l1", low=0.0)
        check_flag(self.centre, "centre")

    def bind(self, data: LocalData) -> BoundLoss:
        if self.l1 and data.d > _MOST_COLUMNS:
            raise ValueError(
                f"GraphicalLasso with l1 takes at most {_MOST_COLUMNS} columns; got {data.d}."
            )
        if data.offset is not None:
            raise ValueError("GraphicalLasso takes no offset: it makes no predictions.")
        weight = data.row_weight
        total = np.maximum(data.node_sum(weight), np.finfo(float).tiny)
        mean = data.node_sum(weight[:, None] * data.X) / total[:, None]
        X = data.X - mean[data.row_node] if self.centre else data.X
        S = data.node_sum(weight[:, None, None] * X[:, :, None] * X[:, None, :])
        factor = np.where(data.labelled, total, 0.0)  # the node's weight
        seen = np.ones(data.d) if data.shrink is None else data.shrink
        return BoundPrecision(S, factor, self.l1 * np.outer(seen, seen))


def matrices(w: Array) -> Array:
    """The symmetric matrices of parameters as `GraphicalLasso` has them, shape (n, p, p).

    Parameters
    ----------
    w : array of shape (n, p (p + 1) / 2)
        Upper triangles row by row, entries off the diagonal times the root of 2.

    Examples
    --------
    >>> matrices(np.array([[1.0, np.sqrt(2.0), 3.0]])).round(6).tolist()
    [[[1.0, 1.0], [1.0, 3.0]]]
    """
    w = as_float_array(w, "w", 2)
    p = round((np.sqrt(8 * w.shape[1] + 1) - 1) / 2)
    if p * (p + 1) // 2 != w.shape[1]:
        raise ValueError(f"w must have p (p + 1) / 2 columns; got {w.shape[1]}.")
    j, k, factor = _places(p)
    out = np.empty((len(w), p, p))
    out[:, j, k] = out[:, k, j] = w / factor
    return out


def _places(p: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Rows, columns and factors of the entries that parameters hold."""
    j, k = np.triu_indices(p)
    return j, k, np.where(j == k, 1.0, np.sqrt(2.0))


def _vectors(M: Array) -> Array:
    """The parameters of symmetric matrices, shape (n, p (p + 1) / 2)."""
    j, k, factor = _places(M.shape[1])
    return np.asarray(factor * (M[:, j, k] + M[:, k, j]) / 2)


class BoundPrecision(BoundLoss):
    """factor_i (tr(S_i W) - log det W) + ridge_i ||W||^2 + ..., with factor_i S_i given."""

    smooth = False

    def __init__(self, S: Array, factor: Array, l1: Array, usual: float | None = None) -> None:
        self.S, self.factor, self.l1 = S, factor, l1
        self.n_nodes, self.p = S.shape[:2]
        self.d, self.labelled = self.p * (self.p + 1) // 2, factor > 0
        j, k, double = _places(self.p)
        off = np.where(j == k, 0.0, double * l1[j, k])
        self.lasso = np.where(self.labelled[:, None], off, 0.0)

        self._size = np.einsum("ijj->i", S) / (self.p * np.where(self.labelled, factor, 1.0))
        if usual is None:
            usual = float(self._size[self.labelled].mean()) if self.labelled.any() else 1.0
        self._usual = usual  # of all nodes of a problem, also for some of them
        self.ridge = np.zeros(self.n_nodes)

    def value(self, w: Array) -> Array:
        """Infinite where W is not positive definite."""
        W = self._safe(matrices(w))
        values = np.linalg.eigvalsh(W)
        ok = values[:, 0] > 0
        log = np.log(np.where(ok[:, None], values, 1.0)).sum(axis=1)
        fit = np.einsum("ijk,ijk->i", self.S, W) - self.factor * log
        fit = fit + (self.lasso * np.abs(w)).sum(axis=1) + self.ridge * (w * w).sum(axis=1)
        return np.where(self.labelled, np.where(ok, fit, np.inf), 0.0)

    def grad(self, w: Array) -> Array:
        """S - W^-1, without the l1 term; NaN outside its domain."""
        W = self._safe(matrices(w))
        inside = np.linalg.eigvalsh(W)[:, 0] > 0
        inverse = np.linalg.inv(np.where(inside[:, None, None], W, np.eye(self.p)))
        slope = _vectors(self.S - self.factor[:, None, None] * inverse)
        slope = slope + 2 * self.ridge[:, None] * w
        return np.where((inside | ~self.labelled)[:, None], slope, np.nan)

    def _safe(self, W: Array) -> Array:
        return np.where(self.labelled[:, None, None], W, np.eye(self.p))

    def curvature(self) -> Array:
        """Of -log det at W = S^-1: about the squared size of S, if it is no freak of few rows."""
        size, usual = self._size, self._usual
        size = np.maximum(size, _RARE * usual) if usual > 0 else np.ones_like(size)
        return np.where(self.labelled, self.factor * size**2, 0.0)

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        shrunk = 1 / (1 + 2 * step * self.ridge)  # a ridge shortens the step, and shrinks v
        return self._prox(shrunk[:, None] * v, shrunk * step, start)

    def _prox(self, v: Array, step: Array, start: Array | None) -> Array:
        """The prox without the ridge."""
        values, Q = np.linalg.eigh(matrices(v) - step[:, None, None] * self.S)
        t = (step * self.factor)[:, None]
        # z - t/z = value has the positive root below, written without cancellation.
        root = np.sqrt(values**2 + 4 * t)
        with np.errstate(divide="ignore", invalid="ignore"):
            eigen = np.where(values > 0, (values + root) / 2, 2 * t / (root - values))
        z = _vectors((Q * eigen[:, None, :]) @ np.swapaxes(Q, 1, 2))
        some = self.labelled[:, None]
        if self.lasso.any():
            z = self._lasso_prox(v, step, np.where(some, z if start is None else start, v))
        return np.where(some, z, v)

    def _lasso_prox(self, v: Array, step: Array, z: Array) -> Array:
        """Newton steps, each to the minimiser of a quadratic model with the l1 term."""
        from nefele._kernels.lasso import lasso_quadratic

        back, plain = 1 / step, copy.copy(self)
        plain.ridge = np.zeros(self.n_nodes)

        def excess(z: Array) -> Array:
            return plain.value(z) + 0.5 * back * ((z - v) ** 2).sum(axis=1)

        z = self._inside(z, v, step)
        current, active = excess(z), self.labelled.copy()
        for _ in range(_STEPS):
            inverse = np.asarray(np.linalg.inv(self._safe(matrices(z))), dtype=float)
            slope = _vectors(self.S - self.factor[:, None, None] * inverse)
            slope = slope + back[:, None] * (z - v)
            model = np.asarray(self.factor[:, None, None] * _kron(inverse))
            model = model + back[:, None, None] * np.eye(self.d)
            linear = np.einsum("ijk,ik->ij", model, z) - slope
            move = lasso_quadratic(model, linear, self.lasso, z) - z
            scale = np.maximum(np.abs(z + move), np.abs(v)).max(axis=1)
            active &= np.abs(move).max(axis=1) > _TOL * scale
            if not active.any():
                break
            before = current
            z, current = _line_search(excess, z, np.where(active[:, None], move, 0.0), current)
            active &= current < before
        return z

    def _inside(self, z: Array, v: Array, step: Array) -> Array:
        """A first guess that is positive definite: z itself, or the prox without the l1 term."""
        bad = ~np.isfinite(self.value(z)) & self.labelled
        if not bad.any():
            return z
        smooth = BoundPrecision(self.S, self.factor, 0 * self.l1).prox(v, step)
        return np.where(bad[:, None], smooth, z)

    def minimise(self) -> Array:
        """S^-1 without l1, where it exists; far out where it does not."""
        unit = 1 / np.where(self.curvature() > 0, self.curvature(), 1.0)
        w = _vectors(np.repeat(np.eye(self.p)[None], self.n_nodes, axis=0))
        for factor in _LADDER:
            for _ in range(3):
                w = self.prox(w, factor * unit, start=w)
        return np.where(self.labelled[:, None], w, 0.0)

    def origin(self) -> Array:
        """As for all losses; minimisers of those that a ridge holds, which are far out."""
        if not self.ridge.any():
            return super().origin()
        return np.where(self.ridge[:, None] > 0, self.minimise(), super().origin())

    def unbounded(
        self, groups: NDArray[np.int64], w: Array | None = None, basis: Array | None = None
    ) -> NDArray[np.bool_]:
        """Groups whose summed covariance is singular, or has a zero on its diagonal beside l1.

        A ridge at any of their nodes holds them all.

        Directions of single entries, a `basis`, are not looked at.
        """
        S = group_sums(groups, self.S)
        known = (group_sums(groups, self.factor) > 0) & (group_sums(groups, self.ridge) == 0)
        if basis is not None:
            return np.zeros(len(known), dtype=bool)
        least = np.linalg.eigvalsh(S)[:, 0]
        if self.lasso.any():
            least = np.einsum("ijj->ij", S).min(axis=1)
        return known & (least <= _SINGULAR * np.einsum("ijj->i", S))

    def restrict(self, nodes: NDArray[np.int64]) -> BoundLoss:
        part = BoundPrecision(self.S[nodes], self.factor[nodes], self.l1, self._usual)
        part.ridge = self.ridge[nodes]
        return part

    def bends(self) -> Array:
        """A ridge in these units leaves inverses of usual size, and others only so far out."""
        return np.repeat(_OUT * self.curvature()[:, None], self.d, axis=1)

    def held(self, ridge: Array) -> BoundLoss:
        """With the least ridge of each node for all of its entries."""
        found = copy.copy(self)
        found.ridge = self.ridge + np.where(self.labelled, ridge.min(axis=1), 0.0)
        return found

    def dual_point(self, w: Array, target: Array) -> DualPoint:
        return PrecisionDual(self, w, target)


class PrecisionDual(DualPoint):
    """s = S - C + Z + N: a covariance C > 0 in the place of W^-1, Z of the ridge, N of the l1 term.

    L*(theta s) <= -log det((1 - theta) S + theta C) - d, times the node's weight, and
    theta^2 ||Z||^2 / (4 ridge).
    """

    def __init__(self, loss: BoundPrecision, w: Array, target: Array) -> None:
        self.loss = loss
        values, Q = np.linalg.eigh(loss._safe(matrices(w)))
        size = np.abs(values).max(axis=1, keepdims=True)
        size = np.where(size > 0, size, 1.0)
        values = np.where(values[:, :1] > 0, values, np.maximum(np.abs(values), _FAR * size))
        self.point = (Q * values[:, None, :]) @ np.swapaxes(Q, 1, 2)
        self._refresh(target)

    def _refresh(self, target: Array) -> None:
        loss = self.loss
        self.inverse = np.linalg.inv(self.point)
        self.C = loss.factor[:, None, None] * self.inverse
        self.zeta = 2 * loss.ridge[:, None] * _vectors(self.point)
        rest = target - _vectors(loss.S - self.C) - self.zeta
        self.nu = np.clip(rest, -loss.lasso, loss.lasso)

    def _held(self, rows: Array) -> Array:
        return np.where(self.loss.labelled[:, None], rows, 0.0)

    def flow(self) -> Array:
        return self._held(_vectors(self.loss.S - self.C) + self.zeta + self.nu)

    def size(self) -> Array:
        whole = _vectors(np.abs(self.loss.S) + np.abs(self.C))
        return self._held(whole + np.abs(self.zeta) + np.abs(self.nu))

    def metric(self) -> Array:
        ridge = 2 * self.loss.ridge[:, None, None] * np.eye(self.loss.d)
        return self.loss.factor[:, None, None] * _kron(self.inverse) + ridge

    def move(self, x: Array, target: Array) -> None:
        """The point moves as far as it stays positive definite."""
        X, length = matrices(x), np.ones(len(x))
        for _ in range(60):
            trial = self.point - length[:, None, None] * X
            bad = np.linalg.eigvalsh(trial)[:, 0] <= 0
            if not bad.any():
                break
            length = np.where(bad, 0.5 * length, length)
        self.point = np.where(bad[:, None, None], self.point, trial)
        self._refresh(target)

    def settle(self, x: Array) -> None:
        change = self.inverse @ matrices(x) @ self.inverse
        self.C = self.C + self.loss.factor[:, None, None] * change
        self.zeta = self.zeta - 2 * self.loss.ridge[:, None] * x

    def domain_ratio(self) -> Array:
        """1 where C is positive definite, else no scaling is sure to help."""
        C = (self.C + np.swapaxes(self.C, 1, 2)) / 2
        least = np.linalg.eigvalsh(self.loss._safe(C))[:, 0]
        return np.where(least > 0, 0.0, np.inf)

    def conjugate(self, theta: Array) -> Array:
        loss, part = self.loss, theta[:, None, None]
        mixed = loss._safe((1 - part) * loss.S + part * (self.C + np.swapaxes(self.C, 1, 2)) / 2)
        mixed = mixed / np.where(loss.labelled, loss.factor, 1.0)[:, None, None]
        values = np.linalg.eigvalsh(mixed)
        ok = values[:, 0] > 0
        log = np.log(np.where(ok[:, None], values, 1.0)).sum(axis=1)
        fit = np.where(ok, -loss.factor * (log + loss.p), np.inf)
        ridge = np.where(loss.ridge > 0, loss.ridge, 1.0)
        fit = fit + theta**2 * (self.zeta**2).sum(axis=1) / (4 * ridge)
        return np.where(loss.labelled, fit, 0.0)


def _kron(inverse: Array) -> Array:
    """X -> inverse X inverse in the parameters of symmetric matrices, shape (n, d, d)."""
    j, k, factor = _places(inverse.shape[1])
    both = inverse[:, j[:, None], j] * inverse[:, k[:, None], k]
    both = both + inverse[:, j[:, None], k] * inverse[:, k[:, None], j]
    return np.asarray(both * factor[:, None] * factor / 2)
