"""Rows as columns of a mixed model: standardised, independent, personal or common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from nefele._checks import Array
from nefele.data import LocalData
from nefele.mixed.coupling import Index
from nefele.mixed.smooth import Smooth

Mask = NDArray[np.bool_]

_DEPENDENT = 1e-9  # share of a column's variance that the others leave, below which it is dropped
_WIDE = 0.2  # columns per row from which their coefficients are shrunk
_NODES = 5  # that must tell of a slope before it may differ
_SINGLE = 0.9  # share of what one row could do at most that makes it the only one


@dataclass(frozen=True, eq=False)
class Table:
    """Rows and the roles of their columns.

    Attributes
    ----------
    X : array of shape (n_rows, d)
        Features as they are; `scaled` brings them to mean 0 and deviation 1.
    y, weight : arrays of shape (n_rows,)
    owner : int array of shape (n_rows,)
        Position of each row's node.
    n_nodes : int
    intercept : bool
    common : bool array of shape (d,)
        Features whose coefficients must be common.
    """

    X: Array
    y: Array
    weight: Array
    owner: Index
    n_nodes: int
    intercept: bool
    common: Mask


@dataclass(frozen=True, eq=False)
class Columns:
    """A table as local datasets: standardised features, functions, the constant.

    Attributes
    ----------
    data : LocalData
    shift, scale : arrays of shape (d,)
    used : int array
        Features that are not a sum of others.
    personal : int array
        Columns of `data` that may have a personal part; the constant is the last.
    groups : int array
        Ridge of each column of `data`, -1 for none.
    """

    data: LocalData
    order: Index
    shift: Array
    scale: Array
    used: Index
    personal: Index
    groups: Index
    smooth: Smooth | None


def columns_of(table: Table, smooth: Smooth | None = None) -> Columns:
    """Standardised columns of a table, with the functions of `smooth` where it is given."""
    X = table.X if smooth is None else smooth.clip(table.X)
    total = table.weight.sum()
    shift = table.weight @ X / total if table.intercept else np.zeros(X.shape[1])
    scale = np.sqrt(table.weight @ (X - shift) ** 2 / total)
    constant = scale <= 1e-12 * np.abs(X).max(axis=0, initial=0.0)
    scale = np.where(constant, np.inf, scale)
    X = (X - shift) / scale
    used = _independent(X, table.weight)
    wide = len(used) > _WIDE * total
    groups = np.full(len(used), 0 if wide else -1)
    personal = np.flatnonzero(~(table.common | _level(X, table))[used])
    parts = [X[:, used]]
    if smooth is not None:
        parts.append(smooth.basis(table.X))
        groups = np.concatenate([groups, smooth.groups + int(wide)])
    if table.intercept:
        parts.append(np.ones((len(X), 1)))
        personal = np.append(personal, len(groups))
        groups = np.append(groups, -1)
    order = np.argsort(table.owner, kind="stable")
    ptr = np.concatenate([[0], np.cumsum(np.bincount(table.owner, minlength=table.n_nodes))])
    even = bool((table.weight == 1.0).all())
    data = LocalData(
        np.ascontiguousarray(np.hstack(parts)[order]),
        table.y[order],
        ptr,
        sample_weight=None if even else table.weight[order],
    )
    return Columns(data, order, shift, scale, used, personal, groups, smooth)


def _independent(X: Array, weight: Array) -> Index:
    """Columns none of which is a sum of earlier ones, by elimination."""
    G = (X * weight[:, None]).T @ X / weight.sum()
    kept: list[int] = []
    for j in np.flatnonzero(G.diagonal() > _DEPENDENT):
        left = G[j, j]
        if kept:
            factor = linalg.cho_factor(G[np.ix_(kept, kept)], lower=True)
            left -= G[j, kept] @ linalg.cho_solve(factor, G[kept, j])
        if left > _DEPENDENT * G[j, j]:
            kept.append(int(j))
    return np.array(kept, dtype=np.int64)


def _level(X: Array, table: Table) -> Mask:
    """Features that are constant within each node: no node tells their slope."""
    count = np.maximum(np.bincount(table.owner, minlength=table.n_nodes), 1)
    sums = [np.bincount(table.owner, x, table.n_nodes) for x in X.T]
    means = np.reshape(sums, (X.shape[1], table.n_nodes)).T / count[:, None]
    away = np.abs(X - means[table.owner]).max(axis=0, initial=0.0)
    return np.asarray(away <= 1e-9)


def thin(table: Table) -> Mask:
    """Features whose slope too few nodes tell of: elsewhere they vary by a single row, if at all.

    Where one row of a node has a rare level, its deviation from the common slope is that row's
    noise. A node tells of a slope if all rows but one would still; of these there must be five, or
    half of the nodes with three rows or more.
    """
    owner, n = table.owner, table.n_nodes
    rows = np.bincount(owner, table.weight, n)
    able = rows > 2
    needed = min(_NODES, (int(able.sum()) + 1) // 2)
    order = np.argsort(owner, kind="stable")
    first = np.flatnonzero(np.diff(owner[order], prepend=-1))
    seen, unit = owner[order][first], np.minimum(table.weight, 1.0)
    out = np.zeros(table.X.shape[1], dtype=bool)
    for j, x in enumerate((table.X - table.X.mean(axis=0)).T):
        mean = np.bincount(owner, table.weight * x, n) / np.maximum(rows, 1e-300)
        square = (x - mean[owner]) ** 2
        square[square <= (1e-9 * x) ** 2] = 0.0  # rounding
        total, most = np.bincount(owner, table.weight * square, n), np.zeros(n)
        most[seen] = np.maximum.reduceat((unit * square)[order], first)
        single = most >= _SINGLE * (1 - 1 / np.maximum(rows, 1.0)) * total
        out[j] = int((able & ~single).sum()) < needed
    return out
