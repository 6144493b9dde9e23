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
from nefele.program import run_alone
from nefele.solvers.base import Solver, State, settled
from nefele.solvers.steps import typical_sizes
from nefele.solvers.updates import dual, primal

_SAFE = 0.99  # the condition on the steps is a strict inequality
_LONG = 1e6  # step of a node without edges, in units of 1 / curvature


@dataclass
class StochasticState(State):
    """Steps, random edges, and the extrapolated flow."""

    ahead: Array  # v, the flow extrapolated
    batch: int  # edges per iteration
    rng: np.random.Generator  # draws them
    tau: Array
    sigma: Array


@dataclass
class StochasticPrimalDual(Solver[StochasticState]):
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

    kept = ("ahead",)

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

    def init(self, problem: Problem, w0: Array, u0: Array) -> StochasticState:
        graph, loss = problem.graph, problem.loss
        alone = (graph.degree == 0) | (not problem.coupled)
        w = settled(problem, w0, alone)
        u = np.zeros_like(u0)
        batch = max(1, round(self.fraction * graph.n_edges))
        tau, sigma = np.ones(graph.n_nodes), np.ones(graph.n_edges)
        if problem.coupled:
            tau, sigma = self._steps(problem, batch)
            # A first step of all edges: a flow given from outside may be outside its ball.
            u = dual(problem.penalty, u0, graph.diff(w), problem.scale, sigma)
        tau = np.where(alone, loss.steps(_LONG), tau)
        rng = np.random.default_rng(self.seed)
        return StochasticState(w, u, ahead=u, batch=batch, rng=rng, tau=tau, sigma=sigma)

    def _steps(self, problem: Problem, batch: int) -> tuple[Array, Array]:
        graph = problem.graph
        unit, force = run_alone(typical_sizes(problem))
        size, gamma = np.minimum(problem.scale, force), self.gamma or unit
        total = graph.at_ends(size)
        c = size / 2 * (1 / total[graph.head] + 1 / total[graph.tail])
        p, q = batch / graph.n_edges, (batch - 1) / max(graph.n_edges - 1, 1)
        sigma = _SAFE * p / ((1 - q) * c + q) * size / (2 * gamma)
        return gamma / np.where(total > 0, total, 1.0), sigma

    def step(self, problem: Problem, state: StochasticState) -> None:
        graph = problem.graph
        state.w = primal(problem.loss, state.w, graph.div(state.ahead), state.tau)
        if not problem.coupled:
            return
        edges = np.sort(state.rng.choice(graph.n_edges, state.batch, replace=False))
        diff = state.w[graph.head[edges]] - state.w[graph.tail[edges]]
        before, scale = state.u[edges], problem.scale[edges]
        penalty = problem.penalty.at(edges)
        after = dual(penalty, before, diff, scale, state.sigma[edges])
        state.u = state.u.copy()
        state.u[edges] = after
        state.ahead = state.u.copy()
        state.ahead[edges] += (after - before) * (graph.n_edges / state.batch)

    def scalars(self, state: StochasticState) -> dict[str, Any]:
        return {"rng": state.rng.bit_generator.state}

    def resume(
        self,
        problem: Problem,
        state: StochasticState,
        scalars: dict[str, Any],
        arrays: dict[str, Array],
    ) -> None:
        super().resume(problem, state, scalars, arrays)
        state.rng.bit_generator.state = scalars["rng"]
