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
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._systems.laplacian import COMPILED
from nefele.certificate.correction import (
    FlowOnly,
    LossAndFlow,
    Room,
    conjugate,
    corrected,
    fenchel_young,
    shift_flow,
    typical,
    variation,
)
from nefele.certificate.posed import Posed, inside
from nefele.certificate.routing import routed
from nefele.graphs.mapped import MappedGraph
from nefele.losses.base import DualPoint, Duals
from nefele.penalties import Penalty
from nefele.program import Program, Sum, largest, total

Index = NDArray[np.int64]

_ROUNDS = 15
_MINOR = 0.1  # share of the gap that scaling the flow back into its balls may cost
_SLOW = 0.7  # shrinking over two rounds of how far outside flows are, at which it is vain
_FAR = 3.0  # how far outside, in units of a ball's size, nothing brings flows back that w fixes
_LOST = 10.0  # how far outside, in units of the tolerance, the last solve is not worth while
_OUTSIDE = 1e-8  # how far outside their balls flows may be before the last, exact solve
_ROUGH = 0.2  # accuracy of the rounds that only bring the flow inside its balls
_ROUNDING = 1e-6  # largest relative error of the dual point's equation that a leak may cover
_NO_ROOM: Room = (None, None)
_NEGLIGIBLE = 1e-2  # share of the gap that a leak may have
_LOOSE = 1e-5  # tolerance from which the loosest of these will do
_FINE = (1e-2, 1e-5, 1e-8, 1e-12)  # accuracies of the last one, until the leak is negligible


class Origin(NamedTuple):
    """The arguments of `certify`."""

    w: Array
    u: Array
    firm: bool
    tol: float
    direct: bool = False


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
    problem: Posed,
    w: Array,
    u: Array,
    *,
    firm: bool = False,
    tol: float = 0.0,
    direct: bool = False,
    duals: Sequence[Duals] | None = None,
    spend: bool = False,
) -> Program[Certificate]:
    """Bound objective(w) - optimum with the help of the flow u: a program for each part.

    `firm` says that w is the optimum of a reduced problem, exactly fused where it should be, so
    that only the flow inside the clusters needs correction; for a whole problem only. A bound that
    proves a relative gap of `tol` need not be improved. `direct` factorises small systems, which is
    more accurate and mostly faster than the conjugate gradients that all parts of a network share.
    `duals` are those of rows and l1 terms that a solver knows better than w tells. `spend` says
    that nobody needs u any more: its memory is used.
    """
    seen = yield from problem.seen(w, "parameters")
    objective = yield from objective_of(problem, w, seen)
    given, room = None if spend else u, _NO_ROOM  # the caller's flow, and memory for the next one
    u = inside(problem, u)
    out = problem.outflow(u)
    dual = problem.loss.dual_point(w, -out)
    if (yield from largest(dual is None)) or dual is None:
        return (yield from _radius_bound(problem, w, seen, u, objective))
    if duals is not None:
        dual.adopt(duals, w)
    only_flow = firm and problem.penalty.is_norm and problem.coupled
    x, near, rough, before = None, None, 0, [np.inf, np.inf]
    bounded = problem.coupled and problem.penalty.bounded
    if not bounded and tol > 0 and (fed := routed(problem, dual, u, out, spend)) is not None:
        found, solved = yield from bound(problem, dual, fed.flow, fed.x, w, objective, only_flow)
        if solved and found.gap_abs <= tol * abs(objective):
            return found
        fed.undo()
    unit = 0.0 if only_flow else (yield from typical(problem, w))
    system = FlowOnly(problem) if only_flow else LossAndFlow(problem, unit, direct)
    while bounded and rough < _ROUNDS:
        x, give = yield from system.solve(dual, u, out, _ROUGH, last=near)
        next_one = system.following(dual)
        near = yield from shift_flow(problem, u, give, x, seen, room, next_one)
        if near.outside <= max(_OUTSIDE, 2 * _MINOR * tol):
            break
        if near.outside * abs(objective) <= _MINOR * near.spare:
            break
        far = near.outside > min(_SLOW * before[-2], _FAR)
        if only_flow and not system.direct and far:
            if near.outside > _LOST * tol > 0:
                return Certificate(objective, -np.inf, "dual", 0.0, u)
            break  # w is no optimum: its flow has no way into the balls
        before.append(near.outside)
        room = None if u is given else u, out
        u, rough = near.flow, rough + 1
        out = out if near.give is not None else near.out
        system.moved(dual, x, near)
    if near is not None and near.give is not None and rough:
        out = problem.outflow(u)
    start = x if rough < _ROUNDS else None
    best = Certificate(objective, -np.inf, "dual", 0.0, u)
    for rtol in _accuracies(tol, only_flow):
        if x is None or start is None or not system.exact:
            x, give = yield from system.solve(dual, u, out, rtol, start)
        point = (corrected(problem, u, give, x, room[0]), x)
        found, solved = yield from bound(problem, dual, *point, w, objective, only_flow)
        best = max(best, found, key=lambda c: c.lower)
        if solved and best.leak <= _NEGLIGIBLE * max(best.gap_abs, tol * abs(objective)):
            break
        if system.exact:
            break
        start, room = x, _NO_ROOM
    return best


