"""A connected graph of points: nearest neighbours and the shortest links between their groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from nefele._checks import Array, check_count
from nefele.graph import Graph
from nefele.graphs import knn
from nefele.graphs.points import check_weighting, edge_weight

_LEAST_WEIGHT = 1e-3  # relative to the largest: a far neighbour must stay within a path's reach


def neighbour_graph(points: Array, k: int, weight: str, scale: float | None) -> Graph:
    """Nearest neighbours and the shortest links that make them one component.

    Examples
    --------
    >>> neighbour_graph(np.array([[0.0], [1.0], [5.0], [6.0]]), 1, "unit", None).n_edges
    3
    """
    n = len(points)
    k = min(check_count(k, "n_neighbors", low=1), n - 1)
    check_weighting(weight, scale)
    if n == 1:
        return Graph([0], [], [])
    graph = knn(points, k)
    head, tail = graph.head, graph.tail
    while (part := graph.components).any():
        groups = range(int(part.max()) + 1 if part.max() > 1 else 1)  # two have one link
        links = np.unique([_shortest_link(points, part == c) for c in groups], axis=0)
        head, tail = np.concatenate([head, links[:, 0]]), np.concatenate([tail, links[:, 1]])
        graph = Graph(np.arange(n), head, tail)
    value = edge_weight(points, graph.head, graph.tail, "euclidean", weight, scale)
    value = np.maximum(value, _LEAST_WEIGHT * value.max())
    return Graph(np.arange(n), graph.head, graph.tail, value)


def _shortest_link(points: Array, inside: NDArray[np.bool_]) -> tuple[int, int]:
    """The nearest pair of a point inside and one outside, the smaller row number first."""
    here, there = np.flatnonzero(inside), np.flatnonzero(~inside)
    length, place = cKDTree(points[there]).query(points[here])
    i, j = int(here[np.argmin(length)]), int(there[place[np.argmin(length)]])
    return min(i, j), max(i, j)
