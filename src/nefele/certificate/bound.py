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
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.certificate.correction import FlowOnly, LossAndFlow, corrected, shift_flow
from nefele.certificate.posed import Posed
from nefele.losses.base import DualPoint

Index = NDArray[np.int64]

_ROUNDS = 15
_MINOR = 0.1  # share of the gap that scaling the flow back into its balls may cost
_SLOW = 0.7  # shrinking over two rounds of how far outside flows are, at which it is vain
_OUTSIDE = 1e-8  # how far outside their balls flows may be before the last, exact solve
_ROUGH = 0.1  # accuracy of the rounds that only bring the flow inside its balls
_ROUNDING = 1e-6  # largest relative error of the dual point's equation that a leak may cover
_FINE = (1e-5, 1e-8, 1e-12)  # accuracies of the last one, until the leak is negligible


class Origin(NamedTuple):
    """The arguments of `certify`."""

    w: Array
    u: Array
    firm: bool
    tol: float


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
    origin : Origin, optional
        What the bound was computed from: computed again, it is the same.

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
    origin: Origin | None = field(default=None, repr=False, compare=False)

    @property
    def gap_abs(self) -> float:
        """Upper bound on objective - optimum."""
        return max(self.objective - self.lower, 0.0)


def certify(
    problem: Posed, w: Array, u: Array, *, firm: bool = False, tol: float = 0.0
) -> Certificate:
    """Bound objective(w) - optimum with the help of the flow u.

    `firm` says that w is the optimum of a reduced problem, exactly fused where it should be, so
    that only the flow inside the clusters needs correction. A bound that proves a relative gap of
    `tol` need not be improved.
    """
    objective = problem.objective(w)
    u = problem.inside(u)
    dual = problem.loss.dual_point(w, -problem.graph.div(u))
    if dual is None:
        return _radius_bound(problem, w, u, objective)
    only_flow = firm and problem.penalty.is_norm and problem.coupled
    system = FlowOnly(problem, w) if only_flow else LossAndFlow(problem, w)
    x, rough, before = None, 0, [np.inf, np.inf]
    bounded = problem.coupled and problem.penalty.bounded
    while bounded and rough < _ROUNDS:
        x, give = system.solve(dual, u, _ROUGH)
        inside, outside, spare = shift_flow(problem, u, give, x, w)
        if outside <= max(_OUTSIDE, 2 * _MINOR * tol) or outside * abs(objective) <= _MINOR * spare:
            break
        if only_flow and not system.direct and outside > _SLOW * before[-2]:
            break  # w is no optimum: its flow has no way into the balls
        before.append(outside)
        u, rough = inside, rough + 1
        if not only_flow:
            dual.move(x, -problem.graph.div(u))
    start = x if rough < _ROUNDS else None
    best = Certificate(objective, -np.inf, "dual", 0.0, u)
    for rtol in _FINE[1 if 0 < tol < _FINE[0] / 10 else 0 :]:
        x, give = system.solve(dual, u, rtol, start)
        found, solved = _bound(problem, dual, u, give, x, w, objective, only_flow)
        best = max(best, found, key=lambda c: c.lower)
        if solved and best.leak <= 1e-2 * max(best.gap_abs, tol * abs(objective)):
            break
        start = x
    return best


def _bound(
    problem: Posed,
    dual: DualPoint,
    u: Array,
    give: Array,
    x: Array,
    w: Array,
    objective: float,
    only_flow: bool,
) -> tuple[Certificate, bool]:
    """The lower bound of the corrected dual point, and whether its equation holds everywhere."""
    graph, penalty, scale = problem.graph, problem.penalty, problem.scale
    dual, u = copy.copy(dual), corrected(problem, u, give, x)
    if not only_flow:
        dual.settle(x)
    off = np.abs(dual.flow() + graph.div(u))
    radius = 2 * np.abs(w).max(axis=0) + (0.0 if only_flow else np.abs(x).max(axis=0))

    def at(theta: Array) -> Certificate:
        flow = u if (theta == 1).all() else theta[graph.head, None] * u
        leak = float(theta @ off @ radius)
        lower = float(-dual.conjugate(theta).sum() - leak)
        if problem.coupled:
            lower -= float(penalty.conjugate(flow, scale).sum())
        lower = lower if np.isfinite(lower) else -np.inf
        return Certificate(objective, lower, "dual", leak, flow, lower)

    theta = _shrinkage(problem, u, dual)
    solved = _solved(problem, u, dual, off)
    guess = at(theta)
    if solved.all():
        return guess, True
    return replace(at(theta * solved), estimate=guess.lower), False


def _shrinkage(problem: Posed, u: Array, dual: DualPoint) -> Array:
    """Factor <= 1 per node, equal over each component, that brings the dual into its domain."""
    parts = problem.parts
    ratio = np.maximum(_part_max(parts, parts, dual.domain_ratio()), 1.0)
    if problem.coupled:
        edges = problem.penalty.domain_ratio(u, problem.scale)
        ratio = np.maximum(ratio, _part_max(parts, parts[problem.graph.head], edges))
    return (1.0 / ratio)[parts]


def _solved(problem: Posed, u: Array, dual: DualPoint, off: Array) -> NDArray[np.bool_]:
    """Nodes of components where `off`, the error in the dual point's equation, is rounding.

    Elsewhere only the zero dual point, always feasible, proves anything: a leak times the size
    of an optimum that nobody knows does not.
    """
    parts = problem.parts
    push = _part_max(parts, parts, dual.size())
    size = np.maximum(push, _part_max(parts, parts[problem.graph.head], u))
    # in a column of zeros all is rounding, its own size included
    size = np.where(push > 0, size, size.max(axis=1, keepdims=True))
    size = np.maximum(size, np.finfo(float).eps * size.max())  # far below all others: rounding
    return np.asarray((_part_max(parts, parts, off) <= _ROUNDING * size).all(axis=1))[parts]


def _part_max(parts: Index, of: Index, values: Array) -> Array:
    """Largest absolute value in each part, `of` naming the part of each value."""
    count = int(parts.max()) + 1
    if count == 1:  # without a copy of all absolute values
        return np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))[None]
    out = np.zeros((count, *values.shape[1:]))
    np.maximum.at(out, of, np.abs(values))
    return out


def _radius_bound(problem: Posed, w: Array, u: Array, objective: float) -> Certificate:
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