def _accuracies(tol: float, only_flow: bool) -> tuple[float, ...]:
    """Those that are worth a try: the leak is smaller than the error of the solve.

    With corrections by the flow alone it is hardly smaller.
    """
    if only_flow and tol > 0:
        first = max(_NEGLIGIBLE * tol, _FINE[-1])
        return first, *(rtol for rtol in _FINE if rtol < first)
    if tol >= _LOOSE:
        return _FINE
    return _FINE[2:] if 0 < tol < _LOOSE / 10 else _FINE[1:]


def objective_of(problem: Posed, w: Array, seen: Array) -> Program[float]:
    """The value of (NFL 16), summed over all parts."""
    value = problem.loss.value(w).sum()
    return (yield from total(value + variation(problem, seen) if problem.coupled else value))


def bound(
    problem: Posed,
    dual: DualPoint,
    u: Array,
    x: Array,
    w: Array,
    objective: float,
    only_flow: bool,
    out: Array | None = None,
) -> Program[tuple[Certificate, bool]]:
    """The lower bound of the corrected dual point, and whether its equation holds everywhere.

    The flow u is corrected already, and may change further; `out` is D^T u where that is known.
    """
    parts, given = problem.parts, u
    dual, x, u = copy.copy(dual), x[problem.own], problem.penalty.within(u)
    if not only_flow:
        dual.settle(x)
    if not np.isfinite(dual.domain_ratio()).all():
        dual.tidy()  # what that changes is part of `off`
    off = dual.flow()
    off += problem.outflow(u) if out is None or u is not given else out
    np.abs(off, out=off)
    # With an indicator of balls, that the flow is inside them is all: see `_shrinkage`.
    norm = problem.penalty.is_norm and type(problem.penalty).conjugate is Penalty.conjugate
    far, moved = yield Sum(np.array([_column_max(rows) for rows in (w, x)]), largest=True)
    radius = 2 * far + (0.0 if only_flow else moved)

    def at(theta: Array) -> Program[Certificate]:
        """With the duals of each group scaled by its theta."""
        flow = u if (theta == 1).all() else _scaled(problem, u, theta, solved)
        nodes = theta[parts][problem.own]
        leak = float(nodes @ off @ radius)
        lower = float(-dual.conjugate(nodes).sum() - leak)
        if problem.coupled and not norm:
            lower -= conjugate(problem, flow)
        lower, leak = (yield Sum(np.array([lower, leak]))).tolist()
        lower = lower if np.isfinite(lower) else -np.inf
        return Certificate(objective, lower, "dual", leak, flow, lower)

    theta = yield from _shrinkage(problem, u, dual)
    solved = yield from _solved(problem, u, dual, off)
    guess = yield from at(theta)
    if solved.all():
        return guess, True
    return replace((yield from at(theta * solved)), estimate=guess.lower), False


def _scaled(problem: Posed, u: Array, theta: Array, solved: NDArray[np.bool_]) -> Array:
    """The flow of each component times its factor; in place where nobody needs it as it was."""
    factor = theta if problem.n_parts == 1 else theta[problem.parts][problem.graph.head]
    return np.multiply(u, factor[:, None], out=u if solved.all() else None)


