"""`nefele.solve`: in this process, or by parts on an engine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from nefele._checks import check_count, check_flag, check_number, type_name
from nefele._progress import check_verbose, progress
from nefele.engines.costs import costs_of, warn_unsaved
from nefele.engines.result import advice_of, gathered
from nefele.engines.running import ENGINES, run_job
from nefele.problem import Problem
from nefele.result import Result
from nefele.runtime.checkpoints import Checkpoints, checkpoints
from nefele.runtime.cutting import pieces
from nefele.runtime.job import Job, Packed, links_of
from nefele.runtime.plan import Plan
from nefele.solvers import PrimalDual
from nefele.solvers import solve as solve_here
from nefele.solvers.loop import Callback
from nefele.solvers.loop.checkpoint import solver_name
from nefele.solvers.loop.ending import warn
from nefele.solvers.loop.fingerprint import fingerprint
from nefele.solvers.loop.telling import telling

_NAMED = {"auto": PrimalDual(), "primal_dual": PrimalDual(), "algorithm1": PrimalDual.as_printed()}
_EVERY = 100  # iterations


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
    engine: str | None = None,
    parts: Any = None,
    every: int = _EVERY,
    address: str | None = None,
    verbose: bool | int = False,
) -> Result:
    """Minimise the problem to a certified relative gap, here or by parts on an engine.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver
        "auto", a name ("primal_dual", "newton", "algorithm1", "admm", "pd_gradient", "spdhg",
        "fedrelax", "quadratic_cg", "local") or a Solver object. An engine takes "auto",
        "primal_dual", "algorithm1" or a `PrimalDual`.
    tol : float or None
        Relative gap to reach; None runs exactly `max_iter` iterations.
    max_iter : int, optional
        Most iterations, those before a checkpoint included; default: the solver's own limit.
    w0, u0 : arrays of shape (n_nodes, d) and (n_edges, d), optional
        Where to start, such as the `w` and `u` of an earlier result. With both, the start itself
        is examined first: when it is good enough no iteration is done. Not with an engine.
    callback : callable, optional
        Called with a Record (iteration, objective, gap, seconds, guess, rate) at each examined
        point; returning True stops the solve, by parts at the next examined point.
    certify : bool
        False saves the time of the certificates: the solve ends when a guess of the gap is within
        tol, with status "uncertified", certificate "none" and gap inf. Not with an engine.
    checkpoint : str or Path, optional
        File to save the state of the solve in, from time to time, at the end and after Ctrl-C. It
        is replaced as a whole, so that a crash leaves the old file or the new one. With an engine,
        a folder that all workers can write; after the loss of a worker all go back to the last
        checkpoint, without one to the start.
    checkpoint_every : float
        Seconds between checkpoints, without an engine.
    resume : str or Path, optional
        Checkpoint of the same problem and solver to go on from; it may be that of `checkpoint`.
        By parts, it may have been written by another number of parts.
    engine : {None, "in_process", "ray", "mpi"}
        Who does the work: one process as a whole; parts in one process; one Ray actor per part; one
        MPI process per part. All give the same result, see `nefele.engines`.
    parts : int or int array of shape (n_nodes,), optional
        Number of parts, cut by METIS, or the number of each node's part; default: one for each CPU
        of this machine.
    every : int
        Iterations between checkpoints, with an engine.
    address : str, optional
        Ray: address of a running cluster, or "auto"; default: Ray on this machine alone.
    verbose : bool or int
        Whether to show progress: one line with iteration, gap and speed, rewritten on a terminal
        and in a notebook, elsewhere printed on stderr every ten seconds and at the end.

    Returns
    -------
    Result
        With an engine a `nefele.engines.PartsResult`, which says what the parts have cost.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [1.0]), None, ([[1.0]], [2.0])], nodes=list("abc"))
    >>> problem = Problem(Graph.from_edges([("a", "b"), ("b", "c")]), data, lam=0.1)
    >>> result = solve(problem)
    >>> result.converged, result.gap <= 1e-6
    (True, True)
    >>> result = solve(problem, engine="in_process", parts=2)
    >>> result.converged, len(result.costs.parts)
    (True, 2)
    """
    if engine is None:
        _nothing_of_engines(parts, address)
        return solve_here(
            problem,
            solver,
            tol=tol,
            max_iter=max_iter,
            w0=w0,
            u0=u0,
            callback=callback,
            certify=certify,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            resume=resume,
            verbose=verbose,
        )
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type_name(problem)}.")
    if w0 is not None or u0 is not None or not check_flag(certify, "certify"):
        raise ValueError("An engine starts at zero and certifies; leave out w0, u0 and certify.")
    check_engine(engine, address)
    check_verbose(verbose)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable; got {callback!r}.")
    problem.graph.check_plain("An engine")
    plan = make_plan(solver, tol, max_iter)
    plan.solver.check(problem)
    kept = keep_in(checkpoint, resume, every, plan, lambda: fingerprint(problem))
    count = default_parts(problem.graph.n_nodes) if parts is None else parts
    places, sources = [], []
    links: dict[int, list[int]] = {}
    for part in pieces(problem, count):  # packed one by one: only their places are kept
        places.append((part.nodes, part.edges))
        links |= links_of([part])
        sources.append(Packed.of(part))
    job = Job(plan, links, kept)
    started = time.perf_counter()
    with progress(verbose) as line:
        watch = telling(callback, line, tol)
        done, lost = run_job(engine, job, sources, watch, address)
    costs = costs_of(engine, done, time.perf_counter() - started, lost)
    result = gathered(problem, places, done, costs)
    warn_unsaved(done)
    warn(result, tol, True, advice_of(result.status))
    return result


def check_engine(engine: Any, address: Any) -> None:
    """Refuse unknown engines, and an address where none is needed."""
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}; got {engine!r}.")
    if address is not None and (engine != "ray" or not isinstance(address, str) or not address):
        raise ValueError(
            f'address must be that of a Ray cluster, with engine="ray"; got {address!r} with '
            f"engine={engine!r}."
        )


def make_plan(solver: Any, tol: Any, max_iter: Any) -> Plan:
    """What is to be done, from the arguments of `solve`."""
    found = _NAMED.get(solver) if isinstance(solver, str) else solver
    if not isinstance(found, PrimalDual):
        raise ValueError(
            f"solver must be one of {', '.join(_NAMED)} or a PrimalDual with an engine; got "
            f"{solver!r}."
        )
    if tol is not None:
        tol = check_number(tol, "tol", low=0.0, strict=True)
    elif max_iter is None:
        raise ValueError("tol=None runs exactly max_iter iterations; give max_iter.")
    most = found.max_iter if max_iter is None else check_count(max_iter, "max_iter", low=1)
    return Plan(found, tol, most)


def default_parts(n_nodes: int) -> int:
    """One part for each CPU of this machine, as far as there are nodes."""
    return max(1, min(os.cpu_count() or 1, n_nodes))


def keep_in(
    checkpoint: Any, resume: Any, every: Any, plan: Plan, mark: Callable[[], str]
) -> Checkpoints | None:
    """Where the state of a solve is kept, if it is; `mark` tells its problem from others."""
    every = check_count(every, "every", low=1)
    if resume is None and checkpoint is None:
        return None
    if resume is not None and checkpoint is not None and not _same_folder(resume, checkpoint):
        raise ValueError(
            f"resume and checkpoint must be the same folder with an engine; got {resume!r} and "
            f"{checkpoint!r}."
        )
    marks = {"problem": mark(), "solver": solver_name(plan.solver)}
    folder = resume if checkpoint is None else checkpoint
    return checkpoints(folder, every, marks, resume=resume is not None, most=plan.max_iter)


def _same_folder(one: Any, other: Any) -> bool:
    """Whether two names are those of one folder, however it is written."""
    named = isinstance(one, str | os.PathLike) and isinstance(other, str | os.PathLike)
    return named and os.path.realpath(one) == os.path.realpath(other)


def _nothing_of_engines(parts: Any, address: Any) -> None:
    for name, value in (("parts", parts), ("address", address)):
        if value is not None:
            raise ValueError(f'{name} goes with an engine, such as engine="ray"; got none.')
