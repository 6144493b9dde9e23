"""What can be done to any graph, and the step from pairwise discrepancies to edges.

Order: choose edges (k nearest, threshold), thin them out to a target degree, connect the pieces
by the shortest links, weigh, normalise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from nefele._checks import Array, as_float_array, check_count, check_flag, check_name, check_number
from nefele.graph import Graph, Index
from nefele.graph_learning.builders import check_k

WEIGHTS = ("unit", "exp", "inverse")
NORMS = ("none", "mean", "degree")
_LEAST = 1e-9  # length of an edge relative to the mean length, below which 1 / length stops growing


def sparsify_graph(graph: Graph, degree: float) -> Graph:
    """Keep the heaviest edges, n_nodes * degree / 2 of them: a graph of this mean degree.

    Among edges of equal weight no node comes first: they go round in a fixed shuffled order, the
    first of every node, then the second ones, and so on. The same graph gives the same result.

    Parameters
    ----------
    graph : Graph
    degree : float
        Target mean degree, > 0. A graph below it stays as it is.

    Examples
    --------
    >>> graph = Graph(["a", "b", "c"], [0, 0, 1], [1, 2, 2], [3.0, 1.0, 2.0])
    >>> sparsify_graph(graph, 4 / 3).weight.tolist()
    [3.0, 2.0]
    """
    keep = shortest(-graph.weight, graph.head, graph.tail, graph.n_nodes, degree)
    return Graph(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])


def connect_graph(graph: Graph, discrepancy: Any) -> Graph:
    """Add the shortest links that make the graph one component, with the least weight there is.

    Parameters
    ----------
    graph : Graph
    discrepancy : array of shape (n_nodes, n_nodes)
        Lengths of all possible links, symmetric, in graph order.

    Examples
    --------
    >>> graph = Graph([0, 1, 2, 3], [0, 2], [1, 3])
    >>> place = np.array([[0.0], [1.0], [5.0], [7.0]])
    >>> connect_graph(graph, np.abs(place - place.T)).neighbors(1)
    [0, 2]
    """
    matrix = square_matrix(discrepancy, n=graph.n_nodes)
    head, tail = _links(graph.components, matrix)
    least = float(graph.weight.min()) if graph.n_edges else 1.0
    weight = np.append(graph.weight, np.full(len(head), least))
    return Graph(graph.ids, np.append(graph.head, head), np.append(graph.tail, tail), weight)


def normalize_weights(graph: Graph, how: str = "mean") -> Graph:
    """Weights in units that make strengths of the coupling comparable between graphs.

    Parameters
    ----------
    graph : Graph
    how : {"none", "mean", "degree"}
        "mean": A_e / mean(A), so that the mean is 1. "degree": A_ij / sqrt(d_i d_j), with the
        weighted degrees d: no node is pulled at by more than a few others' worth.

    Examples
    --------
    >>> normalize_weights(Graph([0, 1, 2], [0, 1], [1, 2], [1.0, 3.0])).weight.tolist()
    [0.5, 1.5]
    """
    check_name(how, NORMS, "normalisation")
    if how == "none" or not graph.n_edges:
        return graph
    unit: Any = graph.weight.mean()
    if how == "degree":
        unit = np.sqrt(graph.weighted_degree[graph.head] * graph.weighted_degree[graph.tail])
    return Graph(graph.ids, graph.head, graph.tail, graph.weight / unit)


def graph_from_discrepancy(
    ids: Any,
    discrepancy: Any,
    *,
    k: int | None = None,
    threshold: float | None = None,
    weight: str = "unit",
    scale: float | None = None,
    degree: float | None = None,
    connect: bool = False,
    normalize: str = "none",
) -> Graph:
    """Edges between nodes of small discrepancy.

    Parameters
    ----------
    ids : array of shape (n_nodes,)
    discrepancy : array of shape (n_nodes, n_nodes)
        Symmetric, >= 0; the diagonal plays no part. Infinite: never an edge.
    k : int, optional
        Only the k nearest of each node; an edge is there when one of its ends asks for it. Default
        when there is no threshold either: 4, or all others when they are fewer.
    threshold : float, optional
        Only pairs of a discrepancy up to this.
    weight : {"unit", "exp", "inverse"}
        1, exp(-D / scale) or 1 / D.
    scale : float, optional
        Of "exp"; default the mean discrepancy of the edges.
    degree : float, optional
        Keep only the shortest edges, down to this mean degree.
    connect : bool
        Whether to add the shortest links that make one component.
    normalize : {"none", "mean", "degree"}
        See `normalize_weights`.

    Examples
    --------
    >>> D = [[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]]
    >>> graph = graph_from_discrepancy(["a", "b", "c"], D, threshold=2.0, weight="inverse")
    >>> graph.weight.tolist()
    [1.0, 0.5]
    """
    matrix = square_matrix(discrepancy, n=len(ids))
    check_options(k, threshold, weight, scale, degree, connect, normalize)
    if len(matrix) == 1:
        return Graph(ids, [], [])
    head, tail = _chosen(matrix, k, threshold)
    if degree is not None:
        keep = shortest(matrix[head, tail], head, tail, len(matrix), degree)
        head, tail = head[keep], tail[keep]
    if connect:
        more = _links(Graph(ids, head, tail).components, matrix)
        head, tail = np.append(head, more[0]), np.append(tail, more[1])
    graph = Graph(ids, head, tail, edge_weights(matrix[head, tail], weight, scale))
    return normalize_weights(graph, normalize)


def check_options(
    k: Any,
    threshold: Any,
    weight: str,
    scale: Any,
    degree: Any,
    connect: Any,
    normalize: str,
    name: str = "threshold",
) -> None:
    """Check the options of `graph_from_discrepancy` before any work is done."""
    if k is not None:
        check_count(k, "k", low=1)
    if threshold is not None:
        check_number(threshold, name, low=0.0)
    check_name(weight, WEIGHTS, "weight")
    if scale is not None:
        check_number(scale, "scale", low=0.0, strict=True)
    if degree is not None:
        check_number(degree, "degree", low=0.0, strict=True)
    check_flag(connect, "connect")
    check_name(normalize, NORMS, "normalisation")


def edge_weights(length: Array, weight: str, scale: float | None = None) -> Array:
    """1, exp(-length / scale) or 1 / length; never zero, never infinite."""
    finite = length[np.isfinite(length)]  # a link that only connects may have an infinite length
    mean = float(finite.mean()) if finite.any() else 1.0
    least = np.finfo(np.float64).tiny
    if weight == "exp":
        return np.maximum(np.exp(-length / (scale or mean)), least)
    if weight == "inverse":
        return np.maximum(1.0 / np.maximum(length, _LEAST * mean), least)
    return np.ones(len(length))


def nearest(matrix: Array, k: int) -> tuple[Index, Index]:
    """Pairs i < j of which one is among the k nearest of the other, by increasing (i, j).

    Of equally near ones node i takes the next after itself, i + 1, i + 2, ..., around the end:
    the first by number would be a hub.
    """
    n = len(matrix)
    after = (np.arange(n)[:, None] + np.arange(1, n)) % n
    order = np.argsort(np.take_along_axis(matrix, after, axis=1), axis=1, kind="stable")[:, :k]
    other = np.take_along_axis(after, order, axis=1).ravel()
    here = np.repeat(np.arange(n), order.shape[1])
    on = np.isfinite(matrix[here, other])
    here, other = here[on], other[on]
    key = np.unique(np.minimum(here, other) * n + np.maximum(here, other))
    return key // n, key % n


def _chosen(matrix: Array, k: int | None, threshold: float | None) -> tuple[Index, Index]:
    if threshold is not None and k is None:
        head, tail = np.nonzero(np.triu(matrix <= threshold, 1))
    else:
        head, tail = nearest(matrix, check_k(k, len(matrix)))
    if threshold is not None:
        on = matrix[head, tail] <= threshold
        head, tail = head[on], tail[on]
    return head, tail


def shortest(
    length: Array, head: Index, tail: Index, n_nodes: int, degree: Any
) -> NDArray[np.bool_]:
    """Mask of the shortest edges that give this mean degree; for ties see `sparsify_graph`."""
    most = round(check_number(degree, "degree", low=0.0, strict=True) * n_nodes / 2)
    count = len(length)
    order = np.random.default_rng(0).permutation(count)
    size = np.unique(length, return_inverse=True)[1]
    # the place of each edge among the equally long ones of its ends
    end, both = np.append(head, tail), np.tile(size, 2)
    by_end = np.lexsort((np.tile(order, 2), both, end))
    group = end[by_end] * (count + 1) + both[by_end]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    place = np.empty(2 * count, dtype=np.int64)
    place[by_end] = np.arange(2 * count) - np.repeat(first, np.diff(first, append=2 * count))
    turn = np.minimum(place[:count], place[count:])
    keep = np.zeros(count, dtype=bool)
    keep[np.lexsort((order, turn, size))[:most]] = True
    return keep


def _links(part: Index, matrix: Array) -> tuple[Index, Index]:
    """The shortest links between components: a minimum spanning tree over the components."""
    count = int(part.max()) + 1
    if count == 1:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    order = np.argsort(part, kind="stable")
    start = np.searchsorted(part[order], np.arange(count))
    length = np.empty((count, count))
    inner = np.empty((count, len(part)), dtype=np.int64)  # nearest member of c to each node
    for c, members in enumerate(np.split(order, start[1:])):
        block = matrix[members]
        inner[c] = members[np.argmin(block, axis=0)]
        length[c] = np.minimum.reduceat(block.min(axis=0)[order], start)
    # zero means "no edge" to the spanning tree, so lengths become ranks from 1
    rank = np.unique(length, return_inverse=True)[1].reshape(length.shape) + 1
    tree = minimum_spanning_tree(sparse.csr_array(np.triu(rank, 1))).tocoo()
    ends = np.stack(tree.coords, axis=1)
    pairs = [_pair(matrix, inner[a], np.flatnonzero(part == b)) for a, b in ends]
    head, tail = np.array(pairs, dtype=np.int64).T
    return head, tail


def _pair(matrix: Array, inner: Index, outer: Index) -> tuple[int, int]:
    j = int(outer[np.argmin(matrix[inner[outer], outer])])
    return int(inner[j]), j


def square_matrix(values: Any, name: str = "discrepancy", n: int | None = None) -> Array:
    """A symmetric matrix of numbers >= 0 off the diagonal, perhaps infinite, shape (n, n)."""
    matrix = as_float_array(values, name, 2)
    n = len(matrix) if n is None else n
    if matrix.shape != (n, n):
        raise ValueError(f"{name} must have shape ({n}, {n}); got {matrix.shape}.")
    if np.isnan(matrix).any():
        i, j = np.argwhere(np.isnan(matrix))[0]
        raise ValueError(f"{name} must not be NaN; got NaN at row {i}, column {j}.")
    off = matrix[~np.eye(n, dtype=bool)]
    if (off < 0).any():
        i, j = np.argwhere((matrix < 0) & ~np.eye(n, dtype=bool))[0]
        raise ValueError(f"{name} must be >= 0; got {matrix[i, j]:g} at row {i}, column {j}.")
    finite = np.where(np.isfinite(matrix), matrix, 0.0)
    apart = np.abs(finite - finite.T) > 1e-8 * float(np.abs(finite).max(initial=0.0))
    apart |= np.isfinite(matrix) != np.isfinite(matrix.T)
    if apart.any():
        i, j = np.argwhere(apart)[0]
        raise ValueError(
            f"{name} must be symmetric; got {matrix[i, j]:g} at row {i}, column {j} and "
            f"{matrix[j, i]:g} the other way round. Use (D + D.T) / 2."
        )
    return matrix
