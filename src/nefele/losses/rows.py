"""Losses that are weighted means over a node's rows: what all of them share.

L_i(w) = sum_r c_r f(x_r^T w, y_r) + l2 ||p w||^2 + l1 ||p w||_1 with c_r = 1/m_i (or the sample
weights, normalised per node) and p the data's `shrink`, mostly 1, and 0 for columns that are
spared. Nodes without rows have L_i = 0, without any regulariser.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.data import LocalData
from nefele.losses.base import BoundLoss, DualPoint, Duals
from nefele.losses.escape import Escape

Weights = float | tuple[float, ...]

_LARGEST = 1e153  # features whose squares can still be summed
TINY = 1e-6  # row duals, in units of the largest, that may be set to zero
_NEWTON_STEPS = 100
_NEWTON_TOL = 1e-13


class BoundRows(BoundLoss):
    """Row losses bound to data; a subclass gives the six functions of one row below."""

    def __init__(self, data: LocalData, d: int, l2: Weights, l1: Weights) -> None:
        self.data, self.d, self.n_nodes = data, d, data.n_nodes
        self.labelled = data.labelled
        p = np.ones(d) if data.shrink is None else np.tile(data.shrink, d // data.d)
        # Weights of w_j^2 and |w_j|, shape (n_nodes, d).
        lasso = _each(l1, "l1", data.d, d) * p
        self.ridge = _at_labelled(self.labelled, _each(l2, "l2", data.d, d) * p**2)
        self.lasso = _at_labelled(self.labelled, lasso)
        self.smooth = not lasso.any()
        if np.abs(data.X).max(initial=0.0) > _LARGEST:
            raise ValueError("X^T X must be finite; its entries overflow. Rescale the features.")

    # Functions of the rows: z has shape (n_rows,) or (n_rows, n_outputs).

    @abstractmethod
    def predict(self, w: Array) -> Array:
        """The linear predictions x_r^T w of all rows."""

    @abstractmethod
    def pull(self, a: Array) -> Array:
        """sum_r c_r x_r a_r over each node, shape (n_nodes, d): the adjoint of `predict`."""

    @abstractmethod
    def row_value(self, z: Array) -> Array:
        """f(z_r, y_r)."""

    @abstractmethod
    def row_slope(self, z: Array) -> Array:
        """Derivative of f in z."""

    @abstractmethod
    def row_bend(self, z: Array, t: Array) -> Array:
        """Second derivative of f at z applied to t."""

    @abstractmethod
    def gram(self, z: Array) -> Array:
        """sum_r c_r x_r f''(z_r) x_r^T over each node, shape (n_nodes, d, d)."""

    @abstractmethod
    def row_conjugate(self, a: Array) -> Array:
        """f*(a_r, y_r): inf outside its domain."""

    @abstractmethod
    def row_ratio(self, a: Array) -> Array:
        """How far a_r is from zero relative to the boundary of the domain of f*; <= 1 inside."""

    def row_inside(self, a: Array) -> Array:
        """The duals with zero, always inside, for tiny ones that no scaling brings inside.

        Such as those of rows far on the right side, whose sign a correction has turned.
        """
        tiny = np.abs(a) <= TINY * np.abs(a).max(initial=0.0)
        return np.where(tiny & np.isinf(self.row_ratio(a)), 0.0, a)

    # What follows is the same for all.

    def ridged(self, blocks: Array, times: float = 1.0) -> Array:
        """The blocks with 2 l2 P^2 added on their diagonals, in place."""
        diagonals = np.einsum("ijj->ij", blocks)
        diagonals += 2 * times * self.ridge
        return blocks

    def node_mean(self, rows: Array) -> Array:
        """sum_r c_r rows_r over each node, shape (n_nodes,)."""
        return self.data.node_sum(self.data.row_weight * rows)

    def value(self, w: Array) -> Array:
        fit = self.node_mean(self.row_value(self.predict(w)))
        return fit + (self.ridge * w * w + self.lasso * np.abs(w)).sum(axis=1)

    def grad(self, w: Array) -> Array:
        """Gradient of the differentiable part (all but l1)."""
        return self.pull(self.row_slope(self.predict(w))) + 2 * self.ridge * w

    def hess(self, w: Array) -> Array | None:
        return self.ridged(self.gram(self.predict(w)))

    def strong_convexity(self) -> Array:
        return 2 * self.ridge.min(axis=1)

    def curvature(self) -> Array:
        zero = np.zeros((self.n_nodes, self.d))
        blocks = self.ridged(self.gram(self.predict(zero)))
        return np.einsum("ijj->i", blocks) / self.d

    def prox(self, v: Array, step: Array, start: Array | None = None) -> Array:
        """Batched damped Newton; nodes without rows keep v."""
        z = np.where(self.labelled[:, None], v if start is None else start, v)
        pull_back = np.where(self.labelled, 1 / step, 0.0)
        eye = np.eye(self.d)

        def excess(z: Array) -> Array:
            return self.value(z) + 0.5 * pull_back * ((z - v) ** 2).sum(axis=1)

        current = excess(z)
        active = self.labelled.copy()
        for _ in range(_NEWTON_STEPS):
            rows = self.predict(z)
            slope = self.pull(self.row_slope(rows)) + 2 * self.ridge * z
            slope += pull_back[:, None] * (z - v)
            model = self.ridged(self.gram(rows)) + pull_back[:, None, None] * eye
            model[~self.labelled] = eye
            move = self._model_step(model, slope, z)
            scale = np.maximum(np.abs(z + move), np.abs(v)).max(axis=1)
            active &= np.abs(move).max(axis=1) > _NEWTON_TOL * scale
            if not active.any():
                break
            before = current
            z, current = _line_search(excess, z, np.where(active[:, None], move, 0.0), current)
            active &= current < before  # steps that bring nothing are rounding errors
        return z

    def _model_step(self, model: Array, slope: Array, z: Array) -> Array:
        """Minimiser of slope^T m + 1/2 m^T model m + l1 ||p (z + m)||_1."""
        if not self.lasso.any():
            return -solve_blocks(model, slope)
        from nefele._kernels.lasso import lasso_quadratic

        linear = np.einsum("ijk,ik->ij", model, z) - slope
        return lasso_quadratic(model, linear, self.lasso, z) - z

    def dual_point(self, w: Array, target: Array) -> DualPoint | None:
        return RowDual(self, w, target)

    def held(self, ridge: Array) -> BoundLoss | None:
        found = copy.copy(self)
        found.ridge = self.ridge + np.where(self.labelled[:, None], ridge, 0.0)
        return found

    def _keep_ridge(self, part: BoundRows, nodes: NDArray[np.int64]) -> None:
        """Give some nodes by themselves the ridge by which they are held, too."""
        if self.ridge.any():
            part.ridge = self.ridge[nodes]

    def escape_rows(self, rows: NDArray[np.bool_]) -> tuple[Array, Array] | None:
        """What is free and pinned by these rows; None when no direction is free."""
        return None

    def escape_nodes(self, nodes: NDArray[np.bool_]) -> Escape:
        held = ((self.ridge > 0) | (self.lasso > 0))[nodes].any(axis=0)
        rows = (self.data.row_weight > 0) & nodes[self.data.row_node]
        escape = None if held.all() else self.escape_rows(rows)
        if escape is None:
            return super().escape_nodes(nodes)
        pinned = np.concatenate([escape[1], np.eye(self.d)[held]])
        return Escape(escape[0], pinned, np.zeros((0, self.d)))


def _at_labelled(labelled: NDArray[np.bool_], row: Array) -> Array:
    """The row at every labelled node, zero elsewhere; zeros that nobody writes take no memory."""
    if not row.any():
        return np.zeros((len(labelled), len(row)))
    return np.where(labelled[:, None], row, 0.0)


def _each(weights: Weights, name: str, columns: int, d: int) -> Array:
    """A weight for each of d parameters, which repeat these columns once for every class."""
    if isinstance(weights, tuple) and len(weights) not in (columns, d):
        raise ValueError(
            f"{name} must be a number or one for each of the {columns} columns; "
            f"got {len(weights)} numbers."
        )
    each = np.atleast_1d(np.array(weights, dtype=float))
    return np.tile(each, d // len(each))


def _line_search(excess, z, move, current):  # type: ignore[no-untyped-def]
    """Halve each node's step until its objective does not rise."""
    step = np.ones(len(z))
    for _ in range(40):
        trial = z + step[:, None] * move
        with np.errstate(over="ignore", invalid="ignore"):
            new = excess(trial)
        ok = new <= current + 1e-14 * np.abs(current)
        if ok.all():
            break
        step = np.where(ok, step, 0.5 * step)
    ok = new <= current + 1e-14 * np.abs(current)
    return np.where(ok[:, None], trial, z), np.where(ok, new, current)


