"""The papers' algorithms on one part of a network, as programs: see `nefele.program`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.certificate import Certificate, certify
from nefele.program import Exchange, Heard, Program, Sum, largest, total
from nefele.result import as_relative
from nefele.runtime.part import Index, Part
from nefele.solvers import PrimalDual
from nefele.solvers.fedrelax import Block, prox_steps
from nefele.solvers.steps import Pace, Steps, adapt, first_steps, scaled
from nefele.solvers.updates import ahead, dual, primal, relaxed

_HALVINGS = 20
_ROUNDING = 1e-12  # of curvature and objective, relative

Error = Callable[[int, Array], Array]


def algorithm1(
    part: Part, solver: PrimalDual, rounds: int, error: Error | None = None
) -> Program[None]:
    """NFL, Algorithm 1: one Exchange of 2 w+ - w in each round.

    The steps and the over-relaxation are the solver's; steps that are scaled to the data take some
    sums over all parts first, and stay what they are. `error`, if given, is what is added to w+ in
    step k.
    """
    steps = yield from _begin(part, solver)
    for k in range(1, rounds + 1):
        w1 = _primal(part, steps, k, error)
        said = yield from part.seen(ahead(part.w, w1), "parameters")
        u1 = _dual(part, steps, part.graph.diff(said))
        part.done(relaxed(part.w, w1, solver.relax), relaxed(part.u, u1, solver.relax), w1, u1)


def algorithm1_latest(
    part: Part, solver: PrimalDual, rounds: int, error: Error | None = None
) -> Program[None]:
    """The same for a driver that never waits: there the two copies of a flow would part ways.

    The part that owns the head of an edge owns its flow: it hears 2 w+ - w of the tail, moves the
    flow in the rounds in which it does, and tells it to the tail.
    """
    steps = yield from _begin(part, solver)
    mine, theirs = _edges_between(part)
    for k in range(1, rounds + 1):
        w1 = _primal(part, steps, k, error)
        own = part.together(ahead(part.w, w1), {})
        tails = {q: own[part.graph.tail[e]] for q, e in theirs.items()}
        heard: Heard = yield Exchange("parameters", tails)
        diff = part.graph.diff(own)
        moves = part.counted.copy()
        for neighbour, e in mine.items():
            moves[e] = neighbour in heard.fresh
            if neighbour in heard.fresh:
                diff[e] = own[part.graph.head[e]] - heard.rows[neighbour]
        u1 = np.where(moves[:, None], _dual(part, steps, diff), part.u1)
        u = np.where(moves[:, None], relaxed(part.u, u1, solver.relax), part.u)
        heard = yield Exchange("dual", {q: u[e] for q, e in mine.items()})
        for neighbour, e in theirs.items():
            u[e] = heard.rows.get(neighbour, u[e])
        part.done(relaxed(part.w, w1, solver.relax), u, w1, u1)


@dataclass
class Fitted:
    """Where a fit has ended.

    Attributes
    ----------
    gap : float
        Certified relative gap; NaN without a certificate.
    certificate : Certificate or None
    rounds : int
    history : list of (round, objective, gap)
        Points that were certified.
    drift : float
        Largest difference of the two copies of a flow that was found and mended; 0 between
        machines that compute alike.
    kappa : float
        Contraction factor of FedRelax, see `nefele.runtime.Run`; NaN for other methods.
    change : float
        Relative change in the last round, where no certificate exists; otherwise NaN.
    reason : str
        That there is no certificate, and why.
    """

    gap: float
    certificate: Certificate | None
    rounds: int
    history: list[tuple[int, float, float]]
    drift: float = 0.0
    kappa: float = np.nan
    change: float = np.nan
    reason: str = ""

    def converged(self, tol: float) -> bool:
        """Whether the gap is proven to be within tol; without a certificate, the change."""
        return bool((self.change if self.certificate is None else self.gap) <= tol)


Watch = Callable[[Part, int, float], object]  # part, round, last certified gap


def fit(
    part: Part, tol: float, rounds: int, every: int = 100, watch: Watch = lambda *seen: None
) -> Program[Fitted]:
    """Algorithm 1 with steps that are scaled to the data, until the gap is proven to be small.

    The point is certified after `every` rounds and then whenever half as many more are done; the
    steps change with the progress. Now and then the ends of an edge compare their copies of its
    flow, and go on with the one of its head: between unlike machines rounding may differ.

    Parameters
    ----------
    part : Part
        From where it stands.
    tol : float
        Certified relative gap to reach.
    rounds : int
        The most.
    every : int
    watch : callable, optional
        Is told of every round.
    """
    solver = PrimalDual()
    steps, relax = (yield from _begin(part, solver)), solver.relax
    at_zero = yield from total(float(part.loss.value(np.zeros_like(part.w)).sum()))
    pace, gap, history, due, drift = Pace(steps.unit, steps.gamma), np.inf, [], every, 0.0
    for k in range(1, rounds + 1):
        w1 = _primal(part, steps, k, None)
        said = yield from part.seen(ahead(part.w, w1), "parameters")
        u1 = _dual(part, steps, part.graph.diff(said))
        part.done(relaxed(part.w, w1, relax), relaxed(part.u, u1, relax), w1, u1)
        watch(part, k, gap)
        if k < due and k < rounds:
            continue
        drift = max(drift, (yield from _compare(part)))
        found = yield from certificate(part, tol)
        gap = as_relative(found.gap_abs, found.objective, at_zero)
        history.append((k, found.objective, gap))
        watch(part, k, gap)
        if gap <= tol or k == rounds:
            break
        adapt(pace, gap)
        steps = replace(steps, gamma=pace.gamma)
        steps.tau, steps.sigma = scaled(part.graph, steps.size, pace.gamma, steps.longest, part.own)
        due = k + max(every, k // 2)
    return Fitted(gap, found, k, history, (yield from largest(drift)))


def one_model(part: Part, steps: int = 50) -> Program[Array | None]:
    """Parameters of one model for all nodes, shape (d,), by Newton steps on sums.

    None where some loss has no second derivatives.
    """
    loss, d = part.loss, part.d
    w, halves = np.zeros(d), 0.5 ** np.arange(_HALVINGS)
    for _ in range(steps):
        at = np.broadcast_to(w, (loss.n_nodes, d)).copy()
        hess = loss.hess(at) if loss.smooth else None
        if (yield from largest(hess is None)) or hess is None:
            return None
        mine = [hess.sum(axis=0).ravel(), loss.grad(at).sum(axis=0), [loss.curvature().sum()]]
        sums = yield Sum(np.concatenate(mine))
        matrix, grad, bend = sums[: d * d].reshape(d, d), sums[d * d : -1], sums[-1]
        way = np.linalg.solve(matrix + _ROUNDING * max(bend, _ROUNDING) * np.eye(d), grad)
        tries = np.concatenate([[w], w - halves[:, None] * way])
        mine = [loss.value(np.broadcast_to(t, at.shape).copy()).sum() for t in tries]
        values = yield Sum(np.array(mine))
        slope = float(grad @ way)
        good = values[1:] <= values[0] - 0.25 * halves * slope
        if not slope > _ROUNDING * abs(values[0]) or not good.any():
            return w
        w = tries[1 + int(np.argmax(good))]
    return w


def _compare(part: Part) -> Program[float]:
    """Go on with the flows that the heads of edges between parts have; how far apart they were."""
    mine, theirs = _edges_between(part)
    both = {q: np.union1d(mine.get(q, []), theirs.get(q, [])).astype(int) for q in part.says}
    heard: Heard = yield Exchange(
        "dual", {q: np.hstack([part.u[e], part.u1[e]]) for q, e in both.items()}
    )
    apart = 0.0
    for q, e in both.items():
        other = np.hsplit(heard.rows[q], 2)
        at = np.isin(e, theirs.get(q, []))
        for own, new in zip((part.u, part.u1), other, strict=True):
            apart = max(apart, float(np.abs(own[e] - new).max(initial=0.0)))
            own[e[at]] = new[at]
    return apart


def fedrelax(part: Part, rounds: int, error: Error | None = None) -> Program[None]:
    """FedRelax on parameters (AGN, Algorithm 1): hear, refit, tell; unheard of, all are zero.

    An `error` is added to each update; what it makes of it is told, and the next one starts there.
    """
    step, part.w = prox_steps(part, part.w)
    block = Block(part, part.own, part.loss.prox)
    said: dict[Any, Array] = {}
    for k in range(1, rounds + 1):
        heard: Heard = yield Exchange("parameters", said)
        w = block.update(part, part.together(part.w, heard.rows), step)
        w = w if error is None else w + error(k, w)
        part.done(w, part.u, w, part.u1)
        said = {neighbour: w[i] for neighbour, i in part.says.items()}
    yield Exchange("parameters", said)


def certificate(part: Part, tol: float = 0.0) -> Program[Certificate]:
    """The certificate of where all parts are: as `Problem.certificate`, from sums and exchanges.

    A bound that proves a relative gap of `tol` need not be improved.
    """
    return certify(part, part.w1, part.u1, tol=tol)


def _begin(part: Part, solver: PrimalDual) -> Program[Steps]:
    isolated = part.graph.degree[part.own] == 0
    if isolated.any():
        part.w = np.where(isolated[:, None], part.loss.minimise(), part.w)
    part.w1 = part.w
    return (yield from first_steps(part, solver.printed, solver.gamma))


def _primal(part: Part, steps: Steps, k: int, error: Error | None) -> Array:
    w1 = primal(part.loss, part.w, part.outflow(part.u), steps.tau)
    return w1 if error is None else w1 + error(k, w1)


def _dual(part: Part, steps: Steps, diff: Array) -> Array:
    return dual(part.penalty, part.u, diff, part.scale, steps.sigma)


def _edges_between(part: Part) -> tuple[dict[Any, Index], dict[Any, Index]]:
    """Edges to each neighbouring part whose flow is owned here, and those that it owns."""
    graph = part.graph
    mine, theirs = {}, {}
    for neighbour, nodes in part.hears.items():
        owned = np.flatnonzero(part.counted & np.isin(graph.tail, nodes))
        other = np.flatnonzero(np.isin(graph.head, nodes))
        mine.update({neighbour: owned} if owned.size else {})
        theirs.update({neighbour: other} if other.size else {})
    return mine, theirs
