"""Flow conservation in the coordinates of a maximum spanning tree.

D^T u = demand has one equation per node. Summed over the nodes behind an edge of a spanning tree,
each equation holds one tree edge, and only other edges that are no heavier when the tree is a
maximum one. In units of the weights, f = u / A, all coefficients are at most one and the largest
entry of the right side over the number of edges bounds the least congestion from below: weights of
many orders of magnitude leave no trace in the numbers. These equations are less sparse than those
of the nodes, which serve as well when the weights are of similar size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from nefele._checks import Array
from nefele.graph import Graph
from nefele.theory._inputs import Index

_SIMILAR = 1e-3  # ratio of the weights from which on the equations of the nodes are good enough
_MOST = 3000  # nodes up to which the paths of the tree are stored


@dataclass(frozen=True, eq=False)
class TreeBasis:
    """One equation of conservation for each edge of a maximum spanning tree of a connected graph.

    Of each tree edge: its ends `node` and `parent`, parents before their children; its position
    `edge` in the graph; its `sign`, 1 where the edge's head is `node`, -1 where it is `parent`.

    Examples
    --------
    >>> basis = TreeBasis.of(Graph([0, 1, 2], [0, 1, 0], [1, 2, 2], [1.0, 4.0, 2.0]))
    >>> sorted(basis.edge.tolist()), basis.flow(np.array([[2.0], [0.0], [-2.0]])).tolist()
    ([1, 2], [[0.0], [2.0], [0.0]])
    """

    graph: Graph
    node: Index = field(repr=False)
    parent: Index = field(repr=False)
    edge: Index = field(repr=False)
    sign: Array = field(repr=False)

    @classmethod
    def of(cls, graph: Graph) -> TreeBasis:
        """The basis of a connected graph with at least one edge."""
        n, m = graph.n_nodes, graph.n_edges
        heaviest = np.argsort(-graph.weight, kind="stable")
        rank = np.empty(m)
        rank[heaviest] = np.arange(1.0, m + 1)
        # Before SciPy 1.15 spanning trees must have 32-bit indices.
        place = (graph.head.astype(np.intc), graph.tail.astype(np.intc))
        pairs = sparse.csr_array((rank, place), shape=(n, n))
        tree = minimum_spanning_tree(pairs).tocoo()
        order, above = breadth_first_order(tree, 0, directed=False)
        chosen = heaviest[tree.data.astype(np.int64) - 1]
        up = above[graph.head[chosen]] == graph.tail[chosen]
        edge_of = np.empty(n, dtype=np.int64)
        edge_of[np.where(up, graph.head[chosen], graph.tail[chosen])] = chosen
        node = order[1:].astype(np.int64)
        edge, parent = edge_of[node], above[node].astype(np.int64)
        return cls(graph, node, parent, edge, np.where(graph.head[edge] == node, 1.0, -1.0))

    @property
    def by_nodes(self) -> bool:
        """Whether the equations of the nodes are good enough, or all that there is room for."""
        weight = self.graph.weight
        similar = bool(weight.min() >= _SIMILAR * weight.max())
        return similar or self.graph.n_nodes > _MOST

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """C with C (u / A) = `right(demand)` for every flow D^T u = demand.

        Sparse, of shape (n_nodes - 1, n_edges).
        """
        graph = self.graph
        sums = _behind(graph.n_nodes, self.node, self.parent)
        rows = sparse.diags_array(self.sign / graph.weight[self.edge]) @ sums @ graph.incidence_t
        matrix = sparse.csr_array(rows @ sparse.diags_array(graph.weight))
        matrix.eliminate_zeros()
        return matrix

    def right(self, demand: Array) -> Array:
        """The right side of the equations, shape (n_nodes - 1, d)."""
        total = demand.copy()
        for k in range(len(self.node) - 1, -1, -1):  # children before their parents
            total[self.parent[k]] += total[self.node[k]]
        return (self.sign / self.graph.weight[self.edge])[:, None] * total[self.node]

    def flow(self, demand: Array, flow: Array | None = None) -> Array:
        """The flow D^T u = demand that agrees with the given one outside the tree.

        Equations are met edge by edge: a light edge has errors of its own size only.
        """
        out = np.zeros((self.graph.n_edges, demand.shape[1])) if flow is None else flow.copy()
        out[self.edge] = 0.0
        if flow is None or self.by_nodes:
            u = self.right(demand - self.graph.div(out))
        else:
            u = self.right(demand) - self.matrix @ (out / self.graph.weight[:, None])
        out[self.edge] = self.graph.weight[self.edge][:, None] * u
        return out

    def potential(self, y: Array) -> Array:
        """Potentials x with A D x = C^T y, shape (n_nodes, d); zero at the root.

        Nodes joined by tree edges with y = 0 get bit-equal potentials.
        """
        step = (self.sign / self.graph.weight[self.edge])[:, None] * y
        x = np.zeros((self.graph.n_nodes, y.shape[1]))
        for k in range(len(self.node)):
            x[self.node[k]] = x[self.parent[k]] + step[k]
        return x


def _behind(n: int, node: Index, parent: Index) -> sparse.csr_array:
    """Row k holds ones at the nodes that tree edge k separates from the root."""
    above: list[list[int]] = [[] for _ in range(n)]
    for k, (i, j) in enumerate(zip(node.tolist(), parent.tolist(), strict=True)):
        above[i] = [*above[j], k]
    columns = np.repeat(np.arange(n), [len(path) for path in above])
    rows = np.array([k for path in above for k in path])
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n - 1, n))
