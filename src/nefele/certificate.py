"""How far from the optimum: bounds that stay finite when nodes have few rows or none.

Any flow u inside its balls and any loss duals s with s_i + (D^T u)_i = 0 at every node give a
lower bound on the optimum (NFL, Eq. (24)). A solver's u and the gradients s_i at its w meet the
equation only nearly. The correction x with

    (M + D^T C D) x = s + D^T u,    s <- s - M x,    u <- u - C D x

meets it exactly: M_i is the curvature of the loss duals (zero at a node without data, singular
when m_i < d) and C_e the room that the flow has left in its ball. The system is consistent
whatever the data lack, since s_i always lies in the range of M_i. What then sticks out of a
domain is scaled back, flow and loss duals of a component together, which keeps the equation.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.base import DualPoint

if TYPE_CHECKING:
    from nefele.problem import Problem

_ROUNDS = 2
_DENSE = 600  # unknowns up to which a stagnating correction is solved densely


@dataclass(frozen=True)
class Certificate:
    """A lower bound on the optimum and what it rests on.

    Attributes
    ----------
    objective : float
        Objective at the point that was certified.
    lower : float
        Lower bound on the optimum.
    form : str
        "dual": an explicit dual point, proven but for the leak. "strong convexity": from the
        gradients, proven.
        "estimated radius": as the latter, with a radius that is a guess, not a proof.
    leak : float
        Part of the gap that accounts for rounding errors in the dual point's equation, times an
        estimate of the size of the optimum.
    u : array of shape (n_edges, d)
        The flow of the bound, inside its balls.
    """

    objective: float
    lower: float
    form: str
    leak: float
    u: Array

    @property
    def gap_abs(self) -> float:
        """Upper bound on objective - optimum."""
        return max(self.objective - self.lower, 0.0)


def certify(problem: Problem, w: Array, u: Array, *, firm: bool = False) -> Certificate:
    """Bound objective(w) - optimum with the help of the flow u.

    `firm` says that w is exactly fused where it should be, so that corrections should go
    through the flow inside the clusters rather than through the losses.
    """
    objective = problem.objective(w)
    u = _into_domain(problem, u)
    dual = problem.loss.dual_point(w, -problem.graph.div(u))
    if dual is None:
        return _radius_bound(problem, w, u, objective)
    best = Certificate(objective, -np.inf, "dual", 0.0, u)
    system = _Correction(problem, w, firm)
    for _ in range(_ROUNDS):
        x, du = system.solve(dual, u)
        best = max(best, _bound(problem, dual, u, x, du, w, objective), key=lambda c: c.lower)
        u = _into_domain(problem, u - du)
        dual.move(x, -problem.graph.div(u))
    x, du = system.solve(dual, u)
    return max(best, _bound(problem, dual, u, x, du, w, objective), key=lambda c: c.lower)


def _into_domain(problem: Problem, u: Array) -> Array:
    if not problem.coupled:
        return np.zeros_like(u)
    ratio = problem.penalty.domain_ratio(u, problem.scale)
    return u / np.maximum(ratio, 1.0)[:, None]


def _bound(
    problem: Problem, dual: DualPoint, u: Array, x: Array, du: Array, w: Array, objective: float
) -> Certificate:
    """The lower bound of the corrected dual point."""
    graph, penalty, scale = problem.graph, problem.penalty, problem.scale
    dual, u = copy.copy(dual), u - du
    dual.settle(x)
    leak = np.abs(dual.flow() + graph.div(u)).sum() * (2 * np.abs(w).max() + np.abs(x).max())
    theta = _shrinkage(problem, u, dual)
    u = theta[graph.head, None] * u
    lower = -dual.conjugate(theta).sum() - leak
    if problem.coupled:
        lower -= penalty.conjugate(u, scale).sum()
    if not np.isfinite(lower):
        lower = -np.inf
    return Certificate(objective, float(lower), "dual", float(leak), u)


def _shrinkage(problem: Problem, u: Array, dual: DualPoint) -> Array:
    """Factor <= 1 per node, equal over each component, that brings the dual into its domain."""
    parts = problem.graph.components
    ratio = np.ones(int(parts.max()) + 1)
    np.maximum.at(ratio, parts, dual.domain_ratio())
    if problem.coupled:
        edges = problem.penalty.domain_ratio(u, problem.scale)
        np.maximum.at(ratio, parts[problem.graph.head], edges)
    return (1.0 / ratio)[parts]


class _Correction:
    """The linear system of the correction; block-Jacobi preconditioned conjugate gradients."""

    def __init__(self, problem: Problem, w: Array, firm: bool) -> None:
        self.problem = problem
        spread = float(np.sqrt(np.mean((w - w.mean(axis=0)) ** 2)))
        self.unit = (0.01 if firm else 1.0) * (spread or float(np.abs(w).max()) or 1.0)
        self.least = 1e-5 if firm else 0.02

    def solve(self, dual: DualPoint, u: Array) -> tuple[Array, Array]:
        """The correction x of shape (n_nodes, d) and the change of flow C D x."""
        problem, graph = self.problem, self.problem.graph
        right = dual.flow() + graph.div(u)
        metric = dual.metric()
        if not problem.coupled:
            return (np.linalg.pinv(metric, hermitian=True) @ right[..., None])[..., 0], 0 * u
        penalty = problem.penalty
        give = penalty.give(u, problem.scale, self.unit, self.least)

        def apply(flat: Array) -> Array:
            x = flat.reshape(right.shape)
            along = (metric @ x[..., None])[..., 0]
            return (along + graph.div(penalty.mix(give * graph.diff(x)))).ravel()

        inverse = block_inverse(metric, graph, give)
        size = right.size
        flat, failed = cg(
            LinearOperator((size, size), apply, dtype=float),
            right.ravel(),
            rtol=1e-11,
            atol=1e-300,
            maxiter=500,
            M=LinearOperator(
                (size, size), lambda r: (inverse @ r.reshape(*right.shape, 1)).ravel(), dtype=float
            ),
        )
        if failed and size <= _DENSE:
            matrix = np.stack([apply(column) for column in np.eye(size)], axis=1)
            flat = np.linalg.lstsq(matrix, right.ravel(), rcond=1e-15)[0]
        x = flat.reshape(right.shape)
        return x, penalty.mix(give * graph.diff(x))


def block_inverse(metric: Array, graph: Graph, give: Array) -> Array:
    """Inverse diagonal blocks of M + D^T C D, a little regularised, shape (n_nodes, d, d)."""
    d = metric.shape[1]
    ends = np.stack(
        [
            np.bincount(graph.head, column, graph.n_nodes)
            + np.bincount(graph.tail, column, graph.n_nodes)
            for column in give.T
        ],
        axis=1,
    )
    blocks = metric + np.broadcast_to(ends, (len(metric), d))[:, :, None] * np.eye(d)
    size = np.einsum("ijj->i", blocks)
    floor = np.where(size > 0, 1e-14 * size, 1.0)
    inverse = np.linalg.inv(blocks + floor[:, None, None] * np.eye(d))
    return np.asarray(inverse, dtype=float)


def _radius_bound(problem: Problem, w: Array, u: Array, objective: float) -> Certificate:
    """Fenchel-Young residuals of the edges plus the nodes' distance from stationarity.

    objective(w) - optimum <= sum_e FY_e + sum_i <g_i - s_i, w_i - w*_i> with s = -D^T u, and the
    last term is at most ||g_i - s_i||^2 / (2 mu_i) or R ||g_i - s_i||. A loss without a gradient
    is certified at its prox point, where the prox gives a subgradient.
    """
    graph, loss = problem.graph, problem.loss
    flow = graph.div(u)
    if loss.smooth:
        off = loss.grad(w) + flow
        shift = np.zeros_like(w)
    else:
        curvature = loss.curvature()
        step = 1 / np.where(curvature > 0, curvature, 1.0)
        shift = w - loss.prox(w - step[:, None] * flow, step, start=w)
        off = shift / step[:, None]
    point = w - shift
    edges = 0.0
    if problem.coupled:
        diff = graph.diff(point)
        edges = float(
            problem.scale @ problem.penalty.value(diff)
            + problem.penalty.conjugate(u, problem.scale).sum()
            - (u * diff).sum()
        )
    error = np.sqrt((off**2).sum(axis=1))
    mu = loss.strong_convexity()
    radius = 2 * float(np.sqrt(((w - w.mean(axis=0)) ** 2).sum(axis=1)).max()) + float(
        np.sqrt((w**2).sum(axis=1)).max()
    )
    strong = error**2 / (2 * np.where(mu > 0, mu, np.inf))
    nodes = np.where(mu > 0, strong, radius * error)
    proven = bool(((mu > 0) | (error == 0)).all())
    lower = problem.objective(point) - edges - float(nodes.sum())
    form = "strong convexity" if proven else "estimated radius"
    return Certificate(objective, lower, form, 0.0, u)
