"""Options common to builders, and diagnostics."""

import matplotlib
import numpy as np
import pytest

from nefele import Graph, GTVRegressor, GTVRegressorCV, LocalData, Problem, solve
from nefele.graph_learning import (
    LossGraph,
    connect_graph,
    graph_diagnostics,
    graph_from_discrepancy,
    normalize_weights,
    sparsify_graph,
)
from nefele.graphs import sbm
from tests.graph_learning.data import as_rows, planted


@pytest.fixture
def distance():
    points = np.random.default_rng(0).normal(size=(20, 2)) + np.repeat([0.0, 9.0], 10)[:, None]
    return np.linalg.norm(points[:, None] - points[None], axis=2)


def test_k_nearest_by_brute_force(distance):
    graph = graph_from_discrepancy(np.arange(20), distance, k=3)
    want = set()
    for i in range(20):
        for j in np.argsort(np.where(np.arange(20) == i, np.inf, distance[i]))[:3]:
            want.add((min(i, int(j)), max(i, int(j))))
    assert set(zip(graph.head.tolist(), graph.tail.tolist(), strict=True)) == want


def test_threshold_and_k_together(distance):
    both = graph_from_discrepancy(np.arange(20), distance, k=2, threshold=0.9)
    near = graph_from_discrepancy(np.arange(20), distance, threshold=0.9)
    assert both.n_edges < near.n_edges and (distance[near.head, near.tail] <= 0.9).all()


def test_connect_adds_the_shortest_links(distance):
    loose = graph_from_discrepancy(np.arange(20), distance, k=1)
    joined = graph_from_discrepancy(np.arange(20), distance, k=1, connect=True)
    parts = int(loose.components.max()) + 1
    assert parts > 2 and joined.components.max() == 0
    assert joined.n_edges == loose.n_edges + parts - 1
    cross = (joined.head < 10) & (joined.tail >= 10)
    shortest = distance[:10, 10:].min()  # between the two far groups
    assert distance[joined.head[cross], joined.tail[cross]].tolist() == [shortest]
    assert connect_graph(loose, distance).n_edges == joined.n_edges
    same = np.zeros((4, 4))  # all at one place: links of length zero
    assert connect_graph(Graph(range(4), [], []), same).components.max() == 0


@pytest.mark.parametrize("weight", ["unit", "exp", "inverse"])
def test_a_link_of_infinite_length_still_connects(weight):
    D = np.full((4, 4), np.inf)
    D[0, 1] = D[1, 0] = D[2, 3] = D[3, 2] = 2.0
    graph = graph_from_discrepancy(range(4), D, k=1, weight=weight, connect=True)
    assert graph.n_edges == 3 and graph.components.max() == 0
    assert graph_from_discrepancy(range(4), D, k=3).n_edges == 2  # but is never chosen


def test_sparsify_keeps_the_heaviest(distance):
    graph = graph_from_discrepancy(np.arange(20), distance, k=6, weight="exp")
    thin = sparsify_graph(graph, 3.0)
    assert thin.degree.mean() == 3.0
    assert thin.weight.min() >= np.sort(graph.weight)[-thin.n_edges]
    assert sparsify_graph(thin, 9.0) == thin
    direct = graph_from_discrepancy(np.arange(20), distance, k=6, weight="exp", degree=3.0)
    assert (direct.head == thin.head).all() and (direct.tail == thin.tail).all()


def test_normalised_weights(distance):
    graph = graph_from_discrepancy(np.arange(20), distance, k=4, weight="inverse")
    assert normalize_weights(graph, "mean").weight.mean() == pytest.approx(1.0)
    scaled = normalize_weights(graph, "degree").adjacency.toarray()
    values = np.linalg.eigvalsh(scaled)
    assert values[-1] == pytest.approx(1.0) and values[0] >= -1 - 1e-12
    assert normalize_weights(Graph([0, 1], [], []), "mean").n_edges == 0


def test_options_reach_the_builders():
    rows = as_rows(*planted(0, n=12, m=8)[:3])
    plain = LossGraph(k=2, weight="exp").fit_graph(rows)
    assert plain.components.max() > 0
    full = LossGraph(k=2, weight="exp", connect=True, normalize="mean").fit_graph(rows)
    assert full.components.max() == 0 and full.weight.mean() == pytest.approx(1.0)
    assert LossGraph(k=5, degree=2.0).fit_graph(rows).degree.mean() == 2.0


