"""Precision matrices at the nodes, against scikit-learn, a cone solver and differences."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.covariance import graphical_lasso

from nefele import DataWarning, LocalData, Problem, Status, solve
from nefele.graphs import chain
from nefele.losses import GraphicalLasso, matrices
from nefele.losses.precision import _vectors
from tests.reference.oracle import solved

P, TIMES = 3, 5


def data(seed=0, rows=40):
    """Rows of five times; from the third on two variables are coupled otherwise."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(P, P))
    parts = []
    for t in range(TIMES):
        W = A @ A.T / P + 1.5 * np.eye(P)
        W[0, 1] = W[1, 0] = W[0, 1] + (t >= 2)
        X = rng.multivariate_normal(rng.normal(size=P), np.linalg.inv(W), size=rows)
        parts.append((X, np.zeros(rows)))
    return LocalData.from_list(parts)


@pytest.mark.parametrize("l1", [0.0, 0.05, 0.3])
def test_without_coupling_it_is_scikit_learns(l1):
    problem = Problem(chain(TIMES), data(), loss=GraphicalLasso(l1=l1), lam=0.0)
    result = solve(problem, tol=1e-9)
    assert result.converged and result.certificate == "dual"
    for W, S in zip(matrices(result.w), problem.loss.S, strict=True):
        X = np.cov(data().X[:40].T, bias=True)
        answer = np.linalg.inv(S)
        if l1:
            answer = graphical_lasso(S, alpha=l1, tol=1e-10, enet_tol=1e-10, max_iter=1000)[1]
        np.testing.assert_allclose(W, answer, atol=1e-6)
    np.testing.assert_allclose(problem.loss.S[0], X, atol=1e-12)


@pytest.mark.parametrize("lam", [0.02, 0.3])
@pytest.mark.parametrize(("penalty", "l1"), [("l2", 0.1), ("l1", 0.0), ("squared_l2", 0.05)])
def test_over_time_it_is_the_time_varying_graphical_lasso(penalty, l1, lam):
    problem = Problem(chain(TIMES), data(), loss=GraphicalLasso(l1=l1), penalty=penalty, lam=lam)
    S = problem.loss.S
    W = [cp.Variable((P, P), symmetric=True) for _ in range(TIMES)]
    terms = [cp.trace(S[t] @ W[t]) - cp.log_det(W[t]) for t in range(TIMES)]
    terms += [l1 * cp.sum(cp.abs(cp.multiply(1 - np.eye(P), w))) for w in W]
    size = {
        "l2": lambda v: cp.norm(v, "fro"),
        "l1": lambda v: cp.sum(cp.multiply(np.where(np.eye(P), 1, np.sqrt(0.5)), cp.abs(v))),
        "squared_l2": lambda v: 0.5 * cp.sum_squares(v),
    }[penalty]
    terms += [lam * size(W[t] - W[t + 1]) for t in range(TIMES - 1)]
    value, _ = solved(W[0], terms)
    result = solve(problem, tol=1e-7)
    assert result.converged and result.certificate == "dual"
    assert result.objective == pytest.approx(value, abs=2e-6 * abs(value))
    assert result.objective - result.gap_abs <= value + 1e-7 * abs(value)
    assert (np.linalg.eigvalsh(matrices(result.w)) > 0).all()


def test_the_gradient_equals_differences():
    bound = GraphicalLasso().bind(data())
    rng = np.random.default_rng(1)
    A = rng.normal(size=(TIMES, P, P))
    w = _vectors(A @ np.swapaxes(A, 1, 2) + np.eye(P))
    v = rng.normal(size=w.shape)
    rise = (bound.value(w + 1e-6 * v) - bound.value(w - 1e-6 * v)) / 2e-6
    np.testing.assert_allclose((bound.grad(w) * v).sum(axis=1), rise, rtol=1e-7)


