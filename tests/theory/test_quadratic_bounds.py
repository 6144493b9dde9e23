"""The bounds for the quadratic penalty on random problems, without a violation."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Squared
from nefele.theory import (
    cluster_bound,
    consensus_bound,
    edge_influence,
    label_sensitivity,
    spectrum_bounds,
)
from nefele.theory.spectrum import coupled_matrix
from tests.theory.problems import connected_graph, linear_data, planted, random_regression

SLACK = 1 + 1e-9


def random_quadratic(seed):
    """Connected or not, unit or wild weights, some nodes without data, few or many rows."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    graph = connected_graph(rng, n, rng.choice([0.0, 0.4]), unit=rng.random() < 0.3)
    true = rng.standard_normal((n, d))
    data = linear_data(rng, true, int(rng.integers(1, 6)), missing=rng.choice([0.0, 0.4]))
    lam = float(10 ** rng.uniform(-2, 2))
    return Problem(graph, data, "squared", "squared_l2", lam=lam)


def exact(problem, data=None):
    """The optimum by a dense linear solve, written out."""
    data = problem.data if data is None else data
    n, d = problem.graph.n_nodes, problem.d
    Q, q = np.zeros((n * d, n * d)), np.zeros(n * d)
    for i in range(n):
        rows, at = slice(data.ptr[i], data.ptr[i + 1]), slice(i * d, (i + 1) * d)
        X, y = data.X[rows], data.y[rows]
        if len(y):
            Q[at, at] += X.T @ X / len(y)
            q[at] += X.T @ y / len(y)
    L = np.zeros((n, n))
    for i, j, a in zip(problem.graph.head, problem.graph.tail, problem.graph.weight, strict=True):
        L[i, i] += a
        L[j, j] += a
        L[i, j] -= a
        L[j, i] -= a
    Q += problem.lam / 2 * np.kron(L, np.eye(d))
    return Q, np.linalg.lstsq(Q, q, rcond=None)[0].reshape(n, d)


def spread(w):
    return float(((w - w.mean(axis=0)) ** 2).sum())


def test_spectrum_holds():
    positive = 0
    for seed in range(400):
        problem = random_quadratic(seed)
        Q = exact(problem)[0]
        assert np.allclose(coupled_matrix(problem).toarray(), Q, atol=1e-10 * np.abs(Q).max())
        values, found = np.linalg.eigvalsh(Q), spectrum_bounds(problem)
        assert found.lower <= values[0] * SLACK + 1e-12
        assert values[-1] <= found.upper * SLACK
        positive += found.lower > 0
    assert positive > 100


def test_gradient_descent_contracts_as_predicted():
    for seed in range(40):
        problem = random_quadratic(seed)
        found = spectrum_bounds(problem)
        if found.lower == 0:
            assert found.contraction == 1 and found.iterations() == np.inf
            continue
        Q, best = exact(problem)
        q = Q @ best.ravel()
        w = np.random.default_rng(seed).standard_normal(best.size)
        for _ in range(20):
            before = np.linalg.norm(w - best.ravel())
            w = w - found.step * 2 * (Q @ w - q)
            after = np.linalg.norm(w - best.ravel())
            assert after <= found.contraction * before * SLACK + 1e-10
        k = found.iterations(1e-3)
        assert found.contraction**k <= 1e-3 * SLACK
        assert k <= 1 or found.contraction ** (k - 1) > 1e-3 / SLACK


def test_consensus_bound_holds():
    for seed in range(400):
        problem = random_quadratic(seed)
        result = solve(problem, tol=1e-9)
        after, before = consensus_bound(result).value, consensus_bound(problem).value
        assert spread(result.w) <= after[0] * SLACK + 1e-12
        assert spread(exact(problem)[1]) <= before[0] * SLACK + 1e-12


def test_consensus_bound_of_other_losses():
    rng = np.random.default_rng(0)
    graph = connected_graph(rng, 6, 0.4)
    data = linear_data(rng, rng.standard_normal((6, 2)), 6)
    for lam in (0.1, 1.0, 10.0):
        result = solve(Problem(graph, data, "huber", "squared_l2", lam=lam), tol=1e-9)
        assert spread(result.w) <= consensus_bound(result).value[0] * SLACK


def test_consensus_bound_of_each_component():
    problem = random_regression(0, "squared_l2", n=8)
    keep = (problem.graph.head < 4) == (problem.graph.tail < 4)
    graph = Graph(
        problem.graph.ids,
        problem.graph.head[keep],
        problem.graph.tail[keep],
        problem.graph.weight[keep],
    )
    result = solve(Problem(graph, problem.data, "squared", "squared_l2", lam=0.5), tol=1e-10)
    found, parts = consensus_bound(result), graph.components
    assert len(found.value) == parts.max() + 1 > 1
    for c, bound in enumerate(found.value):
        assert spread(result.w[parts == c]) <= bound * SLACK + 1e-12


