import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nefele.graphs
from nefele.graphs import chain, geometric, grid, knn, sbm, star
from nefele.graphs.generators import _draw, _unrank

EARTH = 6371.0088
CITIES = np.array(
    [[60.17, 24.94], [65.01, 25.47], [59.33, 18.07], [-33.87, 151.21], [64.15, -21.9]]
)


def pairs(graph):
    return set(zip(graph.head.tolist(), graph.tail.tolist(), strict=True))


def haversine(a, b):
    (lat1, lon1), (lat2, lon2) = np.radians(a), np.radians(b)
    h = (
        np.sin((lat2 - lat1) / 2) ** 2
        + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH * np.arcsin(np.sqrt(h))


def all_distances(points, distance):
    return np.array([[distance(a, b) for b in points] for a in points])


def euclidean(a, b):
    return np.linalg.norm(a - b)


def test_exported_names_are_sorted():
    assert nefele.graphs.__all__ == sorted(nefele.graphs.__all__)
    assert all(callable(getattr(nefele.graphs, name)) for name in nefele.graphs.__all__)


def test_chain_and_star():
    assert pairs(chain(4)) == {(0, 1), (1, 2), (2, 3)}
    assert pairs(star(4)) == {(0, 1), (0, 2), (0, 3)}
    assert chain(1).n_edges == star(1).n_edges == 0
    assert chain(3, weight=0.5).weight.tolist() == [0.5, 0.5]
    assert star(3, nodes=["hub", "a", "b"]).neighbors("hub") == ["a", "b"]


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 4), (3, 1), (2, 2), (3, 5)])
def test_grid_matches_the_definition(rows, columns):
    cells = [(r, c) for r in range(rows) for c in range(columns)]
    near = {4: set(), 8: set()}
    for i, (r, c) in enumerate(cells):
        for j, (s, d) in enumerate(cells):
            if i < j and abs(r - s) + abs(c - d) == 1:
                near[4].add((i, j))
            if i < j and max(abs(r - s), abs(c - d)) == 1:
                near[8].add((i, j))
    for neighbors, expected in near.items():
        g = grid(rows, columns, neighbors)
        assert g.n_nodes == rows * columns
        assert pairs(g) == expected


def test_a_large_grid():
    g = grid(1000, 1000, neighbors=8)
    assert (g.n_nodes, g.n_edges) == (1_000_000, 2 * 1000 * 999 + 2 * 999 * 999)
    assert (g.degree.max(), g.degree.min()) == (8, 3)


@pytest.mark.parametrize("seed", range(5))
def test_sbm_extremes_are_exact(seed):
    sizes = [3, 1, 4]
    block = np.repeat(np.arange(3), sizes)
    inside = {(i, j) for i in range(8) for j in range(i + 1, 8) if block[i] == block[j]}
    every = {(i, j) for i in range(8) for j in range(i + 1, 8)}
    assert pairs(sbm(sizes, 1.0, 0.0, seed=seed)) == inside
    assert pairs(sbm(sizes, 0.0, 1.0, seed=seed)) == every - inside
    assert pairs(sbm(sizes, 1.0, 1.0, seed=seed)) == every
    assert pairs(sbm(sizes, 0.0, 0.0, seed=seed)) == set()


def test_sbm_is_reproducible():
    one, two = sbm([40, 60], 0.3, 0.05, seed=7), sbm([40, 60], 0.3, 0.05, seed=7)
    assert one == two
    assert one != sbm([40, 60], 0.3, 0.05, seed=8)
    assert sbm([40, 60], 0.3, 0.05, seed=np.random.default_rng(7)) == one


def test_sbm_every_pair_has_its_probability():
    draws, sizes, p = 2000, [3, 4], {True: 0.7, False: 0.2}
    rng = np.random.default_rng(0)
    hits = np.zeros((7, 7))
    for _ in range(draws):
        g = sbm(sizes, p[True], p[False], seed=rng)
        hits[g.head, g.tail] += 1
    block = np.repeat([0, 1], sizes)
    for i in range(7):
        for j in range(i + 1, 7):
            q = p[bool(block[i] == block[j])]
            assert abs(hits[i, j] / draws - q) < 5 * np.sqrt(q * (1 - q) / draws)


