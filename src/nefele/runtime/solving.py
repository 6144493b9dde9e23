"""A whole solve as a program: iterations, certificates and checkpoints of one part among others.

It goes as `nefele.solve` with a `PrimalDual` does: the same stages, the same steps, the same points
examined. All decisions rest on sums over all parts, so that all parts take the same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from nefele._checks import Array
from nefele.certificate import Certificate, Origin, certify, guess, objective_of
from nefele.program import Program, largest, total
from nefele.result import Record, Status, relative_gap
from nefele.runtime.halves import Halves, halves
from nefele.runtime.part import Part
from nefele.runtime.plan import Ended, Plan, Store, Watch
from nefele.runtime.reducing import reduced
from nefele.runtime.saved import SavedPart
from nefele.solvers.base import settled
from nefele.solvers.loop.best import Best
from nefele.solvers.loop.stages import fallen, sparing, stage_length, stalled
from nefele.solvers.steps import Pace, adapt, first_steps, scaled


def solve_part(
    part: Part, plan: Plan, store: Store | None = None, watch: Watch = lambda record: None
) -> Program[Ended]:
    """Solve the problem that the part belongs to.

    `watch` is told of every examined point; where it returns True, all parts stop.
    """
    return (yield from _Solve(part, plan, store, watch).run())


@dataclass
class _Scale:
    objective_at_zero: float


class _Solve:
    """Iterations, the examined points among them, and what is remembered of both."""

    def __init__(self, part: Part, plan: Plan, store: Store | None, watch: Watch) -> None:
        self.part, self.plan, self.store, self.watch = part, plan, store, watch
        self.started = time.perf_counter()
        self.k = self.stage = self.spared = 0
        self.due = stage_length(0)
        self.guess = 0.0
        self.history: list[Record] = []
        self.best: Best
        self.pace: Pace
        self.at: Halves

    def run(self) -> Program[Ended]:
        status = yield from self._begin()
        while status is None and self.k < self.plan.max_iter:
            yield from self.at.step(self.plan.solver.relax)
            self.k += 1
            if self.plan.tol is not None and self.k >= self.due:
                status = yield from self._examined()
            if status is None and self.store is not None and self.store.due(self.k):
                yield from self.store.save(self._kept())
        if status is None:
            status = Status.FINISHED if self.plan.tol is None else Status.MAX_ITER
        return (yield from self._close(status))

    def _begin(self) -> Program[Status | None]:
        part, solver = self.part, self.plan.solver
        part.loss.forget()
        part.w = settled(part, part.w, part.graph.degree[part.own] == 0)
        zero = yield from total(part.loss.value(part.loss.origin()).sum())
        self.best = Best(_Scale(zero))
        self.steps = yield from first_steps(part, solver.printed, solver.gamma)
        self.pace = Pace(self.steps.unit, self.steps.gamma)
        self.at = halves(part, self.steps.size, part.compiled and solver.compiled)
        if self.store is not None:
            saved = yield from self.store.load()
            if saved is not None:
                yield from self._take_up(saved)
        self._set_steps()
        return self._reached()

    def _set_steps(self) -> None:
        part, steps = self.part, self.steps
        sizes = scaled(part.graph, steps.size, self.pace.gamma, steps.longest, part.own)
        self.at.set_steps(self.pace.gamma, *sizes)

    def _reached(self) -> Status | None:
        tol = self.plan.tol
        return Status.OPTIMAL if tol is not None and self.best.gap <= tol else None

    # -- examined points ----------------------------------------------------------------------

    def _examined(self) -> Program[Status | None]:
        """Examine the end of a stage, and why to stop there."""
        self.stage += 1
        self.due = self.k + stage_length(self.stage)
        stop = yield from self._examine()
        if not np.isfinite(self.best.latest):
            return Status.FAILED
        status = self._reached()
        if status is None and stalled(self.history, True):
            status = Status.STALLED
        solver = self.plan.solver
        if status is None and not solver.printed and solver.gamma is None:
            adapt(self.pace, max(self.guess, self.best.progress))
            self._set_steps()
        return Status.STOPPED if status is None and stop else status

    def _examine(self, last: bool = False) -> Program[bool]:
        """Certify the present point, or guess how good it is; whether somebody wants to stop."""
        tol, relax = self.plan.tol, self.plan.solver.relax
        w, u = yield from self.at.unrelaxed(relax if tol is None else None)
        if tol is not None and self.plan.solver.polish:
            w = yield from self._improved(w, u)
        found = None
        smooth = not (yield from largest(not self.part.loss.smooth))
        if tol is not None and smooth:
            found = yield from self._spare(w, u, tol, last)
        if found is None:
            found = yield from self._certified(w, u, tol or 0.0)
        self.best.add(w, found)
        seconds = time.perf_counter() - self.started
        best, rate = self.best, fallen(self.history, self.best.guess, seconds)
        record = Record(self.k, best.objective, best.gap, seconds, best.guess, rate)
        self.history.append(record)
        return bool((yield from largest(self.watch(record) is True)))

    def _improved(self, w: Array, u: Array) -> Program[Array]:
        """The point with groups moved as wholes, if that is better; the iteration goes on there."""
        part = self.part
        better = yield from reduced(part, w, u)
        if better is None:
            return w
        values = []
        for point in (better, w):
            seen = yield from part.seen(point, "parameters")
            values.append((yield from objective_of(part, point, seen)))
        if not values[0] <= values[1]:
            return w
        self.at.set_w(better)
        return better

    def _certified(self, w: Array, u: Array, tol: float) -> Program[Certificate]:
        found = yield from certify(self.part, w, u, tol=tol)
        origin = None if self.store is None else Origin(w.copy(), u.copy(), False, tol)
        return replace(found, origin=origin)

    def _spare(self, w: Array, u: Array, tol: float, last: bool) -> Program[Certificate | None]:
        """A guess instead of a certificate that will not be good enough, by that same guess."""
        part = self.part
        likely = yield from guess(part, w, u)
        seen = yield from part.seen(w, "parameters")
        objective = yield from objective_of(part, w, seen)
        self.guess = relative_gap(self.best.problem, objective, likely)
        self.spared = sparing(self.spared, self.guess, tol, last)
        if not self.spared:
            return None
        return Certificate(objective, -np.inf, "none", 0.0, u, objective - likely)

    def _close(self, status: Status) -> Program[Ended]:
        """Certify the last point, whatever ended the loop, and save where it is."""
        examined = bool(self.history) and self.history[-1].iteration == self.k
        if status is not Status.FAILED and self.store is not None and self.k:
            yield from self.store.save(self._kept())
        if status is not Status.FAILED and not (examined and np.isfinite(self.best.lower)):
            yield from self._examine(last=True)
            if status is Status.MAX_ITER:
                status = self._reached() or status
        best = self.best
        if best.w is None or best.dual is None or not np.isfinite(best.objective):
            return self._failed()
        return Ended(
            w=best.w,
            u=best.dual.u,
            objective=best.objective,
            gap=best.gap,
            gap_abs=best.gap_abs,
            certificate=best.dual.form,
            leak=best.dual.leak,
            status=status,
            n_iter=self.k,
            history=self.history,
            unsaved="" if self.store is None else self.store.failed,
        )

    def _failed(self) -> Ended:
        """At zero, with nothing proven: what is left when numbers have overflowed."""
        part, zero = self.part, self.best.problem.objective_at_zero
        w, u = np.zeros_like(part.w), np.zeros_like(part.u)
        return Ended(w, u, zero, np.inf, np.inf, "none", 0.0, Status.FAILED, self.k, self.history)

    # -- what a checkpoint holds --------------------------------------------------------------

    def _kept(self) -> SavedPart:
        best, pace = self.best, self.pace
        nodes, edges = self.at.kept()
        proof = None
        if best.dual is not None and best.dual.origin is not None:
            nodes["dual_w"], edges["dual_u"] = best.dual.origin.w, best.dual.origin.u
            proof = best.dual.origin.tol
        elif best.dual is not None:
            edges["dual_u"] = best.dual.u
        if best.w is not None:
            nodes["best_w"] = best.w
        facts = {
            "stage": self.stage,
            "due": self.due,
            "spared": self.spared,
            "guess": self.guess,
            "pace": [pace.gamma, pace.last, pace.pace, pace.turn],
            "estimate": best.estimate,
            "least": best.least,
            "proof": proof,
            "seconds": time.perf_counter() - self.started,
            "history": [list(record) for record in self.history],
        }
        return SavedPart(self.k, nodes, edges, facts, self.part.loss.memory())

    def _take_up(self, saved: SavedPart) -> Program[None]:
        """Go on where a checkpoint was written; what it holds of proofs is proven again."""
        facts, best, part = saved.facts, self.best, self.part
        self.started -= facts["seconds"]
        self.k, self.stage, self.due = saved.k, facts["stage"], facts["due"]
        self.spared, self.guess = facts["spared"], facts["guess"]
        pace = self.pace
        pace.gamma, pace.last, pace.pace, pace.turn = facts["pace"]
        self.at.take(saved.nodes, saved.edges)
        if saved.memory:
            part.loss.recall(saved.memory)
        self.history = [Record(*row) for row in facts["history"]]
        if "best_w" not in saved.nodes:
            return
        best.w = saved.nodes["best_w"]
        seen = yield from part.seen(best.w, "parameters")
        best.objective = best.latest = yield from objective_of(part, best.w, seen)
        best.estimate, best.least = facts["estimate"], facts["least"]
        if facts["proof"] is None:
            u = saved.edges["dual_u"]
            best.dual = Certificate(best.objective, -np.inf, "none", 0.0, u)
            return
        origin = saved.nodes["dual_w"], saved.edges["dual_u"]
        best.dual = yield from self._certified(*origin, facts["proof"])
        best.lower = best.dual.lower
