"""Graphs of places, by brute force."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from nefele.graph_learning import DelaunayGraph, RadiusGraph
from nefele.graphs.points import edge_length, embed
from tests.graph_learning.data import as_rows

ROWS = as_rows(np.ones((1, 1)), [1.0], ["p00"])


def table(points, columns):
    names = [f"p{i:02d}" for i in range(len(points))]
    return pd.DataFrame(points, columns=columns, index=names)


def edges(graph):
    return set(zip(graph.head.tolist(), graph.tail.tolist(), strict=True))


def empty_caps(place):
    """Sides of all triangles of unit vectors with an empty cap below half the sphere."""
    found = set()
    for a, b, c in combinations(range(len(place)), 3):
        pole = np.cross(place[b] - place[a], place[c] - place[a])
        for side in (pole, -pole):
            height = place @ side - side @ place[a]
            if side @ place[a] > 0 and np.delete(height, [a, b, c]).max(initial=-1) < 0:
                found |= {(a, b), (a, c), (b, c)}
    return found


@pytest.mark.parametrize("reach", [1.0, 90.0])
def test_delaunay_on_the_earth_has_empty_caps(reach):
    rng = np.random.default_rng(0)
    if reach == 1.0:  # a country
        points = np.array([61.0, 25.0]) + rng.uniform(-3, 3, (14, 2))
    else:  # the whole Earth, across the date line and the poles
        points = np.column_stack([rng.uniform(-90, 90, 14), rng.uniform(-180, 180, 14)])
    graph = DelaunayGraph(coords=table(points, ["lat", "lon"])).fit_graph(ROWS)
    assert edges(graph) == empty_caps(embed(points, "haversine"))


def test_delaunay_in_the_plane_has_empty_circles():
    points = np.random.default_rng(1).random((12, 2))
    graph = DelaunayGraph(coords=table(points, ["x", "y"]), weight="inverse").fit_graph(ROWS)
    want = set()
    for a, b, c in combinations(range(12), 3):
        A = 2 * np.array([points[b] - points[a], points[c] - points[a]])
        square = (points**2).sum(axis=1)
        centre = np.linalg.solve(A, [square[b] - square[a], square[c] - square[a]])
        far = np.linalg.norm(points - centre, axis=1)
        if np.delete(far, [a, b, c]).min() > far[a]:
            want |= {(a, b), (a, c), (b, c)}
    assert edges(graph) == want
    length = np.linalg.norm(graph.diff(points), axis=1)
    np.testing.assert_allclose(graph.weight, 1 / length)


@pytest.mark.parametrize(
    ("columns", "points"),
    [
        (["x", "y"], [[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]),  # on a line
        (["x"], [[0.0], [1.0], [2.0], [3.0]]),
        (["lat", "lon"], [[10.0, 20.0], [20.0, 20.0], [30.0, 20.0], [40.0, 20.0]]),  # a meridian
    ],
)
def test_places_on_a_line_form_a_chain(columns, points):
    graph = DelaunayGraph(coords=table(points, columns)).fit_graph(ROWS)
    assert edges(graph) >= {(0, 1), (1, 2), (2, 3)}
    assert graph.components.max() == 0


def test_few_and_coinciding_places():
    pair = DelaunayGraph(coords=table([[0.0, 0.0], [1.0, 1.0]], ["lat", "lon"]))
    assert edges(pair.fit_graph(ROWS)) == {(0, 1)}
    one = DelaunayGraph(coords=table([[0.0, 0.0]], ["lat", "lon"])).fit_graph(ROWS)
    assert one.n_edges == 0
    same = table([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], ["x", "y"])
    assert DelaunayGraph(coords=same).fit_graph(ROWS).neighbors("p03") == ["p00"]


def test_radius_in_kilometres_and_connected():
    rng = np.random.default_rng(3)
    points = np.column_stack([rng.uniform(58, 70, 15), rng.uniform(20, 30, 15)])
    place = embed(points, "haversine")
    i, j = np.triu_indices(15, 1)
    length = edge_length(place, i, j, "haversine")
    where = table(points, ["latitude", "longitude"])
    graph = RadiusGraph(250.0, coords=where).fit_graph(ROWS)
    near = length <= 250.0
    assert edges(graph) == set(zip(i[near].tolist(), j[near].tolist(), strict=True))
    parts = int(graph.components.max()) + 1
    assert parts > 1
    joined = RadiusGraph(250.0, coords=where, connect=True).fit_graph(ROWS)
    assert joined.components.max() == 0 and joined.n_edges == graph.n_edges + parts - 1
