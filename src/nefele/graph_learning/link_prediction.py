"""Complete a partial graph: add the links that its structure makes likely."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nefele._checks import Array, check_count, check_name, check_number
from nefele.graph import Graph, Index
from nefele.graph_learning._finish import Trimmed
from nefele.graph_learning.builders import TrainingRows, base_graph
from nefele.graph_learning.models import LossGraph
from nefele.graph_learning.structure import spectral_points

_METHODS = ("adamic_adar", "common", "spectral")


@dataclass(eq=False, repr=False)
class LinkPrediction(Trimmed):
    """Add links between nodes with common neighbours to a graph that lacks some.

    Parameters
    ----------
    graph : Graph, object that `as_graph` takes, or builder
        The partial graph; default `LossGraph()`. Nodes with rows that it lacks are added, without
        links: nothing is known of them.
    method : {"adamic_adar", "common", "spectral"}
        Score of a pair: the number of common neighbours; the same with each divided by the
        logarithm of its degree; or the entry of the best approximation of the normalised
        adjacency of rank `n_components`.
    share : float
        Links to add, relative to those there are.
    n_components : int
        Rank of "spectral".
    degree, normalize
        See `sparsify_graph` and `normalize_weights`.

    Notes
    -----
    Only pairs with a common neighbour are candidates, so memory grows with their number and not
    with that of all pairs. A new link weighs the mean weight times its score relative to the
    best one's.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((1, 1)), np.ones((1, 1)), np.array(["a"]), np.ones(1))
    >>> square = Graph(["a", "b", "c", "d"], [0, 1, 2, 0, 0], [1, 2, 3, 3, 2])
    >>> LinkPrediction(square, share=0.2).fit_graph(rows).neighbors("b")
    ['a', 'c', 'd']
    """

    graph: Any = None
    method: str = "adamic_adar"
    _: KW_ONLY
    share: float = 0.2
    n_components: int = 8

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The completed graph, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_name(self.method, _METHODS, "method")
        share = check_number(self.share, "share", low=0.0)
        check_count(self.n_components, "n_components", low=1)
        self._check_finish()
        graph = base_graph(self.graph, rows, LossGraph(), "LinkPrediction")
        head, tail, score = link_scores(graph, self.method, self.n_components)
        most = round(share * graph.n_edges)
        on = np.argsort(-score, kind="stable")[:most]
        on = on[score[on] > 0]
        if not on.size:
            return self._finish(graph)
        weight = graph.weight.mean() * score[on] / score[on[0]]
        ends = np.append(graph.head, head[on]), np.append(graph.tail, tail[on])
        return self._finish(Graph(graph.ids, *ends, np.append(graph.weight, weight)))


def link_scores(graph: Graph, method: str, n_components: int = 8) -> tuple[Index, Index, Array]:
    """Pairs that have a common neighbour and no link, with their scores.

    Parameters
    ----------
    graph : Graph
    method : {"adamic_adar", "common", "spectral"}
        See `LinkPrediction`.
    n_components : int
        Dimensions of the embedding of "spectral".

    Examples
    --------
    >>> head, tail, score = link_scores(Graph([0, 1, 2], [0, 1], [1, 2]), "common")
    >>> head.tolist(), tail.tolist(), score.tolist()
    ([0], [2], [1.0])
    """
    check_name(method, _METHODS, "method")
    link = graph.adjacency.copy()
    link.data = np.ones_like(link.data)
    value = np.ones(graph.n_nodes)
    if method == "adamic_adar":  # a common neighbour has degree 2 at least
        value = 1.0 / np.log(np.maximum(graph.degree, 2))
    both = sparse.triu(link @ sparse.diags_array(value) @ link, 1, format="csr")
    open_ = (both - both.multiply(link)).tocoo()
    on = open_.data > 1e-12
    head, tail = (np.asarray(c[on], dtype=np.int64) for c in open_.coords)
    if method != "spectral":
        return head, tail, open_.data[on]
    points = spectral_points(graph, min(n_components, graph.n_nodes - 1))
    degree = np.maximum(graph.weighted_degree, np.finfo(np.float64).tiny)
    root = 1.0 / np.sqrt(degree)
    scaled = sparse.diags_array(root) @ graph.adjacency @ sparse.diags_array(root)
    size = ((scaled @ points) * points).sum(axis=0)  # the eigenvalues
    return head, tail, np.maximum((points[head] * size * points[tail]).sum(axis=1), 0.0)