class RowDual(DualPoint):
    """Row duals a_r = f'(x_r^T p_i) at a point p that moves; see math of the data-point dual.

    s_i = sum_r c_r x_r a_r + zeta_i + nu_i with zeta the ridge's and nu the l1 term's dual, and
    L_i*(s_i) <= sum_r c_r f*(a_r) + sum_j zeta_ij^2 / (4 l2 p_j^2), nu_i inside its box; zeta is
    zero where the ridge is.
    """

    def __init__(self, loss: BoundRows, w: Array, target: Array) -> None:
        self.loss = loss
        self.point = w.copy()
        self._refresh(target)

    def _refresh(self, target: Array) -> None:
        self.z = self.loss.predict(self.point)
        self.a = self.loss.row_slope(self.z)
        self.zeta = 2 * self.loss.ridge * self.point
        rest = target - self.loss.pull(self.a) - self.zeta
        self.nu = np.clip(rest, -self.loss.lasso, self.loss.lasso)

    def flow(self) -> Array:
        return self.loss.pull(self.a) + self.zeta + self.nu

    def size(self) -> Array:
        rows = np.abs(self.a if self.a.ndim == 2 else self.a[:, None])
        X = np.abs(self.loss.data.X)
        weighted = (self.loss.data.row_weight[:, None] * rows)[:, :, None] * X[:, None, :]
        terms = self.loss.data.node_sum(weighted).reshape(self.zeta.shape)
        return terms + np.abs(self.zeta) + np.abs(self.nu)

    def metric(self) -> Array:
        return self.loss.ridged(self.loss.gram(self.z))

    def move(self, x: Array, target: Array) -> None:
        self.point -= x
        self._refresh(target)

    def settle(self, x: Array) -> None:
        self.a = self.a - self.loss.row_bend(self.z, self.loss.predict(x))
        self.zeta = self.zeta - 2 * self.loss.ridge * x

    def tidy(self) -> None:
        self.a = self.loss.row_inside(self.a)

    def adopt(self, duals: Sequence[Duals], w: Array) -> None:
        rows, entries = duals[0]
        self.a = self.a if rows is None else rows
        self.nu = self.nu if entries is None else entries

    def domain_ratio(self) -> Array:
        return node_max(self.loss.data, self.loss.row_ratio(self.a))

    def conjugate(self, theta: Array) -> Array:
        loss = self.loss
        rows = theta[loss.data.row_node]
        scaled = self.a * (rows if self.a.ndim == 1 else rows[:, None])
        fit = loss.node_mean(loss.row_conjugate(scaled))
        ridge = np.where(loss.ridge > 0, loss.ridge, 1.0)
        return fit + theta**2 * (self.zeta**2 / (4 * ridge)).sum(axis=1)


def solve_blocks(model: Array, right: Array) -> Array:
    """Solutions of model_i x_i = right_i for psd blocks; NaN where a number has overflowed."""
    try:
        x = np.linalg.solve(model, right[..., None])
    except np.linalg.LinAlgError:
        finite = np.asarray(np.isfinite(model).all(axis=(1, 2)))
        inverse = np.linalg.pinv(np.where(finite[:, None, None], model, 0.0), hermitian=True)
        x = np.where(finite[:, None, None], inverse, np.nan) @ right[..., None]
    return np.asarray(x[..., 0], dtype=float)


def node_max(data: LocalData, rows: Array) -> Array:
    """Largest row value of each node, zero for nodes without rows, shape (n_nodes,)."""
    out = np.zeros(data.n_nodes)
    full = np.flatnonzero(data.counts)
    if full.size:
        out[full] = np.maximum.reduceat(rows, data.ptr[full])
    return out
