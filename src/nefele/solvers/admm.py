"""The alternating direction method of multipliers, split over the edges.

Hallac, Leskovec and Boyd, "Network Lasso: Clustering and Optimization in Large Graphs" (KDD 2015);
residual balancing: Boyd et al., "Distributed Optimization and Statistical Learning via
the Alternating Direction Method of Multipliers" (2011), Sec. 3.4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_number
from nefele.problem import Problem
from nefele.solvers.base import Solver, State, settled

_EVERY = 10  # iterations between two looks at the residuals
_APART = 3.0  # ratio of the residuals from which rho changes
_MOST_CHANGES = 100  # of rho: the method converges for any rho that stays the same in the end
_LONG = 1e6  # step of a node without edges, in units of 1 / curvature


@dataclass
class ADMMState(State):
    """Copies of the parameters at the edges, and their weight."""

    rho: float  # weight of the copies
    head: Array  # copies z_ie of the heads' parameters, shape (n_edges, d)
    tail: Array  # and of the tails'
    alone: NDArray[np.bool_]  # nodes without edges
    long: Array  # steps of these
    ends: Any  # |D^T|: sums over the edges of each node
    k: int = 0  # iterations done
    changes: int = 0  # how often rho has changed


@dataclass
class ADMM(Solver[ADMMState]):
    """Network Lasso's ADMM: a copy z_ie of w_i at each edge e of node i, each with a multiplier.

    With y_ie the scaled multipliers::

        w_i  <- argmin L_i(w) + rho/2 sum_e ||w - z_ie + y_ie||^2
        z_e  <- argmin lam A_e phi(z_ie - z_je) + rho/2 (||w_i - z_ie + y_ie||^2 + the same for j)
        y_ie <- y_ie + w_i - z_ie

    The first line is a prox with step 1/(rho degree_i) at the mean of z_ie - y_ie. In the second
    z_ie + z_je stays what w_i + y_ie + w_j + y_je is and the difference is a prox of phi with step
    2 lam A_e / rho. After the third y_je = -y_ie, and u_e = rho y_ie is the flow of the dual
    problem, inside its ball; it is computed by the penalty's dual update, which Moreau's identity
    makes the same. Nodes without edges take their local minimisers.

    The number of iterations depends on rho: balancing mends a poor choice, at the price of the
    iterations it takes to see it.

    Parameters
    ----------
    rho : float, optional
        Weight of the copies at the start; default: mean curvature of the losses / mean degree.
    balance : bool
        Double or halve rho when one of the residuals of copies and multipliers is much larger.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="l2", lam=1.0)
    >>> solve(problem, solver="admm").w.round(3).tolist()
    [[0.5], [3.5]]
    """

    kept = ("rho", "k", "changes", "head", "tail")

    rho: float | None = None
    balance: bool = True

    def __post_init__(self) -> None:
        if self.rho is not None:
            check_number(self.rho, "rho", low=0.0, strict=True)

    def init(self, problem: Problem, w0: Array, u0: Array) -> ADMMState:
        graph, curvature = problem.graph, problem.loss.curvature()
        alone = (graph.degree == 0) | (not problem.coupled)
        w = settled(problem, w0, alone)
        u = np.zeros_like(u0) if alone.all() else u0.copy()
        known = curvature > 0
        default = float(curvature[known].mean()) if known.any() else 1.0
        default /= float(graph.degree[~alone].mean()) if not alone.all() else 1.0
        return ADMMState(
            w,
            u,
            rho=self.rho or default,
            head=w[graph.head],
            tail=w[graph.tail],
            alone=alone,
            long=problem.loss.steps(_LONG),
            ends=abs(graph.incidence_t),
        )

    def step(self, problem: Problem, state: ADMMState) -> None:
        graph, rho, alone = problem.graph, state.rho, state.alone
        step = np.where(alone, state.long, 1 / (rho * np.maximum(graph.degree, 1)))
        # Sums over the edges of each node: |D^T| (head + tail)/2 + D^T (head - tail)/2 - D^T y.
        both, apart = state.head + state.tail, state.head - state.tail
        copies = state.ends @ (both / 2) + graph.div(apart / 2 - state.u / rho)
        mean = copies / np.maximum(graph.degree, 1)[:, None]
        state.w = problem.loss.prox(np.where(alone[:, None], state.w, mean), step, start=state.w)
        if not problem.coupled:
            return
        a = state.w[graph.head] + state.u / rho
        b = state.w[graph.tail] - state.u / rho
        half = np.full(graph.n_edges, rho / 2)
        state.u = problem.penalty.prox_conjugate((rho / 2) * (a - b), problem.scale, half)
        before = state.head, state.tail
        state.head, state.tail = a - state.u / rho, b + state.u / rho
        state.k += 1
        if self.balance and state.k % _EVERY == 0 and state.changes < _MOST_CHANGES:
            _balance(problem, state, *before)

    def resume(
        self, problem: Problem, state: ADMMState, scalars: dict[str, Any], arrays: dict[str, Array]
    ) -> None:
        super().resume(problem, state, scalars, arrays)
        check_number(scalars["rho"], "rho", low=0.0, strict=True)


def _balance(problem: Problem, state: ADMMState, head: Array, tail: Array) -> None:
    """Boyd et al. (3.13): residuals w_i - z_ie of the copies, rho (z+ - z) of the multipliers.

    The state keeps u = rho y, so that y is rescaled along with rho.
    """
    graph = problem.graph
    primal = np.hypot(
        np.linalg.norm(state.w[graph.head] - state.head),
        np.linalg.norm(state.w[graph.tail] - state.tail),
    )
    dual = state.rho * np.hypot(
        np.linalg.norm(state.head - head), np.linalg.norm(state.tail - tail)
    )
    if primal > _APART * dual:
        state.rho, state.changes = 2 * state.rho, state.changes + 1
    elif dual > _APART * primal:
        state.rho, state.changes = state.rho / 2, state.changes + 1
