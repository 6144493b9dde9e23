"""NFL Algorithm 1 as message passing: nodes and edges that know only what they are sent.

A twin of the vectorised solver for tests and teaching, under faults if one likes. A node holds its
own data and never sends more than its parameters; an edge holds its flow and never sees data. The
edge is the only owner of its flow: nodes know what it last told them, so that no two copies can
go different ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nefele._checks import Array, check_count, check_name, check_number
from nefele.problem import Problem
from nefele.result import relative_gap
from nefele.runtime.faults import Faults, Post
from nefele.runtime.messages import Ledger, Message
from nefele.runtime.sites import Edge, Error, Node, build
from nefele.solvers import PrimalDual

ProxError = float | Callable[[int], float]


@dataclass(frozen=True, eq=False)
class MessageRun:
    """Where message passing ended, what it sent, and what was missing.

    Attributes
    ----------
    problem : Problem
    w : array of shape (n_nodes, d)
        Parameters of the nodes.
    u : array of shape (n_edges, d)
        Flows of the edges.
    ledger : Ledger
        Messages by content and edge; lost, late and inactive counts.
    steps : int array of shape (n_nodes,)
        Updates that each node has made; without faults one per round.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> run = pass_messages(problem, 200, faults=Faults(link_loss=0.3))
    >>> run.gap < 1e-6, int(run.steps.max()) < 200, run.missing["late"]
    (True, True, 0)
    """

    problem: Problem = field(repr=False)
    w: Array = field(repr=False)
    u: Array = field(repr=False)
    ledger: Ledger = field(repr=False)
    steps: np.ndarray = field(repr=False)

    @property
    def n_messages(self) -> int:
        """Messages sent."""
        return self.ledger.messages

    @property
    def n_bytes(self) -> int:
        """Bytes sent."""
        return self.ledger.bytes

    @property
    def missing(self) -> dict[str, int]:
        """Lost and late messages, and rounds that nodes sat out."""
        return self.ledger.missing

    @cached_property
    def gap(self) -> float:
        """Certified relative gap of w, proven with the flow u; inf when these are not finite."""
        if not (np.isfinite(self.w).all() and np.isfinite(self.u).all()):
            return np.inf
        found = self.problem.certificate(self.w, self.u)
        return relative_gap(self.problem, found.objective, found.gap_abs)


def pass_messages(
    problem: Problem,
    n_iter: int,
    solver: PrimalDual | None = None,
    *,
    faults: Faults | None = None,
    exchange: str = "wait",
    prox_error: ProxError | None = None,
    seed: int = 0,
) -> MessageRun:
    """Run Algorithm 1 for n_iter rounds with separate node and edge objects.

    Parameters
    ----------
    problem : Problem
    n_iter : int
        Number of rounds; without faults each sends two messages per edge and direction.
    solver : PrimalDual, optional
        Whose steps to use; default: as printed in the paper.
    faults : Faults, optional
        What goes wrong. An edge is a site of its own that is always online; its links are not.
    exchange : {"wait", "latest"}
        What a site does when something it needs has not come, or was refused since it was not
        finite. "wait": it repeats what it last said until the answer, which acknowledges it, and
        moves only then. The steps are those of a run without faults, so it converges whatever is
        lost; it only takes longer. "latest": nodes go on with the flows they know, and an edge
        moves in the rounds in which it hears both ends. Nobody waits for a node that is gone;
        there is no proof, and when about half of all messages are lost it may not converge.
    prox_error : float or callable, optional
        Size of the error in step k of every node, in a random direction: a constant, or a
        function of k = 1, 2, ... The method tolerates errors with a finite sum, such as 1/k^2.
    seed : int
        Of the directions of these errors.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> run = pass_messages(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0), 100)
    >>> run.w.round(6).tolist(), run.n_messages
    ([[0.5], [3.5]], 400)
    """
    n_iter = check_count(n_iter, "n_iter", low=1)
    check_name(exchange, ("wait", "latest"), "exchange")
    solver = PrimalDual.as_printed() if solver is None else solver
    network = _Network(problem, solver, faults, exchange == "wait", _errors(prox_error, seed))
    for k in range(1, n_iter + 1):
        network.round(k)
    return network.result()


class _Network:
    """All nodes and edges. Links 2e, 2e+1: edge e to its head, tail; then the ways back."""

    def __init__(
        self,
        problem: Problem,
        solver: PrimalDual,
        faults: Faults | None,
        wait: bool,
        error: Error,
    ) -> None:
        graph = problem.graph
        self.problem, self.wait = problem, wait
        self.ends = np.stack([graph.head, graph.tail], axis=1)
        self.nodes, self.edges = build(problem, solver, error)
        back = np.full(2 * graph.n_edges, -1)
        self.post = Post(np.concatenate([self.ends.ravel(), back]), faults, graph.ids)

    def round(self, k: int) -> None:
        """Flows to the nodes, the nodes' steps, parameters to the edges, the edges' steps."""
        self.post.begin(k)
        for e, edge in enumerate(self.edges):
            self.announce(e, edge)
        for link, message in self.post.deliver_from(0, 2 * len(self.edges)):
            node = self.nodes[self.ends[link // 2, link % 2]]
            node.hear(link // 2, message.round, message.payload)
        for i, node in enumerate(self.nodes):
            if self.post.moving[i]:
                if not self.wait or node.ready():
                    node.step()
                self.answer(i, node)
        fresh = np.zeros((len(self.edges), 2), dtype=bool)
        for link, message in self.post.deliver_from(2 * len(self.edges), 4 * len(self.edges)):
            e, end = divmod(link - 2 * len(self.edges), 2)
            self.edges[e].hear(end, message.round, message.payload)
            # Said in this round, which a time stamp would tell the edge.
            fresh[e, end] |= message.round == self.nodes[self.ends[e, end]].steps
        for e, edge in enumerate(self.edges):
            if all(n > edge.steps for n, _ in edge.heard) if self.wait else fresh[e].all():
                edge.step()

    def announce(self, e: int, edge: Edge) -> None:
        """Tell the ends the flow; those that have answered it need it no more."""
        for end, i in enumerate(self.ends[e].tolist()):
            if not self.wait or edge.heard[end][0] <= edge.steps:
                name = self.nodes[i].name
                message = Message(edge.name, name, edge.steps, "dual", edge.u, edge.name)
                self.post.send(2 * e + end, message)

    def answer(self, i: int, node: Node) -> None:
        """Tell the edges the parameters, in case they have not followed the last step yet."""
        for e, (number, _) in node.flows.items():
            if node.steps and (not self.wait or number < node.steps):
                edge = self.edges[e].name
                message = Message(node.name, edge, node.steps, "parameters", node.said, edge)
                self.post.send(2 * len(self.edges) + 2 * e + int(self.ends[e, 1] == i), message)

    def result(self) -> MessageRun:
        d = self.problem.d
        w = np.concatenate([node.w1 for node in self.nodes])
        u = np.concatenate([edge.u1 for edge in self.edges] or [np.zeros((0, d))])
        steps = np.array([node.steps for node in self.nodes])
        return MessageRun(self.problem, w, u, self.post.ledger, steps)


def _errors(prox_error: ProxError | None, seed: int) -> Error:
    """Error of node i in its step k: of the given size, in a direction drawn from the seed."""
    if prox_error is None:
        return lambda i, k, w: np.zeros_like(w)
    size: Callable[[int], float]
    if callable(prox_error):
        size = prox_error
    else:
        constant = check_number(prox_error, "prox_error", low=0.0)

        def size(k: int) -> float:
            return constant

    def error(i: int, k: int, w: Array) -> Array:
        way = np.random.default_rng([seed, i, k]).standard_normal(w.shape)
        return float(size(k)) * way / np.linalg.norm(way)

    return error
