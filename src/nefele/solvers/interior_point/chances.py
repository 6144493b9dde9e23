"""Rows of logistic, multinomial and Poisson losses in an interior-point method, by their duals.

The conjugates of these losses are entropies of p > 0: of the chances of all classes, which sum to
one, or of a mean count. With z the predictions of a row, p is optimal where

    log p_k + nu = z_k + q_k,    p_k q_k = level,    q > 0,                                   (1)

nu = 0 for counts. Newton steps on w alone move predictions that should go to infinity by one each:
labels that can be separated take tens of them, short ones where rows differ. In (1) all but the
logarithm is linear, and p need not be smaller than the level asks for. Eliminated, (1) leaves

    dp = S (dz + (level - p q) / p + z + q - log p),    S = diag(c) - c c^T / sum(c)           (2)

with c = p / (1 + q), for counts S = diag(c).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.losses import Logistic, Poisson
from nefele.losses.base import BoundLoss
from nefele.losses.multinomial import BoundMultinomial
from nefele.losses.pointwise import BoundPointwise
from nefele.problem import Problem
from nefele.solvers.interior_point.cones import outlying

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_TINY = 1e-4  # ridge, relative to the curvature at zero, that hardly holds a node
_WEAK = 0.1  # strength of a node's edges, relative to its slope at zero, that hardly does
_EXTREME = 100.0  # how many times less likely than all others together a start may be
_DIRECTION = ("dz", "dp", "dq", "longest", "_change")


def entropic(loss: BoundLoss) -> bool:
    """Whether the conjugate is an entropy of the rows."""
    if isinstance(loss, BoundPointwise):
        return type(loss.loss) in (Logistic, Poisson)
    return isinstance(loss, BoundMultinomial)


def advisable(problem: Problem, nodes: Index, loss: Any) -> bool:
    """Whether steps by duals are likely to be fewer: some nodes are hardly held.

    Neither by a ridge nor by edges, whose flows are much less than what the loss pulls at zero. A
    ridge that is tiny holds nodes without a minimiser.
    """
    zero = np.zeros((loss.n_nodes, loss.d))
    size = np.einsum("ijj->ij", loss.hess(zero))
    free = ((size > 0) & (2 * loss.ridge < _TINY * size)).any(axis=1)
    if not free.any():
        return False
    if not (problem.penalty.bounded and problem.penalty.whole) or loss.ridge[free].any():
        return True
    if isinstance(loss, BoundPointwise) and type(loss.loss) is Poisson:
        return False
    graph, strength = problem.graph, np.zeros(problem.graph.n_nodes)
    for ends in (graph.head, graph.tail):
        np.add.at(strength, ends, problem.scale)
    pull = np.sqrt((loss.grad(zero) ** 2).sum(axis=1))
    return bool((strength[nodes] < _WEAK * pull)[free].any())


class Chances:
    """The rows of a loss at nodes that are `on`; the interface of `RowCones`.

    Parameters
    ----------
    loss : BoundLoss
        For which `entropic` holds.
    nodes : array of int
        Its nodes.
    w : array of shape (n_nodes, d)
        Parameters of all nodes to start at.
    on : array of bool, shape (n_nodes,)
    level : float
        p q of each class of each row at the start, in units of the objective; half the level of a
        cone of two barriers.
    name : str
        For checkpoints.

    Attributes
    ----------
    u : array of shape (n_rows, n_classes)
        Slopes in the predictions: p without the labels.
    """

    kept = ("p", "q")

    def __init__(
        self, loss: Any, nodes: Index, w: Array, on: Mask, level: float, name: str
    ) -> None:
        self.loss, self.nodes, self.n_nodes, self.name = loss, nodes, len(w), name
        weight = loss.data.row_weight
        self.rows = np.flatnonzero((weight > 0) & on[nodes][loss.data.row_node])
        self.weight = weight[self.rows][:, None]
        self.y = loss.data.y[self.rows]
        counts = isinstance(loss, BoundPointwise) and type(loss.loss) is Poisson
        self.kind = "counts" if counts else "classes"
        if isinstance(loss, BoundMultinomial):
            self.kind, self.hot = "many classes", loss.hot[self.rows]
        elif not counts:
            self.hot = np.tile([1.0, 0.0], (len(self.rows), 1))
        self.z = self.change(w) + self._offset()
        self.p = self._first()
        self.q = level / (self.weight * self.p)
        self.count = self.p.size / 2
        self.total = self._sum()
        self.longest, self._change = 0.0, [0.0, 0.0]
        self.dz, self.dp, self.dq = np.zeros((3, *self.p.shape))

    def _first(self) -> Array:
        """Chances or means to start with: as predicted, as far as these are not extreme.

        Tiny ones would ask for a huge q, by which (1) is missed.
        """
        if self.kind == "counts":
            most = _EXTREME * (self.y[:, None] + 1.0)
            return np.clip(np.exp(self.z), most / _EXTREME**2, most)
        p = np.maximum(_softmax(self.z), 1.0 / _EXTREME)
        return np.asarray(p / p.sum(axis=1, keepdims=True))

    def _offset(self) -> Any:
        if self.kind == "many classes":
            return 0.0
        offset = self.loss.offset[self.rows]
        return offset[:, None] if self.kind == "counts" else self._sides(offset)

    def _sides(self, z: Array) -> Array:
        """Predictions of the right class, zero, and of the wrong one."""
        return np.column_stack([np.zeros(len(z)), -self.y * z])

    def _sum(self) -> float:
        return float((self.weight * self.p * self.q).sum())

    @property
    def u(self) -> Array:
        return self.p - self.y[:, None] if self.kind == "counts" else _centred(self.p, self.hot)

    @property
    def du(self) -> Array:
        """Direction of u."""
        return self.dp

    def change(self, dw: Array) -> Array:
        """Predictions, shape (n_rows, n_classes)."""
        found = np.asarray(self.loss.predict(dw[self.nodes])[self.rows])
        if self.kind == "many classes":
            return found
        return found[:, None] if self.kind == "counts" else self._sides(found)

    def to_nodes(self, values: Array) -> Array:
        """The adjoint of `change`, with the rows' weights, shape (n_nodes, d)."""
        return self._placed(self.loss.pull(self._all(self._one(values))))

    def _one(self, values: Array) -> Array:
        """Slopes in what the loss predicts."""
        if self.kind == "many classes":
            return values
        return values[:, 0] if self.kind == "counts" else -self.y * values[:, 1]

    def gram(self, w: Array) -> Array:
        """Scale to the present point; returns X^T S X, shape (n_nodes, d, d)."""
        self.z = self.change(w) + self._offset()
        self._c = self.p / (1 + self.q)
        self._norm = self._c.sum(axis=1, keepdims=True)
        self._off = self.z + self.q - np.log(self.p)
        self.dz, self.dp, self.dq = np.zeros((3, *self.p.shape))
        weight = self.weight[:, 0]
        if self.kind == "counts":
            return self._placed(self.loss._weighted_gram(self._all(weight * self._c[:, 0])))
        if self.kind == "classes":
            both = self._c[:, 0] * self._c[:, 1] / self._norm[:, 0]
            return self._placed(self.loss._weighted_gram(self._all(weight * both)))
        S = -self._c[:, :, None] * (self._c / self._norm)[:, None, :]
        k = np.arange(S.shape[1])
        S[:, k, k] = self._c * _others(self._c) / self._norm
        return self._placed(self.loss.blocks_of(self._all(weight[:, None, None] * S)))

    def give(self, change: Array) -> Array:
        """S times changes of predictions."""
        if self.kind == "counts":
            return self._c * change
        mean = (self._c * change).sum(axis=1, keepdims=True) / self._norm
        return self._c * (change - mean)

    def aim(self, level: float, rest: float, bend: float) -> Array:
        """Aim at weight p q = level / 2, corrected to second order by the last direction."""
        aimed = 0.5 * level / self.weight - bend * self.dp * self.dq
        self._aimed = aimed - self.p * self.q
        self._rest = rest * self._off + 0.5 * bend * (self.dp / self.p) ** 2
        return self._pulled()

    def _pulled(self) -> Array:
        self._pull = self.give(self._aimed / self.p + self._rest)
        return self._pull

    def nudge(self, step: float, level: float) -> Array:
        """Change what is aimed at so that a longer step stays inside; returns the new pull."""
        x, dx = self.weight * self.p, self.weight * self.dp
        self._aimed = self._aimed + outlying(x, self.q, dx, self.dq, step, level) / self.weight
        return self._pulled()

    def direct(self, change: Array, flow: Array, rest: float) -> None:
        """Directions, given changes of predictions and S times these."""
        self.dz, self.dp = change, flow + self._pull
        self.dq = (self._aimed - self.q * self.dp) / self.p
        falls = max(
            float((-move / here).max(initial=0.0))
            for here, move in ((self.p, self.dp), (self.q, self.dq))
        )
        self.longest = 1 / falls if falls > 0 else np.inf
        first = (self.weight * (self.p * self.dq + self.q * self.dp)).sum()
        self._change = [float(first), float((self.weight * self.dp * self.dq).sum())]

    def save(self) -> tuple[Any, ...]:
        """The present direction, for `restore`."""
        return tuple(getattr(self, name) for name in _DIRECTION)

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Back to a direction that was saved."""
        for name, value in zip(_DIRECTION, saved, strict=True):
            setattr(self, name, value)

    def ahead(self, step: float) -> float:
        """Sum of x^T z after a step."""
        return self.total + step * (self._change[0] + step * self._change[1])

    def move(self, step: float, rest: float) -> None:
        """Take the step."""
        self.p = self.p + step * self.dp
        self.q = self.q + step * self.dq
        if self.kind != "counts":
            self.p /= self.p.sum(axis=1, keepdims=True)  # 1 but for rounding errors
        self.total = self._sum()

    def residual(self, w: Array) -> float:
        """Fenchel-Young residuals at w."""
        loss, a = self.loss, self.duals()
        z = loss.predict(w[self.nodes])
        slack = loss.row_value(z) + loss.row_conjugate(a)
        slack -= a * z if a.ndim == 1 else (a * z).sum(axis=1)
        return float((self.weight[:, 0] * slack[self.rows]).sum())

    def duals(self) -> Array:
        """Duals of all rows of the loss."""
        return self._all(self._one(self.u))

    def _all(self, values: Array) -> Array:
        if len(self.rows) == self.loss.data.n_rows:
            return values
        out = np.zeros((self.loss.data.n_rows, *values.shape[1:]))
        out[self.rows] = values
        return out

    def _placed(self, found: Array) -> Array:
        if len(self.nodes) == self.n_nodes:
            return np.asarray(found)
        out = np.zeros((self.n_nodes, *found.shape[1:]))
        out[self.nodes] = found
        return out


def _others(values: Array) -> Array:
    """Sum over each row but for one entry."""
    return np.asarray(values @ (1 - np.eye(values.shape[1])))


def _centred(p: Array, hot: Array) -> Array:
    """P - hot, exact where p is nearly one."""
    other = np.where(hot > 0, 0.0, p)
    return np.where(hot > 0, -other.sum(axis=1, keepdims=True), other)


def _softmax(z: Array) -> Array:
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))
