"""The sites of NFL Algorithm 1: nodes with data, and edges that own their flows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.losses.base import BoundLoss
from nefele.penalties import Penalty
from nefele.problem import Problem
from nefele.solvers import PrimalDual
from nefele.solvers.primal_dual.plain import Plain
from nefele.solvers.updates import ahead, dual, primal, relaxed

Error = Callable[[int, int, Array], Array]


@dataclass
class Node:
    """A site with its own data: NFL Algorithm 1, steps 3 and 4."""

    name: Any
    loss: BoundLoss
    tau: Array
    relax: float
    signs: dict[int, float]
    w: Array
    w1: Array
    #: The newest flow of each edge here, and its number.
    flows: dict[int, tuple[int, Array]]
    error: Callable[[int, Array], Array]
    steps: int = 0
    said: Array = field(init=False)

    def __post_init__(self) -> None:
        self.said = self.w

    def hear(self, edge: int, number: int, u: Array) -> None:
        """Note a flow, unless a newer one has come before it."""
        if number >= self.flows[edge][0]:
            self.flows[edge] = (number, u)

    def ready(self) -> bool:
        """Whether the flows of all edges have followed the last step."""
        return all(number >= self.steps for number, _ in self.flows.values())

    def step(self) -> None:
        """Update from the known flows; what to tell the edges is 2 w+ - w."""
        flow = np.zeros_like(self.w)
        for edge in sorted(self.flows):
            flow += self.signs[edge] * self.flows[edge][1]
        self.steps += 1
        w1 = primal(self.loss, self.w, flow, self.tau)
        self.w1 = w1 + self.error(self.steps, w1)
        self.said = ahead(self.w, self.w1)
        self.w = relaxed(self.w, self.w1, self.relax)


@dataclass
class Edge:
    """A link between two sites: NFL Algorithm 1, steps 7 and 8."""

    name: tuple[Any, Any]
    penalty: Penalty
    scale: Array
    sigma: Array
    relax: float
    u: Array
    u1: Array
    steps: int = 0
    #: What head and tail last said, and in which of their steps.
    heard: list[tuple[int, Array]] = field(default_factory=list)

    def hear(self, end: int, number: int, x: Array) -> None:
        """Note what an end says, unless it has said something newer before."""
        if number >= self.heard[end][0]:
            self.heard[end] = (number, x)

    def step(self) -> None:
        """Update the flow from what both ends said."""
        diff = self.heard[0][1] - self.heard[1][1]
        self.u1 = dual(self.penalty, self.u, diff, self.scale, self.sigma)
        self.u = relaxed(self.u, self.u1, self.relax)
        self.steps += 1


def build(problem: Problem, solver: PrimalDual, error: Error) -> tuple[list[Node], list[Edge]]:
    """All nodes and edges of a problem, with the solver's start and steps."""
    graph, d = problem.graph, problem.d
    zeros = np.zeros((graph.n_nodes, d)), np.zeros((graph.n_edges, d))
    start = replace(solver, compiled=False).init(problem, *zeros).iteration
    assert isinstance(start, Plain)
    tau, sigma = start.tau, start.sigma
    signs: list[dict[int, float]] = [{} for _ in range(graph.n_nodes)]
    for e, (head, tail) in enumerate(zip(graph.head.tolist(), graph.tail.tolist(), strict=True)):
        signs[head][e], signs[tail][e] = 1.0, -1.0
    ids = graph.ids.tolist()

    def own_error(i: int) -> Callable[[int, Array], Array]:
        return lambda k, w: error(i, k, w)

    nodes = [
        Node(
            ids[i],
            problem.loss.restrict(np.array([i])),
            tau[i : i + 1],
            solver.relax,
            signs[i],
            start.w[i : i + 1],
            start.w[i : i + 1],
            {e: (-1, np.zeros((1, d))) for e in signs[i]},
            own_error(i),
        )
        for i in range(graph.n_nodes)
    ]
    edges = [
        Edge(
            (ids[graph.head[e]], ids[graph.tail[e]]),
            problem.penalty,
            problem.scale[e : e + 1],
            sigma[e : e + 1],
            solver.relax,
            start.u[e : e + 1],
            start.u[e : e + 1],
            heard=[(0, np.zeros((1, d))), (0, np.zeros((1, d)))],
        )
        for e in range(graph.n_edges)
    ]
    return nodes, edges
