"""The primal-dual method for points that are pulled together, with flows that are settled."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from nefele._checks import Array
from nefele.certificate import Certificate
from nefele.losses.quadratic import BoundQuadratic
from nefele.penalties import L2Norm
from nefele.problem import Problem
from nefele.result import Status, relative_gap
from nefele.solvers.loop import run
from nefele.solvers.merging.flows import bound, settle
from nefele.solvers.merging.ladder import climb
from nefele.solvers.primal_dual.fused import Fused
from nefele.solvers.primal_dual.polish import Polished
from nefele.solvers.primal_dual.quotient import reduced_solve
from nefele.solvers.primal_dual.solver import PrimalDual, PrimalDualState, iterated

_NEAR = 0.05  # gap below which a settled flow is better to go on from
_ROUNDS = 8  # of settling a flow, which end at
_ENOUGH = 0.9  # of the gap that is asked for
_MOST_STEPS = 2000  # on each problem of clusters


@dataclass
class MergingState(PrimalDualState):
    """As for the primal-dual method, and the point that merging found."""

    found: tuple[Array, Array] | None = None


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
        found = None
        if self.ladder and problem.coupled and not u0.any() and not w0.any():
            found = climb(problem, self.rung)
            w0, u0 = (w0, u0) if found is None else found
        state = super().init(problem, w0, u0)
        return MergingState(**vars(state), found=found)

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
        """Whether merging has found a point that was not examined yet."""
        return getattr(state, "found", None) is not None

    def certify(
        self, problem: Problem, state: PrimalDualState, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """Certify the unrelaxed iterate, or its clusters moved as wholes, with a settled flow."""
        if exact or not problem.coupled:
            return super().certify(problem, state, tol=tol, exact=exact)
        assert isinstance(state, MergingState)
        w, u = state.found or state.iteration.unrelaxed()
        climbed, state.found = state.found is not None, None
        objective, lower = problem.objective(w), bound(problem, u)
        if not climbed and relative_gap(problem, objective, objective - lower) <= tol:
            return w, Certificate(objective, lower, "dual", 0.0, u, lower)
        better = None if climbed or not self.polish else self._moved(problem, w, u)
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
        return w, Certificate(objective, lower, "dual", 0.0, u, lower)

    def _moved(self, problem: Problem, w: Array, u: Array) -> Polished | None:
        return reduced_solve(problem, iterated, w, u)
