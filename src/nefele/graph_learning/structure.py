"""Groups of densely joined nodes: spectral candidates, judged by modularity or likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import eigsh

from nefele._checks import Array
from nefele._threads import one_thread
from nefele.graph import Graph, Index

_DENSE = 600  # nodes up to which all eigenvectors are computed


def modularity(graph: Graph, labels: Any) -> float:
    """Share of the weight inside groups minus what chance gives, in [-1/2, 1].

    Q = sum_c [W_c / W - (d_c / 2W)^2], W_c the weight inside group c, d_c its weighted degree.

    Parameters
    ----------
    graph : Graph
    labels : array of shape (n_nodes,)
        Group of each node, in graph order.

    Examples
    --------
    >>> graph = Graph([0, 1, 2, 3], [0, 2], [1, 3])
    >>> modularity(graph, [0, 0, 1, 1])
    0.5
    """
    label = np.unique(np.asarray(labels), return_inverse=True)[1]
    total = float(graph.weight.sum())
    if total == 0:
        return 0.0
    inside = graph.weight[label[graph.head] == label[graph.tail]].sum() / total
    share = np.bincount(label, graph.weighted_degree) / (2 * total)
    return float(inside - (share**2).sum())


def communities(graph: Graph, most: int = 10, random_state: int = 0) -> Index:
    """The groups of the largest modularity among spectral clusterings into 2, ..., most groups.

    The connected components compete as well. Nodes without edges are groups of their own.

    Parameters
    ----------
    graph : Graph
    most : int
        The largest number of groups that is tried.
    random_state : int
        Of the clusterings.

    Examples
    --------
    >>> graph = Graph([0, 1, 2, 3, 4, 5], [0, 0, 1, 3, 3, 4, 2], [1, 2, 2, 4, 5, 5, 3])
    >>> communities(graph).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    best = np.array(graph.components)
    joined = np.flatnonzero(graph.degree > 0)
    if len(joined) < 3:
        return best
    score = modularity(graph, best)
    points = spectral_points(graph, min(most, len(joined) - 1))
    for k in range(2, points.shape[1] + 1):
        label = np.array(graph.components) + k  # isolated nodes keep a label of their own
        label[joined] = _k_means(points[joined], k, random_state)
        found = modularity(graph, label)
        if found > score + 1e-9:
            best, score = label, found
    return _relabel(best)


def spectral_points(graph: Graph, count: int) -> Array:
    """Leading eigenvectors of D^-1/2 A D^-1/2, shape (n_nodes, count)."""
    degree = graph.weighted_degree
    root = 1.0 / np.sqrt(np.where(degree > 0, degree, 1.0))
    scaled = sparse.diags_array(root) @ graph.adjacency @ sparse.diags_array(root)
    if graph.n_nodes <= _DENSE or count >= graph.n_nodes - 1:
        vectors = np.linalg.eigh(scaled.toarray())[1][:, ::-1][:, :count]
    else:
        start = np.linspace(1.0, 2.0, graph.n_nodes)  # fixed, so that the result is
        values, vectors = eigsh(scaled.tocsc(), k=count, which="LA", v0=start)
        vectors = vectors[:, np.argsort(-values)]
    return np.asarray(vectors)


def spectral_labels(graph: Graph, k: int, random_state: int) -> Index:
    """Spectral clustering into k groups, isolated nodes included, from 0."""
    if k == 1:
        return np.zeros(graph.n_nodes, dtype=np.int64)
    return _k_means(spectral_points(graph, k), k, random_state)


def _k_means(points: Array, k: int, random_state: int) -> Index:
    from sklearn.cluster import KMeans

    size = np.linalg.norm(points[:, :k], axis=1, keepdims=True)
    unit = points[:, :k] / np.where(size > 1e-12, size, 1.0)
    distinct = len(np.unique(unit.round(9), axis=0))
    model = KMeans(min(k, distinct), n_init=5, random_state=random_state)
    with one_thread():  # for so few points threads only wait for each other: 50 x slower
        return model.fit_predict(unit).astype(np.int64)


def _relabel(labels: Index) -> Index:
    """Labels 0, 1, ... in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[inverse]
