"""Synthetic graphs: block models, chains, stars, grids and neighbourhood graphs of points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from nefele._checks import check_count, check_number
from nefele._ids import as_ids
from nefele.graph import Graph, Index
from nefele.graphs.points import check_weighting, chord, edge_weight, embed


def sbm(
    sizes: Sequence[int],
    p_in: float,
    p_out: float,
    *,
    weight: float = 1.0,
    seed: Any = None,
    nodes: Any = None,
) -> Graph:
    """Stochastic block model: each pair of nodes is an edge, independently of all others.

    P({i, j} is an edge) = p_in if i and j lie in the same block, p_out otherwise. Memory and
    time grow with the number of edges, not with the number of pairs.

    Parameters
    ----------
    sizes : sequence of int
        Nodes of each block; block c owns the nodes after those of the blocks before it, so
        `np.repeat(np.arange(len(sizes)), sizes)` are the block labels.
    p_in, p_out : float in [0, 1]
        Probability of an edge inside a block and between two blocks.
    weight : float
        Weight A_e > 0 of every edge.
    seed : int or numpy Generator, optional
        The same seed gives the same graph.
    nodes : sequence of ids, optional
        Node ids; default 0, 1, ...

    Examples
    --------
    >>> g = sbm([3, 2], p_in=1.0, p_out=0.0)
    >>> g.n_nodes, g.n_edges, g.components.tolist()
    (5, 4, [0, 0, 0, 1, 1])
    """
    p_in, p_out = _probability(p_in, "p_in"), _probability(p_out, "p_out")
    if not np.iterable(sizes):
        raise ValueError(f"sizes must be a list of integers; got {sizes!r}. Use [{sizes!r}].")
    counts = np.array([check_count(s, f"sizes[{c}]", low=1) for c, s in enumerate(sizes)], int)
    n = int(counts.sum())
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(counts)])
    pairs = np.concatenate([[0], np.cumsum(counts * (counts - 1) // 2)])
    chosen = _distinct(rng, int(pairs[-1]), p_in)
    block = np.searchsorted(pairs, chosen, side="right") - 1
    head, tail = _unrank(chosen - pairs[block])
    head, tail = head + start[block], tail + start[block]
    if p_out > 0 and len(counts) > 1:
        # all pairs with p_out; those inside a block are thrown away, the others stay independent
        i, j = _unrank(_distinct(rng, n * (n - 1) // 2, p_out))
        label = np.repeat(np.arange(len(counts)), counts)
        between = label[i] != label[j]
        head, tail = np.concatenate([head, i[between]]), np.concatenate([tail, j[between]])
    return _graph(n, head, tail, weight, nodes)


def chain(n: int, *, weight: float = 1.0, nodes: Any = None) -> Graph:
    """Path of n nodes: edges {i, i + 1} for i = 0, ..., n - 2.

    Parameters
    ----------
    n : int
        Number of nodes, at least 1.
    weight : float
        Weight of every edge.
    nodes : sequence of ids, optional
        Node ids along the path; default 0, 1, ...

    Examples
    --------
    >>> chain(4).neighbors(1)
    [0, 2]
    """
    i = np.arange(check_count(n, "n", low=1) - 1)
    return _graph(n, i, i + 1, weight, nodes)


def star(n: int, *, weight: float = 1.0, nodes: Any = None) -> Graph:
    """Star of n nodes: the centre 0 is joined to each of 1, ..., n - 1.

    Parameters
    ----------
    n : int
        Number of nodes with the centre, at least 1.
    weight : float
        Weight of every edge.
    nodes : sequence of ids, optional
        Node ids, the centre first; default 0, 1, ...

    Examples
    --------
    >>> star(4).degree.tolist()
    [3, 1, 1, 1]
    """
    leaves = np.arange(1, check_count(n, "n", low=1))
    return _graph(n, np.zeros_like(leaves), leaves, weight, nodes)


def grid(
    rows: int, columns: int, neighbors: int = 4, *, weight: float = 1.0, nodes: Any = None
) -> Graph:
    """Rectangular grid; the cell in row r and column c is node r * columns + c.

    Parameters
    ----------
    rows, columns : int
        Size of the grid, at least 1 each.
    neighbors : {4, 8}
        4 joins cells that share a side, 8 also those that share a corner.
    weight : float
        Weight of every edge.
    nodes : sequence of ids, optional
        Node ids, row by row; default 0, 1, ...

    Examples
    --------
    >>> grid(2, 3).n_edges, grid(2, 3, neighbors=8).n_edges
    (7, 11)
    """
    rows, columns = check_count(rows, "rows", low=1), check_count(columns, "columns", low=1)
    if neighbors not in (4, 8):
        raise ValueError(f"neighbors must be 4 or 8; got {neighbors!r}.")
    cell = np.arange(rows * columns).reshape(rows, columns)
    ends = [(cell[:, :-1], cell[:, 1:]), (cell[:-1], cell[1:])]
    if neighbors == 8:
        ends += [(cell[:-1, :-1], cell[1:, 1:]), (cell[:-1, 1:], cell[1:, :-1])]
    head = np.concatenate([a.ravel() for a, _ in ends])
    tail = np.concatenate([b.ravel() for _, b in ends])
    return _graph(rows * columns, head, tail, weight, nodes)


def knn(
    points: Any,
    k: int,
    *,
    metric: str = "euclidean",
    nodes: Any = None,
    weight: str = "unit",
    scale: float | None = None,
) -> Graph:
    """Nearest-neighbour graph: i and j are joined when either is among the k nearest of the other.

    With the length l_e of edge e the weights are A_e = 1 ("unit"), exp(-l_e / scale) ("exp")
    or 1 / l_e ("inverse").

    Parameters
    ----------
    points : array of shape (n_nodes, d)
        Coordinates; for "haversine" latitude and longitude in degrees.
    k : int
        Neighbours of each node, 1 <= k < n_nodes.
    metric : {"euclidean", "haversine"}
        "haversine" measures along the surface of the Earth, in kilometres.
    nodes : sequence of ids, optional
        Node ids, in the order of the points; default 0, 1, ...
    weight : {"unit", "exp", "inverse"}
        How the weight depends on the length.
    scale : float, optional
        Length at which "exp" falls to 1/e; default the mean length of the edges.

    Examples
    --------
    >>> g = knn([[0.0], [1.0], [3.0]], k=1, weight="inverse")
    >>> g.head.tolist(), g.tail.tolist(), g.weight.tolist()
    ([0, 1], [1, 2], [1.0, 0.5])
    """
    check_weighting(weight, scale)
    position = embed(points, metric)
    n = len(position)
    if check_count(k, "k", low=1) >= n:
        raise ValueError(f"k must be smaller than the number of points ({n}); got {k}.")
    found = cKDTree(position).query(position, k + 1)[1]
    # coinciding points: the node itself may stand anywhere in its row, or not at all
    other = found != np.arange(n)[:, None]
    other &= np.cumsum(other, axis=1) <= k
    i, j = np.nonzero(other)[0], found[other]
    key = np.sort(np.minimum(i, j) * n + np.maximum(i, j))
    key = key[np.diff(key, prepend=-1) > 0]  # np.unique takes ten times as long
    head, tail = key // n, key % n
    return _graph(n, head, tail, edge_weight(position, head, tail, metric, weight, scale), nodes)


def geometric(
    points: Any,
    radius: float,
    *,
    metric: str = "euclidean",
    seed: Any = None,
    nodes: Any = None,
    weight: str = "unit",
    scale: float | None = None,
) -> Graph:
    """Geometric graph: i and j are joined when their distance is at most `radius`.

    Parameters
    ----------
    points : array of shape (n_nodes, d) or int
        Coordinates; for "haversine" latitude and longitude in degrees. An integer n draws n
        points uniformly from the unit square.
    radius : float
        Largest length of an edge, > 0; in kilometres for "haversine".
    metric : {"euclidean", "haversine"}
        See `knn`.
    seed : int or numpy Generator, optional
        For drawing points.
    nodes, weight, scale
        See `knn`.

    Examples
    --------
    >>> helsinki_espoo_oulu = [[60.17, 24.94], [60.21, 24.66], [65.01, 25.47]]
    >>> geometric(helsinki_espoo_oulu, radius=50.0, metric="haversine").degree.tolist()
    [1, 1, 0]
    """
    radius = check_number(radius, "radius", low=0.0, strict=True)
    if isinstance(points, int | np.integer):
        if metric != "euclidean":
            raise ValueError(
                f'Drawn points lie in the plane: metric must be "euclidean"; got "{metric}". '
                "Give an array of points instead of their number."
            )
        points = np.random.default_rng(seed).random((check_count(points, "points", low=1), 2))
    check_weighting(weight, scale)
    position = embed(points, metric)
    reach = chord(radius) if metric == "haversine" else radius
    head, tail = cKDTree(position).query_pairs(reach, output_type="ndarray").T
    values = edge_weight(position, head, tail, metric, weight, scale)
    return _graph(len(position), head, tail, values, nodes)


def _graph(n: int, head: Index, tail: Index, weight: Any, nodes: Any) -> Graph:
    if np.ndim(weight) == 0:
        weight = check_number(weight, "weight", low=0.0, strict=True)
    ids = np.arange(n) if nodes is None else as_ids(nodes)
    if len(ids) != n:
        raise ValueError(f"nodes must have one id per node ({n}); got {len(ids)}.")
    return Graph(ids, head, tail, weight)


def _probability(value: Any, name: str) -> float:
    number = check_number(value, name, low=0.0)
    if number > 1:
        raise ValueError(f"{name} must be a probability in [0, 1]; got {value!r}.")
    return number


def _distinct(rng: np.random.Generator, total: int, p: float) -> Index:
    """A random subset of 0, ..., total - 1: each number independently with probability p."""
    count = int(rng.binomial(total, p))
    if 2 * count > total:
        keep = np.ones(total, dtype=bool)
        keep[_draw(rng, total, total - count)] = False
        return np.flatnonzero(keep)
    return _draw(rng, total, count)


def _draw(rng: np.random.Generator, total: int, count: int) -> Index:
    """Uniformly `count` <= total / 2 distinct numbers below `total`, sorted."""
    found = np.zeros(0, dtype=np.int64)
    while len(found) < count:
        more = rng.integers(total, size=int(1.5 * (count - len(found))) + 8)
        found = np.unique(np.concatenate([found, more]))
    surplus = rng.permutation(len(found))[count:]  # all numbers are alike: any of them may go
    return np.delete(found, surplus)


def _unrank(rank: Index) -> tuple[Index, Index]:
    """The pair i < j with number rank = j (j - 1) / 2 + i."""
    j = ((1.0 + np.sqrt(8.0 * rank + 1.0)) / 2.0).astype(np.int64)
    j -= j * (j - 1) // 2 > rank  # the square root is rounded
    j += j * (j + 1) // 2 <= rank
    return rank - j * (j - 1) // 2, j
