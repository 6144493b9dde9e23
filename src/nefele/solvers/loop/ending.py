"""The result of a solve, and the warnings that go with it."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from nefele._checks import outside
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning, Record, Result, Status
from nefele.solvers.loop.best import Best

_ROUNDING = 1e-12  # leak, relative to the objective, that is none

_RUNS_AWAY = "their parameters grow without bound"
_HELD = "they are held by a tiny ridge, see `held` of the result, and all others are solved"
_HELD_ONLY = (
    "they are held by a tiny ridge, see `held` of the result; objective and gap are those of the "
    "problem with it, which is not solved to the tolerance"
)


def finish(
    problem: Problem,
    best: Best,
    status: Status,
    n_iter: int,
    history: list[Record],
    proof: bool,
    unbounded: NDArray[np.bool_] | None = None,
) -> Result:
    """The best point as a result; `unbounded` are nodes known to have no minimiser."""
    assert best.w is not None
    assert best.dual is not None
    unbounded = problem.unbounded(best.w) if unbounded is None else unbounded
    return Result(
        problem=problem,
        w=best.w,
        u=best.dual.u,
        objective=best.objective,
        gap=best.gap,
        gap_abs=best.gap_abs,
        certificate=_form(problem, best, unbounded) if proof else best.dual.form,
        leak=best.dual.leak,
        status=status,
        n_iter=n_iter,
        history=history,
        undetermined=problem.undetermined,
        unbounded=unbounded,
    )


def _form(problem: Problem, best: Best, unbounded: NDArray[np.bool_]) -> str:
    """The form of the bound: "dual" is none if its leak counts, and no optimum is near or far.

    The leak is subtracted for parameters twice as large as those found. Without a minimiser the
    objective may go on falling beyond any size.
    """
    assert best.dual is not None
    form, size = best.dual.form, max(abs(best.objective), 1e-6 * abs(problem.objective_at_zero))
    if form != "dual" or not best.dual.leak > _ROUNDING * size:
        return form
    return "estimated radius" if unbounded.any() or problem.unbounded().any() else form


def warn_unreached(
    status: Status, n_iter: int, left: float, tol: float | None, what: str, advice: str
) -> None:
    """Warn of a solve that ended before its tolerance; `left` is the gap, or what it is called."""
    if status in (Status.MAX_ITER, Status.STALLED, Status.FAILED, Status.UNBOUNDED):
        goal = "" if tol is None else f" > tol {tol:.1e}"
        warnings.warn(
            f"Stopped after {n_iter} iterations with {what} {left:.1e}{goal} ({status}). {advice}",
            ConvergenceWarning,
            stacklevel=outside(),
        )


def warn(result: Result, tol: float | None, proof: bool, advice: str | None = None) -> None:
    """Warn of what the caller of a solve should know; the advice is the result's by default."""
    what, left = ("relative gap", result.gap) if proof else ("guess", result.history[-1].guess)
    advice = result.advice if advice is None else advice
    warn_unreached(result.status, result.n_iter, left, tol, what, advice)
    for mask, text in (
        (
            result.undetermined,
            "{n} nodes are not connected to any data, such as {ids}: their parameters are set "
            "to 0. "
            + ("Add edges or data" if result.problem.coupled else "Use lam (alpha) > 0, add data")
            + ", or drop them.",
        ),
        (
            result.unbounded,
            "The loss of {n} nodes, such as {ids}, has no minimiser (e.g. separable labels, or "
            "counts that are all zero; of GraphicalLasso constant columns): "
            + _what_then(result)
            + ". Give the loss a "
            "regulariser, such as l2=1e-3, or drop such columns; what it spares, such as "
            "intercepts, needs rows of every class, or an edge to them.",
        ),
    ):
        if mask.any():
            ids = ", ".join(repr(k) for k in result.problem.graph.ids[mask][:3].tolist())
            warnings.warn(
                text.format(n=int(mask.sum()), ids=ids), DataWarning, stacklevel=outside()
            )


def _what_then(result: Result) -> str:
    """What became of nodes without a minimiser."""
    if result.held is None:
        return _RUNS_AWAY
    return _HELD if result.converged else _HELD_ONLY
