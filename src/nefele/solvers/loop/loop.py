"""The one loop: stopping rule, certificates, history, callbacks and timing for all solvers."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._threads import one_blas_thread
from nefele.certificate import Certificate, estimate
from nefele.problem import Problem
from nefele.result import Record, Result, Status, relative_gap
from nefele.solvers.base import Solver, State, check_maps
from nefele.solvers.loop.best import Best
from nefele.solvers.loop.checkpoint import Checkpoint, Saved
from nefele.solvers.loop.ending import finish, warn
from nefele.solvers.loop.keeping import keep, resume
from nefele.solvers.loop.residual import residual
from nefele.solvers.loop.stages import fallen, slow, stage_length, stalled

Callback = Callable[[Record], Any]

_LARGE = 50_000  # numbers in u from which a guess comes first
_ESCAPE = 200  # iterations after which a slow solve asks whether there is a minimiser
_LOST = 4  # examined points in a row whose objective overflows after which a solve has failed
_NEAR = 1.5  # guessed gap of a start, in units of the tolerance, up to which it is examined


def run(
    problem: Problem,
    solver: Solver,
    *,
    tol: float | None,
    max_iter: int | None,
    w0: Array | None = None,
    u0: Array | None = None,
    callback: Callback | None = None,
    certify: bool = True,
    checkpoint: Checkpoint | None = None,
    saved: Saved | None = None,
) -> Result:
    """Iterate until the certified relative gap is at most tol, or exactly max_iter times.

    `solve` checks its arguments and calls this; see there.

    Parameters
    ----------
    problem : Problem
    solver : Solver
    tol, max_iter, w0, u0, callback, certify
        See `nefele.solve`.
    checkpoint : Checkpoint, optional
        Where the state is saved from time to time.
    saved : Saved, optional
        The state to go on from.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.solvers import PrimalDual, run
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> run(problem, PrimalDual(), tol=None, max_iter=3).n_iter
    3
    """
    check_maps(problem, solver)
    solver.check(problem)
    tol = None if solver.perturbed else tol
    problem.loss.forget()
    warm = w0 is not None and u0 is not None
    if saved is not None:
        w0, u0 = saved.w, saved.u
    w0, u0 = _start(problem, w0, u0)
    loop = _Loop(problem, solver, tol, callback, certify, checkpoint, saved)
    limit = solver.max_iter if max_iter is None else max_iter
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            status = loop.iterate(w0, u0, limit, warm)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except np.linalg.LinAlgError:
            status = Status.FAILED
        status = loop.close(status, w0, u0)
    if solver.perturbed and status is Status.FINISHED:
        status = Status.PERTURBED
    result = finish(problem, loop.best, status, loop.k, loop.history, certify, loop.unbounded)
    if loop.k < limit and (status is Status.UNBOUNDED or loop.only_estimated(result)):
        held = _hold(result, solver, tol, limit - loop.k, callback, certify)
        result = held if status is Status.UNBOUNDED or held.converged else result
    warn(result, tol, certify)
    return result


def _hold(
    result: Result,
    solver: Solver,
    tol: float | None,
    limit: int,
    callback: Callback | None,
    certify: bool,
) -> Result:
    """Solve with a tiny ridge at the nodes without a minimiser, from the start: all are bounded.

    What had been reached before has no part in it, so that a resumed solve comes to the same end.
    """
    found = result.problem.hold(result.unbounded)
    if found is None:
        return result
    problem, ridge = found
    before = result.history[-1]

    def later(record: Record) -> Any:
        shifted = record._replace(
            iteration=record.iteration + result.n_iter, seconds=record.seconds + before.seconds
        )
        return None if callback is None else callback(shifted)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        held = run(problem, solver, tol=tol, max_iter=limit, callback=later, certify=certify)
    shifts = {"iteration": result.n_iter, "seconds": before.seconds}
    history = [
        r._replace(**{k: getattr(r, k) + x for k, x in shifts.items()}) for r in held.history
    ]
    return replace(
        held,
        status=Status.HELD if held.status is Status.OPTIMAL else held.status,
        n_iter=result.n_iter + held.n_iter,
        history=result.history + history,
        unbounded=result.unbounded | held.unbounded,
        held=ridge if held.held is None else ridge + held.held,
    )


class _Loop:
    """Iterations, the examined points among them, and who is told."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        tol: float | None,
        callback: Callback | None,
        proof: bool,
        checkpoint: Checkpoint | None,
        saved: Saved | None,
    ) -> None:
        self.problem, self.solver, self.tol, self.callback = problem, solver, tol, callback
        self.proof, self.checkpoint, self.saved = proof, checkpoint, saved
        self.started = time.perf_counter()
        self.best, self.history = Best(problem), list[Record]()
        self.state: State | None = None
        self.k = self.stage = 0
        self.due = stage_length(0)
        self.told: Record | None = None
        self.lost = 0  # examined points in a row that have overflowed
        self.bounded = False  # whether a minimiser is known to exist
        self.unbounded: NDArray[np.bool_] | None = None  # nodes known to have none

    def _take_up(self, saved: Saved) -> None:
        """Go on where a checkpoint was written; what it holds of proofs is proven again."""
        facts = saved.facts
        self.started -= facts["seconds"]
        self.k, self.stage, self.due = facts["iteration"], facts["stage"], facts["due"]
        self.bounded = facts["bounded"]
        best, self.history = self.best, saved.history
        if not self.history:  # no point was examined yet
            return
        self.told = self.history[-1]
        best.w, best.objective = saved.best_w, self.problem.objective(saved.best_w)
        if facts["proof"] is None:
            nothing = Certificate(best.objective, -np.inf, "none", 0.0, saved.dual_u)
            found = self.solver.again(self.problem, saved.dual_u) if self.proof else None
            best.dual = nothing if found is None else replace(found, objective=best.objective)
        else:
            best.dual = self.problem.certificate(saved.dual_w, saved.dual_u, **facts["proof"])
        best.lower = best.dual.lower
        best.estimate, best.least = facts["estimate"], facts["least"]

    def iterate(self, w0: Array, u0: Array, limit: int, warm: bool) -> Status:
        """Run until a reason to stop; with no tolerance, exactly `limit` times."""
        problem, solver, tol = self.problem, self.solver, self.tol
        self.state = state = solver.init(problem, w0, u0)
        state.traced = self.checkpoint is not None
        if self.saved is not None:
            self._take_up(self.saved)
            resume(problem, solver, state, self.saved)
            if self.proof and self._unproven_end():
                self.history.pop()
                self.examine()
            if (status := self.reached()) is not None:
                return status
        known = warm and tol is not None and self.near(w0, u0, tol)
        begins = self.k == 0 and not self.history
        if known or (tol is not None and begins and solver.immediate(problem)):
            self.examine()
            if self.reached() is None and self.report() is True:
                return Status.STOPPED
        if (status := self.reached()) is not None:
            return status
        while self.k < limit:
            solver.step(problem, state)
            self.k += 1
            if tol is None or (self.k < self.due and not solver.promising(problem, state, tol)):
                if self.checkpoint is not None and self.checkpoint.due():
                    self.save()
                continue
            self.stage += self.k >= self.due  # what a solver asks for beside these does not count
            self.due = self.k + stage_length(self.stage)
            self.examine()
            self.lost = 0 if np.isfinite(self.best.latest) else self.lost + 1
            if self.lost >= _LOST:
                return Status.FAILED
            if (status := self.reached()) is not None:
                return status
            if stalled(self.history, self.proof):
                return Status.STALLED
            if self.escapes():
                return Status.UNBOUNDED
            solver.adapt(problem, state, self.best.progress if self.proof else self.best.guess)
            if self.checkpoint is not None and self.checkpoint.due():
                self.save()
            if self.report() is True:
                return Status.STOPPED
        return Status.FINISHED if tol is None else Status.MAX_ITER

    def _unproven_end(self) -> bool:
        """Whether a saved solve had ended by a proof that takes more than the checkpoint's flow."""
        if self.tol is None or not self.history or np.isfinite(self.best.lower):
            return False
        last = self.history[-1]
        return last.iteration == self.k and last.gap <= self.tol

    def near(self, w0: Array, u0: Array, tol: float) -> bool:
        """Whether a given start may be good enough: to examine a large one costs much."""
        problem = self.problem
        if not problem.loss.smooth or u0.size < _LARGE:
            return True
        objective = problem.objective(w0)
        guess = estimate(problem, w0, u0, _NEAR * tol * abs(objective))
        return relative_gap(problem, objective, guess) <= _NEAR * tol

    def reached(self) -> Status | None:
        """How the solve may end well now: by a proof or, without certificates, by a guess."""
        if self.tol is None or self.best.w is None:
            return None
        if self.best.gap <= self.tol:
            return Status.OPTIMAL
        return Status.UNCERTIFIED if not self.proof and self.best.guess <= self.tol else None

    def escapes(self) -> bool:
        """Whether the solve gets nowhere since there is no minimiser to go to; asked once."""
        sure = self.solver.doubtful(self.state)
        late = self.k >= _ESCAPE and slow(self.history, self.proof)
        if self.bounded or not (late or sure):
            return False
        near = np.isfinite(self.best.gap) and not sure  # else curvature at w tells nothing
        found = self.problem.unbounded(self.best.w if near else None)
        self.bounded = not found.any()
        self.unbounded = None if self.bounded else found
        return not self.bounded

    def only_estimated(self, result: Result) -> bool:
        """Whether a small problem's bound is no proof, for want of a minimiser."""
        assert self.best.dual is not None
        lost = result.certificate != self.best.dual.form and result.unbounded.any()
        return bool(result.status is Status.OPTIMAL and lost and result.u.size < _LARGE)

    def examine(self, exact: bool = False) -> None:
        """Certify the present point, or guess how good it is, and note it."""
        problem, solver, state = self.problem, self.solver, self.state
        assert state is not None
        if self.proof:
            found = solver.certify(problem, state, tol=self.tol or 0.0, exact=exact)
        else:
            found = _judge(problem, *solver.point(problem, state))
        w, certificate = found
        origin = certificate.origin
        if origin is not None:  # as large as w and u, and a checkpoint alone needs it
            keep = self.checkpoint is not None
            kept = origin._replace(w=origin.w.copy(), u=origin.u.copy()) if keep else None
            certificate = replace(certificate, origin=kept)
        self.best.add(w, certificate)
        self.note()

    def note(self) -> None:
        best, seconds = self.best, time.perf_counter() - self.started
        rate = fallen(self.history, best.guess, seconds)
        self.history.append(Record(self.k, best.objective, best.gap, seconds, best.guess, rate))

    def report(self) -> Any:
        """Tell the callback of the last examined point."""
        self.told = self.history[-1]
        return None if self.callback is None else self.callback(self.told)

    def save(self, kept: Saved | None = None) -> None:
        """Write a checkpoint, unless an iterate has overflowed."""
        kept = self.kept() if kept is None else kept
        if self.checkpoint is not None and kept is not None:
            self.checkpoint.save(kept)

    def kept(self) -> Saved | None:
        """What a checkpoint holds now; None before the start or when an iterate has overflowed."""
        if self.checkpoint is None or self.state is None:
            return None
        facts = {
            "iteration": self.k,
            "stage": self.stage,
            "due": self.due,
            "bounded": self.bounded,
            "seconds": time.perf_counter() - self.started,
        }
        return keep(self.problem, self.best, self.solver, self.state, facts, self.history)

    def close(self, status: Status, w0: Array, u0: Array) -> Status:
        """Certify and report the last point, whatever ended the loop, and save it."""
        examined = bool(self.history) and self.history[-1].iteration == self.k
        missing = self.proof and not np.isfinite(self.best.lower)
        failed = self.state is None or status is Status.FAILED
        kept = None if failed else self.kept()  # a resumed solve goes on as if nothing had ended
        if self.k and not failed and (missing or not examined):
            self.state.final = True  # type: ignore[union-attr]
            self.examine(exact=self.tol is None)
            if status is Status.MAX_ITER:
                status = self.reached() or status
        if not np.isfinite(self.best.objective):
            status = status if status is Status.INTERRUPTED else Status.FAILED
            self.best.add(*_unsolved(self.problem, w0, u0))
            self.note()
        if kept is not None and status is not Status.FAILED:
            self.save(kept)
        if self.told is not self.history[-1]:
            with suppress(KeyboardInterrupt):
                self.report()
        return status


