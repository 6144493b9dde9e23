"""Solutions along lam, one after the other: the step that every path takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nefele._checks import Array
from nefele.problem import Problem
from nefele.result import Result, Status
from nefele.solvers import solve


def whole_solve(problem: Problem, solver: Any = "auto", **options: Any) -> Result:
    """As `nefele.solve`, but an interrupted solve raises KeyboardInterrupt.

    A fit has no use for half a solution, and a grid search must not go on to the next candidate.
    """
    result = solve(problem, solver, **options)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result


def follow(
    problem: Problem,
    lams: Iterable[float],
    start: tuple[Array, Array] | None = None,
    solver: Any = "auto",
    **options: Any,
) -> Iterator[Result]:
    """Solutions for these lams in turn, each started at the one before, the first at `start`.

    An interrupted solve raises KeyboardInterrupt; `options` are those of `nefele.solve`.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> [float(result.w[0, 0].round(3)) for result in follow(problem, [6.0, 1.0])]
    [2.0, 0.5]
    """
    w, u = (None, None) if start is None else start
    for lam in lams:
        problem = problem.with_lam(float(lam))
        flow = problem.inside(u) if u is not None and problem.coupled else None
        result = whole_solve(problem, solver, w0=w, u0=flow, **options)
        w, u = result.w, result.u
        yield result
