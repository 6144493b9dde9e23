"""The same bound for losses that are curved, but not strongly: logistic and Poisson.

Their second derivative changes by e^s at most while a prediction moves by s. So with x_i the change
of node i's parameters from a point w, t_i = ||x_i||, and a_r the second derivative at row r there,

    (grad L_i(w_i + x_i) - grad L_i(w_i))^T x_i >= t_i g_i(t_i),
    g_i(t) = t lambda_min(sum_r c_r a_r omega(||x_r|| t) x_r x_r^T + 2 ridge),

omega(s) = (1 - e^-s) / s. Under forces of at most r_i, a point with residuals s_i and flows that
miss the penalty by e in all, whatever attackers do,

    sum_i t_i g_i(t_i) <= e + sum_i (r_i + s_i) t_i.

g_i grows with t, but without a ridge it stays below a limit: a force beyond that limit can move the
node any distance, and then there is no bound to be had.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.logistic import Logistic
from nefele.losses.pointwise import BoundPointwise
from nefele.losses.poisson import Poisson
from nefele.problem import Problem
from nefele.solvers import solve

Mask = NDArray[np.bool_]

_TOL = 1e-11  # of the fit without attackers; what is missing widens the bound
_STEPS = 20_000
_FAR = 1e6  # t up to which limits are looked for
_COARSE, _FINE = 60, 200  # distances that are tried, over all sizes and about the bound
_SMALL = 1e-3  # bounds below, relative to the largest, are rounded up to this
_ROUNDING = 8.0  # eigenvalues are wrong by this, times d^2 and the machine's epsilon


@dataclass(frozen=True, eq=False)
class Curved:
    """Bounds of the honest nodes, from their curvature at the fit without attackers.

    Attributes
    ----------
    per_node : array of shape (n_nodes,)
        inf where there is none.
    total : float
        Over all nodes with a bound.
    alpha : float
        The least curvature of their losses at the fit.
    """

    per_node: Array
    total: float
    alpha: float


def is_curved(problem: Problem) -> bool:
    """Whether curvature at a fit says something of the losses of a problem."""
    loss = problem.loss
    if not isinstance(loss, BoundPointwise) or type(loss.loss) not in (Logistic, Poisson):
        return False
    return not loss.lasso.any()


def curved_bound(problem: Problem, bad: Mask, kappa: float) -> Curved:
    """How far attackers can move the honest nodes of a problem with such losses."""
    inside, most = ~bad & problem.loss.labelled, problem.lam * kappa
    while True:
        pull = most * _weights(problem.graph, inside, bad)
        loose = most * _weights(problem.graph, inside, ~bad & ~inside)
        nodes = np.flatnonzero(inside)
        if not len(nodes):
            return Curved(np.where(bad, np.nan, np.inf), np.inf, np.nan)
        anchor = _Anchor(problem, nodes)
        strong = anchor.limit() > (pull + loose)[nodes] + anchor.residual
        if strong.all():
            break
        inside[nodes[~strong]] = False
    each, total = anchor.reach((pull + loose)[nodes])
    # The fit without the attackers' edges is not the anchor: rounding and loose nodes move it.
    back, more = anchor.reach(loose[nodes])
    per_node = np.where(bad, np.nan, np.inf)
    per_node[nodes] = each + back
    covered = per_node[np.isfinite(per_node)]
    total = min(total + more, float(np.sqrt((covered**2).sum()))) if len(covered) else np.inf
    return Curved(per_node, total, float(anchor.slopes(np.zeros(1))[:, 0].min()))


def _weights(graph: Graph, inside: Mask, others: Mask) -> Array:
    """Weight of the edges of each node inside to the others."""
    to_head = np.bincount(graph.head, graph.weight * others[graph.tail], graph.n_nodes)
    to_tail = np.bincount(graph.tail, graph.weight * others[graph.head], graph.n_nodes)
    return np.where(inside, to_head + to_tail, 0.0)


class _Anchor:
    """A fit of some nodes among themselves, and what their losses do around it."""

    def __init__(self, problem: Problem, nodes: NDArray[np.int64]) -> None:
        graph, place = problem.graph, np.full(problem.graph.n_nodes, -1)
        place[nodes] = np.arange(len(nodes))
        kept = (place[graph.head] >= 0) & (place[graph.tail] >= 0)
        ends = place[graph.head[kept]], place[graph.tail[kept]]
        small = Graph(graph.ids[nodes], *ends, graph.weight[kept])
        assert isinstance(problem.loss, BoundPointwise)
        own = problem.loss.data.subset(nodes)
        penalty = problem.penalty.at(kept)
        part = Problem(small, own, problem.loss.loss, penalty, lam=problem.lam)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # any point will do: what it lacks is added below
            found = solve(part, tol=_TOL, max_iter=_STEPS)
        self.loss, self.parts = part.loss, part.parts
        self._around(part, found.w, part.inside(found.u))

    def _around(self, part: Problem, w: Array, u: Array) -> None:
        loss: Any = part.loss
        self.residual = np.linalg.norm(loss.grad(w) + part.outflow(u), axis=1)
        seen = part.graph.diff(w)
        missed = part.scale * part.penalty.value(seen) - (u * seen).sum(axis=1)
        missed = missed + part.penalty.conjugate(u, part.scale)
        error = np.bincount(part.parts[part.graph.head], np.maximum(missed, 0.0), part.n_parts)
        self.missed = error[part.parts]
        z = loss.predict(w) + loss.offset
        self.bend = loss.data.row_weight * loss.loss.bend(z, loss.data.y)
        self.size = np.linalg.norm(loss.data.X, axis=1)

    def slopes(self, t: Array) -> Array:
        """lambda_min of each node at each of the distances t, shape (n_nodes, n_t)."""
        loss: Any = self.loss
        out = np.empty((loss.n_nodes, len(t)))
        wide = _ROUNDING * loss.d**2 * np.finfo(float).eps
        for k, one in enumerate(t.tolist()):
            s = self.size * one
            omega = np.where(s > 0, -np.expm1(-s) / np.where(s > 0, s, 1.0), 1.0)
            blocks = loss.ridged(loss._weighted_gram(self.bend * omega))
            least, most = np.linalg.eigvalsh(blocks)[:, [0, -1]].T
            out[:, k] = np.maximum(least - wide * most, 0.0)
        return out

    def g(self, t: Array) -> Array:
        """T lambda_min at each of the distances, shape (n_nodes, n_t)."""
        return t * self.slopes(t)

    def limit(self) -> Array:
        """What g comes to far away: the force that a loss can resist."""
        return self.g(np.array([_FAR]))[:, 0]

    def reach(self, force: Array) -> tuple[Array, float]:
        """How far forces of at most this size can move each node, and all together."""
        force = force + self.residual
        each, whole = self._reach(force, np.geomspace(1 / _FAR**1.5, _FAR, _COARSE))
        top = max(np.where(np.isfinite(each), each, 0.0).max(), whole if whole < np.inf else 0.0)
        fine, total = self._reach(force, np.geomspace(_SMALL * top, top, _FINE))
        return np.minimum(each, fine), min(whole, total)

    def _reach(self, force: Array, grid: Array) -> tuple[Array, float]:
        """The same, rounded up to distances of a grid."""
        g = self.g(grid)
        each, whole = np.zeros(len(force)), 0.0
        for part in np.unique(self.parts):
            own = np.flatnonzero(self.parts == part)
            error = float(self.missed[own[0]])
            least = (g[own] / grid).min(axis=0) * grid
            total = _crossing(grid, least - np.sqrt((force[own] ** 2).sum()) - error / grid)
            gains = np.array([_gain(grid, g[i], force[i]) for i in own])
            for i, gain in zip(own.tolist(), gains, strict=True):
                rest = error + float(gains.sum()) - float(gain)
                each[i] = min(_crossing(grid, g[i] - force[i] - rest / grid), total)
            whole = float(np.hypot(whole, total))
        return each, whole


def _crossing(grid: Array, rising: Array) -> float:
    """From where on an increasing function is positive, rounded up to the grid; inf if never."""
    above = rising > 0
    return float(grid[int(np.argmax(above))]) if above[-1] else np.inf


def _gain(grid: Array, g: Array, force: float) -> float:
    """At least sup_t t (force - g(t)), g increasing: on a cell, its right end times its left."""
    left = np.concatenate([[0.0], g[:-1]])
    return float(np.maximum(grid * (force - left), 0.0).max())
