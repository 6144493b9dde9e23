"""Graphs from places: all within a radius, and Delaunay triangulations, also on the Earth.

The nearest-neighbour graph of places is `nefele.estimators.SpatialKNN`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, Delaunay, QhullError
from scipy.spatial.distance import cdist

from nefele._checks import Array, check_number
from nefele.graph import Graph
from nefele.graph_learning._finish import Finished
from nefele.graph_learning.builders import TrainingRows, node_coordinates
from nefele.graphs import geometric
from nefele.graphs.points import check_weighting, edge_weight, embed


@dataclass(eq=False, repr=False, kw_only=True)
class _Placed(Finished):
    coords: Any = None
    metric: str = "auto"
    weight: str = "unit"
    scale: float | None = None


@dataclass(eq=False, repr=False)
class RadiusGraph(_Placed):
    """Join nodes at most `radius` apart; great-circle distances for latitude, longitude.

    Parameters
    ----------
    radius : float
        Largest length of an edge, in the units of the coordinates; kilometres on the Earth.
    coords, metric, weight, scale
        See `nefele.estimators.SpatialKNN`.
    degree, connect, normalize
        See `graph_from_discrepancy`; links that connect get the least weight there is.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((2, 1)), np.ones((2, 1)), np.array(["a", "b"]), np.ones(2))
    >>> places = {"a": (0.0, 0.0), "b": (5.0, 0.0), "c": (6.0, 0.0)}
    >>> RadiusGraph(2.0, coords=places).fit_graph(rows).neighbors("b")
    ['c']
    """

    radius: float = 1.0

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of all near pairs, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_number(self.radius, "radius", low=0.0, strict=True)
        check_weighting(self.weight, self.scale)
        change = self._check_finish()
        found = node_coordinates(self.coords, rows, "RadiusGraph", self.metric)
        graph = geometric(
            found.points,
            self.radius,
            metric=found.metric,
            nodes=found.ids,
            weight=self.weight,
            scale=self.scale,
        )
        place = embed(found.points, found.metric)
        # a longer arc has a longer chord
        return self._finish(graph, cdist(place, place) if change else None)


class DelaunayGraph(_Placed):
    """Join nodes whose cells touch: the Delaunay triangulation of their places.

    Two nodes are joined when some circle through both has no other node inside. On the Earth the
    circles lie on the sphere (the triangulation is a convex hull in space), and only those
    smaller than half of it count, so that stations of one country are not joined around the
    globe.

    Parameters
    ----------
    coords, metric, weight, scale
        See `nefele.estimators.SpatialKNN`.
    degree, connect, normalize
        See `graph_from_discrepancy`; links that connect get the least weight there is.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((1, 1)), np.ones((1, 1)), np.array(["a"]), np.ones(1))
    >>> places = {"a": (0.0, 0.0), "b": (9.0, 0.0), "c": (0.0, 9.0), "d": (9.0, 9.0), "e": (4, 4)}
    >>> DelaunayGraph(coords=places).fit_graph(rows).neighbors("e")
    ['a', 'b', 'c', 'd']
    """

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the triangulation, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_weighting(self.weight, self.scale)
        change = self._check_finish()
        found = node_coordinates(self.coords, rows, "DelaunayGraph", self.metric)
        place = embed(found.points, found.metric)
        # nodes at the same place share a corner: the first stands for all, the others hang on it
        size = float(np.abs(place).max(initial=0.0)) or 1.0
        rounded = np.round(place / size, 12)
        _, first, copy = np.unique(rounded, axis=0, return_index=True, return_inverse=True)
        unique = place[first]
        pairs = [first[_triangulation(unique, found.metric)]]
        more = np.flatnonzero(first[copy.ravel()] != np.arange(len(place)))
        pairs.append(np.column_stack([more, first[copy.ravel()][more]]))
        ends = np.sort(np.concatenate(pairs), axis=1)
        head, tail = np.unique(ends, axis=0).T if len(ends) else ends.T
        weight = edge_weight(place, head, tail, found.metric, self.weight, self.scale)
        graph = Graph(found.ids, head, tail, weight)
        return self._finish(graph, cdist(place, place) if change else None)


def _triangulation(place: Array, metric: str) -> Any:
    """Pairs of distinct points that share an edge, shape (n_pairs, 2)."""
    n = len(place)
    if n < 3:
        return np.array([[0, 1]] if n == 2 else [], dtype=np.int64).reshape(-1, 2)
    if metric == "haversine":
        try:
            hull = ConvexHull(place)
            # a facet the origin lies below (offset < 0) has an empty cap below half the sphere
            return _sides(hull.simplices[hull.equations[:, -1] < 0])
        except (QhullError, ValueError):
            return _around(place)
    return _flat(place)


def _around(place: Array) -> Any:
    """Points of the sphere in one plane, hence on a circle: each and the next, but for a gap.

    The widest gap is left open when it is half of the circle or more.
    """
    apart = place - place.mean(axis=0)
    _, _, axes = np.linalg.svd(apart, full_matrices=False)
    flat = apart @ axes[:2].T
    flat -= _centre(flat)
    angle = np.arctan2(flat[:, 1], flat[:, 0])
    order = np.argsort(angle, kind="stable")
    gap = np.diff(angle[order], append=angle[order[0]] + 2 * np.pi)
    pairs = np.column_stack([order, np.roll(order, -1)])
    return pairs if gap.max() < np.pi else np.delete(pairs, int(gap.argmax()), axis=0)


def _centre(points: Array) -> Array:
    """Of the circle through points of a plane, by least squares."""
    system = np.column_stack([2 * points, np.ones(len(points))])
    return np.asarray(np.linalg.lstsq(system, (points**2).sum(axis=1), rcond=None)[0][:2])


def _flat(place: Array) -> Any:
    """Delaunay triangulation in the space the points span; a chain when they lie on a line."""
    apart = place - place.mean(axis=0)
    _, size, axes = np.linalg.svd(apart, full_matrices=False)
    within = apart @ axes[size > 1e-9 * size[0]].T
    if within.shape[1] > 1:
        try:
            return _sides(Delaunay(within).simplices)
        except QhullError:
            pass
    order = np.argsort(within[:, 0], kind="stable")
    return np.column_stack([order[:-1], order[1:]])


def _sides(simplices: Any) -> Any:
    corners = simplices.shape[1]
    sides = [simplices[:, [a, b]] for a in range(corners) for b in range(a + 1, corners)]
    return np.unique(np.sort(np.concatenate(sides), axis=1), axis=0)