def test_outside_its_domain_the_loss_is_infinite():
    bound = GraphicalLasso().bind(data())
    w = _vectors(np.repeat(np.eye(P)[None], TIMES, axis=0))
    assert np.isfinite(bound.value(w)).all()
    w[1, 0], w[2, 1] = -1.0, 2.0  # a negative entry, a large one off the diagonal
    assert np.isposinf(bound.value(w)).tolist() == [False, True, True, False, False]
    assert np.isposinf(bound.value(np.zeros_like(w))).all()
    with pytest.raises(ValueError, match=r"w must have p \(p \+ 1\) / 2 columns; got 4"):
        matrices(np.zeros((1, 4)))
    with pytest.raises(ValueError, match="takes at most 40 columns; got 41"):
        GraphicalLasso(l1=0.1).bind(LocalData(np.ones((1, 41)), [0.0], [0, 1]))


@pytest.mark.parametrize("penalty", ["l2", "squared_l2"])
def test_constant_columns_of_all_nodes_are_named_and_held(penalty):
    """It once took all iterations, to a gap of inf."""
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(5, 2)) * [1, 0], np.zeros(5)) for _ in range(3)]
    problem = Problem(
        chain(3), LocalData.from_list(rows), loss=GraphicalLasso(0.1), penalty=penalty, lam=0.1
    )
    with pytest.warns(DataWarning, match=r"no minimiser.*constant columns.*drop such columns"):
        result = solve(problem)
    assert result.status is Status.HELD and result.gap <= 1e-6 and result.n_iter < 10_000
    assert result.unbounded.all() and (result.held > 0).all()
    ridge = float((result.held * result.w**2).sum())
    assert result.objective == pytest.approx(problem.objective(result.w) + ridge)
    # What has a variance is as without the constant column.
    first = LocalData.from_list([(X[:, :1], y) for X, y in rows])
    alone = solve(Problem(chain(3), first, loss=GraphicalLasso(), penalty=penalty, lam=0.1))
    np.testing.assert_allclose(result.w[:, 0], alone.w[:, 0], rtol=1e-3)


def test_a_constant_column_of_one_node_is_no_matter():
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(8, 2)) * [1, t > 0], np.zeros(8)) for t in range(3)]
    result = solve(Problem(chain(3), LocalData.from_list(rows), loss=GraphicalLasso(0.1), lam=0.1))
    assert result.status is Status.OPTIMAL and not result.unbounded.any()


def test_a_ridge_is_what_it_says():
    """Value, gradient, prox and conjugate of a loss that is held."""
    plain = GraphicalLasso(0.2).bind(data())
    held = plain.held(np.full((TIMES, plain.d), 0.3))
    rng = np.random.default_rng(1)
    A = rng.normal(size=(TIMES, P, P))
    w = _vectors(A @ np.swapaxes(A, 1, 2) + np.eye(P))
    square = (w * w).sum(axis=1)
    np.testing.assert_allclose(held.value(w), plain.value(w) + 0.3 * square)
    np.testing.assert_allclose(held.grad(w), plain.grad(w) + 0.6 * w)
    z = held.prox(w, np.full(TIMES, 0.5))
    for other in (z + 1e-3 * rng.normal(size=z.shape) for _ in range(20)):
        moved = held.value(other) + ((other - w) ** 2).sum(axis=1)
        assert (moved >= held.value(z) + ((z - w) ** 2).sum(axis=1)).all()
    dual = held.dual_point(w, np.zeros_like(w))
    for theta in (np.ones(TIMES), np.full(TIMES, 0.9)):
        pairs = held.value(z) + dual.conjugate(theta)
        assert (pairs >= theta * (dual.flow() * z).sum(axis=1) - 1e-10).all()
    some = np.array([1, 3])
    np.testing.assert_allclose(held.restrict(some).value(w[some]), held.value(w)[some])


def test_nodes_without_data_take_their_neighbours_matrices():
    (X, y), *_ = ((x[:40], np.zeros(40)) for x in (data().X,))
    problem = Problem(
        chain(3), LocalData.from_list([(X, y), None, None]), loss=GraphicalLasso(0.1), lam=0.1
    )
    result = solve(problem)
    assert result.status is Status.OPTIMAL
    np.testing.assert_allclose(result.w[1:], result.w[[0, 0]], atol=1e-6)
