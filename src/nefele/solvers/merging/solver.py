"""The primal-dual method for points that are pulled together, with flows that are settled."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.losses.quadratic import BoundQuadratic
from nefele.penalties import L2Norm
from nefele.problem import Problem
from nefele.result import Status, relative_gap
from nefele.solvers.loop import run
from nefele.solvers.merging.flows import bound, settle
from nefele.solvers.merging.ladder import climb, lams
from nefele.solvers.primal_dual.fused import Fused
from nefele.solvers.primal_dual.plain import Plain
from nefele.solvers.primal_dual.polish import Polished
from nefele.solvers.primal_dual.quotient import reduced_solve
from nefele.solvers.primal_dual.solver import PrimalDual, PrimalDualState, iterated

_NEAR = 0.05  # gap below which a settled flow is better to go on from
_ROUNDS = 8  # of settling a flow, which end at
_ENOUGH = 0.9  # of the gap that is asked for
_FINER = 1e-2  # share of the gap that a last Newton step may still gain
_MOST_STEPS = 2000  # on each problem of clusters


@dataclass
class MergingState(PrimalDualState):
    """As for the primal-dual method, and the lams along which points are still to be merged."""

    rungs: Array | None = None
    waited: bool = False  # for an examination, whose tolerance says how finely


@dataclass
class Merging(PrimalDual):
    """Convex clustering: sum_i h_i/2 ||w_i - a_i||^2 + lam sum_e A_e ||w_head(e) - w_tail(e)||_2.

    Points are merged along growing lam, see `nefele.solvers.merging.ladder`. Then the primal-dual
    method goes on over the whole graph, its flow settled inside the clusters at each examined
    point.

    Parameters
    ----------
    gamma, relax, polish, printed, compiled
        As for `PrimalDual`.
    ladder : bool
        Whether to merge along growing lam first.

    Examples
    --------
    >>> Merging().ladder
    True
    """

    maps = False
    least_work: ClassVar[int] = 1  # what is compiled is loaded for the whole graph anyway
    ladder: bool = True

    @staticmethod
    def fits(problem: Problem) -> bool:
        """Whether losses are distances from points, each with its weight, and the norm is l2.

        Parameters
        ----------
        problem : Problem
        """
        loss = problem.loss
        if type(loss) is not BoundQuadratic or type(problem.penalty) is not L2Norm:
            return False
        h = loss.curvature()
        round_ = np.array_equal(loss.H, h[:, None, None] * np.eye(loss.d))
        return problem.graph.plain and problem.coupled and bool((h > 0).all()) and round_

    @staticmethod
    def pays(problem: Problem) -> bool:
        """Whether it fits and the problem is not tiny.

        Parameters
        ----------
        problem : Problem
        """
        return Merging.fits(problem) and Fused.fits(problem)

    def check(self, problem: Problem) -> None:
        if problem.coupled and not self.fits(problem):
            raise ValueError(
                "Merging needs losses h_i/2 ||w_i - a_i||^2 with h_i > 0, penalty l2 and a plain "
                f"graph; got {type(problem.loss).__name__} with {problem.penalty!r}. "
                'Use solver="auto".'
            )

    def init(self, problem: Problem, w0: Array, u0: Array) -> MergingState:
        if self.ladder and problem.coupled and not u0.any() and not w0.any():
            rungs = lams(problem)
            if len(rungs):
                return MergingState(w0, u0, Plain(problem, w0, u0), rungs=rungs)
        return MergingState(**vars(super().init(problem, w0, u0)))

    def step(self, problem: Problem, state: PrimalDualState) -> None:
        """An iteration, or nothing where points are merged first, to the tolerance of `certify`."""
        assert isinstance(state, MergingState)
        if state.rungs is not None and not state.waited:
            state.waited = True
            return
        self._merge(problem, state, 0.0)
        super().step(problem, state)

    def _merge(self, problem: Problem, state: MergingState, tol: float) -> None:
        """Merge along growing lam, unless that is done."""
        if state.rungs is None:
            return
        w, u = climb(problem, state.rungs, self.rung, tol)
        state.w, state.u, state.iteration = w, u, Plain(problem, w, u)
        state.rungs, state.gamma = None, 0.0  # steps are found where iterations follow

    def rung(self, problem: Problem, w: Array, u: Array, tol: float) -> tuple[Array, Array]:
        """The problem of clusters solved to a gap.

        Parameters
        ----------
        problem : Problem
        w : array of shape (n_nodes, d)
        u : array of shape (n_edges, d)
        tol : float
            Relative gap.
        """
        solver = replace(self, ladder=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run(problem, solver, tol=tol, max_iter=_MOST_STEPS, w0=w, u0=u)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return result.w, result.u

    def promising(self, problem: Problem, state: PrimalDualState, tol: float) -> bool:
        """Whether points are still to be merged."""
        return _waiting(state)

    def certify(
        self, problem: Problem, state: PrimalDualState, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """Certify the unrelaxed iterate, or its clusters moved as wholes, with a settled flow."""
        assert isinstance(state, MergingState)
        climbed = _waiting(state)
        self._merge(problem, state, tol)
        if exact or not problem.coupled:
            return super().certify(problem, state, tol=tol, exact=exact)
        w, u = state.iteration.unrelaxed()
        objective, lower = problem.objective(w), bound(problem, u)
        if not climbed and relative_gap(problem, objective, objective - lower) <= tol:
            return w, Certificate(objective, lower, "dual", 0.0, u, lower)
        better = None if climbed or not self.polish else self._moved(problem, w, u, tol)
        if better is not None and better.objective <= objective:
            w, objective = better.w, better.objective
        else:
            better = None
        goal = objective - _ENOUGH * tol * abs(objective)
        flow = settle(problem, w, u, goal, _ROUNDS, firm=better is not None and better.exact)
        if flow.lower > lower:
            u, lower = flow
        near = relative_gap(problem, objective, objective - lower) <= _NEAR
        state.iteration.set_w(w)
        if near:
            state.iteration.set_flow(u, problem.graph.div(u))
        if not state.gamma > 0:  # compiled iterations will change what they begin with
            state.w, state.u = (x.copy() for x in state.iteration.current())
        return w, Certificate(objective, lower, "dual", 0.0, u, lower)

    def again(self, problem: Problem, u: Array) -> Certificate | None:
        """Every flow inside its balls proves a bound, but without coupling there is none."""
        if not problem.coupled:
            return None
        u = problem.inside(u)
        lower = bound(problem, u)
        return Certificate(np.inf, lower, "dual", 0.0, u, lower)

    def point(self, problem: Problem, state: PrimalDualState) -> tuple[Array, Array]:
        """The merged point, the unrelaxed iterate, or its polished form."""
        assert isinstance(state, MergingState)
        self._merge(problem, state, 0.0)
        return super().point(problem, state)

    def current(self, problem: Problem, state: PrimalDualState) -> tuple[Array, Array]:
        """The relaxed iterate, or the start where points are still to be merged."""
        return (state.w, state.u) if _waiting(state) else super().current(problem, state)

    def scalars(self, state: PrimalDualState) -> dict[str, Any]:
        return {} if _waiting(state) else super().scalars(state)

    def arrays(self, state: PrimalDualState) -> dict[str, Array]:
        return {} if _waiting(state) else super().arrays(state)

    def resume(
        self,
        problem: Problem,
        state: PrimalDualState,
        scalars: dict[str, Any],
        arrays: dict[str, Array],
    ) -> None:
        """Go on from an iterate; where points were not merged yet they still are not."""
        if scalars:
            super().resume(problem, state, scalars, arrays)

    def _moved(self, problem: Problem, w: Array, u: Array, tol: float) -> Polished | None:
        solver = replace(self, polish=False, ladder=False)
        return reduced_solve(problem, partial(iterated, solver=solver), w, u, enough=_FINER * tol)


def _waiting(state: PrimalDualState) -> bool:
    """Whether points are still to be merged along growing lam."""
    return isinstance(state, MergingState) and state.rungs is not None
