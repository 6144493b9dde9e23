"""Places of the nodes on a page: given positions, a projection, or a force layout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from nefele._checks import Array

Ints = NDArray[np.int64]

_PIVOTS = 40  # starts of the shortest paths behind the first guess
_ROUNDS = 160


@dataclass(frozen=True, eq=False)
class Places:
    """Places inside a box with sides of at most 1, y upwards.

    Attributes
    ----------
    xy : array of shape (n, 2)
    box : (width, height)
    globe : (longitude, latitude, degrees per unit of x, degrees per unit of y), or None
        Of the lower left corner, on a map.
    """

    xy: Array
    box: tuple[float, float]
    globe: tuple[float, float, float, float] | None = None


def place(n: int, edges: Ints, positions: Array | None, geographic: bool) -> Places:
    """Places of n nodes.

    Examples
    --------
    >>> place(2, np.array([[0, 1]]), np.array([[0.0, 0.0], [4.0, 2.0]]), False).xy.tolist()
    [[0.0, 0.0], [1.0, 0.5]]
    """
    if positions is None:
        return _fit(_force_layout(n, edges))
    filled = _fill(np.array(positions, dtype=np.float64), edges)
    return _map(filled) if geographic else _fit(filled)


def _fit(xy: Array) -> Places:
    low = xy.min(axis=0)
    span = xy.max(axis=0) - low
    side = float(span.max())
    if not side > 0:
        return Places(np.full_like(xy, 0.5), (1.0, 1.0))
    return Places((xy - low) / side, (float(span[0] / side), float(span[1] / side)))


def _map(lonlat: Array) -> Places:
    """Equirectangular, longitudes shortened by the cosine of the middle latitude."""
    lon, lat = lonlat.T
    across = np.where(lon < 0, lon + 360, lon)
    if np.ptp(across) < np.ptp(lon):
        lon = across  # the nodes lie on both sides of the date line
    shrink = max(float(np.cos(np.radians((lat.min() + lat.max()) / 2))), 0.05)
    placed = _fit(np.column_stack([lon * shrink, lat]))
    side = max(float(np.ptp(lon)) * shrink, float(np.ptp(lat)))
    if not side > 0:
        return placed
    return Places(placed.xy, placed.box, (float(lon.min()), float(lat.min()), side / shrink, side))


def _fill(xy: Array, edges: Ints) -> Array:
    """Give nodes without a position the mean of their neighbours, or the middle."""
    xy = np.where(np.isfinite(xy), xy, np.nan)
    for _ in range(3):
        missing = np.isnan(xy[:, 0] + xy[:, 1])
        if not missing.any():
            return xy
        both = np.concatenate([edges, edges[:, ::-1]])
        both = both[missing[both[:, 0]] & ~missing[both[:, 1]]]
        total = np.zeros_like(xy)
        np.add.at(total, both[:, 0], xy[both[:, 1]])
        count = np.bincount(both[:, 0], minlength=len(xy))
        found = count > 0
        xy[found] = total[found] / count[found, None]
    missing = np.isnan(xy[:, 0] + xy[:, 1])
    xy[missing] = 0.0 if missing.all() else xy[~missing].mean(axis=0)
    return xy


def _force_layout(n: int, edges: Ints) -> Array:
    """Each connected component by forces, the components side by side, large ones first."""
    ones = np.ones(len(edges))
    graph = coo_array((ones, (edges[:, 0], edges[:, 1])), shape=(n, n)).tocsr()
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
    head, tail = graph.nonzero()
    ideal = 1.0 / np.sqrt(n)
    rounds = _ROUNDS if n <= 500 else _ROUNDS // 3
    for turn in range(rounds):
        force = _repulsion(xy, ideal)
        step = xy[tail] - xy[head]
        step *= np.sqrt((step**2).sum(axis=1, keepdims=True)) / ideal
        for axis in (0, 1):
            force[:, axis] += np.bincount(head, weights=step[:, axis], minlength=n)
        length = np.sqrt((force**2).sum(axis=1, keepdims=True))
        most = 0.08 * (1.0 - turn / rounds) ** 1.5
        xy = xy + force / np.maximum(length, 1e-12) * np.minimum(length, most)
        xy -= xy.mean(axis=0)
    turned = xy @ _principal(xy)
    return _fit(turned).xy + (1 - np.array(_fit(turned).box)) / 2


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
