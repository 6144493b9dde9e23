"""Where to draw the nodes of a graph that has no coordinates: by forces, or by distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from nefele._checks import Array

Ints = NDArray[np.int64]

_PIVOTS = 40  # starts of the shortest paths behind the first guess
_ROUNDS = 160
_FEW = 500  # nodes up to which all rounds are worth their time
_MANY = 3_000  # nodes up to which any are


def force_layout(n: int, edges: Ints, weights: Array | None = None) -> Array:
    """Each connected component by forces, the components side by side, large ones first.

    Places of n nodes, shape (n, 2), for edges of shape (n_edges, 2); light edges may be long.

    Examples
    --------
    >>> xy = force_layout(4, np.array([[0, 1], [1, 2], [2, 3]]))
    >>> np.argsort(xy[:, 0]).tolist() in ([0, 1, 2, 3], [3, 2, 1, 0])
    True
    """
    pull = np.ones(len(edges)) if weights is None else np.sqrt(weights / weights.max(initial=0.0))
    # Before SciPy 1.15 distances must have 32-bit indices.
    head, tail = edges.astype(np.intc).T
    graph = coo_array((pull, (head, tail)), shape=(n, n)).tocsr()
    graph = (graph + graph.T).tocsr()
    label = connected_components(graph, directed=False)[1]
    size = np.bincount(label, minlength=1)
    xy = np.zeros((n, 2))
    corners = _shelves(np.sqrt(size.astype(np.float64)))
    for part in range(len(size)):
        own = np.flatnonzero(label == part)
        side = np.sqrt(len(own))
        inner = _one_component(graph[own][:, own]) if len(own) > 1 else np.full((1, 2), 0.5)
        xy[own] = corners[part] + 0.08 * side + 0.84 * side * inner
    return xy


def _shelves(side: Array) -> Array:
    """Lower left corners of squares set in rows of about the same length."""
    total, largest = float((side**2).sum()), float(side.max())
    # beside a component that holds most nodes there would be a long empty margin
    length = largest if largest**2 > 0.6 * total else max(largest, 1.25 * float(np.sqrt(total)))
    corner = np.zeros((len(side), 2))
    x = y = height = 0.0
    for part in np.argsort(-side, kind="stable"):
        if x > 0 and x + side[part] > length * (1 + 1e-9):
            x, y, height = 0.0, y - height, 0.0
        corner[part] = x, y - side[part]
        x, height = x + side[part], max(height, side[part])
    return corner


def _one_component(graph: coo_array) -> Array:
    """Fruchterman-Reingold forces from a first guess by distances, in the unit square."""
    n = graph.shape[0]
    xy = _by_distances(graph)
    graph = graph.tocoo()
    head, tail, pull = graph.row, graph.col, graph.data
    ideal = 1.0 / np.sqrt(n)
    rounds = _ROUNDS if n <= _FEW else _ROUNDS // 3 if n <= _MANY else 0
    for turn in range(rounds):
        force = _repulsion(xy, ideal)
        step = xy[tail] - xy[head]
        step *= (pull * np.sqrt((step**2).sum(axis=1)) / ideal)[:, None]
        for axis in (0, 1):
            force[:, axis] += np.bincount(head, weights=step[:, axis], minlength=n)
        length = np.sqrt((force**2).sum(axis=1, keepdims=True))
        most = 0.08 * (1.0 - turn / rounds) ** 1.5
        xy = xy + force / np.maximum(length, 1e-12) * np.minimum(length, most)
        xy -= xy.mean(axis=0)
    turned = xy @ _principal(xy)
    low, high = turned.min(axis=0), turned.max(axis=0)
    return 0.5 + (turned - (low + high) / 2) / (float((high - low).max()) or 1.0)


def _repulsion(xy: Array, ideal: float) -> Array:
    """Force ideal^2 / distance away from every other node, shape (n, 2).

    Single precision and in place: all pairs at once are the cost of a layout.
    """
    at = xy.astype(np.float32)
    square = (at**2).sum(axis=1)
    push = at @ at.T
    push *= -2.0
    push += square[:, None]
    push += square
    np.maximum(push, np.float32(1e-3 * ideal**2), out=push)
    np.divide(np.float32(ideal**2), push, out=push)
    np.fill_diagonal(push, 0.0)
    return xy * push.sum(axis=1)[:, None] - push @ at


def _by_distances(graph: coo_array) -> Array:
    """Pivot MDS: two main directions of the hop distances to a few nodes."""
    n = graph.shape[0]
    pivots = np.arange(min(_PIVOTS, n)) * n // min(_PIVOTS, n)
    hops = dijkstra(graph, directed=False, unweighted=True, indices=pivots).T
    square = hops**2
    centred = square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()
    left, size, _ = np.linalg.svd(centred, full_matrices=False)
    guess = np.zeros((n, 2))
    guess[:, : min(2, len(size))] = left[:, :2] * size[:2]
    guess /= max(float(np.abs(guess).max()), 1e-12)
    # nodes at the same distances start apart, always in the same way
    return 0.5 * guess + 0.02 * np.random.default_rng(0).standard_normal((n, 2))


def _principal(xy: Array) -> Array:
    """Turn that lays the longest side across the page."""
    axes = np.linalg.svd(xy - xy.mean(axis=0), full_matrices=False)[2].T
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return axes
