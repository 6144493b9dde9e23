"""Primal-dual iterations with a gradient step in place of the prox of the loss.

Condat, "A Primal-Dual Splitting Method for Convex Optimization Involving Lipschitzian, Proximable
and Linear Composite Terms" (2013), Algorithm 3.1; Vu, "A Splitting Algorithm for Dual Monotone
Inclusions Involving Cocoercive Operators" (2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_number
from nefele.problem import Problem
from nefele.program import run_alone
from nefele.solvers.base import Solver, State, settled
from nefele.solvers.steps import typical_sizes
from nefele.solvers.updates import ahead, dual

_MOST_DOUBLINGS = 60
_SLACK = 1e-10  # differences of gradients below this share of their terms are rounding errors


@dataclass
class GradientState(State):
    """Steps, and the gradient at w."""

    alone: NDArray[np.bool_]  # nodes without edges
    gamma: float  # scale of the steps
    size: Array  # expected size of the flow of each edge
    through: Array  # its sum at each node
    steep: Array  # Lipschitz constants of the gradients, as far as seen
    grad: Array  # at w


@dataclass
class PrimalDualGradient(Solver[GradientState]):
    """w+ = w - tau (grad L(w) + D^T u), u+ = DU(u + sigma D(2 w+ - w)) (Condat 2013, Vu 2013).

    Steps with l_i a Lipschitz constant of grad L_i and f_e the expected size of the flow,
    sigma_e = f_e / (2 gamma) and 1/tau_i = l_i + sum_e f_e / gamma, which is more than the
    condition 1/tau - ||sigma^(1/2) D||^2 > l/2 asks for.

    l_i starts as the largest eigenvalue of the Hessian of L_i at the start: for squared losses it
    is the constant. For other losses it is doubled whenever two successive gradients differ by
    more than l_i times the step (backtracking per node; the iteration is then repeated), so the
    condition holds along the iterates, not for all w. A loss without `hess` starts from
    `curvature`.

    No linear systems are solved, so iterations are cheap. Their number grows with the spread of
    the Hessians' eigenvalues, which the methods with a prox do not see: standardise the features.

    Parameters
    ----------
    gamma : float, optional
        Step scale; default: the spread of the local fits.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="l2", lam=1.0)
    >>> solve(problem, solver="pd_gradient").w.round(3).tolist()
    [[0.5], [3.5]]
    """

    kept = ("steep",)

    gamma: float | None = None

    def __post_init__(self) -> None:
        if self.gamma is not None:
            check_number(self.gamma, "gamma", low=0.0, strict=True)

    def check(self, problem: Problem) -> None:
        if not problem.loss.smooth:
            raise ValueError(
                "PrimalDualGradient needs a differentiable loss; got "
                f'{type(problem.loss).__name__}; use solver="auto".'
            )

    def init(self, problem: Problem, w0: Array, u0: Array) -> GradientState:
        graph, loss = problem.graph, problem.loss
        alone = (graph.degree == 0) | (not problem.coupled)
        w = settled(problem, w0, alone)
        unit, force = run_alone(typical_sizes(problem)) if problem.coupled else (1.0, 1.0)
        size = np.minimum(problem.scale, force)
        hess = loss.hess(w)
        steep = loss.curvature() if hess is None else np.linalg.eigvalsh(hess)[:, -1]
        return GradientState(
            w,
            np.zeros_like(u0) if alone.all() else u0.copy(),
            alone=alone,
            gamma=self.gamma or unit,
            size=size,
            through=graph.at_ends(size),
            steep=np.where(loss.labelled, np.maximum(steep, 0.0), 0.0),
            grad=loss.grad(w),
        )

    def step(self, problem: Problem, state: GradientState) -> None:
        if not problem.coupled:
            return
        graph, loss = problem.graph, problem.loss
        w, u, grad = state.w, state.u, state.grad
        slope = np.where(state.alone[:, None], 0.0, grad + graph.div(u))
        for _ in range(_MOST_DOUBLINGS):
            tau = _inverse(state.steep + state.through / state.gamma)
            w1 = w - tau[:, None] * slope
            grad1 = loss.grad(w1)
            move, change = np.linalg.norm(w1 - w, axis=1), np.linalg.norm(grad1 - grad, axis=1)
            size = np.linalg.norm(grad, axis=1) + state.steep * np.linalg.norm(w, axis=1)
            fine = change <= (1 + _SLACK) * state.steep * move + _SLACK * size
            if fine.all():
                break
            steep = np.where(state.steep > 0, 2 * state.steep, _inverse(tau))
            state.steep = np.where(fine, state.steep, steep)
        sigma = state.size / (2 * state.gamma)
        state.u = dual(problem.penalty, u, graph.diff(ahead(w, w1)), problem.scale, sigma)
        state.w, state.grad = w1, grad1

    def resume(
        self,
        problem: Problem,
        state: GradientState,
        scalars: dict[str, Any],
        arrays: dict[str, Array],
    ) -> None:
        super().resume(problem, state, scalars, arrays)
        state.grad = problem.loss.grad(state.w)


def _inverse(values: Array) -> Array:
    """1 / values, zero where the value is zero: a node that nothing moves."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