def _shrinkage(problem: Posed, u: Array, dual: DualPoint) -> Program[Array]:
    """Factor <= 1 for each component that brings the dual into its domain."""
    ratio = np.maximum(_group_max(problem, problem.own, dual.domain_ratio()), 1.0)
    if problem.coupled and problem.penalty.bounded:
        edges = problem.penalty.domain_ratio(u, problem.scale)
        ratio = np.maximum(ratio, _group_max(problem, problem.graph.head, edges))
    return 1.0 / (yield Sum(ratio, largest=True))


def _solved(problem: Posed, u: Array, dual: DualPoint, off: Array) -> Program[NDArray[np.bool_]]:
    """Components where `off`, the error in the dual point's equation, is rounding.

    Elsewhere only the zero dual point, always feasible, proves anything: a leak times the size
    of an optimum that nobody knows does not.
    """
    own, head = problem.own, problem.graph.head
    flows = (head, u)
    if isinstance(problem.graph, MappedGraph):  # of the length of the rows, not of parameters
        flows = (own, problem.graph.sizes(u)[own])
    sizes = np.stack([_group_max(problem, *size) for size in (flows, (own, off))])
    flow, error = yield Sum(sizes, largest=True)
    solved = (error <= _ROUNDING * flow).all(axis=1)
    if solved.all():  # whatever the losses push
        return np.asarray(solved)
    push = yield Sum(_group_max(problem, own, dual.size()), largest=True)
    size = np.maximum(push, flow)
    # in a column of zeros all is rounding, its own size included
    size = np.where(push > 0, size, size.max(axis=1, keepdims=True))
    size = np.maximum(size, np.finfo(float).eps * size.max())  # far below all others: rounding
    return np.asarray((error <= _ROUNDING * size).all(axis=1))


def _group_max(problem: Posed, nodes: Any, values: Array) -> Array:
    """Largest absolute value in each component, `nodes` naming the node of each value."""
    if problem.n_parts == 1:
        return _column_max(values)[None]
    out = np.zeros((problem.n_parts, *values.shape[1:]))
    np.maximum.at(out, problem.parts[nodes], np.abs(values))
    return out


def _column_max(values: Array) -> Array:
    """Largest absolute value of each column, without a copy of all absolute values."""
    if values.ndim == 2 and values.size >= COMPILED:
        from nefele._kernels.certificate import largest
        from nefele._kernels.rows import as_dims

        out = np.zeros((1, values.shape[1]))
        largest(as_dims(values.shape[1]), values, out)
        return out[0]
    return np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))


def _radius_bound(
    problem: Posed, w: Array, seen: Array, u: Array, objective: float
) -> Program[Certificate]:
    """Fenchel-Young residuals of the edges plus the nodes' distance from stationarity.

    objective(w) - optimum <= sum_e FY_e + sum_i <g_i - s_i, w_i - w*_i> with s = -D^T u, and the
    last term is at most ||g_i - s_i||^2 / (2 mu_i) or R ||g_i - s_i||. A loss without a gradient
    is certified at its prox point, where the prox gives a subgradient.
    """
    loss, flow, step = problem.loss, problem.outflow(u), problem.loss.steps()
    point, there = w, seen
    if loss.smooth:
        off = loss.grad(w) + flow
    else:
        shift = w - loss.prox(w - step[:, None] * flow, step, start=w)
        off, point = shift / step[:, None], w - shift
    if (yield from largest(not loss.smooth)):
        there = yield from problem.seen(point, "parameters")
    error = np.sqrt((off**2).sum(axis=1))
    mu = loss.strong_convexity()
    mean = (yield Sum(w.sum(axis=0))) / (yield from total(len(w)))
    sizes = [_longest(w - mean), _longest(w), float((step * error).max(initial=0.0))]
    away, far, moved = yield Sum(np.array(sizes), largest=True)
    strong = error**2 / (2 * np.where(mu > 0, mu, np.inf))
    nodes = np.where(mu > 0, strong, (2 * away + far + moved) * error)
    edges = fenchel_young(problem, u, there) if problem.coupled else 0.0
    guessed = yield from largest(not ((mu > 0) | (error == 0)).all())
    lower = yield from total(-edges - float(nodes.sum()))
    lower += yield from objective_of(problem, point, there)
    lower = lower if np.isfinite(lower) else -np.inf
    form = "estimated radius" if guessed else "strong convexity"
    return Certificate(objective, lower, form, 0.0, u.copy(), lower)


def _longest(rows: Array) -> float:
    return float(np.sqrt((rows**2).sum(axis=1)).max(initial=0.0))
