"""FedRelax on parameters: every node refits with its neighbours' models as a prior.

Jung et al., "Towards Model-Agnostic Federated Learning over Networks" (AGN), Algorithms 1-3, for
models given by their parameters. The printed update (10)-(11) has lam/2 per neighbour; the one
here has the factor that makes its fixed point the minimiser of the problem it was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count, check_name, check_number
from nefele.certificate import Certificate
from nefele.certificate.posed import Posed
from nefele.graph import Graph
from nefele.penalties import Quadratic, SquaredL2
from nefele.problem import Problem
from nefele.solvers.base import Solver, State, settled
from nefele.solvers.updates import Prox, refit

_LONG = 1e6  # step of a node without edges, in units of 1 / curvature
_NOISY = 100  # iterations with noise when the caller gives no max_iter


@dataclass
class RelaxState(State):
    """The nodes that move together, their steps, and the noise of their updates."""

    step: Array  # of each node's prox
    blocks: list[Block]  # one after the other
    rng: np.random.Generator


@dataclass
class FedRelax(Solver[RelaxState]):
    """w_i <- argmin_w L_i(w) + lam sum_j A_ij phi(w - w_j), phi quadratic (AGN, Algorithm 1).

    For `SquaredL2` this is the loss's prox with step 1/(lam d_i) at the weighted mean of the
    neighbours, d_i the weighted degree. For `Quadratic(Q)` it is the prox with step
    1/(lam d_i q) at w_i - (1/(d_i q)) sum_j A_ij Q (w_i - w_j), q the largest eigenvalue of Q:
    the penalty is replaced by its majorant with the curvature q, which has the same fixed point.

    With L_i sigma_i-strongly convex and `SquaredL2` the largest error over the nodes shrinks by
    max_i 1/(1 + sigma_i/(lam d_i)) per iteration at least. Nodes without data, and strong coupling,
    make this factor (nearly) 1: slow, use solver="quadratic_cg" or "auto". Where some direction is
    in no node's data at all, "jacobi" from a w0 that has such a part may alternate for ever on a
    bipartite graph; "gauss-seidel" does not.

    Parameters
    ----------
    schedule : {"jacobi", "gauss-seidel"}
        All nodes at once, or one colour of a greedy colouring after the other, each with the
        newest models of its neighbours; an iteration is one update of every node.
    noise : float
        Standard deviation sigma of Gaussian noise that is added to every parameter of every
        update: Algorithm 5 of the lecture notes on federated learning, as printed. The next update
        starts from the noisy parameters. It is no guarantee of privacy, since nothing bounds what
        a row may change, and the status of the result says so. Exactly `max_iter` iterations are
        done (100 unless you say so), whatever `tol`: there is no point to converge to.
    seed : int, optional
        Of the noise; default: the system's generator.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=1.0)
    >>> solve(problem, solver="fedrelax").w.round(3).tolist()
    [[1.0], [3.0]]
    >>> solve(problem, FedRelax(noise=0.1, seed=0), max_iter=20).status.value
    'perturbed, no guarantee'
    """

    schedule: str = "jacobi"
    noise: float = 0.0
    seed: int | None = None

    def __post_init__(self) -> None:
        check_name(self.schedule, ("jacobi", "gauss-seidel"), "schedule")
        self.noise = check_number(self.noise, "noise", low=0.0, advice="It is a deviation.")
        if self.seed is not None:
            self.seed = check_count(self.seed, "seed")
        if self.perturbed:
            self.max_iter = _NOISY

    @property
    def perturbed(self) -> bool:
        """Whether updates carry noise."""
        return self.noise > 0

    def check(self, problem: Problem) -> None:
        if not isinstance(problem.penalty, SquaredL2 | Quadratic):
            raise ValueError(
                f"FedRelax needs SquaredL2 or Quadratic; got {type(problem.penalty).__name__}. "
                'Use solver="auto".'
            )

    def init(self, problem: Problem, w0: Array, u0: Array) -> RelaxState:
        graph = problem.graph
        step, w = prox_steps(problem, w0)
        if self.schedule == "jacobi":
            blocks = [Block(problem, np.arange(graph.n_nodes), problem.loss.prox)]
        else:
            blocks = [Block.of(problem, nodes) for nodes in colours(graph)]
        return RelaxState(w, u0, step, blocks, np.random.default_rng(self.seed))

    def step(self, problem: Problem, state: RelaxState) -> None:
        w = state.w
        for block in state.blocks:
            new = block.update(problem, w, state.step[block.nodes])
            if self.perturbed:
                new = new + self.noise * state.rng.standard_normal(new.shape)
            if len(new) == len(w):
                w = new
            else:
                w = w.copy() if w is state.w else w
                w[block.nodes] = new
        state.w = w

    def point(self, problem: Problem, state: RelaxState) -> tuple[Array, Array]:
        return state.w, problem.smooth_flow(state.w)

    def certify(
        self, problem: Problem, state: RelaxState, *, tol: float, exact: bool
    ) -> tuple[Array, Certificate]:
        """The flow of a smooth penalty is its gradient."""
        return state.w, problem.certificate(state.w, problem.smooth_flow(state.w))

    def scalars(self, state: RelaxState) -> dict[str, Any]:
        return {"rng": state.rng.bit_generator.state} if self.perturbed else {}

    def resume(
        self,
        problem: Problem,
        state: RelaxState,
        scalars: dict[str, Any],
        arrays: dict[str, Array],
    ) -> None:
        super().resume(problem, state, scalars, arrays)
        if self.perturbed:
            state.rng.bit_generator.state = scalars["rng"]


def prox_steps(problem: Posed, w0: Array) -> tuple[Array, Array]:
    """The step of each own node's prox, and where they start: alone, at their own minimum."""
    unit = problem.penalty.curvature(np.zeros((1, problem.d)))[0]
    degree = problem.graph.weighted_degree[problem.own]
    pull = problem.lam * degree * float(np.linalg.eigvalsh(unit)[-1])
    alone = pull == 0
    w = settled(problem, w0, alone)
    return np.where(alone, problem.loss.steps(_LONG), 1 / np.where(alone, 1.0, pull)), w