def two_groups():
    """Two groups that differ in their level, one wrong link between them."""
    inside = [(i, j) for i in range(10) for j in range(i) if i // 5 == j // 5]
    graph = Graph.from_edges([*inside, (2, 7)])
    y = np.where(np.arange(10) < 5, 0.0, 5.0) + 0.01 * np.arange(10)
    data = LocalData.from_list([([[1.0]], [value]) for value in y])
    return graph, data


def test_a_wrong_link_is_suspicious():
    graph, data = two_groups()
    result = solve(Problem(graph, data, lam=0.5))
    found = graph_diagnostics(graph, result)
    e = found.suspicious.tolist()
    assert [(graph.head[k], graph.tail[k]) for k in e] == [(2, 7)]
    assert found.saturated == pytest.approx(1 / graph.n_edges)
    assert found.homophily > 0.8
    assert "2 - 7" in str(found)
    smooth = solve(Problem(graph, data, lam=0.5, penalty="squared_l2"))
    assert graph_diagnostics(graph, smooth).saturated is None


def test_structure():
    graph = sbm([10, 10, 10], 0.8, 0.02, seed=0)
    lonely = Graph([f"n{i}" for i in range(32)], graph.head, graph.tail)
    found = graph_diagnostics(lonely)
    assert found.isolated.tolist() == ["n30", "n31"]
    assert found.n_components == len(np.unique(lonely.components))
    assert len(np.unique(found.communities[:30])) == 3 and found.modularity > 0.5
    A = lonely.adjacency.toarray()
    inside = lonely.components == np.bincount(lonely.components).argmax()
    A = A[np.ix_(inside, inside)]
    root = 1 / np.sqrt(A.sum(axis=1))
    want = np.linalg.eigvalsh(np.eye(len(A)) - root[:, None] * A * root)[1]
    assert found.spectral_gap == pytest.approx(want)
    assert found.homophily is None and "homophily" not in str(found)


def test_a_bar_between_two_cliques_has_a_small_gap():
    graph, _ = two_groups()
    full = Graph(range(10), *np.triu_indices(10, 1))
    assert graph_diagnostics(graph).spectral_gap < 0.15 < 1 < graph_diagnostics(full).spectral_gap
    assert np.isnan(graph_diagnostics(Graph([0, 1], [], [])).spectral_gap)


def test_large_graphs_take_the_sparse_way():
    graph = sbm([400, 400], 0.05, 0.002, seed=0)
    found = graph_diagnostics(graph)
    assert 0 < found.spectral_gap < 0.3
    kind = np.repeat([0, 1], 400)
    assert np.mean(found.communities == kind) > 0.98 or np.mean(found.communities != kind) > 0.98


def test_models_and_their_cross_validated_form():
    X, y, ids, _ = planted(0, n=12, m=10)
    model = GTVRegressor(LossGraph(), alpha=0.3, standardize=True).fit(X, y, node_ids=ids)
    found = graph_diagnostics(model.graph_, model)
    assert found.homophily > 0.5 and 0 <= found.saturated <= 1
    search = GTVRegressorCV(LossGraph(), penalty="l2", n_alphas=3, cv=2).fit(X, y, node_ids=ids)
    assert graph_diagnostics(search.graph_, search).homophily > 0.5
    chosen = GTVRegressorCV(LossGraph()).fit(X, y, node_ids=ids)
    assert graph_diagnostics(chosen.graph_, chosen).homophily > 0.5


@pytest.mark.parametrize("hub", [1e-6, 1.0])
def test_a_centre_is_no_node_of_the_graph(hub):
    """A slight one changes nothing; with the centre alone no edge of the graph is in the fit."""
    X, y, ids, _ = planted(0, n=12, m=10)
    plain = GTVRegressor(LossGraph(), alpha=0.3, tol=1e-8).fit(X, y, node_ids=ids)
    model = GTVRegressor(LossGraph(), alpha=0.3, tol=1e-8, hub=hub).fit(X, y, node_ids=ids)
    want, found = (graph_diagnostics(fit.graph_, fit) for fit in (plain, model))
    assert want.saturated > 0
    if hub < 1:
        assert found.homophily == pytest.approx(want.homophily, abs=1e-3)
        assert found.saturated == want.saturated
        np.testing.assert_array_equal(found.suspicious, want.suspicious)
    else:
        assert found.saturated is None and not len(found.suspicious)


def test_a_fit_with_personal_intercepts():
    X, y, ids, _ = planted(0, n=12, m=10)
    model = GTVRegressor(LossGraph(), alpha=0.3, couple_intercept=False).fit(X, y, node_ids=ids)
    found = graph_diagnostics(model.graph_, model)
    assert 0 <= found.saturated <= 1 and found.homophily > 0.5


def test_picture():
    matplotlib.use("agg")
    from matplotlib import pyplot

    graph, data = two_groups()
    found = graph_diagnostics(graph, solve(Problem(graph, data, lam=0.5)))
    ax = found.plot(np.random.default_rng(0).random((10, 2)))
    assert len(ax.collections[1].get_segments()) == 1  # the suspicious link
    assert found.plot(ax=ax) is ax
    with pytest.raises(ValueError, match="positions must have shape"):
        found.plot(np.zeros((3, 2)))
    pyplot.close("all")
