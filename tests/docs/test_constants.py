"""The numbered lines of docs/constants.md, one test each, by formulas written out naively."""

import re
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import huber as scipy_huber
from sklearn.linear_model import Lasso, LogisticRegression, PoissonRegressor, Ridge

import nefele
from nefele import GTVClassifier, GTVRegressor
from nefele.losses import HuberLoss, Logistic, Poisson, Squared
from nefele.penalties import HuberPenalty, L2Norm, Quadratic, SquaredL2

PAGE = Path(__file__).parents[2] / "docs" / "constants.md"
N, M, D = 6, 5, 3


@pytest.fixture
def network():
    """A weighted ring with a chord, data at every node, and some parameters."""
    rng = np.random.default_rng(7)
    edges = [(i, (i + 1) % N) for i in range(N)] + [(0, 3)]
    graph = nefele.Graph.from_edges(edges, weight=rng.uniform(0.5, 2.0, len(edges)))
    rows = [(rng.normal(size=(M, D)), rng.normal(size=M)) for _ in range(N)]
    return graph, rows, rng.normal(size=(N, D))


def mean_squares(rows, w):
    return sum(np.mean((y - X @ w[i]) ** 2) for i, (X, y) in enumerate(rows))


def over_edges(graph, w, phi):
    ends = zip(graph.head, graph.tail, graph.weight, strict=True)
    return sum(a * phi(w[i] - w[j]) for i, j, a in ends)


def objective(graph, rows, w, penalty, lam, loss="squared"):
    data = nefele.LocalData.from_list(rows, nodes=range(len(rows)))
    return nefele.Problem(graph, data, loss=loss, penalty=penalty, lam=lam).objective(w)


def optimum(graph, rows, penalty, lam):
    data = nefele.LocalData.from_list(rows, nodes=range(len(rows)))
    return nefele.solve(nefele.Problem(graph, data, penalty=penalty, lam=lam), tol=1e-13).w


def local_fit(X, y, loss):
    graph = nefele.Graph(["only"], [], [])
    data = nefele.LocalData.from_list([(X, y)], nodes=["only"])
    return nefele.solve(nefele.Problem(graph, data, loss=loss, lam=0.0), tol=1e-12).w[0]


def fed_relax(graph, rows, Q, factor, rounds=4000):
    """w_i <- argmin L_i(w) + factor * sum_j A_ij (w - w_j)^T Q (w - w_j), all nodes at once."""
    A = graph.adjacency.toarray()
    w = np.zeros((N, D))
    H = [2 * X.T @ X / M + 2 * factor * A[i].sum() * Q for i, (X, _) in enumerate(rows)]
    b = np.array([2 * X.T @ y / M for X, y in rows])
    for _ in range(rounds):
        pull = 2 * factor * (A @ w) @ Q
        w = np.array([np.linalg.solve(H[i], b[i] + pull[i]) for i in range(N)])
    return w


def test_line_1_squared_loss_has_no_half(network):
    graph, rows, w = network
    assert objective(graph, rows, w, "l2", 0.0) == pytest.approx(mean_squares(rows, w))
    bound = Squared().bind(nefele.LocalData.from_list(rows))
    X, y = rows[0]
    np.testing.assert_allclose(bound.grad(w)[0], 2 * X.T @ (X @ w[0] - y) / M)


def test_line_2_every_node_counts_alike(network):
    graph, rows, w = network
    doubled = [(np.vstack([X, X]), np.tile(y, 2)) for X, y in rows[:1]] + rows[1:]
    same = objective(graph, rows, w, "l2", 0.3)
    assert objective(graph, doubled, w, "l2", 0.3) == pytest.approx(same)
    X, y = (np.concatenate(part) for part in zip(*rows, strict=True))
    ptr = np.arange(N + 1) * M
    weighted = nefele.LocalData(X, y, ptr, sample_weight=np.repeat(np.arange(1.0, N + 1), M))
    assert nefele.Problem(graph, weighted, lam=0.3).objective(w) == pytest.approx(same)


def test_line_3_nodes_without_rows_have_zero_loss_and_no_regulariser(network):
    _, rows, w = network
    bound = Squared(l2=1.0, l1=1.0).bind(nefele.LocalData.from_list([None, *rows[1:]]))
    assert bound.value(w)[0] == 0.0
    assert bound.value(w)[1] > 0.0


def test_line_4_ridge_and_lasso_terms_have_no_half(network):
    graph, rows, w = network
    expected = mean_squares(rows, w) + 0.3 * (w**2).sum() + 0.2 * np.abs(w).sum()
    found = objective(graph, rows, w, "l2", 0.0, loss=Squared(l2=0.3, l1=0.2))
    assert found == pytest.approx(expected)
    p, data = np.array([2.0, 0.5, 0.0]), nefele.LocalData.from_list(rows)
    data = nefele.LocalData(data.X, data.y, data.ptr, shrink=p)
    seen = 0.3 * ((p * w) ** 2).sum() + 0.2 * np.abs(p * w).sum()
    problem = nefele.Problem(graph, data, loss=Squared(l2=0.3, l1=0.2), lam=0.0)
    assert problem.objective(w) == pytest.approx(mean_squares(rows, w) + seen)


