"""Discrepancies, tests and programmes against textbook formulas and other libraries."""

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import sqrtm

from nefele import Graph
from nefele.graph_learning import (
    BlockModelCleanup,
    EmbeddingKNN,
    GlassoGraph,
    GradientGraph,
    LinkPrediction,
    LossGraph,
    PoolingGainGraph,
    WassersteinGraph,
    communities,
    fit_block_model,
    learn_smooth_graph,
    link_scores,
    modularity,
    solve_degrees,
    squared_wasserstein,
)
from nefele.graph_learning._rows import node_rows
from nefele.graph_learning.two_sample import benjamini_hochberg, pair_pvalues
from nefele.graphs import sbm
from tests.graph_learning.data import as_rows, planted


@pytest.fixture(scope="module")
def rows():
    return as_rows(*planted(0, n=6, m=9)[:3])


def blocks(rows):
    """Rows of each node."""
    return [
        (rows.X[rows.node_ids == node], rows.targets[rows.node_ids == node, 0])
        for node in np.unique(rows.node_ids)
    ]


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_wasserstein_is_that_of_the_formula(p):
    rng = np.random.default_rng(p)
    mean, root = rng.normal(size=(4, p)), rng.normal(size=(4, p, 2))  # singular from p = 3 on
    cov = root @ root.swapaxes(1, 2)
    cov[:2] += 0.5 * np.eye(p)
    found = squared_wasserstein(mean, cov)
    for i in range(4):
        for j in range(4):
            half = np.real(sqrtm(cov[i] + 1e-14 * np.eye(p)))
            cross = np.real(sqrtm(half @ cov[j] @ half + 1e-14 * np.eye(p)))
            want = ((mean[i] - mean[j]) ** 2).sum() + np.trace(cov[i] + cov[j] - 2 * cross)
            assert found[i, j] == pytest.approx(want if i != j else 0.0, abs=1e-5)


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_wasserstein_scales_with_the_squared_unit(unit, rows):
    want = WassersteinGraph().discrepancy(rows)[1]
    scaled = as_rows(unit * rows.X, unit * rows.targets[:, 0], rows.node_ids)
    np.testing.assert_allclose(
        WassersteinGraph().discrepancy(scaled)[1], want * unit * unit, rtol=1e-9
    )


def test_wasserstein_in_blocks_is_the_same(monkeypatch, rows):
    whole = WassersteinGraph().discrepancy(rows)[1]
    monkeypatch.setattr("nefele.graph_learning.wasserstein._BLOCK", 60)
    np.testing.assert_allclose(WassersteinGraph().discrepancy(rows)[1], whole, atol=1e-12)


def test_weight_two_is_the_row_twice(rows):
    from dataclasses import replace

    twice = np.concatenate([np.arange(len(rows.X)), np.arange(0, len(rows.X), 4)])
    weight = np.ones(len(rows.X))
    weight[::4] = 2.0
    many = as_rows(rows.X[twice], rows.targets[twice, 0], rows.node_ids[twice])
    weighted = replace(rows, sample_weight=weight)
    for builder in (WassersteinGraph(), LossGraph(), GradientGraph(), EmbeddingKNN()):
        want, got = builder.discrepancy(many)[1], builder.discrepancy(weighted)[1]
        np.testing.assert_allclose(got, want, atol=1e-9)


def standard(values):
    return (values - values.mean(axis=0)) / values.std(axis=0)


def test_loss_and_gradient_by_hand(rows):
    Z, y = np.column_stack([standard(rows.X), np.ones(len(rows.X))]), standard(rows.targets[:, 0])
    at = [rows.node_ids == node for node in np.unique(rows.node_ids)]
    ridge = 1e-3 * np.eye(3)
    w = [np.linalg.solve(Z[i].T @ Z[i] / 9 + ridge, Z[i].T @ y[i] / 9) for i in at]

    def loss(i, j):
        return np.mean((Z[at[i]] @ w[j] - y[at[i]]) ** 2)

    found = LossGraph().discrepancy(rows)[1]
    want = (loss(1, 4) - loss(1, 1) + loss(4, 1) - loss(4, 4)) / 2
    assert found[1, 4] == pytest.approx(want)
    common = np.linalg.solve(Z.T @ Z / len(y) + ridge, Z.T @ y / len(y))
    pull = [2 * Z[i].T @ (Z[i] @ common - y[i]) / 9 for i in at]
    found = GradientGraph().discrepancy(rows)[1]
    assert found[1, 4] == pytest.approx(np.linalg.norm(pull[1] - pull[4]))


