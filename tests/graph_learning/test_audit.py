"""Small samples, ties, far nodes, rows that do not belong together: what an audit found."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from nefele import Graph, GTVRegressor, GTVRegressorCV, LocalData, Problem, WithinNodeKFold, solve
from nefele.estimators import MomentsKNN, SpatialKNN
from nefele.graph_learning import (
    AlternatingGraph,
    DelaunayGraph,
    EmbeddingKNN,
    GlassoGraph,
    LabelGraph,
    LossGraph,
    RadiusGraph,
    SmoothSignalGraph,
    TestGraph,
    WassersteinGraph,
    graph_diagnostics,
    learn_smooth_graph,
    solve_degrees,
    sparsify_graph,
)
from nefele.graph_learning._columns import ks_survival
from nefele.graph_learning._rows import node_rows
from nefele.graph_learning.two_sample import pair_pvalues
from nefele.result import ConvergenceWarning, DataWarning
from tests.graph_learning.data import as_rows, places, planted


def complete(n):
    return Graph(np.arange(n), *np.triu_indices(n, 1))


# -- Kolmogorov-Smirnov -----------------------------------------------------------------------


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 2), (2, 5), (4, 6), (9, 9), (15, 20), (7, 90)])
def test_exact_values_of_small_samples(m, n):
    i, j = np.meshgrid(np.arange(m + 1), np.arange(n + 1))
    steps = np.unique(np.abs(i * n - j * m))[:: max(1, m * n // 60)]
    for step, got in zip(steps, ks_survival(steps, m, n), strict=True):
        a, b = np.argwhere(np.abs(i * n - j * m) == step)[0][::-1]
        x, z = np.arange(m) >= a, np.arange(n) >= b  # a and b zeros, then ones
        want = stats.ks_2samp(x.astype(float), z.astype(float), method="exact").pvalue
        assert got == pytest.approx(want, rel=1e-6, abs=1e-12)


def test_large_samples_go_by_the_limit():
    x, z = np.linspace(0, 1, 60), np.linspace(0.1, 1, 80)
    want = stats.ks_2samp(x, z, method="asymp")
    step = np.array([round(want.statistic * 60 * 80)])
    assert ks_survival(step, 60, 80)[0] == pytest.approx(want.pvalue)
    apart = ks_survival(np.array([2 * 2000]), 2, 2000)[0]
    assert apart == pytest.approx(2 / (2002 * 2001 / 2))  # never 0
    assert ks_survival(np.array([9]), 3000, 4000)[0] == pytest.approx(1.0)


def test_two_rows_tell_no_nodes_apart():
    rng = np.random.default_rng(0)
    rows = as_rows(rng.normal(size=(80, 1)), rng.normal(size=80), np.repeat(range(40), 2))
    assert TestGraph("ks").fit_graph(rows).n_edges == 40 * 39 / 2


# -- ties -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "degree"), [(40, 4), (200, 4), (41, 7)])
def test_equal_weights_make_no_hub(n, degree):
    thin = sparsify_graph(complete(n), degree)
    assert thin.n_edges == round(n * degree / 2)
    assert thin.degree.min() >= degree // 2 and thin.degree.max() <= 2.5 * degree
    assert thin == sparsify_graph(complete(n), degree)


def test_heavier_edges_come_first_in_spite_of_ties():
    full = complete(12)
    weight = np.where(np.arange(full.n_edges) % 3 == 0, 2.0, 1.0)
    thin = sparsify_graph(Graph(full.ids, full.head, full.tail, weight), 6)
    assert (thin.weight == 2.0).sum() == (weight == 2.0).sum() and thin.n_edges == 36


def test_the_test_graph_keeps_the_largest_p_values():
    X, y, ids, _ = planted(0, n=12)
    rows = as_rows(X, y, ids)
    p = np.sort(pair_pvalues(node_rows(rows), "t", True, 0, 0)[2])[::-1]
    kept = TestGraph(degree=1.5, weight="pvalue").fit_graph(rows)
    np.testing.assert_allclose(np.sort(kept.weight)[::-1], p[:9])
    assert (TestGraph(degree=1.5).fit_graph(rows).head == kept.head).all()


def test_nearest_of_equal_labels_make_no_hub():
    rows = as_rows(np.zeros((40, 1)), np.tile(np.eye(2), (20, 1)), np.repeat(range(20), 2))
    assert LabelGraph(k=3).fit_graph(rows).degree.tolist() == [6] * 20


# -- clear errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("builder", [SpatialKNN, MomentsKNN])
def test_k_of_all_nodes_or_more(builder):
    X, y, ids, _ = planted(0, n=3, m=6)
    rows = as_rows(X, y, ids, coords=places(ids))
    with pytest.raises(ValueError, match=r"smaller than the number of nodes \(3\); got 3"):
        builder(k=3).fit_graph(rows)
    assert builder().fit_graph(rows).n_edges == 3  # the default takes what there is


@pytest.mark.parametrize("builder", [SpatialKNN(1), RadiusGraph(50.0), DelaunayGraph()])
@pytest.mark.parametrize(("name", "value"), [("lat", -91.0), ("lon", 361.0), ("lon", -181.0)])
def test_places_off_the_earth(builder, name, value):
    table = pd.DataFrame({"lat": [60.0, 61.0], "lon": [24.0, 25.0]}, index=["a", "b"])
    table.loc["b", name] = value
    rows = as_rows(np.ones((2, 1)), np.ones(2), ["a", "b"], coords=table)
    with pytest.raises(ValueError, match=rf"itude must lie in .*; got {value} at node 'b'"):
        builder.fit_graph(rows)
    table.loc["b", name] = 0.0
    assert builder.fit_graph(rows).n_nodes == 2


def test_a_named_metric_is_checked_as_well():
    rows = as_rows(np.ones((1, 1)), [1.0], ["a"], coords={"a": (0.0, 500.0), "b": (1.0, 2.0)})
    assert SpatialKNN(1).fit_graph(rows).n_edges == 1  # a plane
    with pytest.raises(ValueError, match=r"longitude must lie in .* 500.0 at node 'a'"):
        SpatialKNN(1, metric="haversine").fit_graph(rows)


@pytest.mark.parametrize("builder", [WassersteinGraph(k=2), EmbeddingKNN(k=2), TestGraph(k=2)])
def test_a_constant_feature_is_named(builder):
    X, y, ids, _ = planted(0, n=6, m=8)
    table = pd.DataFrame(np.column_stack([X, np.full(len(y), 0.3)]), columns=["x", "z", "height"])
    with pytest.warns(DataWarning, match=r"Constant feature \(column 'height'\)"):
        GTVRegressor(builder, alpha=0.1).fit(table, y, node_ids=ids)


@pytest.mark.parametrize(
    ("builder", "words"),
    [
        (LossGraph(3, connect="no"), "connect must be True or False; got 'no'"),
        (AlternatingGraph(connect=1), "connect must be True or False"),
        (DelaunayGraph(connect="no"), "connect must be True or False"),
        (TestGraph(products="no"), "products must be True or False"),
        (WassersteinGraph(k=2, standardize="no"), "standardize must be True or False"),
        (EmbeddingKNN(k=2, target="no"), "target must be True or False"),
        (MomentsKNN(target="no"), "target must be True or False"),
    ],
)
def test_flags_are_checked(builder, words):
    X, y, ids, _ = planted(0, n=6, m=8)
    with pytest.raises(ValueError, match=words):
        builder.fit_graph(as_rows(X, y, ids, coords=places(ids)))


# -- the graphical lasso ----------------------------------------------------------------------


def simultaneous(seed=0, days=60):
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(2, days))
    y = common[[0, 0, 0, 1, 1, 1]] + 0.3 * rng.normal(size=(6, days))
    day = np.tile(np.arange(days, dtype=float), 6)[:, None]
    return day, y.ravel(), np.repeat(list("abcdef"), days)


def test_rows_are_matched_by_their_time():
    day, y, ids = simultaneous()
    builder = GlassoGraph(0.3, signals="target", time="day")
    whole = builder.fit_graph(as_rows(day, y, ids, feature_names=["day"]))
    kind = np.repeat([0, 1], 3)
    assert whole.n_edges == 6 and (kind[whole.head] == kind[whole.tail]).all()
    order = np.random.default_rng(1).permutation(len(y))
    mixed = builder.fit_graph(as_rows(day[order], y[order], ids[order], feature_names=["day"]))
    np.testing.assert_allclose(mixed.adjacency.toarray(), whole.adjacency.toarray(), rtol=1e-6)


def test_rows_held_out_at_random_do_not_break_the_match():
    day, y, ids = simultaneous()
    kind = np.repeat([0, 1], 3)
    for train, _ in WithinNodeKFold(3, shuffle=True, random_state=0).split(day, groups=ids):
        train = train[2:]  # unequal counts, too
        graph = GlassoGraph(0.2, signals="target", time=0).fit_graph(
            as_rows(day[train], y[train], ids[train])
        )
        assert graph.n_edges == 6 and (kind[graph.head] == kind[graph.tail]).all()


def test_the_default_of_the_lasso_needs_no_alignment():
    X, y, ids, _ = planted(0, n=9, m=9)
    search = GTVRegressorCV(GlassoGraph(), penalty="l2", n_alphas=2, cv=2, tol=1e-2)
    assert np.isfinite(search.fit(X[1:], y[1:], node_ids=ids[1:]).best_score_)
    order = np.random.default_rng(1).permutation(len(y))
    graphs = [GlassoGraph().fit_graph(as_rows(X[o], y[o], ids[o])) for o in (order, ...)]
    dense = [graph.adjacency.toarray() for graph in graphs]
    np.testing.assert_allclose(*dense, atol=1e-6)


# -- smooth signals ---------------------------------------------------------------------------


@pytest.mark.parametrize("far", [10.0, 1e3, 1e5])
def test_a_far_node_keeps_a_degree(far):
    P = np.array([0.0, 1.0, 2.0, far])
    Z = (P[:, None] - P) ** 2
    W = learn_smooth_graph(Z, alpha=2.0, beta=0.5)
    degree = W.sum(axis=1)
    # optimality: 2 Z_ij + beta W_ij 2 = alpha (1 / d_i + 1 / d_j) on edges, >= elsewhere
    pull = 2.0 * (1 / degree[:, None] + 1 / degree)
    off = ~np.eye(4, dtype=bool)
    assert (degree > 0).all()
    np.testing.assert_allclose((2 * Z + W)[off & (W > 0)], pull[off & (W > 0)], rtol=1e-5)
    assert (pull <= 2 * Z * (1 + 1e-9))[off & (W == 0)].all()


def test_what_cannot_be_solved_is_told():
    P = np.array([0.0, 1.0, 2.0, 1e9])
    with pytest.warns(ConvergenceWarning, match="not optimal"):
        learn_smooth_graph((P[:, None] - P) ** 2)


def test_a_node_with_a_huge_slope_leaves_the_degree():
    X, y, ids, kind = planted(0)
    y = np.where(ids == "node 00", 1e5 * X[:, 0], y)
    graph = SmoothSignalGraph(k=4).fit_graph(as_rows(X, y, ids))
    assert 3.5 < graph.degree.mean() < 4.5 and graph.degree.min() > 0
    others = (graph.head > 0) & (graph.tail > 0)
    assert np.mean(kind[graph.head] == kind[graph.tail], where=others) > 0.95


@pytest.mark.parametrize(
    ("Z", "words"),
    [
        ([[0.0]], "2 nodes or more"),
        ([[0.0, np.inf], [np.inf, 0.0]], "must be finite"),
        ([[0.0, 1.0], [2.0, 0.0]], "Z must be symmetric"),
        ([[0.0, 1.0]], "Z must have shape"),
    ],
)
def test_bad_distances(Z, words):
    with pytest.raises(ValueError, match=words):
        learn_smooth_graph(Z)


def test_bad_discrepancies_of_prescribed_degrees():
    with pytest.raises(ValueError, match="discrepancy must be symmetric"):
        solve_degrees([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]], 1.0)


# -- permutation tests ------------------------------------------------------------------------


@pytest.mark.parametrize("test", ["energy", "mmd"])
def test_one_odd_node_of_forty_is_found(test):
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(400, 1)), np.repeat(range(40), 10)
    X[:10] += 100.0
    graph = TestGraph(test).fit_graph(as_rows(X, rng.normal(size=400), ids))
    assert graph.degree[0] == 0 and graph.n_edges > 0.98 * 39 * 38 / 2


def test_more_draws_keep_the_level():
    ids, found = np.repeat(range(40), 8), []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows = as_rows(rng.normal(size=(320, 1)), rng.normal(size=320), ids)
        found.append(pair_pvalues(node_rows(rows), "energy", False, 99, seed)[2])
    p = np.concatenate(found)  # 19,500
    for level, slack in [(0.05, 0.15), (0.01, 0.3), (0.002, 0.6)]:  # many pairs share a node
        assert abs(np.mean(p <= level) / level - 1) < slack
    assert p.min() < 1 / 1000


# -- diagnostics ------------------------------------------------------------------------------


def test_the_jump_of_a_path_is_suspicious():
    path = Graph(np.arange(6), np.arange(5), np.arange(1, 6))
    data = LocalData.from_list([([[1.0]], [v]) for v in (0.0, 0.0, 0.0, 9.0, 9.0, 9.0)])
    found = graph_diagnostics(path, solve(Problem(path, data, lam=1.0)))
    assert found.suspicious.tolist() == [2] and not len(found.apart)