def test_line_5_edges_count_once_and_weights_stay_outside_the_incidence(network):
    graph, rows, w = network
    expected = mean_squares(rows, w) + 0.7 * over_edges(graph, w, np.linalg.norm)
    assert objective(graph, rows, w, "l2", 0.7) == pytest.approx(expected)
    np.testing.assert_array_equal(graph.diff(w), w[graph.head] - w[graph.tail])


def test_line_6_squared_penalty_is_halved(network):
    graph, rows, w = network
    lam = 0.4
    expected = mean_squares(rows, w) + lam * over_edges(graph, w, lambda v: v @ v)
    assert objective(graph, rows, w, SquaredL2(), 2 * lam) == pytest.approx(expected)


def test_line_7_quadratic_penalty_is_halved(network):
    v, root = np.array([[1.0, -2.0, 0.5]]), np.random.default_rng(0).normal(size=(D, D))
    Q = root @ root.T
    assert Quadratic(Q).value(v)[0] == pytest.approx(0.5 * v[0] @ Q @ v[0])
    assert Quadratic(np.eye(D)).value(v) == pytest.approx(SquaredL2().value(v))


@pytest.fixture
def shared():
    return np.column_stack([np.random.default_rng(3).normal(size=(8, D - 1)), np.ones(8)])


def test_line_8_prediction_discrepancy(network, shared):
    graph, rows, w = network
    alpha, Q = 0.6, shared.T @ shared / len(shared)
    expected = mean_squares(rows, w)
    expected += alpha * over_edges(graph, w, lambda v: np.mean((shared @ v) ** 2))
    assert objective(graph, rows, w, Quadratic(Q), 2 * alpha) == pytest.approx(expected)


def test_line_9_the_printed_factor_two(network, shared):
    graph, rows, w = network
    lam, Q = 0.6, shared.T @ shared / len(shared)
    printed = mean_squares(rows, w) + 2 * lam / len(shared) * over_edges(
        graph, w, lambda v: v @ shared.T @ shared @ v
    )
    assert objective(graph, rows, w, Quadratic(Q), 4 * lam) == pytest.approx(printed)


@pytest.mark.parametrize("predictions", [False, True])
def test_line_10_fixed_point_of_the_printed_fedrelax(network, shared, predictions):
    graph, rows, _ = network
    lam = 0.8
    Q = shared.T @ shared / len(shared) if predictions else np.eye(D)
    penalty = Quadratic(Q) if predictions else SquaredL2()
    half, full = (optimum(graph, rows, penalty, factor * lam) for factor in (1, 2))
    # SquaredL2 and Quadratic are halved: lam here is the stated problem with lam / 2.
    printed = fed_relax(graph, rows, Q, factor=lam / 2)
    np.testing.assert_allclose(printed, half, atol=1e-6)
    assert np.abs(printed - full).max() > 1e-2
    np.testing.assert_allclose(fed_relax(graph, rows, Q, factor=lam), full, atol=1e-6)


def test_line_11_prox_step_is_one_over_rho(network):
    _, rows, v = network
    rho = np.linspace(0.5, 3.0, N)
    bound = Squared().bind(nefele.LocalData.from_list(rows))
    z = bound.prox(v, 1 / rho)
    np.testing.assert_allclose(bound.grad(z) + rho[:, None] * (z - v), 0.0, atol=1e-12)


def test_line_12_algorithm_1_takes_the_printed_steps(network):
    graph, rows, _ = network
    lam, w, u = 0.2, np.zeros((N, D)), np.zeros((graph.n_edges, D))
    for _ in range(7):
        before, flow = w, graph.div(u)
        w = np.empty_like(before)
        for i, (X, y) in enumerate(rows):
            tau = 1 / graph.degree[i]
            v = before[i] - tau * flow[i]
            H, b = X.T @ X / M, X.T @ y / M
            w[i] = np.linalg.solve(np.eye(D) + 2 * tau * H, v + 2 * tau * b)
        u = u + 0.5 * graph.diff(2 * w - before)
        ball = lam * graph.weight
        u *= (ball / np.maximum(np.linalg.norm(u, axis=1), ball))[:, None]
    problem = nefele.Problem(graph, nefele.LocalData.from_list(rows), penalty="l2", lam=lam)
    result = nefele.solve(problem, "algorithm1", tol=None, max_iter=7)
    np.testing.assert_allclose(result.w, w, atol=1e-12)
    best = nefele.solve(problem, tol=1e-10)
    again = nefele.solve(problem, "algorithm1", tol=1e-8, max_iter=100_000)
    assert again.objective == pytest.approx(best.objective, rel=1e-7)