def _judge(problem: Problem, w: Array, u: Array) -> tuple[Array, Certificate]:
    """The point with a guess of its gap in place of a certificate."""
    objective, u = problem.objective(w), problem.inside(u)
    guess = residual(problem, w, u)
    return w, Certificate(objective, -np.inf, "none", 0.0, u, objective - guess)


def _start(problem: Problem, w0: Array | None, u0: Array | None) -> tuple[Array, Array]:
    """Where to start: zero unless given, and zero wherever the data leave a choice."""
    if not np.isfinite(problem.objective_at_zero):
        raise ValueError(
            f"The objective at w = 0 must be finite; got {problem.objective_at_zero}. "
            "Rescale the labels, or mend the loss's value."
        )
    graph = problem.graph
    origin = problem.origin
    w = origin if w0 is None else w0
    u = np.zeros((graph.n_edges, graph.width(problem.d))) if u0 is None else u0
    free = problem.undetermined
    w = np.where((free | (graph.degree == 0))[:, None], origin, w)
    return w, np.where(free[graph.head, None], 0.0, u) if free.any() else u


def _unsolved(problem: Problem, w0: Array, u0: Array) -> tuple[Array, Certificate]:
    """The start, or zero, with no lower bound: what is left when no iterate is usable."""
    w = w0 if np.isfinite(problem.objective(w0)) else problem.origin
    return w, Certificate(problem.objective(w), -np.inf, "none", 0.0, np.zeros_like(u0))
