"""NFL Algorithm 1 as message passing: nodes and edges that know only what they are sent.

A twin of the vectorised solver for tests and teaching. A node holds its own data and never sends
more than its parameters; an edge holds its flow and never sees data.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from nefele._checks import Array, check_count
from nefele.losses.base import BoundLoss
from nefele.penalties import Penalty
from nefele.problem import Problem
from nefele.solvers import PrimalDual

Address = tuple[str, int]


@dataclass
class Mailbox:
    """Delivers arrays between addresses and counts what is sent."""

    inbox: dict[Address, list[tuple[int, Array]]] = field(default_factory=lambda: defaultdict(list))
    n_messages: int = 0
    n_bytes: int = 0

    def send(self, to: Address, sender: int, payload: Array) -> None:
        """Put a copy of the payload into the receiver's inbox."""
        self.inbox[to].append((sender, payload.copy()))
        self.n_messages += 1
        self.n_bytes += payload.nbytes

    def collect(self, at: Address) -> list[tuple[int, Array]]:
        """Everything that has arrived, sorted by sender, and empty the inbox."""
        return sorted(self.inbox.pop(at, []), key=lambda item: item[0])


@dataclass
class Node:
    """A site with its own data: NFL Algorithm 1, steps 3 and 4."""

    number: int
    loss: BoundLoss
    tau: Array
    relax: float
    signs: dict[int, float]
    w: Array
    w1: Array

    def update(self, post: Mailbox) -> None:
        """Collect the flows of the edges here, update, send 2 w+ - w to them."""
        flow = np.zeros_like(self.w)
        for edge, u in post.collect(("node", self.number)):
            flow += self.signs[edge] * u
        self.w1 = self.loss.prox(self.w - self.tau * flow, self.tau, start=self.w)
        for edge in self.signs:
            post.send(("edge", edge), self.number, 2 * self.w1 - self.w)
        self.w = self.w + self.relax * (self.w1 - self.w)


@dataclass
class Edge:
    """A link between two sites: NFL Algorithm 1, steps 7 and 8."""

    number: int
    penalty: Penalty
    scale: Array
    sigma: Array
    relax: float
    ends: tuple[int, int]
    u: Array
    u1: Array

    def update(self, post: Mailbox) -> None:
        """Collect the parameters of both ends and update the flow."""
        values = dict(post.collect(("edge", self.number)))
        diff = values[self.ends[0]] - values[self.ends[1]]
        self.u1 = self.penalty.prox_conjugate(self.u + self.sigma * diff, self.scale, self.sigma)
        self.u = self.u + self.relax * (self.u1 - self.u)

    def announce(self, post: Mailbox) -> None:
        """Send the flow to both ends."""
        for end in self.ends:
            post.send(("node", end), self.number, self.u)


@dataclass(frozen=True, eq=False)
class MessageRun:
    """Where message passing ended, and what it sent.

    Attributes
    ----------
    w : array of shape (n_nodes, d)
        Parameters of the nodes.
    u : array of shape (n_edges, d)
        Flows of the edges.
    n_messages, n_bytes : int
        Number and total size of the messages.
    """

    w: Array
    u: Array
    n_messages: int
    n_bytes: int


def pass_messages(problem: Problem, n_iter: int, solver: PrimalDual | None = None) -> MessageRun:
    """Run Algorithm 1 for n_iter rounds with separate node and edge objects.

    Parameters
    ----------
    problem : Problem
    n_iter : int
        Number of rounds; each sends two messages per edge and direction.
    solver : PrimalDual, optional
        Whose steps to use; default: as printed in the paper.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> run = pass_messages(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0), 100)
    >>> run.w.round(6).tolist(), run.n_messages
    ([[0.5], [3.5]], 400)
    """
    n_iter = check_count(n_iter, "n_iter", low=1)
    solver = PrimalDual.as_printed() if solver is None else solver
    nodes, edges = _build(problem, solver)
    post = Mailbox()
    for _ in range(n_iter):
        for edge in edges:
            edge.announce(post)
        for node in nodes:
            node.update(post)
        for edge in edges:
            edge.update(post)
    w = np.concatenate([node.w1 for node in nodes])
    u = np.concatenate([edge.u1 for edge in edges] or [np.zeros((0, problem.d))])
    return MessageRun(w, u, post.n_messages, post.n_bytes)


def _build(problem: Problem, solver: PrimalDual) -> tuple[list[Node], list[Edge]]:
    graph, d = problem.graph, problem.d
    start = solver.init(problem, np.zeros((graph.n_nodes, d)), np.zeros((graph.n_edges, d)))
    tau, sigma = start.extra["tau"], start.extra["sigma"]
    signs: list[dict[int, float]] = [{} for _ in range(graph.n_nodes)]
    for e, (head, tail) in enumerate(zip(graph.head.tolist(), graph.tail.tolist(), strict=True)):
        signs[head][e], signs[tail][e] = 1.0, -1.0
    nodes = [
        Node(
            i,
            problem.loss.restrict(np.array([i])),
            tau[i : i + 1],
            solver.relax,
            signs[i],
            start.w[i : i + 1],
            start.w[i : i + 1],
        )
        for i in range(graph.n_nodes)
    ]
    edges = [
        Edge(
            e,
            problem.penalty,
            problem.scale[e : e + 1],
            sigma[e : e + 1],
            solver.relax,
            (int(graph.head[e]), int(graph.tail[e])),
            start.u[e : e + 1],
            start.u[e : e + 1],
        )
        for e in range(graph.n_edges)
    ]
    return nodes, edges
