"""Solves inside an estimator: Ctrl-C ends the whole fit, not only the solve it met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nefele import solvers
from nefele.paths import PathResult, path
from nefele.problem import Problem
from nefele.result import Result, Status


def solve(problem: Problem, solver: Any = "auto", **options: Any) -> Result:
    """As `nefele.solve`, but an interrupted solve raises KeyboardInterrupt.

    A fit has no use for half a solution, and a grid search must not go on to the next candidate.
    """
    result = solvers.solve(problem, solver, **options)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def whole_path(
    problem: Problem,
    lams: Any,
    *,
    enough: Callable[[Result], bool] | None = None,
    **options: Any,
) -> PathResult:
    """As `nefele.path`, but a path that ends before it should raises KeyboardInterrupt.

    `enough` may end it after a point.
    """
    seen, done = 0, False

    def watch(result: Result) -> bool:
        nonlocal seen, done
        seen += 1
        done = enough is not None and bool(enough(result))
        return done

    found = path(problem, lams, callback=watch, **options)
    if not done and seen < len(np.unique(lams)):
        raise KeyboardInterrupt
    return found
