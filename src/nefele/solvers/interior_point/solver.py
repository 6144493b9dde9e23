"""An interior-point method for trees and small graphs: few steps, each a linear system.

With s_e = lam A_e the problem (NFL, Eq. (16)) is

    min  sum_i L_i(w_i) + sum_e s_e t_e    subject to  ||v_e|| <= t_e,  v = D w             (1)

and its optima are the points with

    grad L(w) + D^T u = 0,    ||u_e|| <= s_e,    s_e t_e = <u_e, v_e>.                      (2)

A step solves (2) linearised, with s_e t_e - <u_e, v_e> aimed at a level that falls to zero. In the
scaling of Nesterov and Todd everything but w can be eliminated, which leaves

    (hess L(w) + D^T C D) dw = -grad L(w) - D^T (u + pull).                                 (3)

Mehrotra's predictor chooses the level and corrects the step to second order, with the same
factors; short steps are corrected once more (`correctors`). Over a forest (3) is solved without
fill (`nefele._systems.forest`). The penalties: L2Norm; L1Norm, with one cone per entry; Huber, with
v = D w - (delta / s) u; LinfNorm, with 2 d inequalities per edge (`faces`). Absolute and hinge
losses have no gradient: each row is one more cone (`rows`), which adds X^T C X to the Hessian;
quadratic penalties go as well. There all is linear but for the cones: no line search, yet Gondzio's
corrections for centrality. The same holds where logistic, multinomial and Poisson rows have duals
of their own (`chances`), and losses within a box have bounds (`bounds`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._systems.direct import SmallGraph
from nefele._systems.forest import Forest
from nefele._systems.operator import OperatorSystem
from nefele.certificate import Certificate, certify_known
from nefele.graphs.mapped import MappedGraph
from nefele.problem import Problem
from nefele.result import relative_gap
from nefele.solvers.base import Solver
from nefele.solvers.interior_point import kinks
from nefele.solvers.interior_point.bounds import interior
from nefele.solvers.interior_point.chances import advisable
from nefele.solvers.interior_point.correctors import INSIDE, lengthen, slope_at, straighten
from nefele.solvers.interior_point.ends import find_end, has_end
from nefele.solvers.interior_point.forms import edge_kind, forms, nearly_equal, norms
from nefele.solvers.interior_point.kinks import curved_parts
from nefele.solvers.interior_point.reach import check, fits, pays
from nefele.solvers.interior_point.state import NewtonState
from nefele.solvers.interior_point.terms import Terms
from nefele.solvers.loop import run
from nefele.solvers.primal_dual import PrimalDual
from nefele.solvers.primal_dual.polish import group_means, groups_of
from nefele.solvers.primal_dual.quotient import same_clusters

_STUCK = 0.05  # longest step below which cones are only brought back to their centre
_AT_CENTRE = 1e-6  # size of a step to the centre, in units of the last one, that is none
_SHORT = 0.2  # predictor step below which its second-order term misleads
_WARM = 0.1  # least first sum of x^T z at a given start, in units of the objective there
_CAUTION = 2.0  # the same in units of the start's error
_NEARER = 0.3  # error of a given start, relative to that of zero, up to which it is used
_SLACK = 1e-2  # share of the predicted progress that a step must make
_WORTH = 0.02  # step below which another direction is tried
_HALVINGS = 30
_BELOW = 1e-8  # objective, relative to the start's, that `_DONE` of the start leaves few digits of
_STAYS, _FAR = 0.9, 0.3  # share of the slopes that a step, so long, leaves if factors are inexact
_UNDONE = 1e-2  # sum of x^T z, relative to the objective, that is far from the end
_LAGGING = 1e-2  # sum of x^T z in units of what the slopes count, below which it waits for them
_MISSED = 3  # bounds that must have been too weak before the cones' own duals are used
_FINEST = 1e-12  # least tolerance of a reduced problem
_DONE = 1e-15  # sum of x^T z, relative to the first, below which rounding errors rule
_SPARE, _ENOUGH = 0.02, 10.0  # share of balls used below which they shrink, to so many flows
_MOST_STEPS, _MOST_FAILURES = 80, 8
_SLOW = 40, 0.5  # steps, and share of what was left before them that is too much after them
_SLOW_CURVED = 15, 1e-2  # the same where duals of the rows may be faster


@dataclass
class Newton(Solver[NewtonState]):
    """Primal-dual interior-point steps: about ten to twenty, whatever the size.

    Each step factorises a system with one block of d x d numbers per node and edge: cheap over
    chains and other trees, dear over large graphs with cycles. Where steps fail, which rounding
    errors or a wrong Hessian may cause, the primal-dual method goes on from the point reached.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), None, ([[1.0]], [4.0])])
    >>> result = solve(Problem(Graph.from_edges([(0, 1), (1, 2)]), data, lam=1.0), Newton())
    >>> result.w[[0, 2], 0].round(3).tolist(), result.converged
    ([0.5, 3.5], True)
    """

    maps = True
    fits = staticmethod(fits)
    pays = staticmethod(pays)

    def check(self, problem: Problem) -> None:
        check(problem)

    def init(self, problem: Problem, w0: Array, u0: Array) -> NewtonState:
        graph, loss = problem.graph, problem.loss
        alone = np.ones(graph.n_nodes, dtype=bool)
        if problem.coupled:  # iterative minimisers of losses with kinks are less exact than steps
            alone = (graph.degree == 0) & ~kinks.nodes(problem)
        state = NewtonState(w0.copy(), u0.copy(), alone)
        if problem.coupled and any(advisable(problem, *part) for part in curved_parts(problem)):
            state.by_duals(problem)
        alone = state.alone
        if alone.any():
            state.w[alone] = loss.minimise()[alone]
        if not problem.coupled:
            return state
        warm = bool(w0.any() or u0.any())
        if warm:
            state.start = state.w.copy(), u0
        kinds = {form.kind for form in forms(problem)}
        smooth = loss.smooth and kinds <= {"cones", "springs"}
        usable = warm and smooth and not state.duals
        error = _error(problem, state) if usable else 1.0
        if error <= _NEARER:
            value = max(_WARM, _CAUTION * error) * problem.objective(state.w)
        else:
            state.w[~alone], state.u[:] = interior(problem)[~alone], 0.0
            value = float(loss.value(state.w).sum())
        if isinstance(graph, MappedGraph):
            state.system = OperatorSystem(graph, problem.d)
        else:
            state.system = Forest.of(graph) or SmallGraph.of(graph, problem.d)
        state.exact = has_end(problem)
        self._begin(problem, state, value)
        return state

    def _begin(self, problem: Problem, state: NewtonState, value: float) -> None:
        """Cones around the state's w and u, which share `value`."""
        value = max(abs(value), 1e-6 * abs(problem.objective_at_zero)) or 1.0
        limits = state.cap, state.duals
        state.terms = Terms(problem, state.w, state.u, value, state.alone, *limits)
        state.u = state.terms.flow
        state.slope = slope_at(state.terms, state.w, state.alone)
        reach = state.terms.reach(state.slope)
        state.length = value / reach if reach > 0 else 0.0
        state.size = abs(problem.objective_at_zero)

    def step(self, problem: Problem, state: NewtonState) -> None:
        if state.rescue is not None:
            solver, inner = state.rescue
            solver.step(problem, inner)
        elif not _at_end(state):
            state.start = state.end = None
            assert state.terms is not None
            if state.exact:
                state.before = state.terms.edges.cores[0].sizes()
            self._interior(problem, state)
            state.steps += 1
            slow = _SLOW_CURVED if self._may_switch(problem, state) else _SLOW
            if state.failures > _MOST_FAILURES or state.slow(*slow):
                self._rescue(problem, state)

    def _interior(self, problem: Problem, state: NewtonState) -> None:
        """Predictor, corrector and a step that stays inside the cones."""
        terms, slope = state.terms, state.slope
        assert terms is not None
        hess, C = terms.scale(state.w)
        hess = terms.anchored(hess)
        if state.damp > 0:
            hess = hess + np.diag(state.damp / terms.unit**2)
        try:
            factor = state.system.factorise(hess, C)
        except np.linalg.LinAlgError:
            state.failures = np.inf
            return

        def head(pull: Array, rest: float) -> Array:
            return terms.head(factor, -rest * slope - pull, rest)

        dw = head(terms.aim(0.0, 1.0, 0.0), 1.0)
        if not terms.count:  # no cones: plain Newton steps
            self._search(problem, state, dw, 1.0)
            return
        if not terms.longest > 0:
            state.failures = np.inf
            return
        step = min(1.0, terms.longest)
        centre = float(np.clip(terms.ahead(step) / terms.total, 0.0, 1.0)) ** 3
        rest = 1.0 - centre
        if self._ahead(state):  # the losses take longer than the cones: wait for them
            centre = rest = 1.0
        level = centre * terms.total / terms.count
        dw = head(terms.aim(level, rest, 1.0 if step >= _SHORT else step**2), rest)
        if terms.linear:
            dw = lengthen(terms, head, dw, level, rest)
        elif terms.bent and not isinstance(state.system, Forest):
            dw = straighten(state, head, dw, level, rest)
        if terms.longest < _STUCK:  # back to where all cones share alike
            saved = terms.save()
            back = head(terms.aim(terms.total / terms.count, 0.0, 0.0), 0.0)
            if terms.reach(back / terms.unit**2) > _AT_CENTRE * terms.reach(dw / terms.unit**2):
                dw, rest = back, 0.0
            else:  # they are there already: short steps are all there is
                terms.restore(saved)
        if not np.isfinite(dw).all():  # rounding errors rule
            state.failures = np.inf
        elif not self._search(problem, state, dw, rest, _WORTH):
            # Far from linear: towards stationary points alone, without second-order terms.
            dw = head(terms.aim(terms.total / terms.count, 1.0, 0.0), 1.0)
            self._search(problem, state, dw, 1.0)

    def _may_switch(self, problem: Problem, state: NewtonState) -> bool:
        """Whether rows that have no duals of their own could have them."""
        return not state.duals and bool(curved_parts(problem))

    def _ahead(self, state: NewtonState) -> bool:
        """Whether the cones are much nearer to their end than the slopes of curved losses."""
        terms = state.terms
        assert terms is not None
        left = state.length * terms.reach(state.slope)
        return not terms.linear and terms.total < _LAGGING * left

    def _search(
        self, problem: Problem, state: NewtonState, dw: Array, rest: float, least: float = 0.0
    ) -> bool:
        """Halve the step until the sum of x^T z and of the slopes' sizes falls enough.

        Returns False, without a step, where that takes a step shorter than `least`.
        """
        terms = state.terms
        assert terms is not None
        left = state.length * terms.reach(state.slope)
        before = terms.total + left
        step = min(1.0, INSIDE * terms.longest)
        for _ in range(_HALVINGS):
            if step < least and not terms.linear:
                return False
            w = state.w + step * dw
            slope = slope_at(terms, w, state.alone, step)
            if not np.isfinite(slope).all():
                break
            after = terms.ahead(step) + state.length * terms.reach(slope)
            if terms.linear or after <= before * (1 - _SLACK * step * rest):
                terms.move(step, rest)
                state.w, state.u = w, terms.flow
                state.slope = slope_at(terms, w, state.alone) if terms.linear else slope
                state.move, state.damp = dw, 0.1 * state.damp
                stays = state.length * terms.reach(state.slope) > max(_STAYS * left, terms.total)
                if stays and step * rest > _FAR and problem.graph.plain:
                    state.careful = 1.0
                    terms.uneven = True
                return True
            step *= 0.5
        size = float((np.abs(state.slope) * terms.unit).max())
        state.damp = max(10 * state.damp, 1e-3 * size / (state.length or 1.0))
        state.failures += 1
        return True

    def _rescue(self, problem: Problem, state: NewtonState) -> None:
        """Begin again, with duals of the rows or with smaller balls, else go on in another way.

        Where balls are much larger than flows, neighbours are equal but for rounding errors, which
        huge weights make large over graphs with cycles. Where the start was far above the optimum
        rounding errors rule before the end: a point far below it is a better start, but over
        linear maps, where it was not.
        """
        assert state.terms is not None
        if self._may_begin_here(problem, state):
            state.again += 1
            self._anew(problem, state, state.w, state.terms.total)
            return
        used, switch = _used(state), self._may_switch(problem, state)
        room = state.terms.strength[norms(problem)].max(initial=0.0)
        spare = 0 < used < _SPARE * min(state.cap, float(room))
        if switch or spare:
            if switch:
                state.by_duals(problem)
            else:
                state.cap = _ENOUGH * used
            start = np.where(state.alone[:, None], state.w, interior(problem))
            value = float(problem.loss.value(start).sum())
            reached = problem.objective(state.w)
            if problem.graph.plain and not switch and reached < _BELOW * value:
                start, value = state.w, reached
            self._anew(problem, state, start, value)
            return
        solver, w, u = PrimalDual(), state.w, state.u
        if not problem.objective(w) <= problem.objective_at_zero:  # led astray
            w, u = np.where(state.alone[:, None], w, problem.origin), np.zeros_like(u)
        state.rescue = solver, solver.init(problem, w, u)

    def _may_begin_here(self, problem: Problem, state: NewtonState) -> bool:
        """Whether cones may be put around the present point: power cones can end up far apart.

        They have no scaling that brings each to its centre. Near the optimum it is rounding errors.
        """
        assert state.terms is not None
        far = state.terms.total > _UNDONE * abs(problem.objective(state.w))
        return far and not state.again and any(form.kind == "powers" for form in forms(problem))

    def _anew(self, problem: Problem, state: NewtonState, w: Array, value: float) -> None:
        """Begin again at w, without a flow."""
        state.steps, state.failures, state.mark = 0.0, 0.0, np.inf
        state.damp, state.asked, state.move = 0.0, np.inf, None
        state.careful = 0.0  # as its new terms are
        state.w, state.u = w, np.zeros_like(state.u)
        self._begin(problem, state, value)

    def promising(self, problem: Problem, state: NewtonState, tol: float) -> bool:
        """Whether what is left at the edges and at the nodes seems within the tolerance."""
        terms = state.terms
        if state.rescue is not None:
            return False
        if terms is None or _at_end(state):
            return True
        if state.move is None:  # no step has succeeded yet
            return False
        ahead = terms.total
        if not terms.count:
            ahead = state.length * terms.reach(state.slope)
        if ahead > min(20 * tol * state.size, 0.5 * state.asked):
            return False
        diff, penalty, scale = problem.graph.diff(state.w), problem.penalty, terms.strength
        spent = float(scale @ penalty.value(diff))
        value = abs(float(problem.loss.value(state.w).sum()) + spent)
        state.size = max(value, 1e-6 * abs(problem.objective_at_zero))
        left = spent + float(penalty.conjugate(penalty.within(state.u), scale).sum())
        left += float(np.abs(state.slope * state.move).sum() - np.vdot(state.u, diff))
        left += terms.row_residual(state.w)
        if not left <= 0.9 * tol * state.size < np.inf:  # counts may overflow far from the end
            return False
        if state.exact and not find_end(problem, state, tol):
            return False
        state.asked = ahead
        return True

    def certify(
        self, problem: Problem, state: NewtonState, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """The point with the nodes fused whose flow says so, if that is as good."""
        if state.rescue is not None:
            solver, inner = state.rescue
            inner.final = state.final
            return solver.certify(problem, inner, tol=tol, exact=exact)
        if state.end is not None and not exact:
            return state.end
        w, u = self.point(problem, state)
        faces = edge_kind(problem) == "faces" and problem.graph.plain
        if state.start is not None and faces and not exact:
            again = self._same_clusters(problem, w, u, tol)
            if again is not None:
                return again
        plain = self._bound(problem, state, w, u, tol)
        if exact or state.start is not None or not _fuses(problem):
            return w, plain
        together = _fuse(problem, w, u)
        fused = replace(plain, objective=problem.objective(together))
        near = relative_gap(problem, fused.objective, fused.gap_abs) <= tol
        return (together, fused) if near or fused.objective <= plain.objective else (w, plain)

    def _bound(
        self, problem: Problem, state: NewtonState, w: Array, u: Array, tol: float
    ) -> Certificate:
        """The bound with the cones' own duals of rows, if that ends the solve: it needs no system.

        Else the plain one, which follows from w and u, and at last that from the cones' duals.
        """

        def near(found: Certificate) -> bool:
            return relative_gap(problem, found.objective, found.gap_abs) <= tol

        known = state.terms.duals() if state.terms is not None and state.terms.inner else None
        if state.start is not None or known is None:
            return problem.certificate(w, u, tol=tol, direct=True)
        if near(found := certify_known(problem, w, u, known)):
            return found
        plain = problem.certificate(w, u, tol=tol, direct=True)
        state.missed += not near(plain)
        patient = state.terms is not None and not state.terms.uneven
        if near(plain) or (patient and state.missed < _MISSED):
            return plain
        found = problem.certificate(w, u, tol=tol, direct=True, duals=known)
        return found if near(found) else plain

    def _same_clusters(
        self, problem: Problem, w: Array, u: Array, tol: float
    ) -> tuple[Array, Certificate] | None:
        """The best point with a start's clusters, if that is good enough: often so on a path."""

        def reduced(small: Problem) -> tuple[Array, Array]:
            found = run(small, Newton(), tol=max(0.1 * tol, _FINEST), max_iter=_MOST_STEPS)
            return found.w, found.u

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the certificate below judges the point
            better = same_clusters(problem, reduced, w, u)
        if better is None:
            return None
        found = problem.certificate(*better, firm=True, tol=tol)
        near = relative_gap(problem, found.objective, found.gap_abs) <= tol
        return (better[0], found) if near else None

    def point(self, problem: Problem, state: NewtonState) -> tuple[Array, Array]:
        if state.rescue is not None:
            solver, inner = state.rescue
            return solver.point(problem, inner)
        if state.end is not None:
            return state.end[0], state.end[1].u
        if state.start is not None:
            return state.start
        return state.w if state.terms is None else state.terms.met(state.w), state.u

    def current(self, problem: Problem, state: NewtonState) -> tuple[Array, Array]:
        """The point itself; of the primal-dual method its iterate, not improved."""
        if state.rescue is not None:
            solver, inner = state.rescue
            return solver.current(problem, inner)
        return (state.w, state.u) if state.start is None else state.start

    def scalars(self, state: NewtonState) -> dict[str, Any]:
        return state.scalars()

    def arrays(self, state: NewtonState) -> dict[str, Array]:
        return state.arrays()

    def resume(
        self,
        problem: Problem,
        state: NewtonState,
        scalars: dict[str, Any],
        arrays: dict[str, Array],
    ) -> None:
        state.take(problem, scalars, arrays)

    def doubtful(self, state: NewtonState) -> bool:
        """Interior-point steps end at a minimiser, if there is one; bounds there prove it."""
        unproven = state.duals and state.missed >= _MISSED
        return state.rescue is not None or _at_end(state) or unproven

    def adapt(self, problem: Problem, state: NewtonState, gap: float) -> None:
        """Leave to the primal-dual method what could not be certified at the end."""
        if state.rescue is not None:
            solver, inner = state.rescue
            solver.adapt(problem, inner, gap)
        elif _at_end(state):
            self._rescue(problem, state)


def _used(state: NewtonState) -> float:
    """The largest flow in units of its norm, or 0 where there are no balls.

    Over linear maps no more than the losses can ask for: other flows cancel at every node, and
    fill balls of any size.
    """
    if state.terms is None or not np.isfinite(state.u).all():
        return 0.0
    problem = state.terms.problem
    sizes = problem.penalty.domain_ratio(state.u, problem.scale) * problem.scale
    used = float(sizes[norms(problem)].max(initial=0.0))
    if isinstance(problem.graph, MappedGraph) and problem.graph.stretch > 0:
        used = min(used, kinks.force(problem) / problem.graph.stretch)
    return used


def _at_end(state: NewtonState) -> bool:
    """Whether there is nothing to do, or nothing that rounding errors allow."""
    terms = state.terms
    if terms is None or terms.count:
        return terms is None or terms.total <= _DONE * terms.first
    return state.length * terms.reach(state.slope) <= _DONE * state.size


def _error(problem: Problem, state: NewtonState) -> float:
    """How far a given start, its flow brought inside, is from (2), relative to zero."""
    state.u = problem.inside(state.u)
    if not problem.objective(state.w) <= problem.objective_at_zero:
        return 1.0
    loss, alone = problem.loss, state.alone
    here = np.abs(loss.grad(state.w) + problem.graph.div(state.u))[~alone].sum()
    return float(here) / (float(np.abs(loss.grad(np.zeros_like(state.w)))[~alone].sum()) or 1.0)


def _fuses(problem: Problem) -> bool:
    """Whether equal parameters may be better, which rounding errors and huge weights hide.

    Rows of several nodes that act on each parameter alike as well: all nodes may be equal there.
    """
    alike = getattr(problem.graph, "block", None) is None
    return problem.coupled and alike and bool(norms(problem).any())


def _fuse(problem: Problem, w: Array, u: Array) -> Array:
    """Equal parameters over the edges whose difference is nearer to zero than their room."""
    return group_means(*groups_of(problem, nearly_equal(problem, w, u)), w)
