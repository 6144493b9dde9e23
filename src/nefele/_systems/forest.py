"""Graphs without cycles: linear systems over them are solved by one sweep up and one down."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order

from nefele._checks import Array
from nefele.graph import Graph

Index = NDArray[np.int64]

_UNROLLED, _LARGE = 8, 20_000  # parameters and unknowns for which unrolled loops are compiled


class Forest:
    """The nodes of a graph without cycles, ordered so that children come before parents.

    Of a graph with cycles: a spanning forest, over which `carry` sends flows. `parent` and `edge`
    have the parent of each node and the edge to it; -1 at a root, of which every component has one.

    Examples
    --------
    >>> forest = Forest.of(Graph.from_edges([(0, 1), (1, 2)]))
    >>> forest.order.tolist(), forest.parent.tolist(), forest.edge.tolist()
    ([2, 1, 0], [-1, 0, 1], [-1, 0, 1])
    >>> Forest.of(Graph.from_edges([(0, 1), (1, 2), (0, 2)])) is None
    True
    """

    def __init__(self, graph: Graph) -> None:
        n = graph.n_nodes
        self.head, self.n_roots = graph.head, int(graph.components.max()) + 1
        roots = np.unique(graph.components, return_index=True)[1]
        rows = np.concatenate([graph.head, np.full(len(roots), n)])
        columns = np.concatenate([graph.tail, roots])
        links = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n + 1, n + 1))
        order, parent = breadth_first_order(links.tocsr(), n, directed=False)
        self.order: Index = order[:0:-1].astype(np.int64)
        self.parent: Index = np.where(parent[:n] == n, -1, parent[:n]).astype(np.int64)
        inner = np.flatnonzero(self.parent >= 0)
        ends = np.sort(np.stack([inner, self.parent[inner]]), axis=0)
        self.edge: Index = np.full(n, -1)
        self.edge[inner] = np.searchsorted(graph.head * n + graph.tail, ends[0] * n + ends[1])

    @classmethod
    def of(cls, graph: Graph) -> Forest | None:
        """The forest of a graph, computed once per graph; None when there is a cycle."""
        known = vars(graph)  # a graph is immutable and keeps what was derived from it
        if "_forest" not in known:
            acyclic = graph.n_edges < graph.n_nodes
            acyclic = acyclic and graph.n_edges == graph.n_nodes - graph.components.max() - 1
            known["_forest"] = cls(graph) if acyclic else None
        forest: Forest | None = known["_forest"]
        return forest

    def factorise(self, metric: Array, C: Array) -> TreeFactor:
        """Factor M + D^T C D, with M (n_nodes, d, d) and C (n_edges, d, d) positive semidefinite.

        Where nothing holds a component in some direction, its root stays at zero.
        """
        return TreeFactor(self, metric, C)

    def carry(self, give: Array, right: Array) -> tuple[Array, Array]:
        """Solve D^T C D x = right, x zero at the roots; returns x and the flow C D x.

        C is diagonal, `give` of shape (n_edges, 1 or d); `right` must sum to zero over every
        component. The flow does not depend on C: each subtree sends its sum to its parent.
        """
        from nefele._kernels.tree import carry

        x, flow = np.empty_like(right), np.zeros((len(self.head), right.shape[1]))
        carry(self.order, self.parent, self.edge, self.head, give, right.copy(), x, flow)
        return x, flow


class TreeFactor:
    """M + D^T C D over a forest, factorised."""

    def __init__(self, forest: Forest, metric: Array, C: Array) -> None:
        from nefele._kernels.tree import factorise

        n, d = metric.shape[:2]
        self.forest, self.C, self.S = forest, C, metric.copy()
        self.dims = unrolled(d, n)
        self.L, self.G = np.empty((2, n, d, d))
        self.stiff = np.zeros(n, dtype=bool)
        factorise(self.dims, *self._tree, C, self.S, self.L, self.G, self.stiff)

    @property
    def _tree(self) -> tuple[Index, Index, Index]:
        return self.forest.order, self.forest.parent, self.forest.edge

    def solve(self, right: Array) -> tuple[Array, Array, Array]:
        """Solution x of (M + D^T C D) x = right, and D x and C D x without cancellation."""
        from nefele._kernels.tree import substitute

        head = self.forest.head
        x, (change, flow) = np.empty_like(right), np.empty((2, len(head), right.shape[1]))
        factor = (self.C, self.S, self.L, self.G, self.stiff)
        substitute(self.dims, *self._tree, head, *factor, right.copy(), x, change, flow)
        return x, change, flow


def unrolled(d: int, count: int) -> tuple[int, ...]:
    """The `dims` of kernels over `count` vectors of length d: a kernel is compiled for each.

    Small problems make do with one for any d, since compiling takes seconds.
    """
    return (0,) * d if d <= _UNROLLED and d * count >= _LARGE else ()


def diagonal_blocks(give: Array, d: int) -> Array:
    """Weights of shape (n_edges, 1 or d) as diagonal matrices of shape (n_edges, d, d)."""
    blocks = np.zeros((len(give), d, d))
    np.einsum("ejj->ej", blocks)[...] = give
    return blocks
