"""Training rows grouped by node: moments, Gaussian fits, least-squares fits, all as arrays."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_flag, check_number
from nefele._ids import IdIndex, describe, distinct
from nefele.graph import Index
from nefele.graph_learning.builders import TrainingRows
from nefele.result import DataWarning

_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class NodeRows:
    """Rows of weight > 0, node by node.

    Attributes
    ----------
    ids : array of shape (n_nodes,)
    owner : int array of shape (n_rows,)
        Position of each row's node, ascending.
    ptr : int array of shape (n_nodes + 1,)
    weight : array of shape (n_rows,)
    total : array of shape (n_nodes,)
        Sum of the row weights of each node.
    X : array of shape (n_rows, d)
    targets : array of shape (n_rows, k)
    """

    ids: NDArray[Any]
    owner: Index
    ptr: Index
    weight: Array
    total: Array
    X: Array
    targets: Array

    def values(self, target: bool) -> Array:
        """Features and, if asked for, targets, shape (n_rows, p)."""
        return np.hstack([self.X, self.targets]) if check_flag(target, "target") else self.X

    def sums(self, values: Array) -> Array:
        """Weighted sums over the rows of each node, shape (n_nodes, ...)."""
        shape = (-1,) + (1,) * (values.ndim - 1)
        return np.add.reduceat(values * self.weight.reshape(shape), self.ptr[:-1], axis=0)

    def means(self, values: Array) -> Array:
        """Weighted means over the rows of each node, shape (n_nodes, ...)."""
        return self.sums(values) / self.total.reshape((-1,) + (1,) * (values.ndim - 1))


def node_rows(rows: TrainingRows) -> NodeRows:
    """Group training rows by node; ids as `distinct` orders them."""
    on = np.flatnonzero(rows.sample_weight > 0)
    ids = distinct(rows.node_ids[on])
    owner = IdIndex(ids).positions(rows.node_ids[on])
    order = np.argsort(owner, kind="stable")
    owner, on = owner[order], on[order]
    ptr = np.searchsorted(owner, np.arange(len(ids) + 1))
    weight = rows.sample_weight[on]
    total: Array = np.bincount(owner, weight, len(ids)).astype(np.float64)
    return NodeRows(ids, owner, ptr, weight, total, rows.X[on], rows.targets[on])


def tell_constant(rows: TrainingRows) -> None:
    """Warn of features that are the same in all rows: they say nothing about who is alike."""
    X = rows.X[rows.sample_weight > 0]
    if not len(X):
        return
    same = np.flatnonzero(np.ptp(X, axis=0) <= _ROUNDING * np.abs(X).max(axis=0))
    if same.size:
        names = [repr(rows.feature_names[c]) if rows.feature_names else str(c) for c in same]
        warnings.warn(
            f"Constant feature{'s' * (len(names) > 1)} (column {', '.join(names[:5])}"
            f"{', ...' * (len(names) > 5)}): no information for the graph. Leave out or ignore.",
            DataWarning,
            stacklevel=4,
        )


def gaussian_fits(nodes: NodeRows, values: Array, shrinkage: float) -> tuple[Array, Array]:
    """Mean (n, p) and covariance (n, p, p) of each node's rows, with m - 1 in the denominator.

    With shrinkage s the covariance is (1 - s) times the node's own plus s times the mean over
    the nodes that have one; a node with too few rows has the latter alone.
    """
    shrinkage = check_number(shrinkage, "shrinkage", low=0.0)
    if shrinkage > 1:
        raise ValueError(f"shrinkage must lie in [0, 1]; got {shrinkage}.")
    mean = nodes.means(values)
    apart = values - mean[nodes.owner]
    few = (nodes.total <= 1) | (np.diff(nodes.ptr) < 2)
    if few.any() and (not shrinkage or few.all()):
        advice = "Give them more rows or drop them" if few.all() else "Use shrinkage=0.1"
        raise ValueError(
            "A covariance needs at least 2 rows per node; too few at "
            f"{int(few.sum())} of {len(few)} nodes: {describe(nodes.ids[few])}. {advice}"
            f"{'.' if few.all() else ' to borrow the covariance of the others, or drop them.'}"
        )
    second = nodes.sums(apart[:, :, None] * apart[:, None, :])
    cov = second / np.where(few, np.inf, nodes.total - 1)[:, None, None]
    if shrinkage:
        common = cov[~few].mean(axis=0)
        cov = (1 - shrinkage) * cov + shrinkage * common
        cov[few] = common
    return mean, cov


def within_units(nodes: NodeRows, values: Array) -> Array:
    """Standard deviation of each column inside the nodes, shape (p,); 1 for constant columns.

    Sampling noise is alike in these units. A column that is constant inside every node is
    measured by its deviation between nodes.
    """
    mean = nodes.means(values)
    inside = np.sqrt(nodes.means((values - mean[nodes.owner]) ** 2).mean(axis=0))
    size = np.abs(values).max(axis=0, initial=0.0)
    unit = np.where(inside > _ROUNDING * size, inside, mean.std(axis=0))
    return np.where(unit > _ROUNDING * size, unit, 1.0)


@dataclass(frozen=True, eq=False)
class LinearFits:
    """Least-squares fits of the targets on standardised features and a constant.

    L_i(w) = <w, gram_i w> - 2 <w, cross_i> + square_i + l2 |w|^2, summed over targets.

    Attributes
    ----------
    gram : array of shape (n, p, p)
        Z_i^T Z_i / m_i with Z the standardised features and a constant column.
    cross : array of shape (n, p, k)
        Z_i^T Y_i / m_i.
    square : array of shape (n,)
    w : array of shape (n, p, k)
        Ridge fit of each node.
    pooled : array of shape (p, k)
        Fit to all nodes, each counting once.
    rank : int array of shape (n,)
        min(rows, p) of each node.
    """

    gram: Array
    cross: Array
    square: Array
    w: Array
    pooled: Array
    rank: Index

    def losses(self) -> Array:
        """Mean squared error of the fit of node j on the rows of node i, shape (n, n)."""
        n, p, k = self.w.shape
        outer = np.einsum("jac,jbc->jab", self.w, self.w).reshape(n, p * p)
        found = self.gram.reshape(n, p * p) @ outer.T + self.square[:, None]
        found -= 2 * self.cross.reshape(n, p * k) @ self.w.reshape(n, p * k).T
        return np.maximum(found, 0.0)

    @property
    def points(self) -> Array:
        """Fitted parameters as one row per node, shape (n, p * k)."""
        return self.w.reshape(len(self.w), -1)


def linear_fits(nodes: NodeRows, l2: float) -> LinearFits:
    """Ridge fits of all nodes at once; features and targets in units of their pooled deviation."""
    l2 = check_number(l2, "l2", low=0.0, strict=True)
    Z, Y = _standard(nodes, nodes.X), _standard(nodes, nodes.targets)
    Z = np.hstack([Z, np.ones((len(Z), 1))])
    gram = nodes.means(Z[:, :, None] * Z[:, None, :])
    cross = nodes.means(Z[:, :, None] * Y[:, None, :])
    square = nodes.means((Y * Y).sum(axis=1))
    ridge = l2 * np.eye(Z.shape[1])
    w: Array = np.asarray(np.linalg.solve(gram + ridge, cross), dtype=np.float64)
    pooled = np.linalg.solve(gram.mean(axis=0) + ridge, cross.mean(axis=0))
    rank = np.minimum(np.diff(nodes.ptr), Z.shape[1])
    return LinearFits(gram, cross, square, w, pooled, rank)


def _standard(nodes: NodeRows, values: Array) -> Array:
    """Columns of mean 0 and deviation 1 over all rows; constant columns become 0."""
    mean = np.average(values, axis=0, weights=nodes.weight)
    spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=nodes.weight))
    constant = spread <= _ROUNDING * np.abs(values).max(axis=0, initial=0.0)
    return np.where(constant, 0.0, values - mean) / np.where(constant, 1.0, spread)