class Block:
    """Nodes that move together, none of them neighbours unless all nodes move together."""

    def __init__(self, problem: Posed, nodes: NDArray[np.int64], prox: Prox) -> None:
        graph = problem.graph
        self.nodes, self.prox = nodes, prox
        self.adjacency = problem.lam * graph.adjacency[nodes]
        self.degree = problem.lam * graph.weighted_degree[nodes, None]

    @classmethod
    def of(cls, problem: Problem, nodes: NDArray[np.int64]) -> Block:
        """The block of these nodes, with their own losses only."""
        return cls(problem, nodes, _own_prox(problem, nodes))

    def update(self, problem: Posed, w: Array, step: Array, outside: Array | float = 0.0) -> Array:
        """New parameters of these nodes; of w only they and their neighbours matter.

        Of neighbours that are zero in w their sum, lam sum_j A_ij w_j, is enough: `outside`.
        """
        return refit(self.prox, w[self.nodes], self.slope(problem, w, outside), step)

    def slope(self, problem: Posed, w: Array, outside: Array | float = 0.0) -> Array:
        """Gradient of lam sum_j A_ij phi(w_i - w_j), which is linear in the differences."""
        around = self.adjacency @ w + outside
        return problem.penalty.gradient(self.degree * w[self.nodes] - around)


def contraction(problem: Posed) -> float:
    """max_i 1/(1 + sigma_i/(lam d_i)): by what an iteration shrinks the largest error at least.

    Of a part of a problem the largest over its own nodes.

    sigma_i is the modulus of strong convexity of L_i. 1 says that no factor is proven (a node
    without data or with fewer rows than parameters): slow, not divergent. NaN for `Quadratic`,
    whose update is that of a majorant.
    """
    if not isinstance(problem.penalty, SquaredL2):
        return float("nan")
    pull = problem.lam * problem.graph.weighted_degree[problem.own]
    sigma, size = problem.loss.strong_convexity(), problem.loss.curvature()
    sigma = np.where(sigma > 1e-12 * size, sigma, 0.0)  # what is left of rounding proves nothing
    on = pull > 0
    return float((pull[on] / (pull[on] + sigma[on])).max(initial=0.0))


def _own_prox(problem: Problem, nodes: NDArray[np.int64]) -> Prox:
    """The prox of these nodes' losses; of all nodes' where the loss cannot be split."""
    loss = problem.loss
    try:
        return loss.restrict(nodes).prox
    except TypeError:
        pass

    def prox(v: Array, step: Array, start: Array) -> Array:
        full, steps = np.zeros((loss.n_nodes, loss.d)), np.ones(loss.n_nodes)
        full[nodes], steps[nodes] = v, step
        return loss.prox(full, steps)[nodes]

    return prox


def colours(graph: Graph) -> list[NDArray[np.int64]]:
    """Greedy colouring: each node takes the least colour that no earlier neighbour has."""
    near, ptr = graph.adjacency.indices, graph.adjacency.indptr
    colour = np.full(graph.n_nodes, -1)
    for i in range(graph.n_nodes):
        taken = set(colour[near[ptr[i] : ptr[i + 1]]].tolist())
        colour[i] = next(c for c in range(len(taken) + 1) if c not in taken)
    return [np.flatnonzero(colour == c) for c in range(int(colour.max()) + 1)]
