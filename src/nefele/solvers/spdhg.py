"""Stochastic primal-dual hybrid gradients: only some random edges are used in an iteration.

Chambolle, Ehrhardt, Richtarik and Schoenlieb, "Stochastic Primal-Dual Hybrid Gradient Algorithm
with Arbitrary Sampling and Imaging Applications" (SIAM J. Optim. 2018), Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import Array, check_count, check_number
from nefele.problem import Problem
from nefele.solvers.base import Solver, State
from nefele.solvers.primal_dual import typical_sizes

_SAFE = 0.99  # the condition on the steps is a strict inequality
_LONG = 1e6  # step of a node without edges, in units of 1 / curvature


@dataclass
class StochasticPrimalDual(Solver):
    """w+ = PU(w - tau D^T v), u_e+ = DU(u_e + sigma_e (D w+)_e) at random edges e, v extrapolated.

    v = u+ + (u+ - u)/p with p = b / n_edges the probability of an edge. Each iteration draws b
    distinct edges, all sets of b equally likely; the flow of the others stays. It models links
    that fail: b = fraction * n_edges of them work at a time, and nobody knows which are next.

    Steps tau_i = gamma / F_i and sigma_e = s_e f_e / (2 gamma), f_e the expected size of the flow
    and F_i its sum over the edges of i. With B_e = tau^(1/2) D_e^T sigma_e^(1/2) the paper asks for
    E ||sum_{e in S} B_e z_e||^2 <= sum_e p v_e ||z_e||^2 with v_e < p, S the edges drawn. Here the
    left side is p (1 - q) sum_e ||B_e z_e||^2 + p q ||sum_e B_e z_e||^2, q = (b - 1)/(n_edges - 1),
    so v_e = s_e ((1 - q) c_e + q) will do with c_e = f_e (1/F_i + 1/F_j)/2 <= 1; s_e is chosen to
    make it 0.99 p. With fraction=1 the method is the deterministic one, flow extrapolated.

    Iterations are as dear as deterministic ones, for the nodes all move: fewer edges mean more
    iterations, not less work. Convergence is almost sure, and slow for a small fraction.

    Parameters
    ----------
    fraction : float
        Share of the edges per iteration, in (0, 1]; at least one edge.
    gamma : float, optional
        Step scale; default: the spread of the local fits.
    seed : int
        Of the random edges.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1), (1, 2)]), data, penalty="l2", lam=1.0)
    >>> solve(problem, solver="spdhg").w.round(3).tolist()
    [[0.5], [3.75], [3.75]]
    """

    fraction: float = 0.5
    gamma: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        check_number(self.fraction, "fraction")
        if not 0 < self.fraction <= 1:
            raise ValueError(f"fraction must be in (0, 1]; got {self.fraction!r}.")
        if self.gamma is not None:
            check_number(self.gamma, "gamma", low=0.0, strict=True)
        self.seed = check_count(self.seed, "seed")

    def init(self, problem: Problem, w0: Array, u0: Array) -> State:
        graph, loss = problem.graph, problem.loss
        alone = (graph.degree == 0) | (not problem.coupled)
        w = np.where(alone[:, None], loss.minimise(), w0) if alone.any() else w0.copy()
        state = State(w, np.zeros_like(u0))
        curvature = loss.curvature()
        state.extra.update(
            alone=alone,
            long=_LONG / np.where(curvature > 0, curvature, 1.0),
            batch=max(1, round(self.fraction * graph.n_edges)),
            rng=np.random.default_rng(self.seed),
            ahead=state.u,
        )
        if not problem.coupled:
            state.extra["tau"] = np.ones(graph.n_nodes)
            return state
        unit, force = typical_sizes(problem)
        state.extra.update(size=np.minimum(problem.scale, force), gamma=self.gamma or unit)
        self._set_steps(problem, state)
        # A first step of all edges: a flow given from outside may be outside its ball.
        sigma = state.extra["sigma"]
        first = u0 + sigma[:, None] * graph.diff(w)
        state.u = problem.penalty.prox_conjugate(first, problem.scale, sigma)
        state.extra["ahead"] = state.u
        return state

    def _set_steps(self, problem: Problem, state: State) -> None:
        extra, graph, size = state.extra, problem.graph, state.extra["size"]
        through = np.bincount(graph.head, size, graph.n_nodes)
        through += np.bincount(graph.tail, size, graph.n_nodes)
        c = size / 2 * (1 / through[graph.head] + 1 / through[graph.tail])
        p, q = extra["batch"] / graph.n_edges, (extra["batch"] - 1) / max(graph.n_edges - 1, 1)
        extra["sigma"] = _SAFE * p / ((1 - q) * c + q) * size / (2 * extra["gamma"])
        extra["tau"] = extra["gamma"] / np.where(through > 0, through, 1.0)

    def step(self, problem: Problem, state: State) -> None:
        extra, graph = state.extra, problem.graph
        tau = np.where(extra["alone"], extra["long"], extra["tau"])
        back = tau[:, None] * graph.div(extra["ahead"])
        state.w = problem.loss.prox(state.w - back, tau, start=state.w)
        if not problem.coupled:
            return
        edges = np.sort(extra["rng"].choice(graph.n_edges, extra["batch"], replace=False))
        diff = state.w[graph.head[edges]] - state.w[graph.tail[edges]]
        sigma, before = extra["sigma"][edges], state.u[edges]
        after = problem.penalty.prox_conjugate(
            before + sigma[:, None] * diff, problem.scale[edges], sigma
        )
        state.u = state.u.copy()
        state.u[edges] = after
        extra["ahead"] = state.u.copy()
        extra["ahead"][edges] += (after - before) * (graph.n_edges / extra["batch"])

    def scalars(self, state: State) -> dict[str, Any]:
        return {"rng": state.extra["rng"].bit_generator.state}

    def arrays(self, state: State) -> dict[str, Array]:
        return {"ahead": state.extra["ahead"]}

    def resume(
        self, problem: Problem, state: State, scalars: dict[str, Any], arrays: dict[str, Array]
    ) -> None:
        super().resume(problem, state, scalars, arrays)
        state.extra["rng"].bit_generator.state = scalars["rng"]
        state.extra["ahead"] = arrays["ahead"]
