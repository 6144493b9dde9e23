"""Fit a stochastic block model to a graph, and drop or weaken the links it finds improbable."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from nefele._checks import Array, check_count, check_name, check_number
from nefele.graph import Graph, Index
from nefele.graph_learning._finish import Trimmed
from nefele.graph_learning.builders import TrainingRows, base_graph
from nefele.graph_learning.models import LossGraph
from nefele.graph_learning.structure import spectral_labels

_SWEEPS = 20
_MOST_BLOCKS = 8


@dataclass(eq=False, repr=False)
class BlockModelCleanup(Trimmed):
    """Clean a first graph by its blocks: links between blocks that are rarely joined go.

    Nodes i, j in blocks a, b are joined with probability p_ab. A link is improbable when p_ab is
    below `ratio` times the larger of p_aa and p_bb.

    Parameters
    ----------
    graph : Graph, object that `as_graph` takes, or builder
        The first graph; default `LossGraph()`.
    n_blocks : int, optional
        Default: the number up to 8 with the best penalised likelihood.
    action : {"drop", "reweight"}
        Drop improbable links, or multiply every weight by p_ab relative to the largest.
    ratio : float
        See above.
    random_state : int
        Of the first labels.
    degree, normalize
        See `sparsify_graph` and `normalize_weights`.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((1, 1)), np.ones((1, 1)), np.array([0]), np.ones(1))
    >>> pairs = [(i, j) for i in range(8) for j in range(i) if i // 4 == j // 4] + [(0, 7)]
    >>> cleaned = BlockModelCleanup(Graph.from_edges(pairs)).fit_graph(rows)
    >>> cleaned.n_edges, cleaned.neighbors(0)
    (12, [1, 2, 3])
    """

    graph: Any = None
    _: KW_ONLY
    n_blocks: int | None = None
    action: str = "drop"
    ratio: float = 0.5
    random_state: int = 0

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The cleaned graph, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_name(self.action, ("drop", "reweight"), "action")
        ratio = check_number(self.ratio, "ratio", low=0.0)
        self._check_finish()
        graph = base_graph(self.graph, rows, LossGraph(), "BlockModelCleanup")
        if self.n_blocks is not None:
            blocks = check_count(self.n_blocks, "n_blocks", low=1)
            if blocks > graph.n_nodes:
                raise ValueError(
                    f"n_blocks must be at most the number of nodes ({graph.n_nodes}); got {blocks}."
                )
        if not graph.n_edges:
            return graph
        label, p = fit_block_model(graph, self.n_blocks, self.random_state)
        a, b = label[graph.head], label[graph.tail]
        if self.action == "reweight":
            weight = graph.weight * p[a, b] / p.max()
            return self._finish(Graph(graph.ids, graph.head, graph.tail, weight))
        own = np.diagonal(p)
        keep = p[a, b] >= ratio * np.maximum(own[a], own[b])
        ends = graph.head[keep], graph.tail[keep]
        return self._finish(Graph(graph.ids, *ends, graph.weight[keep]))


def fit_block_model(
    graph: Graph, n_blocks: int | None = None, random_state: int = 0
) -> tuple[Index, Array]:
    """Labels (n_nodes,) and link probabilities (n_blocks, n_blocks) of a block model.

    Labels start at a spectral clustering; each sweep gives every node the block of the largest
    likelihood. The number of blocks is judged by the likelihood minus half the logarithm of the
    number of pairs for each probability, and of the number of nodes for each label.

    Parameters
    ----------
    graph : Graph
    n_blocks : int, optional
        Default: the number that is judged best.
    random_state : int
        Of the spectral clustering.

    Examples
    --------
    >>> pairs = [(i, j) for i in range(8) for j in range(i) if i // 4 == j // 4]
    >>> fit_block_model(Graph.from_edges(pairs))[0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    n = graph.n_nodes
    most = min(_MOST_BLOCKS, n)
    best: tuple[float, Index, Array] | None = None
    for k in range(1, most + 1) if n_blocks is None else [n_blocks]:
        label = _improve(graph, spectral_labels(graph, k, random_state), k)
        label = np.unique(label, return_inverse=True)[1]
        p, likelihood = _probabilities(graph, label)
        k = len(p)
        cost = k * (k + 1) / 4 * np.log(max(n * (n - 1) / 2, 2)) + n * np.log(k)
        if best is None or likelihood - cost > best[0]:
            best = (likelihood - cost, label, p)
    assert best is not None
    first = np.unique(best[1], return_index=True)[1]
    order = np.argsort(first)
    return np.argsort(order)[best[1]], best[2][np.ix_(order, order)]


def _counts(graph: Graph, label: Index, k: int) -> tuple[Array, Array]:
    """Links and pairs between blocks, both orders, shape (k, k)."""
    a, b = label[graph.head], label[graph.tail]
    links = np.bincount(a * k + b, minlength=k * k).reshape(k, k).astype(np.float64)
    links = links + links.T
    size = np.bincount(label, minlength=k).astype(np.float64)
    return links, np.outer(size, size) - np.diag(size)


def _probabilities(graph: Graph, label: Index, k: int | None = None) -> tuple[Array, float]:
    k = int(label.max()) + 1 if k is None else k
    links, pairs = _counts(graph, label, k)
    p = (links + 0.5) / (pairs + 1.0)  # half a pair each: no probability is 0 or 1
    likelihood = (links * np.log(p) + (pairs - links) * np.log1p(-p)).sum() / 2
    return p, float(likelihood)


def _improve(graph: Graph, label: Index, k: int) -> Index:
    """Move nodes to their likeliest block, all at once, while the likelihood rises."""
    link = graph.adjacency.copy()
    link.data = np.ones_like(link.data)
    p, value = _probabilities(graph, label, k)
    for _ in range(_SWEEPS):
        member = np.eye(k)[label]
        size = member.sum(axis=0) - member  # of the others
        near = link @ member
        found = near @ np.log(p) + (size - near) @ np.log1p(-p)
        new = np.argmax(found, axis=1)
        p_new, value_new = _probabilities(graph, new, k)
        if value_new <= value + 1e-9:
            break
        label, p, value = new, p_new, value_new
    return label
