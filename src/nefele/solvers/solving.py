"""One call that checks its arguments, picks a solver and runs it."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, check_count, check_flag, check_number
from nefele._progress import check_verbose, progress
from nefele.problem import Problem
from nefele.result import Result
from nefele.solvers.base import check_maps
from nefele.solvers.choose import as_solver
from nefele.solvers.loop import Callback, run
from nefele.solvers.loop.checkpoint import Checkpoint, load, solver_name
from nefele.solvers.loop.telling import telling


def solve(
    problem: Problem,
    solver: Any = "auto",
    *,
    tol: float | None = 1e-6,
    max_iter: int | None = None,
    w0: Any = None,
    u0: Any = None,
    callback: Callback | None = None,
    certify: bool = True,
    checkpoint: Any = None,
    checkpoint_every: float = 60.0,
    resume: Any = None,
    verbose: bool | int = False,
) -> Result:
    """Minimise the problem to a certified relative gap.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver
        "auto", a name ("primal_dual", "newton", "algorithm1", "admm", "pd_gradient", "spdhg",
        "fedrelax", "quadratic_cg", "merging", "local") or a Solver object.
    tol : float or None
        Relative gap to reach; None runs exactly `max_iter` iterations.
    max_iter : int, optional
        Most iterations, those before a checkpoint included; default: the solver's own limit.
    w0, u0 : arrays of shape (n_nodes, d) and (n_edges, d), optional
        Where to start, such as the `w` and `u` of an earlier result. With both, the start itself
        is examined first: when it is good enough no iteration is done.
    callback : callable, optional
        Called with a Record (iteration, objective, gap, seconds, guess, rate) at each examined
        point; returning True stops the solve.
    certify : bool
        False saves the time of the certificates: the solve ends when a guess of the gap is within
        tol, with status "uncertified", certificate "none" and gap inf.
    checkpoint : str or Path, optional
        File to save the state of the solve in, from time to time, at the end and after Ctrl-C. It
        is replaced as a whole, so that a crash leaves the old file or the new one.
    checkpoint_every : float
        Seconds between checkpoints.
    resume : str or Path, optional
        Checkpoint of the same problem and solver to go on from; it may be the `checkpoint` file.
    verbose : bool or int
        Whether to show progress: one line with iteration, gap and speed, rewritten on a terminal
        and in a notebook, elsewhere printed on stderr every ten seconds and at the end.

    Returns
    -------
    Result

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [1.0]), None, ([[1.0]], [2.0])], nodes=list("abc"))
    >>> result = solve(Problem(Graph.from_edges([("a", "b"), ("b", "c")]), data, lam=0.1))
    >>> result.converged, result.gap <= 1e-6
    (True, True)
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type(problem).__name__}.")
    check_flag(certify, "certify")
    check_verbose(verbose)
    if resume is not None and (w0 is not None or u0 is not None):
        raise ValueError("resume brings its own start; leave out w0 and u0.")
    if tol is not None:
        tol = check_number(tol, "tol", low=0.0, strict=True)
    elif max_iter is None:
        raise ValueError("tol=None runs exactly max_iter iterations; give max_iter.")
    if max_iter is not None:
        max_iter = check_count(max_iter, "max_iter", low=1)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable; got {callback!r}.")
    method = as_solver(solver, problem)
    check_maps(problem, method)
    method.check(problem)
    saved = None if resume is None else load(resume, problem, solver_name(method))
    file = None
    if checkpoint is not None:
        file = Checkpoint(checkpoint, problem, solver_name(method), checkpoint_every)
    start = None if w0 is None else _finite(problem.check_w(w0, "w0"), "w0")
    flow = None if u0 is None else _finite(problem.check_u(u0, "u0"), "u0")
    with progress(verbose) as line:
        return run(
            problem,
            method,
            tol=tol,
            max_iter=max_iter,
            w0=start,
            u0=flow,
            callback=telling(callback, line, tol),
            certify=certify,
            checkpoint=file,
            saved=saved,
        )


def _finite(values: Array, name: str) -> Array:
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite; got NaN or inf. Leave it out to start at zero.")
    return values