def test_pooling_gain_by_hand(rows):
    def squares(*nodes):
        X = np.concatenate([blocks(rows)[i][0] for i in nodes])
        y = np.concatenate([blocks(rows)[i][1] for i in nodes])
        design = np.column_stack([X, np.ones(len(X))])
        return np.sum((design @ np.linalg.lstsq(design, y)[0] - y) ** 2)

    noise = sum(squares(i) for i in range(6)) / (6 * (9 - 3))
    found = PoolingGainGraph(l2=1e-12).discrepancy(rows)[1]
    for i, j in [(0, 1), (0, 3), (2, 5)]:
        want = (squares(i, j) - squares(i) - squares(j)) / (2 * 3 * noise)
        assert found[i, j] == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("test", ["t", "ks"])
def test_tests_of_scipy(test, rows):
    i, j, p = pair_pvalues(node_rows(rows), test, False, 0, 0)
    table = np.hstack([rows.X, rows.targets])
    at = [table[rows.node_ids == node] for node in np.unique(rows.node_ids)]
    for a, b, got in zip(i, j, p, strict=True):
        if test == "t":
            each = stats.ttest_ind(at[a], at[b], equal_var=False).pvalue
        else:
            each = [
                stats.ks_2samp(at[a][:, c], at[b][:, c], method="exact").pvalue for c in range(3)
            ]
        assert got == pytest.approx(min(1.0, 3 * np.min(each)), abs=1e-9)


def test_constant_columns_differ_or_do_not():
    X = np.column_stack([np.repeat([1.0, 1.0, 2.0], 5), np.zeros(15)])
    rows = as_rows(X, np.zeros(15), np.repeat(["a", "b", "c"], 5))
    for test in ("t", "ks"):
        _, _, p = pair_pvalues(node_rows(rows), test, True, 0, 0)
        assert p[0] == 1.0 and (p[1:] < 0.06).all()


@pytest.mark.parametrize("test", ["mmd", "energy"])
def test_permutation_tests_hold_their_level_and_see_a_shift(test):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40 * 8, 1))
    X[-16:] += 2.5
    rows = as_rows(X, rng.normal(size=len(X)), np.repeat(np.arange(40), 8))
    i, j, p = pair_pvalues(node_rows(rows), test, False, 99, 0)
    null, shifted = j < 38, (i < 38) & (j >= 38)
    assert 0.02 < np.mean(p[null] <= 0.05) < 0.09  # exact level, many pairs
    assert np.median(p[shifted]) < 0.05
    again = pair_pvalues(node_rows(rows), test, False, 99, 0)[2]
    assert (again == p).all()


def test_energy_statistic_is_the_energy_distance():
    from nefele.graph_learning._permutations import kernel

    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(6, 1)), rng.normal(size=(4, 1)) + 1
    a = np.concatenate([np.full(6, 1 / 6), np.full(4, -1 / 4)])
    found = a @ kernel(np.concatenate([x, z])[None], "energy", 1.0)[0] @ a
    assert found == pytest.approx(stats.energy_distance(x[:, 0], z[:, 0]) ** 2)


def test_benjamini_hochberg_rejects_the_r_smallest():
    """r is the largest number with p_(r) <= level r / m."""
    p = np.random.default_rng(0).beta(0.3, 1.0, 200)
    order = np.sort(p)
    r = max(k for k in range(1, 201) if order[k - 1] <= 0.1 * k / 200)
    assert 0 < r < 200
    assert (benjamini_hochberg(p, 0.1) == (p <= order[r - 1])).all()
    assert not benjamini_hochberg(np.ones(3), 0.05).any()


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.3, 2.0), (5.0, 0.05)])
def test_smooth_graph_is_optimal(alpha, beta):
    points = np.random.default_rng(1).normal(size=(8, 2))
    Z = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    i, j = np.triu_indices(8, 1)
    S = np.zeros((8, len(i)))
    S[i, np.arange(len(i))] = S[j, np.arange(len(i))] = 1.0
    w = cp.Variable(len(i), nonneg=True)
    value = 2 * Z[i, j] @ w - alpha * cp.sum(cp.log(S @ w)) + beta * cp.sum_squares(w)
    best = cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL")
    W = learn_smooth_graph(Z, alpha, beta)
    assert (W == W.T).all() and (np.diag(W) == 0).all()
    got = (W * Z).sum() - alpha * np.log(W.sum(axis=1)).sum() + beta / 2 * (W**2).sum()
    assert got == pytest.approx(best, rel=1e-7, abs=1e-7)
    np.testing.assert_allclose(W[i, j], w.value, atol=1e-4 * W.max())


