"""FedRelax on parameters as message passing, under faults (AGN, Algorithm 1).

Every node knows its own loss and what its neighbours last told it. The update is the solver's:
`nefele.solvers.FedRelax`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count
from nefele.problem import Problem
from nefele.result import relative_gap
from nefele.runtime.faults import Faults, Post
from nefele.runtime.links import Links
from nefele.runtime.messages import Ledger, Message
from nefele.solvers.fedrelax import Block, FedRelax, colours, contraction


@dataclass(frozen=True, eq=False)
class RelaxRun:
    """Where FedRelax ended, what it sent, what was missing, and what is proven of the error.

    Attributes
    ----------
    problem : Problem
    w : array of shape (n_nodes, d)
        Parameters of the nodes.
    ledger : Ledger
        Messages by content and edge; lost, late and inactive counts.
    n_rounds : int
    kappa : float
        Contraction factor max_i 1/(1 + sigma_i/(lam d_i)); 1 where nothing is proven, NaN for
        the `Quadratic` penalty.
    staleness : int
        B: no update used news older than B rounds, and no node rested longer than B rounds, as
        the run really went.
    factor : float
        kappa^floor(t/(2B+1)): the largest error over the nodes is at most this times the first.
    error_bound : float
        The same in absolute terms: factor * max_i ||T(w0)_i - w0_i|| / (1 - kappa), T one update
        of all nodes without faults; it bounds max_i ||w_i - w*_i||. Both are inf when an update
        of a node was not finite, of which nothing is proven.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=1.0)
    >>> run = relax_messages(problem, 50, faults=Faults(delay=2))
    >>> run.staleness, run.error_bound < 1e-3, run.gap < 1e-6
    (2, True, True)
    """

    problem: Problem = field(repr=False)
    w: Array = field(repr=False)
    ledger: Ledger = field(repr=False)
    n_rounds: int
    kappa: float
    staleness: int
    factor: float
    error_bound: float

    @property
    def speed(self) -> str:
        """What kappa says: "linear", "slow" when it is 1, or "unknown" for `Quadratic`."""
        if np.isnan(self.kappa):
            return "unknown"
        return "slow" if self.kappa >= 1 else "linear"

    @property
    def missing(self) -> dict[str, int]:
        """Lost and late messages, and rounds that nodes sat out."""
        return self.ledger.missing

    @cached_property
    def gap(self) -> float:
        """Certified relative gap of w; inf when w is not finite."""
        problem = self.problem
        if not np.isfinite(self.w).all():
            return np.inf
        found = problem.certificate(self.w, problem.smooth_flow(self.w))
        return relative_gap(problem, found.objective, found.gap_abs)


def relax_messages(
    problem: Problem, n_rounds: int, schedule: str = "jacobi", *, faults: Faults | None = None
) -> RelaxRun:
    """Run FedRelax for n_rounds rounds with messages between neighbours, from zero.

    A node that hears nothing new from a neighbour goes on with what it last heard. So it does when
    the news are not finite: it refuses them, and the ledger counts that.

    Parameters
    ----------
    problem : Problem
        With the penalty `SquaredL2` or `Quadratic`.
    n_rounds : int
    schedule : {"jacobi", "gauss-seidel"}
        All nodes at once, or one colour after the other with the newest news.
    faults : Faults, optional

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=1.0)
    >>> run = relax_messages(problem, 40, faults=Faults(link_loss=0.3, until=20))
    >>> run.w.round(6).tolist(), run.kappa < 0.34, run.speed
    ([[1.0], [3.0]], True, 'linear')
    """
    n_rounds = check_count(n_rounds, "n_rounds", low=1)
    solver = FedRelax(schedule)
    solver.check(problem)
    run = _Relaxation(problem, solver, faults)
    for k in range(1, n_rounds + 1):
        run.round(k)
    return run.result(n_rounds)


class _Relaxation:
    """All nodes and what each has heard."""

    def __init__(self, problem: Problem, solver: FedRelax, faults: Faults | None) -> None:
        graph, n = problem.graph, problem.graph.n_nodes
        zero = np.zeros((n, problem.d))
        state = solver.init(problem, zero, np.zeros((graph.n_edges, problem.d)))
        self.problem, self.solver = problem, solver
        self.w, self.step = state.w.copy(), state.step
        self.first = np.sqrt(((self._together(state.w) - state.w) ** 2).sum(axis=1)).max()
        self.blocks = [Block.of(problem, np.array([i])) for i in range(n)]
        self.groups: list[NDArray[np.int64]] = [np.arange(n)]
        self.hop = 1
        if solver.schedule != "jacobi":
            self.groups, self.hop = colours(graph), 0
        self.links = Links(graph)
        senders = self.links.senders
        # News per link: parameters and the round they were made in; all start from the same w.
        self.news, self.made = state.w[senders].copy(), np.zeros(len(senders), dtype=np.int64)
        self.moved, self.staleness, self.finite = np.zeros(n, dtype=int), 0, True
        self.post = Post(self.links.receivers, faults, graph.ids)
        self.ids = graph.ids.tolist()

    def _together(self, w: Array) -> Array:
        """One update of all nodes at once."""
        nodes = np.arange(len(w))
        return Block(self.problem, nodes, self.problem.loss.prox).update(self.problem, w, self.step)

    def round(self, k: int) -> None:
        self.post.begin(k)
        for group in self.groups:
            for link, message in self.post.deliver():
                if message.round >= self.made[link]:
                    self.news[link], self.made[link] = message.payload, message.round
            for i in group[self.post.moving[group]].tolist():
                self.update(i, k)
            for i in group[self.post.moving[group]].tolist():
                self.tell(i, k)

    def update(self, i: int, k: int) -> None:
        links = self.links.incoming[i]
        seen = np.zeros_like(self.w)
        seen[i], seen[self.links.senders[links]] = self.w[i], self.news[links]
        new = self.blocks[i].update(self.problem, seen, self.step[i : i + 1])
        # Made in round k - 1 is as fresh as can be; a node that moved in round k - 1 never rested.
        age = k - 1 - min(self.made[links].min(initial=k - 1), self.moved[i])
        self.staleness = max(self.staleness, int(age))
        self.w[i], self.moved[i] = new[0], k
        self.finite &= bool(np.isfinite(new).all())

    def tell(self, i: int, k: int) -> None:
        for link in self.links.outgoing[i].tolist():
            to = self.ids[self.links.receivers[link]]
            message = Message(self.ids[i], to, k, "parameters", self.w[i])
            self.post.send(link, message, self.hop)

    def result(self, n_rounds: int) -> RelaxRun:
        resting = n_rounds - int(self.moved.min())
        stale = max(self.staleness, resting)
        kappa = contraction(self.problem)
        factor = float(kappa ** (n_rounds // (2 * stale + 1))) if self.finite else np.inf
        bound = factor * self.first / (1 - kappa) if kappa < 1 else np.inf
        return RelaxRun(
            self.problem, self.w, self.post.ledger, n_rounds, kappa, stale, factor, float(bound)
        )
