"""What a solve by parts returns."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nefele.engines.costs import Costs
from nefele.problem import Problem
from nefele.result import Result, Status
from nefele.runtime.job import Done
from nefele.runtime.part import Index

_STEPS = (
    "An engine takes primal-dual steps alone; where the problem fits one process, solve it there: "
    "nefele.solve without an engine knows Newton steps, too, which end hard problems in tens of "
    "iterations. Otherwise:"
)


def advice_of(status: Status) -> str:
    """What the user of an engine may do.

    Examples
    --------
    >>> advice_of(Status.OPTIMAL)
    'Nothing to do: the gap is within the tolerance.'
    """
    slow = status in (Status.MAX_ITER, Status.STALLED)
    return f"{_STEPS} {status.advice[0].lower()}{status.advice[1:]}" if slow else status.advice


@dataclass(frozen=True, eq=False)
class PartsResult(Result):
    """As `Result`, with what the parts have cost.

    Attributes
    ----------
    costs : Costs
        Seconds by phase and part, bytes, imbalance, and what bounds the speed.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> result = solve(problem, engine="in_process", parts=2)
    >>> result.converged, [part.seen for part in result.costs.parts]
    (True, [1, 1])
    """

    costs: Costs = field(repr=False)


def gathered(
    problem: Problem, places: list[tuple[Index, Index]], done: list[Done], costs: Costs
) -> PartsResult:
    """The result of the whole from what its parts have found, at these nodes and edges."""
    w = np.zeros((problem.graph.n_nodes, problem.d))
    u = np.zeros((problem.graph.n_edges, problem.d))
    for (nodes, edges), one in zip(places, done, strict=True):
        w[nodes], u[edges] = one.ended.w, one.ended.u
    ended = done[0].ended
    return PartsResult(
        problem=problem,
        w=w,
        u=u,
        objective=ended.objective,
        gap=ended.gap,
        gap_abs=ended.gap_abs,
        certificate=ended.certificate,
        leak=ended.leak,
        status=ended.status,
        n_iter=ended.n_iter,
        history=ended.history,
        undetermined=problem.undetermined,
        unbounded=problem.unbounded(w),
        costs=costs,
    )
