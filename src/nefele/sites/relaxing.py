"""FedRelax on parameters between sites (AGN, Algorithm 1), in step or without waiting."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program, largest, total
from nefele.result import as_relative
from nefele.runtime.part import Part
from nefele.runtime.programs import Fitted, Watch, certificate
from nefele.solvers.fedrelax import Block, contraction, prox_steps


def fit_relaxed(
    part: Part, tol: float, rounds: int, every: int, wait: bool, watch: Watch
) -> Program[Fitted]:
    """Hear, refit, tell, until the gap is proven to be small; certificates are in step always.

    Without waiting a site goes on with what it last heard. This converges for strongly convex
    losses, whatever is late: the largest error over the nodes shrinks by `contraction` whenever
    all have heard of their neighbours' last shrinking.

    Parameters
    ----------
    part : Part
        With the penalty `SquaredL2`.
    tol : float
    rounds, every : int
        The most rounds, and those between two certificates.
    wait : bool
    watch : callable
    """
    step, part.w = prox_steps(part, part.w)
    block = Block(part, part.own, part.loss.prox)
    at_zero = yield from total(float(part.loss.value(np.zeros_like(part.w)).sum()))
    gap, history, k = np.inf, [], 0
    seen = yield from part.seen(part.w, "parameters")
    while True:
        for _ in range(min(every, rounds - k)):
            k += 1
            w = block.update(part, seen, step)
            seen = yield from told(part, w, seen, wait)
            part.done(w, part.u, w, part.u1)
            watch(part, k, gap)
        seen = yield from part.seen(part.w, "parameters")
        part.u = part.u1 = part.scale[:, None] * part.penalty.gradient(part.graph.diff(seen))
        found = yield from certificate(part, tol)
        gap = as_relative(found.gap_abs, found.objective, at_zero)
        history.append((k, found.objective, gap))
        watch(part, k, gap)
        if gap <= tol or k >= rounds:
            kappa = yield from largest(contraction(part))
            return Fitted(gap, found, k, history, kappa=kappa)


def told(part: Part, w: Array, seen: Array, wait: bool) -> Program[Array]:
    """Tell the neighbours, and what is known of them then."""
    if wait:
        return (yield from part.seen(w, "parameters"))
    said = {q: w[i] for q, i in part.says.items()}
    heard: Heard = yield Exchange("parameters", said, wait=False)
    seen = seen.copy()
    seen[part.own] = w
    for neighbour, theirs in heard.rows.items():
        seen[part.hears[neighbour]] = theirs
    return seen
