"""Solutions between two others along lam: their average, which proves itself.

The balls of the flow grow with lam, and what the losses' conjugates ask of it does not know lam.
So the average of two flows that prove something at their lams is feasible at the lam between them,
and as good as the path is straight.
"""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.problem import Problem
from nefele.result import Result
from nefele.solvers.primal_dual import reduced_solve

_NEWTON = 300  # unknowns up to which groups are moved by Newton steps


def average(problem: Problem, above: Result, below: Result) -> tuple[Array, Array]:
    """Parameters and flow for the problem's lam, which is between those of two solutions.

    Where their clusters differ, the average has the smaller ones: what its flow holds together is
    joined again.
    """
    high, low = above.problem.lam, below.problem.lam
    share = (problem.lam - low) / (high - low) if high > low else 0.0
    w, u = (share * a + (1 - share) * b for a, b in ((above.w, below.w), (above.u, below.u)))
    if problem.penalty.is_norm and not np.array_equal(_joined(above), _joined(below)):
        better = reduced_solve(problem, lambda _, w, u: (w, u), w, u, most=_NEWTON)
        if better is not None and better.objective <= problem.objective(w):
            w = better.w
    return w, u


def _joined(result: Result) -> Array:
    """Edges over which nothing differs."""
    return np.asarray((result.problem.graph.diff(result.w) == 0).all(axis=1))
