"""A point that is known to be good, as a result without any iteration."""

from __future__ import annotations

import time

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.problem import Problem
from nefele.result import Record, Result, Status
from nefele.solvers.loop.best import Best
from nefele.solvers.loop.ending import finish, warn


def proven(
    problem: Problem, w: Array, found: Certificate | None, tol: float, started: float
) -> Result | None:
    """The result at w if its certificate proves a relative gap of tol; None otherwise.

    `started` is when, by `time.perf_counter`, the work on it began.
    """
    if found is None:
        return None
    best = Best(problem)
    best.add(w, found)
    if not best.gap <= tol:
        return None
    seconds = time.perf_counter() - started
    record = Record(0, best.objective, best.gap, seconds, best.guess, 0.0)
    result = finish(problem, best, Status.OPTIMAL, 0, [record], True)
    warn(result, tol, True)
    return result