@pytest.mark.filterwarnings("ignore:.*not connected to any data")
def test_cluster_bound_holds():
    finite = 0
    for seed in range(400):
        problem, label = planted(seed, "squared_l2", bridge=10.0 ** -(seed % 4), noise=0.2)
        result = solve(problem.with_lam(10.0 ** (seed % 5 - 2)), tol=1e-9)
        found = cluster_bound(result, label)
        for c, bound in enumerate(found.value):
            assert spread(result.w[label == c]) <= bound * SLACK + 1e-12
            finite += np.isfinite(bound)
    assert finite > 400


def test_label_sensitivity_holds():
    for seed in range(400):
        problem = random_quadratic(seed)
        bound, data = label_sensitivity(problem), problem.data
        r = int(np.random.default_rng(seed).integers(data.n_rows))
        y = data.y.copy()
        y[r] += 0.7
        moved = exact(problem, LocalData(data.X, y, data.ptr))[1] - exact(problem)[1]
        if np.isfinite(bound[r]):
            assert np.linalg.norm(moved) <= 0.7 * bound[r] * (1 + 1e-6) + 1e-9


def test_label_sensitivity_is_reached():
    """One node and one feature: the bound is the change."""
    data = LocalData.from_list([([[2.0]], [0.0]), ([[2.0]], [0.0])])
    problem = Problem(Graph.from_edges([(0, 1)]), data, "squared", "squared_l2", lam=1e-9)
    assert label_sensitivity(problem) == pytest.approx([0.5, 0.5], rel=1e-6)


def test_edge_influence_equals_a_refit():
    compared = 0
    for seed in range(60):
        problem = random_quadratic(seed)
        Q, w = exact(problem)
        if np.linalg.eigvalsh(Q)[0] < 1e-6:
            continue
        found, graph = edge_influence(problem), problem.graph
        assert np.allclose(found.w, w, atol=1e-8)
        for e in range(graph.n_edges):
            keep = np.arange(graph.n_edges) != e
            smaller = Graph(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])
            other = Problem(smaller, problem.data, "squared", "squared_l2", lam=problem.lam)
            Q_e, w_e = exact(other)
            if np.linalg.eigvalsh(Q_e)[0] < 1e-6:
                continue
            assert np.abs(found.w + found.change[e] - w_e).max() < 1e-8 * max(1, np.abs(w_e).max())
            assert found.size[e] == pytest.approx(np.linalg.norm(w_e - w), abs=1e-7)
            compared += 1
    assert compared > 100


def test_edge_influence_of_a_bridge_to_nodes_without_data():
    data = LocalData.from_list([([[1.0]], [2.0]), None])
    problem = Problem(Graph.from_edges([(0, 1)]), data, "squared", "squared_l2", lam=1.0)
    found = edge_influence(problem, edges=[0])
    assert np.isnan(found.change).all() and found.w == pytest.approx(np.full((2, 1), 2.0))


def test_clear_errors():
    norm, smooth = (random_regression(0, p, n=5) for p in ("l2", "squared_l2"))
    for function in (spectrum_bounds, consensus_bound, label_sensitivity, edge_influence):
        with pytest.raises(ValueError, match='needs penalty="squared_l2"; got L2Norm'):
            function(norm)
        with pytest.raises(ValueError, match="needs lam > 0; got 0"):
            function(smooth.with_lam(0.0))
        with pytest.raises(ValueError, match="must be a Problem; got int"):
            function(3)
    huber = Problem(smooth.graph, smooth.data, "huber", "squared_l2", lam=1.0)
    for function in (spectrum_bounds, label_sensitivity, edge_influence):
        with pytest.raises(ValueError, match="needs quadratic losses"):
            function(huber)
    with pytest.raises(ValueError, match="result must be a Result"):
        cluster_bound(smooth, np.zeros(5))
    with pytest.raises(ValueError, match="one label per node"):
        cluster_bound(solve(smooth), np.zeros(4))
    with pytest.raises(ValueError, match="edge positions 0"):
        edge_influence(smooth, edges=[999])
    lasso = Problem(smooth.graph, smooth.data, Squared(l1=0.1), "squared_l2", lam=1.0)
    with pytest.raises(ValueError, match="needs quadratic losses"):
        edge_influence(lasso)
    X = np.array([[1.0, 1.0]])
    flat = LocalData.from_list([(X, [1.0])] * 2)
    with pytest.raises(ValueError, match="do not fix all parameters"):
        edge_influence(Problem(Graph.from_edges([(0, 1)]), flat, "squared", "squared_l2", lam=1.0))
    with pytest.raises(ValueError, match="accuracy must be finite and > 0"):
        spectrum_bounds(smooth).iterations(0)
