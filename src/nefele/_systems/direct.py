"""M + D^T C D over a small graph with cycles, assembled and factorised front by front.

Also where the graph is full: fronts are dense matrices for BLAS, and what is around them costs less
than a full matrix's assembly and calls, from 18 unknowns (1.6 times) to complete graphs of 2,000.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nefele._checks import Array
from nefele._systems.cholesky import Fronts
from nefele._systems.fill import dense_seconds, sparse_seconds
from nefele.graph import Graph

_FRONTS = 0.2  # share of a band's operations that fronts take, mostly
_MOST_FULL = 4000  # unknowns of a matrix that may be full
_MOST_ENTRIES = 2_000_000  # numbers in a sparse one
_RIDGES = (1e-14, 1e-11, 1e-8)  # relative to a unit diagonal


class SmallGraph:
    """The pattern of M + D^T C D: d x d numbers per node and edge."""

    def __init__(self, graph: Graph, d: int) -> None:
        self.graph, self.d = graph, d

    @classmethod
    def of(cls, graph: Graph, d: int) -> SmallGraph:
        """The pattern for a graph, found once: a graph keeps what was derived from it."""
        known = vars(graph).setdefault("_small", {})
        if d not in known:
            known[d] = cls(graph, d)
        found: SmallGraph = known[d]
        return found

    @cached_property
    def fronts(self) -> Fronts:
        """Those of the graph: to find known ones each time would compare graphs each time."""
        return Fronts.of(self.graph)

    @staticmethod
    def entries(graph: Graph, d: int) -> int:
        """Numbers in the matrix."""
        return (graph.n_nodes + 2 * graph.n_edges) * d * d

    @staticmethod
    def seconds(graph: Graph, d: int) -> float:
        """A guess of the time that one factorisation takes, from the widths of a band.

        Infinite where `check` raises.
        """
        if SmallGraph._too_large(graph, d):
            return np.inf
        return min(dense_seconds(graph.n_nodes * d), _FRONTS * sparse_seconds(graph, d))

    @staticmethod
    def _too_large(graph: Graph, d: int) -> bool:
        entries = SmallGraph.entries(graph, d)
        return graph.n_nodes * d > _MOST_FULL and entries > _MOST_ENTRIES

    @staticmethod
    def check(graph: Graph, d: int) -> None:
        """Raise when the matrix would be too large."""
        unknowns, entries = graph.n_nodes * d, SmallGraph.entries(graph, d)
        if SmallGraph._too_large(graph, d):
            raise ValueError(
                f"Newton needs a graph without cycles, n_nodes * d <= {_MOST_FULL}, or "
                f"(n_nodes + 2 n_edges) * d^2 <= {_MOST_ENTRIES}; got {unknowns} and {entries}. "
                'Use solver="auto".'
            )

    def factorise(self, metric: Array, C: Array, ridge: float = _RIDGES[0]) -> SmallFactor:
        """Factor M + D^T C D, with M (n_nodes, d, d) and C (n_edges, d, d).

        At least this `ridge`, relative to a unit diagonal, is added.
        """
        return SmallFactor(self, metric, C, ridge)

    def scaled(self, metric: Array, C: Array) -> tuple[Array, Array]:
        """Blocks of nodes and edges scaled to a unit diagonal, and the root of what it was."""
        from nefele._kernels.blocks import assemble

        n, d = self.graph.n_nodes, self.d
        root, blocks = np.empty((n, d)), np.empty((n + len(C), d, d))
        assemble(self.graph.head, self.graph.tail, metric, C, root, blocks)
        return blocks, root

    def flows(self, C: Array, x: Array) -> tuple[Array, Array]:
        """D x and C D x."""
        from nefele._kernels.blocks import flows

        change, flow = np.empty((2, len(C), self.d))
        flows(self.graph.head, self.graph.tail, C, x, change, flow)
        return change, flow


class SmallFactor:
    """The factors of the matrix, scaled to a unit diagonal and as little regularised as works."""

    def __init__(self, pattern: SmallGraph, metric: Array, C: Array, least: float) -> None:
        self.pattern, self.C = pattern, np.ascontiguousarray(C)
        blocks, self.root = pattern.scaled(np.ascontiguousarray(metric), self.C)
        for ridge in (least, *(ridge for ridge in _RIDGES if ridge > least)):
            try:
                self._apply = pattern.fronts.factorise(blocks, ridge)
                return
            except np.linalg.LinAlgError:  # singular, or overflowed
                continue
        raise np.linalg.LinAlgError("The Newton system must be positive definite.")

    def solve(self, right: Array) -> tuple[Array, Array, Array]:
        """Solution x, D x and C D x of (M + D^T C D) x = right."""
        x = self._apply((right / self.root).ravel()).reshape(right.shape) / self.root
        return x, *self.pattern.flows(self.C, x)