def test_sbm_counts_of_a_large_sparse_graph():
    sizes = np.array([20_000, 30_000])
    g = sbm(sizes.tolist(), 2e-4, 1e-5, seed=0, weight=2.0)
    block = np.repeat([0, 1], sizes)
    same = int((block[g.head] == block[g.tail]).sum())
    for found, mean in (
        (same, 2e-4 * (sizes * (sizes - 1) / 2).sum()),
        (g.n_edges - same, 1e-5 * sizes.prod()),
    ):
        assert abs(found - mean) < 5 * np.sqrt(mean)
    assert (g.weight == 2.0).all()


def test_sbm_with_thousands_of_blocks():
    g = sbm([2] * 3000, 1.0, 0.0)
    assert (g.n_edges, len(np.unique(g.components))) == (3000, 3000)


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 2**61))
def test_unrank_inverts_the_number_of_a_pair(rank):
    i, j = (int(a[0]) for a in _unrank(np.array([rank])))
    assert 0 <= i < j
    assert j * (j - 1) // 2 + i == rank


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 200), st.integers(0, 2**32 - 1))
def test_draw_gives_distinct_sorted_numbers(total, seed):
    found = _draw(np.random.default_rng(seed), total, total // 2)
    assert len(found) == total // 2
    assert np.all(np.diff(found) > 0)
    assert np.all((found >= 0) & (found < total))


@pytest.mark.parametrize(
    ("metric", "distance"), [("euclidean", euclidean), ("haversine", haversine)]
)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_knn_is_the_union_of_nearest_neighbours(metric, distance, k):
    D = all_distances(CITIES, distance)
    expected = set()
    for i in range(len(CITIES)):
        for j in [j for j in np.argsort(D[i]) if j != i][:k]:
            expected.add((min(i, int(j)), max(i, int(j))))
    g = knn(CITIES, k, metric=metric, weight="inverse")
    assert pairs(g) == expected
    assert np.allclose(g.weight, 1 / D[g.head, g.tail], rtol=1e-9)


def test_knn_crosses_the_date_line():
    points = [[0.0, 179.9], [0.0, -179.9], [0.0, 170.0]]
    assert (0, 1) in pairs(knn(points, 1, metric="haversine"))
    assert (0, 1) not in pairs(knn(points, 1, metric="euclidean"))


@pytest.mark.parametrize("copies", [2, 5, 40])
def test_knn_with_coinciding_points_has_no_loops_and_enough_neighbours(copies):
    points = np.concatenate([np.zeros((copies, 2)), np.ones((3, 2))])
    g = knn(points, 2, weight="exp")
    assert (g.degree >= 2).all()
    assert g.n_edges <= 2 * g.n_nodes
    assert (g.weight > 0).all()


@settings(derandomize=True, deadline=None)
@given(st.integers(2, 30), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_knn_matches_brute_force(n, k, seed):
    k = min(k, n - 1)
    points = np.random.default_rng(seed).random((n, 3))
    D = all_distances(points, euclidean)
    np.fill_diagonal(D, np.inf)
    near = np.argsort(D, axis=1)[:, :k]
    expected = {(min(i, int(j)), max(i, int(j))) for i in range(n) for j in near[i]}
    assert pairs(knn(points, k)) == expected


def test_exp_weights():
    points = [[0.0], [1.0], [4.0]]
    assert np.allclose(knn(points, 1, weight="exp").weight, np.exp([-0.5, -1.5]))
    assert np.allclose(knn(points, 1, weight="exp", scale=2.0).weight, np.exp([-0.5, -1.5]))
    assert np.allclose(knn(points, 1, weight="exp", scale=1.0).weight, np.exp([-1.0, -3.0]))


def test_exp_weight_of_a_far_neighbour_keeps_the_edge():
    g = knn([[0.0], [1.0], [1e6]], 1, weight="exp", scale=1.0)
    assert pairs(g) == {(0, 1), (1, 2)}
    assert (
        knn(np.zeros((3, 1)), 1, weight="exp").weight.tolist()
        == [1.0] * knn(np.zeros((3, 1)), 1).n_edges
    )


def test_geometric_matches_networkx():
    points = np.random.default_rng(3).random((60, 2))
    other = nx.random_geometric_graph(60, 0.2, pos=dict(enumerate(points.tolist())))
    expected = {(min(a, b), max(a, b)) for a, b in other.edges}
    assert pairs(geometric(points, 0.2)) == expected


def test_geometric_on_the_earth():
    D = all_distances(CITIES, haversine)
    for radius in (600.0, 2000.0, 16000.0, 1e6):
        expected = {(i, j) for i in range(5) for j in range(i + 1, 5) if D[i, j] <= radius}
        assert pairs(geometric(CITIES, radius, metric="haversine")) == expected


def test_geometric_draws_points():
    g = geometric(200, 0.1, seed=1, nodes=[f"s{i}" for i in range(200)])
    assert g == geometric(200, 0.1, seed=1, nodes=[f"s{i}" for i in range(200)])
    assert g.n_edges != geometric(200, 0.1, seed=2).n_edges
    # pairs within radius r of the unit square: about n^2 pi r^2 / 2, less at the border
    assert 400 < g.n_edges < 200**2 * np.pi * 0.01 / 2 * 1.1
    assert geometric(1, 0.5).n_edges == 0


def test_points_are_not_changed_and_may_be_read_only():
    points = CITIES.copy()
    points.flags.writeable = False
    knn(points, 2, metric="haversine", weight="exp")
    geometric(points, 10.0, weight="inverse")
    assert np.array_equal(points, CITIES)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: chain(0), "n must be an integer >= 1; got 0"),
        (lambda: chain(2.5), r"n must be an integer >= 1; got 2\.5"),
        (lambda: star(-1), "n must be an integer >= 1; got -1"),
        (lambda: chain(3, nodes=["a"]), r"one id per node \(3\); got 1"),
        (lambda: chain(2, nodes=["a", "a"]), "distinct; 'a' is repeated"),
        (lambda: chain(3, weight=0.0), "weight must be finite and > 0; got 0"),
        (lambda: chain(3, weight=np.nan), "weight must be finite"),
        (lambda: grid(0, 3), "rows must be an integer >= 1"),
        (lambda: grid(2, True), "columns must be an integer >= 1; got True"),
        (lambda: grid(2, 2, neighbors=6), "neighbors must be 4 or 8; got 6"),
        (lambda: sbm([2, 0], 0.5, 0.5), r"sizes\[1\] must be an integer >= 1; got 0"),
        (lambda: sbm(5, 0.5, 0.5), r"sizes must be a list of integers; got 5\. Use \[5\]"),
        (lambda: sbm([], 0.5, 0.5), "at least one node"),
        (lambda: sbm([3], 1.5, 0.5), r"p_in must be a probability in \[0, 1\]; got 1\.5"),
        (lambda: sbm([3], 0.5, -0.1), r"p_out must be finite and >= 0; got -0\.1"),
        (lambda: sbm([3], np.nan, 0.1), "p_in must be finite"),
        (lambda: knn(CITIES, 5), r"k must be smaller than the number of points \(5\); got 5"),
        (lambda: knn(CITIES, 0), "k must be an integer >= 1; got 0"),
        (lambda: knn([1.0, 2.0], 1), r"points must have 2 dimension\(s\); got shape \(2,\)"),
        (lambda: knn([[1.0], [np.nan]], 1), "points at row 1, column 0 must be finite; got nan"),
        (lambda: knn(CITIES, 1, metric="haversin"), 'Did you mean "haversine"'),
        (lambda: knn(CITIES, 1, weight="expo"), 'Did you mean "exp"'),
        (lambda: knn(CITIES, 1, weight="exp", scale=0), "scale must be finite and > 0; got 0"),
        (lambda: knn(CITIES[:, ::-1], 1, metric="haversine"), r"latitude .* 151\.21 at row 3"),
        (lambda: knn(np.ones((3, 3)), 1, metric="haversine"), r"\(latitude, longitude\); got 3"),
        (lambda: knn(np.zeros((3, 1)), 1, weight="inverse"), "rows 0 and . coincide"),
        (lambda: geometric(CITIES, 0.0), "radius must be finite and > 0"),
        (lambda: geometric(np.zeros((0, 2)), 1.0), r"rows and columns; got shape \(0, 2\)"),
        (lambda: geometric(0, 1.0), "points must be an integer >= 1; got 0"),
        (lambda: geometric(5, 1.0, metric="haversine"), "Drawn points lie in the plane"),
    ],
)  # fmt: skip
def test_bad_arguments_say_what_must_hold(make, words):
    with pytest.raises(ValueError, match=words):
        make()