@pytest.mark.parametrize(("degree", "candidates"), [(2.0, None), (1.5, 3), (3.0, 3)])
def test_degree_programme_is_optimal(degree, candidates):
    points = np.random.default_rng(2).normal(size=(9, 2))
    D = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    head, tail, weight = solve_degrees(D, degree, candidates)
    A = np.zeros((9, 9))
    A[head, tail] = A[tail, head] = weight
    np.testing.assert_allclose(A.sum(axis=1), degree, atol=1e-9)
    B = cp.Variable((9, 9), symmetric=True)
    limits = [B >= 0, B <= 1, cp.diag(B) == 0, cp.sum(B, axis=1) == degree]
    best = cp.Problem(cp.Minimize(cp.sum(cp.multiply(D, B)) / 2), limits).solve(solver="CLARABEL")
    total = (D * A).sum() / 2
    if candidates is None:
        assert total == pytest.approx(best, rel=1e-6)
    else:  # fewer pairs: feasible, so not better
        assert total >= best * (1 - 1e-6)


def test_scores_of_links_are_those_of_networkx():
    graph = sbm([12, 12], 0.4, 0.1, seed=0)
    other = nx.Graph(list(zip(graph.head.tolist(), graph.tail.tolist(), strict=True)))
    for method, reference in [
        ("adamic_adar", nx.adamic_adar_index),
        ("common", lambda g: ((a, b, len(set(g[a]) & set(g[b]))) for a, b in nx.non_edges(g))),
    ]:
        want = {frozenset((a, b)): s for a, b, s in reference(other) if s > 0}
        head, tail, score = link_scores(graph, method)
        got = {
            frozenset(pair): s for *pair, s in zip(head.tolist(), tail.tolist(), score, strict=True)
        }
        assert got.keys() == want.keys()
        assert all(got[pair] == pytest.approx(want[pair]) for pair in want)


@pytest.mark.parametrize("method", ["adamic_adar", "common", "spectral"])
def test_links_that_were_taken_away_are_found(method):
    full = sbm([10, 10], 1.0, 0.0)
    rng = np.random.default_rng(0)
    keep = rng.random(full.n_edges) < 0.7
    noise = Graph(full.ids, np.append(full.head[keep], 0), np.append(full.tail[keep], 15))
    rows = as_rows(np.ones((1, 1)), [1.0], [0])
    graph = LinkPrediction(noise, method, share=0.3, n_components=2).fit_graph(rows)
    assert graph.n_edges == noise.n_edges + round(0.3 * noise.n_edges)
    assert np.mean(graph.head // 10 == graph.tail // 10) > 0.95


def test_nodes_that_the_partial_graph_lacks_are_added():
    partial = Graph(["a", "b", "c"], [0, 1], [1, 2])
    rows = as_rows(np.ones((2, 1)), [1.0, 2.0], ["d", "a"])
    graph = LinkPrediction(partial, share=0.5).fit_graph(rows)
    assert graph.ids.tolist() == ["a", "b", "c", "d"]
    assert graph.neighbors("c") == ["a", "b"] and graph.neighbors("d") == []


def test_modularity_and_communities():
    graph = sbm([15, 15, 15], 0.6, 0.03, seed=1, weight=2.0)
    kind = np.repeat([0, 1, 2], 15)
    other = nx.Graph(list(zip(graph.head.tolist(), graph.tail.tolist(), strict=True)))
    parts = [set(np.flatnonzero(kind == c).tolist()) for c in range(3)]
    assert modularity(graph, kind) == pytest.approx(nx.community.modularity(other, parts))
    assert (communities(graph) == kind).all()
    assert communities(Graph([0, 1, 2, 3], [], [])).tolist() == [0, 1, 2, 3]


def test_block_model_cleans_links_between_blocks():
    graph = sbm([12, 12, 12], 0.7, 0.05, seed=2)
    label, p = fit_block_model(graph)
    assert (label == np.repeat([0, 1, 2], 12)).all()
    assert np.diagonal(p).min() > 0.5 > 0.15 > p[0, 1]
    rows = as_rows(np.ones((1, 1)), [1.0], [0])
    cleaned = BlockModelCleanup(graph).fit_graph(rows)
    inside = label[graph.head] == label[graph.tail]
    assert cleaned.n_edges == inside.sum()
    weighed = BlockModelCleanup(graph, action="reweight").fit_graph(rows)
    assert weighed.weight[inside].min() > 5 * weighed.weight[~inside].max()


def test_glasso_finds_a_chain_of_signals():
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(5, 400))
    signal = np.zeros((5, 400))
    for i in range(5):  # a Gauss-Markov chain over nodes
        signal[i] = steps[i] + (0.8 * signal[i - 1] if i else 0.0)
    rows = as_rows(
        np.tile(np.arange(400.0), 5)[:, None], signal.ravel(), np.repeat(list("abcde"), 400)
    )
    graph = GlassoGraph(alpha=0.1, signals="target", time=0, shrinkage=0.0).fit_graph(rows)
    heavy = graph.weight > 0.1
    assert [graph.head[heavy].tolist(), graph.tail[heavy].tolist()] == [[0, 1, 2, 3], [1, 2, 3, 4]]
