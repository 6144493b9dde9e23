"""Solutions near others along lam that prove themselves, without any iteration.

The balls of the flow grow with lam, and what the losses' conjugates ask of it does not know lam.
So the average of two flows that prove something at their lams is feasible at the lam between them,
and as good as the path is straight. And while the clusters stay the same, a few unknowns tell
where they move.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._kernels.short_rows import row_all
from nefele.certificate import certify_feasible
from nefele.problem import Problem
from nefele.result import Result
from nefele.solvers.loop import proven
from nefele.solvers.primal_dual import reduced_solve


def average(problem: Problem, above: Result, below: Result) -> tuple[Array, Array]:
    """Parameters and flow for the problem's lam, which is between those of two solutions.

    Where their clusters differ, the average has the smaller ones: what its flow holds together is
    joined again.
    """
    high, low = above.problem.lam, below.problem.lam
    share = (problem.lam - low) / (high - low) if high > low else 0.0
    w, u = (share * a + (1 - share) * b for a, b in ((above.w, below.w), (above.u, below.u)))
    if problem.penalty.is_norm and not np.array_equal(_joined(above), _joined(below)):
        better = reduced_solve(problem, _still, w, u)
        if better is not None and better.objective <= problem.objective(w):
            w = better.w
    return w, u


def proven_average(problem: Problem, w: Array, u: Array, tol: float) -> Result | None:
    """The average as a result if its flow, as it is, proves it; None otherwise."""
    started = time.perf_counter()
    return proven(problem, w, certify_feasible(problem, w, u), tol, started)


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
    """Edges over which nothing differs."""
    return row_all(result.problem.graph.diff(result.w) == 0)
