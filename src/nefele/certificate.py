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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.correction import FlowOnly, LossAndFlow
from nefele.losses.base import DualPoint

if TYPE_CHECKING:
    from nefele.problem import Problem

_ROUNDS = 15
_MINOR = 0.1  # share of the gap that scaling the flow back into its balls may cost
_OUTSIDE = 1e-8  # how far outside their balls flows may be before the last, exact solve
_ROUGH = 1e-2  # accuracy of the rounds that only bring the flow inside its balls
_ROUNDING = 1e-6  # largest relative error of the dual point's equation that a leak may cover
_FINE = (1e-7, 1e-12)  # accuracies of the last one, until the leak is negligible


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
    estimate : float
        What the lower bound would be if the optimum were no larger than the point certified;
        it measures progress while there is no proof yet.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> found = problem.certificate(w=[[0.5], [3.5]], u=[[-1.0]])
    >>> found.form, found.objective, round(found.gap_abs, 9)
    ('dual', 3.5, 0.0)
    """

    objective: float
    lower: float
    form: str
    leak: float
    u: Array
    estimate: float = -np.inf

    @property
    def gap_abs(self) -> float:
        """Upper bound on objective - optimum."""
        return max(self.objective - self.lower, 0.0)


def certify(problem: Problem, w: Array, u: Array, *, firm: bool = False) -> Certificate:
    """Bound objective(w) - optimum with the help of the flow u.

    `firm` says that w is the optimum of a reduced problem, exactly fused where it should be, so
    that only the flow inside the clusters needs correction.
    """
    objective = problem.objective(w)
    u = _into_domain(problem, u)
    dual = problem.loss.dual_point(w, -problem.graph.div(u))
    if dual is None:
        return _radius_bound(problem, w, u, objective)
    only_flow = firm and problem.penalty.is_norm and problem.coupled
    system = FlowOnly(problem, w) if only_flow else LossAndFlow(problem, w)
    for _ in range(_ROUNDS if problem.coupled else 0):
        x, du = system.solve(dual, u, _ROUGH)
        outside = float(problem.penalty.domain_ratio(u - du, problem.scale).max()) - 1
        if outside <= _OUTSIDE or outside * abs(objective) <= _MINOR * _edge_gap(problem, w, u):
            break
        u = _into_domain(problem, u - du)
        dual.move(x, -problem.graph.div(u))
    best = Certificate(objective, -np.inf, "dual", 0.0, u)
    for rtol in _FINE:
        x, du = system.solve(dual, u, rtol)
        best = max(best, _bound(problem, dual, u, x, du, w, objective), key=lambda c: c.lower)
        if best.leak <= 1e-2 * best.gap_abs:
            break
    return best


def _edge_gap(problem: Problem, w: Array, u: Array) -> float:
    """Fenchel-Young residual of the edges: the part of the gap that no correction removes."""
    diff = problem.graph.diff(w)
    spent = problem.scale @ problem.penalty.value(diff)
    return float(spent + problem.penalty.conjugate(u, problem.scale).sum() - np.vdot(u, diff))


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
    off = np.abs(dual.flow() + graph.div(u))
    radius = 2 * np.abs(w).max(axis=0) + np.abs(x).max(axis=0)

    def at(theta: Array) -> Certificate:
        flow = theta[graph.head, None] * u
        leak = float(theta @ off @ radius)
        lower = float(-dual.conjugate(theta).sum() - leak)
        if problem.coupled:
            lower -= float(penalty.conjugate(flow, scale).sum())
        lower = lower if np.isfinite(lower) else -np.inf
        return Certificate(objective, lower, "dual", leak, flow, lower)

    theta = _shrinkage(problem, u, dual)
    solved = _solved(problem, u, dual, off)
    guess = at(theta)
    return guess if solved.all() else replace(at(theta * solved), estimate=guess.lower)


def _shrinkage(problem: Problem, u: Array, dual: DualPoint) -> Array:
    """Factor <= 1 per node, equal over each component, that brings the dual into its domain."""
    ratio = np.ones(int(problem.parts.max()) + 1)
    np.maximum.at(ratio, problem.parts, dual.domain_ratio())
    if problem.coupled:
        edges = problem.penalty.domain_ratio(u, problem.scale)
        np.maximum.at(ratio, problem.parts[problem.graph.head], edges)
    return (1.0 / ratio)[problem.parts]


def _solved(problem: Problem, u: Array, dual: DualPoint, off: Array) -> NDArray[np.bool_]:
    """Nodes of components where `off`, the error in the dual point's equation, is rounding.

    Elsewhere only the zero dual point, always feasible, proves anything: a leak times the size
    of an optimum that nobody knows does not.
    """
    graph, parts = problem.graph, problem.parts
    error, size = np.zeros((2, int(parts.max()) + 1, problem.d))
    np.maximum.at(error, parts, off)
    np.maximum.at(size, parts, dual.size())
    np.maximum.at(size, parts[graph.head], np.abs(u))
    return np.asarray((error <= _ROUNDING * size).all(axis=1))[parts]


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
    curvature = loss.curvature()
    radius += float((error / np.where(curvature > 0, curvature, 1.0)).max())
    strong = error**2 / (2 * np.where(mu > 0, mu, np.inf))
    nodes = np.where(mu > 0, strong, radius * error)
    proven = bool(((mu > 0) | (error == 0)).all())
    lower = problem.objective(point) - edges - float(nodes.sum())
    lower = lower if np.isfinite(lower) else -np.inf
    form = "strong convexity" if proven else "estimated radius"
    return Certificate(objective, lower, form, 0.0, u, lower)
