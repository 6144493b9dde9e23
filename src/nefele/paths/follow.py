"""Solutions along lam, one after the other: the step that every path takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nefele._checks import Array
from nefele.paths.between import average, bent, moved_clusters, proven_average
from nefele.problem import Problem
from nefele.result import Result, Status
from nefele.solvers import solve

_LARGE = 50_000  # numbers in u from which points between two others are taken from them
_APART = 2.0  # ratio of their lams, at most
_FARTHEST = 4  # points from one solve to the next
_WELL = 0.1  # gap of the points between, in units of the tolerance, at which to go farther


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

    An interrupted solve raises KeyboardInterrupt; `options` are those of `nefele.solve`. Where a
    solve takes long, points farther on come first: the average of two of them is often good enough
    between them, and its flow, feasible as theirs are, proves it. And clusters that stay the same
    are moved without iterations. A start that its own flow proves is the first solution.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> [float(result.w[0, 0].round(3)) for result in follow(problem, [6.0, 1.0])]
    [2.0, 0.5]
    """
    values = [float(lam) for lam in lams]
    w, u = (None, None) if start is None else start
    last: Result | None = None
    before: Result | None = None
    k, leap, steady = 0, 2, _Patience()
    while k < len(values):
        ahead = values[k : k + _reach(last, values[k : k + leap], options.get("tol"))]
        here = problem.with_lam(ahead[-1])
        result = None
        if _large(last):
            result = _held(here, last, options["tol"], steady)
        elif last is None and start is not None and options.get("certify", True):
            result = proven_average(here, *start, options["tol"])
        if result is None:
            flow = here.inside(u) if u is not None and here.coupled else None
            result = whole_solve(here, solver, w0=w, u0=flow, **options)
        inner: list[Result] = []
        if last is not None and len(ahead) > 1:
            inner = _between(ahead[:-1], last, result, before, solver, options)
            leap = _next_leap(leap, inner, options["tol"])
        yield from inner
        yield result
        w, u, before, last = result.w, result.u, last, result
        k += len(ahead)


class _Patience:
    """Whether to try again: after each vain try one time more is left out."""

    def __init__(self) -> None:
        self.vain = self.left = 0

    def over(self) -> bool:
        self.left -= 1
        return self.left < 0

    def note(self, vain: bool) -> None:
        self.vain = self.left = self.vain + 1 if vain else 0


def _held(problem: Problem, last: Result | None, tol: float, steady: _Patience) -> Result | None:
    """The solution where the clusters stay those of the last one; None where they do not."""
    if last is None or not (problem.coupled and problem.penalty.is_norm and steady.over()):
        return None
    found = moved_clusters(problem, last, tol)
    steady.note(vain=found is None)
    return found


def _large(last: Result | None) -> bool:
    """Whether the last solution is known to be good, of a problem that takes long."""
    if last is None or not last.converged:
        return False
    return last.u.size >= _LARGE and last.problem.loss.affine_grad


def _reach(last: Result | None, ahead: list[float], tol: float | None) -> int:
    """How many points the next solve goes on, those in between being left for later."""
    if last is None or tol is None or not _large(last):
        return 1
    return sum(last.problem.lam <= _APART * lam for lam in ahead) or 1


def _next_leap(leap: int, inner: list[Result], tol: float) -> int:
    """Farther while averages are much better than they need to be, nearer where some are not."""
    if any(result.n_iter for result in inner):
        return max(leap // 2, 2)
    well = all(result.gap <= _WELL * tol for result in inner)
    return min(2 * leap, _FARTHEST) if well else leap


def _between(
    lams: list[float],
    above: Result,
    below: Result,
    beyond: Result | None,
    solver: Any,
    options: dict[str, Any],
) -> list[Result]:
    """Solutions between two others, in descending order: averages, or solves that begin there.

    A third one, `beyond` these two, tells how the path bends.
    """
    if not lams:
        return []
    k = len(lams) // 2
    middle = _average(above.problem.with_lam(lams[k]), above, below, beyond, solver, options)
    return [
        *_between(lams[:k], above, middle, below, solver, options),
        middle,
        *_between(lams[k + 1 :], middle, below, above, solver, options),
    ]


def _average(
    problem: Problem,
    above: Result,
    below: Result,
    beyond: Result | None,
    solver: Any,
    options: dict[str, Any],
) -> Result:
    """The average of two solutions if it proves itself, or a solve from it."""
    w, u = average(problem, above, below, options["tol"])
    found = proven_average(problem, w, u, options["tol"]) if below.converged else None
    if found is None and below.converged and beyond is not None:
        better = bent(problem, u, beyond, above, below)
        if better is not None:
            w, u = better
            found = proven_average(problem, w, u, options["tol"])
    if found is None and problem.penalty.is_norm:
        found = moved_clusters(problem, below, options["tol"])
    if found is not None:
        return found
    return whole_solve(problem, solver, w0=w, u0=problem.inside(u), **options)
