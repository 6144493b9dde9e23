"""The graphs that others are compared with: no edges, one clique, shuffled copies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import check_count
from nefele._ids import as_ids, distinct
from nefele.graph import Graph
from nefele.graph_learning.builders import GraphBuilder, TrainingRows, base_graph
from nefele.graphs import star

ALONE, CLIQUE = "no edges", "one clique"  # the references


class NoEdges(GraphBuilder):
    """No links at all: every node learns alone.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((2, 1)), np.ones((2, 1)), np.array(["a", "b"]), np.ones(2))
    >>> NoEdges().fit_graph(rows).n_edges
    0
    """

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """A graph of the nodes with rows, without edges.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        return Graph(distinct(rows.node_ids), [], [])


class CliqueGraph(GraphBuilder):
    """Everyone joined to everyone: shrinkage towards a common model, without structure.

    Parameters
    ----------
    max_complete : int
        Up to this many nodes all pairs are edges. Beyond, every node is joined to one more node
        without rows: n edges in the place of n (n - 1) / 2. Both run from own models to one
        pooled model as the coupling grows; in between they are the same for the squared penalty
        (a star of weight a acts like a complete graph of weight a / n) and similar, not the same,
        for norms.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((3, 1)), np.ones((3, 1)), np.array([0, 1, 2]), np.ones(3))
    >>> CliqueGraph().fit_graph(rows).n_edges, CliqueGraph(2).fit_graph(rows).ids.tolist()
    (3, [3, 0, 1, 2])
    """

    def __init__(self, max_complete: int = 60) -> None:
        self.max_complete = max_complete

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The complete graph of the nodes with rows, or a star around a node without rows.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        ids = distinct(rows.node_ids)
        if len(ids) <= check_count(self.max_complete, "max_complete", low=0):
            head, tail = np.triu_indices(len(ids), 1)
            return Graph(ids, head, tail)
        return star(len(ids) + 1, nodes=as_ids([_new_id(ids), *ids.tolist()]))


class ShuffledGraph(GraphBuilder):
    """A graph with its node ids permuted: the same shape, none of the meaning.

    Parameters
    ----------
    graph : Graph, object that `as_graph` takes, or builder
    random_state : int

    Examples
    --------
    >>> rows = TrainingRows(np.ones((1, 1)), np.ones((1, 1)), np.array(["a"]), np.ones(1))
    >>> path = Graph(["a", "b", "c", "d"], [0, 1, 2], [1, 2, 3])
    >>> sorted(ShuffledGraph(path).fit_graph(rows).degree.tolist())
    [1, 1, 2, 2]
    """

    def __init__(self, graph: Any = None, random_state: int = 0) -> None:
        self.graph = graph
        self.random_state = random_state

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph with permuted ids.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        graph = base_graph(self.graph, rows, NoEdges(), "ShuffledGraph")
        place = np.random.default_rng(self.random_state).permutation(graph.n_nodes)
        return Graph(graph.ids, place[graph.head], place[graph.tail], graph.weight)


def _new_id(ids: NDArray[Any]) -> Any:
    """An id that is not there, of the same type."""
    if ids.dtype.kind == "i":
        return int(ids.max()) + 1
    name, known = "common", set(ids.tolist())
    while name in known:
        name += "_"
    return name
