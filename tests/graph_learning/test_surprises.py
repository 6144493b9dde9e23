"""What surprised new users of graph learning and of the theory."""

import numpy as np
import pandas as pd
import pytest

from nefele import Graph, GTVRegressor, LocalData, Problem, graphs, solve
from nefele.graph_learning import (
    DelaunayGraph,
    GlassoGraph,
    LossGraph,
    PoolingGainGraph,
    graph_diagnostics,
    graph_from_discrepancy,
    squared_wasserstein,
)
from nefele.graph_learning.builders import TrainingRows
from nefele.theory import critical_lambda, edge_influence, phase_diagram, well_connected

ONE = TrainingRows(np.ones((1, 1)), np.ones((1, 1)), np.array(["a"]), np.ones(1))


def pairs(graph):
    return [f"{graph.ids[a]}{graph.ids[b]}" for a, b in zip(graph.head, graph.tail, strict=True)]


@pytest.mark.parametrize("row", [[1.0, 1.0], [0.1, 0.3], [1 / 3, 0.7]])
def test_an_optimum_that_is_not_unique_has_no_influences(row):
    data = LocalData.from_list([([row], [v]) for v in (0.0, 1.0, 5.0)])
    triangle = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    problem = Problem(triangle, data, penalty="squared_l2", lam=1.0)
    with pytest.raises(ValueError, match="needs a unique optimum"):
        edge_influence(problem)


@pytest.mark.parametrize("n", [500, 700, 1000])
def test_the_spectral_gap_of_a_path(n):
    gap = graph_diagnostics(graphs.chain(n)).spectral_gap
    assert gap == pytest.approx(1 - np.cos(np.pi / (n - 1)), rel=1e-3)


def test_weights_are_counts():
    rng = np.random.default_rng(0)
    ids, X = np.repeat(list("abcdef"), 6), rng.normal(size=(36, 2))
    y = X @ [1.0, 2.0] + np.repeat(rng.normal(size=6), 6) * 0.8 + rng.normal(size=36)
    twice = np.repeat(np.arange(36), 2)
    model = GTVRegressor(PoolingGainGraph(), alpha=0.1)
    weighted = model.fit(X, y, np.full(36, 2.0), node_ids=ids).graph_
    repeated = model.fit(X[twice], y[twice], node_ids=ids[twice]).graph_
    assert weighted == repeated


def test_a_far_node_does_not_disturb_the_others():
    found = squared_wasserstein(np.array([[0.0], [1.0], [2.0], [1e9]]), np.ones((4, 1, 1)))
    np.testing.assert_allclose(found[:3, :3], [[0, 1, 4], [1, 0, 1], [4, 1, 0]], rtol=1e-6)


def test_clusters_without_data_are_not_recovered():
    found = phase_diagram([0.0], [0.05], n=40, runs=3)
    assert found.predicted[0, 0] < 1 and found.observed[0, 0] < 1


@pytest.mark.parametrize("lat", [True, False])
def test_stations_on_a_great_circle_are_a_chain(lat):
    along = [0.0, 10.0, 20.0, 30.0, 45.0]
    places = {n: (t, 20.0) if lat else (0.0, t) for n, t in zip("abcde", along, strict=True)}
    table = pd.DataFrame(places, index=["lat", "lon"]).T
    assert pairs(DelaunayGraph(coords=table).fit_graph(ONE)) == ["ab", "bc", "cd", "de"]
    globe = pd.DataFrame({"lat": 0.0, "lon": [-170.0, -80.0, 10.0, 100.0]}, index=list("abcd"))
    assert pairs(DelaunayGraph(coords=globe).fit_graph(ONE)) == ["ab", "ad", "bc", "cd"]


def test_nodes_at_nearly_the_same_place_hang_together():
    near = {
        "a": (0, 0),
        "b": (1, 0),
        "c": (0, 1),
        "d": (1, 1),
        "e": (0.3, 0.3),
        "f": (0.1 + 0.2,) * 2,
    }
    graph = DelaunayGraph(coords=near).fit_graph(ONE)
    assert (graph.degree > 0).all() and "ef" in pairs(graph)


def test_equal_models_are_not_cut():
    two = [(i, j) for i in range(10) for j in range(i) if i // 5 == j // 5]
    links = Graph.from_edges([*two, (2, 7)])
    rows = [([[1.0]], [v]) for v in np.where(np.arange(10) < 5, 0.0, 5.0)]
    problem = Problem(links, LocalData.from_list(rows), lam=1.0)
    above = problem.with_lam(1.0005 * critical_lambda(problem).value)
    found = graph_diagnostics(links, solve(above, tol=1e-10))
    assert found.saturated == 0 and not len(found.suspicious) and np.isnan(found.homophily)
    below = graph_diagnostics(links, solve(problem.with_lam(0.3), tol=1e-10))
    assert pairs(Graph(links.ids, links.head[below.suspicious], links.tail[below.suspicious])) == [
        "27"
    ]


def test_a_constant_target_teaches_nothing():
    rng = np.random.default_rng(0)
    ids, X = np.repeat(list("abcdef"), 6), rng.normal(size=(36, 2))
    model = GTVRegressor(GlassoGraph(signals="parameters"), alpha=0.1)
    found = [model.fit(X, np.full(36, c), node_ids=ids).graph_.n_edges for c in (0.3, 0.25)]
    assert found[0] == found[1]


def test_errors_name_the_cause():
    D = np.array([[0.0, 1.0, 9.0], [5.0, 0.0, 1.0], [2.0, 9.0, 0.0]])
    with pytest.raises(ValueError, match="must be symmetric; got 1 at row 0, column 1 and 5"):
        graph_from_discrepancy([0, 1, 2], D, threshold=2.0)
    with pytest.raises(ValueError, match="must be >= 0; got -1 at row 0, column 1"):
        graph_from_discrepancy([0, 1], [[0.0, -1.0], [-1.0, 0.0]], k=1)
    X = np.random.default_rng(0).normal(size=(8, 1))
    with pytest.raises(ValueError, match='k="auto" needs nodes with 2 rows or more'):
        GTVRegressor(LossGraph("auto")).fit(X, X[:, 0], node_ids=np.arange(8))
    data = LocalData.from_list([([[1.0]], [v]) for v in (0.0, 4.0, 1.0, 2.0)])
    problem = Problem(Graph.from_edges([(0, 1), (2, 3)]), data, lam=1.0)
    assert well_connected(problem, pd.Series(["a", "a", "b", "b"]))
    unique = Problem(problem.graph, data, penalty="squared_l2", lam=1.0)
    assert edge_influence(unique, edges=[]).size.shape == (0,)