def test_line_13_huber_penalty():
    v = np.random.default_rng(1).normal(size=(50, D))
    np.testing.assert_allclose(HuberPenalty(delta=1e-9).value(v), L2Norm().value(v), atol=1e-9)
    small = 0.1 * v / np.linalg.norm(v, axis=1, keepdims=True)
    np.testing.assert_allclose(0.7 * HuberPenalty(delta=0.7).value(small), SquaredL2().value(small))
    far = 100 * small
    np.testing.assert_allclose(HuberPenalty(delta=0.7).value(far), 10 - 0.35)


def test_line_14_huber_loss_is_half_of_squared():
    z, y = np.random.default_rng(2).normal(size=(2, 50))
    np.testing.assert_allclose(HuberLoss(delta=1e9).f(z, y), Squared().f(z, y) / 2)
    np.testing.assert_allclose(HuberLoss(delta=0.5).f(y + 10, y), 0.5 * (10 - 0.25))


def test_line_15_relative_gap(network):
    graph, rows, _ = network
    problem = nefele.Problem(graph, nefele.LocalData.from_list(rows), penalty="l1", lam=0.2)
    result = nefele.solve(problem, "algorithm1", tol=None, max_iter=20)
    size = max(abs(result.objective), 1e-6 * abs(problem.objective(np.zeros((N, D)))))
    assert result.gap == pytest.approx(result.gap_abs / size)
    assert result.gap > 0
    assert result.gap_abs >= result.objective - nefele.solve(problem, tol=1e-10).objective


@pytest.fixture
def table():
    rng = np.random.default_rng(5)
    return rng.normal(size=(60, 4)), rng.normal(size=60)


def spared_fit(X, y, loss):
    """Coefficients and intercept of an estimator with a single node."""
    kind = GTVClassifier if isinstance(loss, Logistic) else GTVRegressor
    model = kind(loss=loss, standardize=False, tol=1e-10).fit(X, y)
    return np.append(model.coef_[0], model.intercept_)


def with_intercept(model):
    return np.append(model.coef_, model.intercept_)


def test_line_16_ridge(table):
    X, y = table
    theirs = with_intercept(Ridge(alpha=3.0).fit(X, y + 10))
    np.testing.assert_allclose(spared_fit(X, y + 10, Squared(l2=3.0 / len(y))), theirs, atol=1e-7)
    theirs = Ridge(alpha=3.0, fit_intercept=False).fit(X, y).coef_
    np.testing.assert_allclose(local_fit(X, y, Squared(l2=3.0 / len(y))), theirs, atol=1e-8)


def test_line_17_lasso(table):
    X, y = table
    theirs = with_intercept(Lasso(alpha=0.05, tol=1e-12).fit(X, y + 10))
    np.testing.assert_allclose(spared_fit(X, y + 10, Squared(l1=0.1)), theirs, atol=1e-5)
    theirs = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12).fit(X, y).coef_
    np.testing.assert_allclose(local_fit(X, y, Squared(l1=0.1)), theirs, atol=1e-6)


def test_line_18_logistic_regression(table):
    X, noise = table
    y = np.where(X[:, 0] + noise > 0, 1.0, -1.0)
    model = LogisticRegression(C=0.7, fit_intercept=False, tol=1e-10, max_iter=10_000)
    theirs = model.fit(X, y).coef_[0]
    loss = Logistic(l2=1 / (2 * 0.7 * len(y)))
    np.testing.assert_allclose(local_fit(X, y, loss), theirs, atol=1e-5)
    model = LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(spared_fit(X, y, loss), with_intercept(model.fit(X, y)), atol=1e-4)


def test_line_19_poisson_regressor(table):
    X, _ = table
    y = np.random.default_rng(6).poisson(np.exp(0.3 * X[:, 0])).astype(float)
    model = PoissonRegressor(alpha=0.2, fit_intercept=False, tol=1e-10, max_iter=10_000)
    np.testing.assert_allclose(local_fit(X, y, Poisson(l2=0.1)), model.fit(X, y).coef_, atol=1e-5)
    model = PoissonRegressor(alpha=0.2, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(spared_fit(X, y, Poisson(l2=0.1)), with_intercept(model), atol=1e-4)


def test_line_20_scipy_huber():
    r = np.linspace(-4, 4, 41)
    np.testing.assert_allclose(HuberLoss(delta=1.3).f(r, 0 * r), scipy_huber(1.3, r))


def test_line_21_cvxpy_huber():
    r = np.linspace(-4, 4, 41)
    np.testing.assert_allclose(2 * HuberLoss(delta=1.3).f(r, 0 * r), cp.huber(r, 1.3).value)


def test_every_numbered_line_has_a_test():
    lines = re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(k) for k in lines] == list(range(1, len(lines) + 1))
    tested = {m[1] for name in globals() if (m := re.match(r"test_line_(\d+)_", name))}
    assert set(lines) == tested
