"""Solutions near others along lam that prove themselves, without any iteration.

The balls of the flow grow with lam, and what the losses' conjugates ask of it does not know lam.
So the average of two flows that prove something at their lams is feasible at the lam between them,
and as good as the path is straight. And while the clusters stay the same, a few unknowns tell
where they move.
"""

from __future__ import annotations

import math
import time
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.certificate import certify_feasible
from nefele.problem import Problem
from nefele.result import Result
from nefele.solvers.loop import proven
from nefele.solvers.primal_dual import reduced_solve

_FINER = 1e-2  # share of the tolerance that a last Newton step may still gain
_CHORDS = 2  # steps towards the end of the room that a turn of the flow has
_KNOWN: WeakKeyDictionary[Result, NDArray[np.bool_]] = WeakKeyDictionary()


def average(problem: Problem, above: Result, below: Result, tol: float) -> tuple[Array, Array]:
    """Parameters and flow for the problem's lam, which is between those of two solutions.

    Where their clusters differ, the average has the smaller ones: what its flow holds together is
    joined again and moved as far as the tolerance asks.
    """
    high, low = above.problem.lam, below.problem.lam
    share = (problem.lam - low) / (high - low) if high > low else 0.0
    w, u = (_mixed(share, a, b) for a, b in ((above.w, below.w), (above.u, below.u)))
    if problem.penalty.is_norm and not np.array_equal(_joined(above), _joined(below)):
        better = reduced_solve(problem, _still, w, u, enough=_FINER * tol)
        if better is not None and better.objective <= problem.objective(w):
            w = better.w
    return w, u


def _mixed(share: float, a: Array, b: Array) -> Array:
    """Share a + (1 - share) b, in little new memory: to touch it takes longer than the sums."""
    out = a - b
    out *= share
    out += b
    return out


def bent(
    problem: Problem, u: Array, beyond: Result, above: Result, below: Result
) -> tuple[Array, Array] | None:
    """The point on the parabola in lam through three solutions; the flow as far as it may go there.

    It goes from the average u, which meets the same linear conditions, while all edges stay inside
    their balls: chords of these leave too much room where flows turn. None where the clusters of
    the three differ, or two have the same lam.
    """
    three = (beyond, above, below)
    lams = [result.problem.lam for result in three]
    if len(set(lams)) < len(lams):
        return None
    if problem.penalty.is_norm:
        first, *others = (_joined(result) for result in three)
        if not all(np.array_equal(first, joined) for joined in others):
            return None
    share = [math.prod((problem.lam - b) / (a - b) for b in lams if b != a) for a in lams]
    w = _combined(share, [result.w for result in three])
    turn = _combined([*share, -1.0], [*(result.u for result in three), u])
    far = _room(problem, u, turn)
    turn *= far
    turn += u
    return w, turn


def _combined(shares: list[float], arrays: list[Array]) -> Array:
    """The sum of some arrays times their shares, in little new memory."""
    out = shares[0] * arrays[0]
    term = np.empty_like(out)
    for share, array in zip(shares[1:], arrays[1:], strict=True):
        out += np.multiply(share, array, out=term)
    return out


def _room(problem: Problem, u: Array, turn: Array) -> float:
    """About the largest t <= 1 for which u + t turn is inside the balls, as u is.

    How far out an edge is is convex in t, so that it is still inside where a chord of it comes out.
    """
    ends = problem.penalty.domain_ratio(u + turn, problem.scale)
    out = np.flatnonzero(ends > 1)
    if not len(out):
        return 1.0
    t, penalty, scale = 0.0, problem.penalty.at(out), problem.scale[out]
    u, turn, ends = u[out], turn[out], ends[out]
    for _ in range(_CHORDS):
        ratio = np.minimum(penalty.domain_ratio(u + t * turn, scale), 1.0)
        t += (1 - t) * float(((1 - ratio) / (ends - ratio)).min())
    return t


def proven_average(problem: Problem, w: Array, u: Array, tol: float) -> Result | None:
    """The average as a result if its flow, as it is, proves it; None otherwise."""
    started = time.perf_counter()
    return proven(problem, w, certify_feasible(problem, w, u, tol), tol, started)


def moved_clusters(problem: Problem, near: Result, tol: float) -> Result | None:
    """The solution if it has the clusters that the flow of another lam holds together."""
    started = time.perf_counter()
    u = problem.lam / near.problem.lam * near.u
    better = reduced_solve(problem, _still, near.w, u)
    if better is None or not better.exact:
        return None
    found = problem.certificate(better.w, better.u, firm=True, tol=tol)
    return proven(problem, better.w, found, tol, started)


def _still(problem: Problem, w: Array, u: Array) -> tuple[Array, Array]:
    """No iterations on a reduced problem that is too large for Newton steps."""
    return w, u


def _joined(result: Result) -> NDArray[np.bool_]:
    """Edges over which nothing differs; found once."""
    if result not in _KNOWN:
        _KNOWN[result] = result.problem.graph.alike(result.w)
    return _KNOWN[result]
