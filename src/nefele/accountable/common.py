"""What all nodes share, by the rows that it comes from.

Common coefficients and curves b are estimated together with the models v_i: at the optimum of the
penalised squares sum_r c_r (y_r - z_r^T b - x_r^T v_i)^2 + P(v) + b^T K b both are linear in the
labels. With A the curvature of the problem given b and U = A^-1 sum_r 2 c_r x_r z_r^T,

    b = sum_r beta_r y_r,   beta_r = S^-1 2 c_r (z_r - U_i^T x_r),

S the curvature of b that is left (Henderson's equations).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.accountable.fitted import Fitted
from nefele.accountable.system import System
from nefele.estimators.layout import Layout
from nefele.penalties import SquaredL2

_SAME = 1e-2  # relative distance of the joint optimum from what was estimated


@dataclass(frozen=True, eq=False)
class Common:
    """Common coefficients and functions of curves, and how the explained node's model has them.

    Attributes
    ----------
    columns : array of shape (n_rows, k)
        z_r, in the order of the problem.
    beta : array of shape (n_rows, k)
    target : array of shape (n_rows,)
        Labels, nothing taken from them.
    follow : array of shape (p, k)
        U at the node explained: by how much its parameters fall when b rises.
    to_units : array of shape (d + 1, k)
        Coefficients and intercept of b; zero for the functions of curves.
    straight : bool array of shape (k,)
        Coefficients; the others are functions of curves.
    stored : array of shape (k,)
        b as it was estimated.
    """

    columns: Array
    beta: Array
    target: Array
    follow: Array
    to_units: Array
    straight: NDArray[np.bool_]
    stored: Array

    def by_row(self) -> Array:
        """What each row adds to b, shape (n_rows, k)."""
        return np.asarray(self.beta * self.target[:, None])

    def shares(self, owner: NDArray[np.int64], X: Array, n_nodes: int) -> Array:
        """Part of the identity that each node's rows add through b, shape (n_nodes,)."""
        through = -np.einsum("rk,rp,pk->r", self.beta, X, self.follow)
        own = (self.beta * self.columns)[:, self.straight].sum(axis=1)
        return np.asarray(np.bincount(owner, through + own, n_nodes))


def common_of(fit: Fitted, system: System) -> Common | None:
    """The split; None where nothing is common, or it is no optimum together with the models."""
    layout, problem = fit.design.layout, fit.problem
    fixed = layout is None or not layout.has_common or fit.design.carried
    if fixed or not system.exact or not isinstance(problem.penalty, SquaredL2):
        return None
    assert layout is not None
    assert problem.data is not None
    data = problem.data
    X = fit.rows.X[fit.rows.places[fit.order]]
    weight = fit.rows.sample_weight[fit.rows.places[fit.order]]
    ratio = data.row_weight / weight
    if fit.rows.signals is not None or np.ptp(ratio) > 1e-9 * ratio.max():
        return None
    on = np.flatnonzero(layout.shared)
    columns, ridge, stored = _columns(layout, X, on)
    pulled = 2 * data.row_weight[:, None] * columns
    p, k = problem.d, columns.shape[1]
    right = np.zeros((problem.graph.n_nodes, p, k))
    np.add.at(right, data.row_node, data.X[:, :, None] * pulled[:, None, :])
    U = system.solve(right.reshape(-1, k)).reshape(-1, p, k)
    left = pulled - 2 * data.row_weight[:, None] * np.einsum("rp,rpk->rk", data.X, U[data.row_node])
    S = left.T @ columns + 2 * float(ratio[0]) * np.diag(ridge)
    beta = np.linalg.lstsq(S, left.T, rcond=None)[0].T
    target = data.y + layout.common(X)
    found = beta.T @ target
    if not np.abs(found - stored).max() <= _SAME * max(np.abs(stored).max(), 1e-300):
        return None
    straight = np.arange(k) < len(on)
    follow = U[system.at]
    return Common(columns, beta, target, follow, _to_units(layout, on, k), straight, stored)


def _columns(layout: Layout, X: Array, on: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Columns of what is common, their ridges, and the values that were estimated."""
    width = len(layout.shared)
    parts, values = [layout.standard(X)[:, on]], [layout.shared[on]]
    ridge = np.zeros(width) if layout.ridge is None else layout.ridge
    held = [ridge[on]]
    if layout.smooth is not None and layout.smooth.weights is not None:
        parts.append(layout.smooth.basis(X))
        values.append(layout.smooth.weights)
        more = ridge[width:]
        held.append(more if len(more) else np.zeros(len(layout.smooth.weights)))
    return np.hstack(parts), np.concatenate(held), np.concatenate(values)


def _to_units(layout: Layout, on: NDArray[np.int64], k: int) -> Array:
    """From b to coefficients and intercept for X as given, shape (d + 1, k)."""
    d = len(layout.shift)
    units = np.zeros((d + 1, d + 1))
    units[:d, :d] = np.diag(1 / layout.scale)
    units[d, :d] = -layout.shift / layout.scale
    units[d, d] = 1.0
    out = np.zeros((d + 1, k))
    out[:, : len(on)] = units[:, on]
    return out
