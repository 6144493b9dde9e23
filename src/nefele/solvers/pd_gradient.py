"""Primal-dual iterations with a gradient step in place of the prox of the loss.

Condat, "A Primal-Dual Splitting Method for Convex Optimization Involving Lipschitzian, Proximable
and Linear Composite Terms" (2013), Algorithm 3.1; Vu, "A Splitting Algorithm for Dual Monotone
Inclusions Involving Cocoercive Operators" (2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import Array, check_number
from nefele.problem import Problem
from nefele.solvers.base import Solver, State
from nefele.solvers.primal_dual import typical_sizes

_MOST_DOUBLINGS = 60
_SLACK = 1e-10  # differences of gradients below this share of their terms are rounding errors


@dataclass
class PrimalDualGradient(Solver):
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

    def init(self, problem: Problem, w0: Array, u0: Array) -> State:
        graph, loss = problem.graph, problem.loss
        alone = (graph.degree == 0) | (not problem.coupled)
        w = np.where(alone[:, None], loss.minimise(), w0) if alone.any() else w0.copy()
        state = State(w, np.zeros_like(u0) if alone.all() else u0.copy())
        unit, force = typical_sizes(problem) if problem.coupled else (1.0, 1.0)
        size = np.minimum(problem.scale, force)
        hess = loss.hess(w)
        steep = loss.curvature() if hess is None else np.linalg.eigvalsh(hess)[:, -1]
        state.extra.update(
            alone=alone,
            gamma=self.gamma or unit,
            size=size,
            through=np.bincount(graph.head, size, graph.n_nodes)
            + np.bincount(graph.tail, size, graph.n_nodes),
            steep=np.where(loss.labelled, np.maximum(steep, 0.0), 0.0),
            grad=loss.grad(w),
        )
        return state

    def step(self, problem: Problem, state: State) -> None:
        if not problem.coupled:
            return
        extra, graph, loss = state.extra, problem.graph, problem.loss
        w, u, grad = state.w, state.u, extra["grad"]
        slope = np.where(extra["alone"][:, None], 0.0, grad + graph.div(u))
        for _ in range(_MOST_DOUBLINGS):
            tau = _inverse(extra["steep"] + extra["through"] / extra["gamma"])
            w1 = w - tau[:, None] * slope
            grad1 = loss.grad(w1)
            move, change = np.linalg.norm(w1 - w, axis=1), np.linalg.norm(grad1 - grad, axis=1)
            size = np.linalg.norm(grad, axis=1) + extra["steep"] * np.linalg.norm(w, axis=1)
            fine = change <= (1 + _SLACK) * extra["steep"] * move + _SLACK * size
            if fine.all():
                break
            steep = np.where(extra["steep"] > 0, 2 * extra["steep"], _inverse(tau))
            extra["steep"] = np.where(fine, extra["steep"], steep)
        sigma = extra["size"] / (2 * extra["gamma"])
        v = u + sigma[:, None] * graph.diff(2 * w1 - w)
        state.w, extra["grad"] = w1, grad1
        state.u = problem.penalty.prox_conjugate(v, problem.scale, sigma)

    def arrays(self, state: State) -> dict[str, Array]:
        return {"steep": state.extra["steep"]}

    def resume(
        self, problem: Problem, state: State, scalars: dict[str, Any], arrays: dict[str, Array]
    ) -> None:
        super().resume(problem, state, scalars, arrays)
        state.extra.update(steep=arrays["steep"], grad=problem.loss.grad(state.w))


def _inverse(values: Array) -> Array:
    """1 / values, zero where the value is zero: a node that nothing moves."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
