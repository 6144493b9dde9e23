"""The result of a solve, and the warnings that go with it."""

from __future__ import annotations

import warnings

from nefele._checks import outside
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning, Record, Result, Status
from nefele.solvers.loop.best import Best


def finish(
    problem: Problem,
    best: Best,
    status: Status,
    n_iter: int,
    history: list[Record],
    tol: float | None,
    proof: bool,
) -> Result:
    """The best point as a result; warn of what the caller should know."""
    assert best.w is not None
    assert best.dual is not None
    result = Result(
        problem=problem,
        w=best.w,
        u=best.dual.u,
        objective=best.objective,
        gap=best.gap,
        gap_abs=best.gap_abs,
        certificate=best.dual.form,
        leak=best.dual.leak,
        status=status,
        n_iter=n_iter,
        history=history,
        undetermined=problem.undetermined,
        unbounded=problem.unbounded(best.w),
    )
    warn(result, tol, proof)
    return result


def warn(result: Result, tol: float | None, proof: bool) -> None:
    """Warn of what the caller of a solve should know."""
    if result.status in (Status.MAX_ITER, Status.STALLED, Status.FAILED, Status.UNBOUNDED):
        what, left = ("relative gap", result.gap) if proof else ("guess", result.history[-1].guess)
        goal = "" if tol is None else f" > tol {tol:.1e}"
        warnings.warn(
            f"Stopped after {result.n_iter} iterations with {what} {left:.1e}{goal} "
            f"({result.status}). {result.status.advice}",
            ConvergenceWarning,
            stacklevel=outside(),
        )
    for mask, text in (
        (
            result.undetermined,
            "{n} nodes are not connected to any data, such as {ids}: their parameters are set "
            "to 0. Add edges or data, or drop them.",
        ),
        (
            result.unbounded,
            "The loss of {n} nodes, such as {ids}, has no minimiser (e.g. separable labels, or "
            "counts that are all zero): their parameters grow without bound. Give the loss a "
            "regulariser, such as l2=1e-3; what it spares, such as intercepts, needs rows of every "
            "class, or an edge to them.",
        ),
    ):
        if mask.any():
            ids = ", ".join(repr(k) for k in result.problem.graph.ids[mask][:3].tolist())
            warnings.warn(
                text.format(n=int(mask.sum()), ids=ids), DataWarning, stacklevel=outside()
            )
