"""Clocks and errors: how the two sides of a comparison are timed and matched."""

from __future__ import annotations

import time
from contextlib import contextmanager

import numpy as np

from nefele import Problem, solve
from nefele.solvers import PrimalDual
from nefele.solvers.primal_dual.fused import Fused

SHORT = 1.0  # seconds below which a side is timed again
REPEATS = 5


def clock(call):
    """Seconds and result of one call."""
    started = time.process_time()
    out = call()
    return time.process_time() - started, out


def ours(make, tol, solver="auto", **options):
    """Seconds and result of a solve of a fresh problem: nothing is left from an earlier one."""
    problem = make()
    return clock(lambda: solve(problem, solver, tol=tol, **options))


def duel(first, second, repeats=REPEATS):
    """Least (seconds, result) of two timed calls, in turn; a side that takes long runs once."""
    best = [(np.inf, None), (np.inf, None)]
    for _ in range(repeats):
        for k, call in enumerate((first, second)):
            if not SHORT < best[k][0] < np.inf:
                best[k] = min(best[k], call(), key=lambda pair: pair[0])
    return best


def least(call, repeats=REPEATS):
    """Least (seconds, result) of one timed call; one that takes long runs once."""
    return duel(call, lambda: (0.0, None), repeats)[0]


class Reference:
    """The optimum between two bounds, from a solve to a small certified gap."""

    def __init__(self, make, tol=1e-9, limit=np.inf) -> None:
        """`limit`: seconds after which the gap reached by then has to do."""
        self.problem = make()
        result = solve(self.problem, tol=tol, callback=lambda record: record.seconds > limit)
        self.lower, self.size = result.objective - result.gap_abs, abs(result.objective)
        self.gap, self.w = result.gap, result.w

    def error(self, w) -> float:
        """Relative error of w: an upper bound, too large by at most `gap`."""
        return self.error_of(self.problem.objective(w))

    def error_of(self, objective: float) -> float:
        return (objective - self.lower) / self.size


def cheapest(settings, run, error, goal, limit=np.inf):
    """The first of the settings, loosest first, whose point has at most this error.

    `run(setting)` returns seconds and a point, or None when it fails. Returns setting, seconds,
    error and whether the goal was reached; without success, those of the least error.
    """
    tried, spent = [], 0.0
    for setting in settings:
        seconds, w = run(setting)
        spent += seconds
        tried.append((setting, seconds, np.inf if w is None else error(w)))
        if tried[-1][2] <= goal:
            return *tried[-1], True
        if spent > limit:
            break
    return *min(tried, key=lambda t: t[2]), False


def fused_state(problem):
    """A solver ready for compiled iterations on the problem, and its state."""
    solver = PrimalDual()
    n, E, d = problem.graph.n_nodes, problem.graph.n_edges, problem.d
    assert Fused.fits(problem)
    return solver, solver.init(problem, np.zeros((n, d)), np.zeros((E, d)))


def fused_iteration(problem, budget=3.0):
    """Least seconds of one compiled iteration over a few batches, and the bytes it moves."""
    solver, state = fused_state(problem)
    solver.step(problem, state)
    once = clock(lambda: solver.step(problem, state))[0]
    batch = max(1, int(budget / 5 / max(once, 1e-7)))
    best = np.inf
    for _ in range(5):
        seconds = clock(lambda: [solver.step(problem, state) for _ in range(batch)])[0]
        best = min(best, seconds / batch)
    return best, traffic(state.iteration)


def traffic(fused) -> int:
    """Least bytes that a compiled iteration moves, each array once, changed ones in and out.

    As if the node pass left all that the edge pass needs in the cache; as for the triad, what is
    only written counts once.
    """
    read = (fused.A, fused.c, fused.tau, fused.scale, fused.flow)
    read += (fused.layout.ptr, fused.layout.tail)
    changed = (fused.w, fused.q, fused.u)
    return sum(a.nbytes for a in read) + fused.wbar.nbytes + 2 * sum(a.nbytes for a in changed)


def triad(n=30_000_000) -> float:
    """Bytes per second of a[i] = b[i] + s c[i] on one thread, best of five."""
    import numba

    @numba.njit
    def loop(a, b, c):
        for i in range(len(a)):
            a[i] = b[i] + 3.0 * c[i]

    a, b, c = np.zeros(n), np.ones(n), np.ones(n)
    loop(a, b, c)
    return 24 * n / min(clock(lambda: loop(a, b, c))[0] for _ in range(5))


@contextmanager
def shares():
    """Seconds spent in certificates and in reduced solves inside the block, by name."""
    spent = {"certificate": 0.0, "reduced solves": 0.0}
    places = (("certificate", Problem, "certificate"), ("reduced solves", PrimalDual, "_improve"))
    saved = [(owner, name, getattr(owner, name, None)) for _, owner, name in places]

    def timing(part, plain):
        def wrapped(*args, **kwargs):
            seconds, out = clock(lambda: plain(*args, **kwargs))
            spent[part] += seconds
            return out

        return wrapped

    for (part, _, _), (owner, name, plain) in zip(places, saved, strict=True):
        if plain is not None:
            setattr(owner, name, timing(part, plain))
    try:
        yield spent
    finally:
        for owner, name, plain in saved:
            if plain is not None:
                setattr(owner, name, plain)
