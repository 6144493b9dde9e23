"""A point that is known to be good, as a result without any iteration."""

from __future__ import annotations

import time

from nefele._checks import Array
from nefele.certificate import certify_feasible
from nefele.problem import Problem
from nefele.result import Record, Result, Status
from nefele.solvers.loop.best import Best
from nefele.solvers.loop.ending import finish, warn


def proven(problem: Problem, w: Array, u: Array, tol: float) -> Result | None:
    """The result at w if the feasible flow u proves a relative gap of tol; None otherwise."""
    started = time.perf_counter()
    found = certify_feasible(problem, w, u)
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
