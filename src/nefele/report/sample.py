"""Fewer nodes for a page: above 2,000 nodes a report shows the clusters and a sample."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

Ints = NDArray[np.int64]

MOST_NODES = 2_000
MOST_EDGES = 20_000
_MOST_VALUES = 90_000  # nodes x alphas, so that a long path keeps the file small too
_EXTREMES = 50  # nodes that gain or lose most and are always shown


def most_nodes(n_alphas: int) -> int:
    """Number of nodes a page shows at most.

    Examples
    --------
    >>> most_nodes(30), most_nodes(100)
    (2000, 900)
    """
    return min(MOST_NODES, max(200, _MOST_VALUES // max(n_alphas, 1)))


def pick(labels: Ints, gain: Array, most: int) -> Ints:
    """Sorted places of the nodes to show: the extremes of `gain`, then each cluster by its size.

    `labels` are the clusters of the nodes; `gain` is NaN where it is not known.

    Examples
    --------
    >>> pick(np.array([0, 0, 0, 0, 1, 1]), np.full(6, np.nan), most=3).tolist()
    [0, 2, 4]
    """
    n = len(labels)
    if n <= most:
        return np.arange(n)
    known = np.flatnonzero(np.isfinite(gain))
    by_gain = known[np.argsort(gain[known], kind="stable")]
    ends = min(_EXTREMES, most // 8)
    kept = np.zeros(n, dtype=bool)
    kept[by_gain[:ends]] = True
    kept[by_gain[len(by_gain) - min(ends, len(by_gain)) :]] = True
    # the rest in order of cluster, at even distances: each cluster gets its share
    rest = np.flatnonzero(~kept)
    rest = rest[np.argsort(labels[rest], kind="stable")]
    wanted = most - int(kept.sum())
    kept[rest[np.arange(wanted) * len(rest) // wanted]] = True
    return np.flatnonzero(kept)


def surroundings(kept: Ints, edges: Ints, n: int) -> Ints:
    """Nearest shown node of each node, as a place in `kept`; -1 where none can be reached.

    Examples
    --------
    >>> surroundings(np.array([0, 3]), np.array([[0, 1], [1, 2], [2, 3], [4, 5]]), 6).tolist()
    [0, 0, 1, 1, -1, -1]
    """
    home = np.full(n, -1, dtype=np.int64)
    home[kept] = np.arange(len(kept))
    both = np.concatenate([edges, edges[:, ::-1]])
    while True:
        open_ends = (home[both[:, 0]] >= 0) & (home[both[:, 1]] < 0)
        if not open_ends.any():
            return home
        reached = both[open_ends]
        home[reached[::-1, 1]] = home[reached[::-1, 0]]


def shown_edges(kept: Ints, edges: Ints, weights: Array, n: int) -> tuple[Ints, Array]:
    """Edges between the surroundings of shown nodes, their weights summed.

    Examples
    --------
    >>> edges = np.array([[0, 1], [1, 2], [2, 3]])
    >>> shown_edges(np.array([0, 3]), edges, np.ones(3), 4)
    (array([[0, 1]]), array([1.]))
    """
    if len(kept) == n:
        return edges, weights
    home = surroundings(kept, edges, n)
    ends = np.sort(home[edges], axis=1)
    between = (ends[:, 0] >= 0) & (ends[:, 0] != ends[:, 1])
    pairs, place = np.unique(ends[between], axis=0, return_inverse=True)
    total = np.zeros(len(pairs))
    np.add.at(total, place.ravel(), weights[between])
    return pairs, total


def fewer_edges(edges: Ints, weights: Array, most: int = MOST_EDGES) -> tuple[Ints, Array]:
    """At most `most` edges, at even distances in the list.

    Examples
    --------
    >>> fewer_edges(np.array([[0, 1], [1, 2]]), np.ones(2), most=1)[0]
    array([[0, 1]])
    """
    if len(edges) <= most:
        return edges, weights
    some = np.arange(most) * len(edges) // most
    return edges[some], weights[some]
