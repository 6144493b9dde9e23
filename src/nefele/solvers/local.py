"""No coupling (lam = 0 or no edges): every node minimises its own loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.problem import Problem
from nefele.solvers.base import Solver, State

# Longest proximal step, in units of 1 / curvature: logarithmic for infima that are not attained.
_MOST_REACH = 1e16


@dataclass
class LocalState(State):
    """How long the last proximal step was."""

    reach: float = 0.0  # in units of 1 / curvature; 0 before the first


@dataclass
class Local(Solver[LocalState]):
    """Local minimisers, of least norm where there are many.

    Examples
    --------
    >>> Local()
    Local()
    """

    max_iter = 20
    kept = ("reach",)
    maps = True

    def check(self, problem: Problem) -> None:
        if problem.coupled:
            raise ValueError(f'Local needs lam = 0; got lam={problem.lam:g}. Use solver="auto".')

    def init(self, problem: Problem, w0: Array, u0: Array) -> LocalState:
        return LocalState(w0, np.zeros_like(u0))

    def step(self, problem: Problem, state: LocalState) -> None:
        if state.reach:  # longer proximal steps refine iterative minimisers
            state.reach = min(100 * state.reach, _MOST_REACH)
            step = problem.loss.steps(state.reach)
            state.w = problem.loss.prox(state.w, step, start=state.w)
        else:
            state.w = problem.loss.minimise()
            state.reach = 1e8

    def promising(self, problem: Problem, state: LocalState, tol: float) -> bool:
        return True

    def doubtful(self, state: LocalState) -> bool:
        """The longest steps lead to a minimiser, if there is one."""
        return state.reach >= _MOST_REACH
