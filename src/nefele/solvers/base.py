"""The one loop: stopping rule, certificates, history, callbacks and timing for all solvers."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._threads import one_blas_thread
from nefele.certificate import Certificate, estimate
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning, Record, Result, Status, relative_gap
from nefele.solvers.checkpoint import Checkpoint, Saved

Callback = Callable[[Record], Any]

_FIRST_STAGES = (50, 50, 50)
_GROWTH = 1.5
_CONTRADICTION = 1e-8  # relative excess of a lower bound over the objective that disproves it
_PATIENCE = 12  # certified points without progress before a solve counts as stalled


@dataclass
class State:
    """What a solver carries from one iteration to the next.

    Examples
    --------
    >>> State(w=np.zeros((2, 1)), u=np.zeros((1, 1))).extra
    {}
    """

    w: Array
    u: Array
    extra: dict[str, Any] = field(default_factory=dict)
    #: Whether this is the last point, which must carry a certificate.
    final: bool = False


class Solver(ABC):
    """Mathematics only: the loop lives in `run`."""

    #: Iterations when the caller gives no max_iter.
    max_iter: int = 50_000

    def check(self, problem: Problem) -> None:
        """Raise when the solver does not fit the problem."""
        return None

    @abstractmethod
    def init(self, problem: Problem, w0: Array, u0: Array) -> State:
        """State before the first iteration."""

    @abstractmethod
    def step(self, problem: Problem, state: State) -> None:
        """One iteration, changing the state."""

    def certify(
        self, problem: Problem, state: State, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """A point and its certificate, good enough for tol if that can be had.

        `exact` asks for the iterate itself, unimproved.
        """
        return state.w, problem.certificate(state.w, state.u)

    def point(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """Parameters and flow to judge without a certificate."""
        return state.w, state.u

    def current(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """Parameters and flow to start from when a solve is resumed."""
        return state.w, state.u

    def scalars(self, state: State) -> dict[str, float]:
        """Numbers beside w and u that a resumed solve needs."""
        return {}

    def resume(self, problem: Problem, state: State, scalars: dict[str, float]) -> None:
        """Take up the numbers of `scalars`; the state was made from w and u."""
        return None

    def promising(self, problem: Problem, state: State, tol: float) -> bool:
        """Whether a certificate is worth its price now, beside the regular ones."""
        return False

    def adapt(self, problem: Problem, state: State, gap: float) -> None:
        """Called after each certified point."""
        return None


class _Best:
    """The best certified point so far: least objective, greatest lower bound."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.objective, self.lower, self.estimate = np.inf, -np.inf, -np.inf
        self.latest = np.inf
        self.w: Array | None = None
        self.dual: Certificate | None = None

    def add(self, w: Array, found: Certificate) -> None:
        self.latest = found.objective
        if self.w is None or np.isnan(self.objective) or found.objective < self.objective:
            self.w, self.objective = w.copy(), found.objective
        if self.dual is None or found.lower > self.lower:
            self.dual, self.lower = found, found.lower
        self.estimate = max(self.estimate, found.estimate, found.lower)

    @property
    def gap_abs(self) -> float:
        """Objective minus lower bound; inf when the bound lies above by more than rounding.

        Such a bound is no bound: a user's penalty or loss has a wrong dual norm or conjugate.
        """
        size = max(abs(self.objective), 1e-6 * abs(self.problem.objective_at_zero))
        if self.lower > self.objective + _CONTRADICTION * size:
            return np.inf
        return max(self.objective - self.lower, 0.0)

    @property
    def gap(self) -> float:
        return relative_gap(self.problem, self.objective, self.gap_abs)

    @property
    def progress(self) -> float:
        """The gap as far as it can be guessed, in units that stay the same along a solve."""
        unit = abs(self.problem.objective_at_zero) or 1.0
        return max(self.objective - self.estimate, 0.0) / unit


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

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.solvers import PrimalDual, run
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> run(problem, PrimalDual(), tol=None, max_iter=3).n_iter
    3
    """
    solver.check(problem)
    problem.loss.forget()
    warm = w0 is not None and u0 is not None
    if saved is not None:
        w0, u0 = saved.w, saved.u
    w0, u0 = _start(problem, w0, u0)
    loop = _Loop(problem, solver, tol, callback, certify, checkpoint, saved)
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        try:
            limit = solver.max_iter if max_iter is None else max_iter
            status = loop.iterate(w0, u0, limit, warm)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except np.linalg.LinAlgError:
            status = Status.FAILED
        status = loop.close(status, w0, u0)
    return _finish(problem, loop.best, status, loop.k, loop.history, tol)


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
        self.best, self.history = _Best(problem), list[Record]()
        self.state: State | None = None
        self.k = self.stage = 0
        self.reported = -1
        if saved is not None:
            self._take_up(saved)

    def _take_up(self, saved: Saved) -> None:
        """Go on where a checkpoint was written."""
        facts = saved.facts
        self.started -= facts["seconds"]
        self.k, self.stage, self.history = facts["iteration"], facts["stage"], saved.history
        best = self.best
        if not self.history:  # no point was examined yet
            return
        best.w, best.objective = saved.best_w, facts["objective"]
        best.lower, best.estimate = facts["lower"], facts["estimate"]
        best.dual = Certificate(
            best.objective, best.lower, facts["form"], facts["leak"], saved.best_u
        )

    def iterate(self, w0: Array, u0: Array, limit: int, warm: bool) -> Status:
        """Run until a reason to stop; with no tolerance, exactly `limit` times."""
        problem, solver, tol = self.problem, self.solver, self.tol
        self.state = state = solver.init(problem, w0, u0)
        if self.saved is not None:
            solver.resume(problem, state, self.saved.facts["scalars"])
        due = self.k + _stage_length(self.stage)
        if warm and tol is not None:
            self.examine()
        if tol is not None and self.best.dual is not None and self.best.gap <= tol:
            return Status.OPTIMAL
        while self.k < limit:
            solver.step(problem, state)
            self.k += 1
            if tol is None or (self.k < due and not solver.promising(problem, state, tol)):
                if self.checkpoint is not None and self.checkpoint.due():
                    self.save()
                continue
            self.stage += 1
            due = self.k + _stage_length(self.stage)
            record = self.examine()
            if not np.isfinite(self.best.latest):
                return Status.FAILED
            if record.gap <= tol:
                return Status.OPTIMAL
            if not self.proof and record.guess <= tol:
                return Status.UNCERTIFIED
            if _stalled(self.history):
                return Status.STALLED
            if self.report() is True:
                return Status.STOPPED
            solver.adapt(problem, state, self.best.progress)
            if self.checkpoint is not None and self.checkpoint.due():
                self.save()
        return Status.FINISHED if tol is None else Status.MAX_ITER

    def examine(self, exact: bool = False) -> Record:
        """Certify the present point, or guess how good it is, and note it."""
        problem, solver, state = self.problem, self.solver, self.state
        assert state is not None
        if self.proof:
            found = solver.certify(problem, state, tol=self.tol or 0.0, exact=exact)
        else:
            found = _judge(problem, *solver.point(problem, state))
        self.best.add(*found)
        return self.note()

    def note(self) -> Record:
        best, seconds = self.best, time.perf_counter() - self.started
        guess = relative_gap(self.problem, best.objective, max(best.objective - best.estimate, 0.0))
        rate = 0.0
        if self.history and 0 < guess < np.inf and self.history[-1].guess < np.inf:
            last = self.history[-1]
            rate = float(np.log10(last.guess / guess)) / max(seconds - last.seconds, 1e-9)
        self.history.append(Record(self.k, best.objective, best.gap, seconds, guess, rate))
        return self.history[-1]

    def report(self) -> Any:
        """Tell the callback of the last examined point."""
        self.reported = self.k
        return None if self.callback is None else self.callback(self.history[-1])

    def save(self) -> None:
        """Write a checkpoint, unless an iterate has overflowed."""
        best, state = self.best, self.state
        if self.checkpoint is None or state is None:
            return
        w, u = self.solver.current(self.problem, state)
        if not (np.isfinite(w).all() and np.isfinite(u).all()):
            return
        facts = {
            "iteration": self.k,
            "stage": self.stage,
            "seconds": time.perf_counter() - self.started,
            "objective": best.objective,
            "lower": best.lower,
            "estimate": best.estimate,
            "form": "none" if best.dual is None else best.dual.form,
            "leak": 0.0 if best.dual is None else best.dual.leak,
            "scalars": self.solver.scalars(state),
        }
        best_w, best_u = w if best.w is None else best.w, u if best.dual is None else best.dual.u
        self.checkpoint.save(Saved(w, u, best_w, best_u, facts, self.history))

    def close(self, status: Status, w0: Array, u0: Array) -> Status:
        """Certify and report the last point, whatever ended the loop, and save it."""
        examined = bool(self.history) and self.history[-1].iteration == self.k
        missing = self.proof and not np.isfinite(self.best.lower)
        failed = self.state is None or status is Status.FAILED
        if self.k and not failed and (missing or not examined):
            self.state.final = True  # type: ignore[union-attr]
            record = self.examine(exact=self.tol is None)
            if status is Status.MAX_ITER and self.tol is not None and record.gap <= self.tol:
                status = Status.OPTIMAL
        if not np.isfinite(self.best.objective):
            status = status if status is Status.INTERRUPTED else Status.FAILED
            self.best.add(*_unsolved(self.problem, w0, u0))
            self.note()
        if self.checkpoint is not None and status is not Status.FAILED:
            self.save()
        if self.reported < self.k:
            with suppress(KeyboardInterrupt):
                self.report()
        return status


def _judge(problem: Problem, w: Array, u: Array) -> tuple[Array, Certificate]:
    """The point with a guess of its gap in place of a certificate."""
    objective = problem.objective(w)
    if problem.loss.smooth:
        guess = estimate(problem, w, u)
    else:
        guess = max(problem.residual(w, u)) * abs(objective)
    return w, Certificate(objective, -np.inf, "none", 0.0, u, objective - guess)


def _start(problem: Problem, w0: Array | None, u0: Array | None) -> tuple[Array, Array]:
    """Where to start: zero unless given, and zero wherever the data leave a choice."""
    if not np.isfinite(problem.objective_at_zero):
        raise ValueError(
            f"The objective at w = 0 must be finite; got {problem.objective_at_zero}. "
            "Rescale the labels, or mend the loss's value."
        )
    graph = problem.graph
    w = np.zeros((graph.n_nodes, problem.d)) if w0 is None else w0
    u = np.zeros((graph.n_edges, problem.d)) if u0 is None else u0
    free = problem.undetermined
    w = np.where((free | (graph.degree == 0))[:, None], 0.0, w)
    return w, np.where(free[graph.head, None], 0.0, u)


def _unsolved(problem: Problem, w0: Array, u0: Array) -> tuple[Array, Certificate]:
    """The start, or zero, with no lower bound: what is left when no iterate is usable."""
    w = w0 if np.isfinite(problem.objective(w0)) else np.zeros_like(w0)
    return w, Certificate(problem.objective(w), -np.inf, "dual", 0.0, np.zeros_like(u0))


def _stage_length(stage: int) -> int:
    if stage < len(_FIRST_STAGES):
        return _FIRST_STAGES[stage]
    return int(_FIRST_STAGES[-1] * _GROWTH ** min(stage - len(_FIRST_STAGES) + 1, 8))


def _stalled(history: list[Record]) -> bool:
    """No progress for long, and so near the optimum that rounding errors explain it."""
    if len(history) <= _PATIENCE:
        return False
    now, before = history[-1], history[-1 - _PATIENCE]
    return bool(now.gap > 0.9 * before.gap and now.gap < 1e-4)


def _finish(
    problem: Problem,
    best: _Best,
    status: Status,
    n_iter: int,
    history: list[Record],
    tol: float | None,
) -> Result:
    assert best.w is not None
    assert best.dual is not None
    unbounded = problem.unbounded(best.w)
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
        unbounded=unbounded,
    )
    _warn(result, tol)
    return result


def _warn(result: Result, tol: float | None) -> None:
    if result.status in (Status.MAX_ITER, Status.STALLED, Status.FAILED):
        warnings.warn(
            f"Stopped after {result.n_iter} iterations with relative gap {result.gap:.1e} > "
            f"tol {tol:.1e} ({result.status}). {result.status.advice}",
            ConvergenceWarning,
            stacklevel=5,
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
            "regulariser, such as l2=1e-3.",
        ),
    ):
        if mask.any():
            ids = ", ".join(repr(k) for k in result.problem.graph.ids[mask][:3].tolist())
            warnings.warn(text.format(n=int(mask.sum()), ids=ids), DataWarning, stacklevel=5)
