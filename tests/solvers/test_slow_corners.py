"""Problems that once took tens of thousands of iterations, or did not end well."""

import warnings

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, Status, solve
from nefele.graphs import chain
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Poisson, Squared
from nefele.penalties import (
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Quadratic,
    SquaredL2,
)
from nefele.solvers import Newton, QuadraticCG
from nefele.solvers.interior_point.kinks import sources
from nefele.solvers.interior_point.powers import Powers
from tests.problems import kind_of, labels, random_graph, random_problem
from tests.reference.oracle import oracle
from tests.solvers.problems import name, quiet

INNER = [L1Norm(), L2Norm(), LinfNorm(), HuberPenalty(0.3), SquaredL2(), Lp(1.5), Lp(4)]
INNER += [Quadratic([[2.0, 0.5], [0.5, 1.0]]), Quadratic([[2.0, 1.0], [1.0, 0.5]])]
KINDS = [Squared(l1=0.1), Logistic(l2=0.01), Poisson(l2=0.05), HuberLoss(0.5), Absolute(), Hinge()]


@pytest.mark.parametrize("seed", range(6))
def test_a_leaf_without_data_and_a_singular_quadratic_penalty(seed):
    """A true flow of zero is rounding errors, also outside the range of Q."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1, 2))
    X, y = rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 3))
    data = LocalData.from_list([None, (X[0], y[0]), (X[1], y[1])])
    problem = Problem(chain(3), data, penalty=Quadratic(x.T @ x), lam=1.0)
    result = solve(problem)
    assert result.status is Status.OPTIMAL and result.n_iter < 30
    _, point = oracle(problem.graph, data, Squared(), problem.penalty, 1.0)
    assert result.objective <= point + 1e-7 and result.objective - result.gap_abs <= point


@pytest.mark.parametrize("seed", range(3))
def test_conjugate_gradients_stay_where_they_have_converged(seed):
    """With no tolerance they went on in directions that a singular Q leaves free."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(1, 2))
    data = LocalData.from_list([None, (rng.normal(size=(3, 2)), rng.normal(size=3))])
    problem = Problem(chain(2), data, penalty=Quadratic(x.T @ x), lam=1.0)
    best = solve(problem, tol=1e-12)
    result = solve(problem, QuadraticCG(), tol=None, max_iter=300)
    np.testing.assert_allclose(result.w, best.w, rtol=1e-5, atol=1e-5)


def test_a_huber_loss_with_few_rows_and_some_coupled_entries():
    """It once stood at twenty times the optimum after 3,000 iterations."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, 12, density=0.3)
        parts = []
        for i in range(12):
            X = rng.standard_normal((2, 4))
            y = X @ np.ones(4) + rng.standard_normal(2)
            parts.append((X, y) if rng.random() < 0.6 or i == 0 else None)
        data, penalty = LocalData.from_list(parts), Partial(L2Norm(), [0, 1])
        result = quiet(Problem(graph, data, HuberLoss(0.5), penalty, lam=0.2))
        _, point = oracle(graph, data, HuberLoss(0.5), penalty, 0.2)
        assert result.status is Status.OPTIMAL and result.n_iter < 60
        assert result.objective <= point + 1e-6 * max(1.0, point)


@pytest.mark.parametrize("inner", INNER, ids=name)
@pytest.mark.parametrize("loss", KINDS, ids=name)
def test_some_entries_with_every_penalty(loss, inner):
    problem = random_problem(5, loss, Partial(inner, [0, 2]), d=3)
    result = quiet(problem, tol=1e-7)
    _, point = oracle(problem.graph, problem.data, loss, problem.penalty, problem.lam)
    assert result.converged and result.n_iter < 200
    if result.held is None:
        assert result.objective <= point + 1e-6 * max(1.0, abs(point))
        assert result.objective - result.gap_abs <= point + 1e-9 * max(1.0, abs(point))


@pytest.mark.filterwarnings("ignore:pnorm with p")
@pytest.mark.parametrize("p", [1.1, 1.7, 3.0, 6.5])
@pytest.mark.parametrize("loss", [Squared(), Logistic(l2=0.01), Absolute()], ids=name)
def test_p_norms(loss, p):
    for seed in range(2):
        problem = random_problem(seed, loss, Lp(p), d=3, wide=seed == 1)
        result = quiet(problem, tol=1e-7)
        _, point = oracle(problem.graph, problem.data, loss, problem.penalty, problem.lam)
        assert result.status is Status.OPTIMAL and result.n_iter < 100
        assert result.objective <= point + 1e-6 * max(1.0, abs(point))


def test_every_node_with_a_loss_of_its_own():
    rng = np.random.default_rng(2)
    graph, losses, parts = random_graph(rng, 14, density=0.3), {}, []
    for i in range(14):
        losses[i] = KINDS[i % len(KINDS)]
        X = rng.standard_normal((6, 3))
        parts.append((X, labels(kind_of(losses[i]), X @ rng.standard_normal(3), rng)))
    data = LocalData.from_list(parts)
    for penalty in (L2Norm(), LinfNorm(), Lp(3), SquaredL2(), Partial(L1Norm(), [0, 1])):
        problem = Problem(graph, data, losses, penalty, lam=0.1)
        fast, slow = quiet(problem, tol=1e-8), quiet(problem, "primal_dual", tol=1e-4)
        assert fast.status is Status.OPTIMAL and fast.n_iter < 60
        assert fast.objective <= slow.objective + 1e-8
        assert fast.objective - fast.gap_abs <= slow.objective
        kinds = sources(problem, np.ones(14, dtype=bool))
        assert sum(len(kind.s) for kind in kinds) == 6 * sum(i % 6 >= 3 for i in range(14)) + 9


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3, 1e6])
def test_scales_of_features_cost_nothing(size):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 10)
    X, w = rng.standard_normal((10, 8, 3)), rng.standard_normal(3)
    y = [np.sign(x @ w + rng.standard_normal(8)) for x in X]
    steps, values = [], []
    for scale in (1.0, size):
        data = LocalData.from_list([(scale * x, b) for x, b in zip(X, y, strict=True)])
        result = quiet(Problem(graph, data, Logistic(), Lp(3), lam=0.05 * scale))
        assert result.status is Status.OPTIMAL
        steps.append(result.n_iter)
        values.append(result.objective)
    assert steps[1] <= steps[0] + 10
    assert values[1] == pytest.approx(values[0], rel=1e-5)


@pytest.mark.parametrize("lam", [1e-8, 1e5])
@pytest.mark.parametrize("penalty", [L2Norm(), LinfNorm(), Lp(3), Partial(L2Norm(), [0])], ids=name)
def test_tiny_and_huge_lams(penalty, lam):
    for loss in (Logistic(l2=0.01), Absolute(), HuberLoss(0.5)):
        result = quiet(random_problem(3, loss, penalty, d=2).with_lam(lam))
        assert result.status is Status.OPTIMAL and result.n_iter < 100


def test_power_cones_stay_inside_and_the_barrier_has_its_derivatives():
    problem = random_problem(1, Squared(), Lp(2.5), d=3)
    solver = Newton()
    zero = np.zeros((problem.graph.n_nodes, 3)), np.zeros((problem.graph.n_edges, 3))
    state = solver.init(problem, *zero)
    edges = state.terms.edges.cores[0]
    assert isinstance(edges, Powers)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            solver.step(problem, state)
            assert (problem.penalty.value(edges.v) < edges.t).all()
            assert (problem.penalty.dual_norm(edges.u) < edges.s).all()
    slope, H = edges._gradient(edges.v, edges.h), edges._hessian(edges.v, edges.h)
    x, eps = np.concatenate([edges.v, edges.h], axis=1), 1e-6
    for j in range(x.shape[1]):
        move = np.zeros_like(x)
        move[:, j] = eps * np.abs(edges.t)
        up, down = (edges._gradient((x + m)[:, :3], (x + m)[:, 3:]) for m in (move, -move))
        change = (up - down) / (2 * move[:, j : j + 1])
        scale = np.abs(H).max(axis=(1, 2))[:, None]
        np.testing.assert_allclose(change / scale, H[:, :, j] / scale, atol=1e-4)
    # Logarithmic homogeneity: <x, F'(x)> = -degree.
    np.testing.assert_allclose((x * slope).sum(axis=1), -edges.degree, rtol=1e-8)


@pytest.mark.parametrize("p", [1.1, 1.5, 3.0, 8.0])
def test_the_inverse_of_the_barriers_hessian_in_closed_form(p):
    rng = np.random.default_rng(0)
    problem = random_problem(1, Squared(), Lp(p), d=3)
    edges = Powers(p, problem.scale, np.zeros((problem.graph.n_edges, 3)), 1.0)
    h = np.concatenate([rng.uniform(0.01, 0.3, edges.v.shape), np.ones((len(edges.v), 1))], axis=1)
    v = edges._bounds(h) * rng.uniform(-0.99, 0.99, edges.v.shape)
    y = rng.normal(size=(len(v), 7))
    dense = np.linalg.solve(edges._hessian(v, h), y[..., None])[..., 0]
    np.testing.assert_allclose(edges._inverse_norm(v, h, y), (y * dense).sum(axis=1), rtol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_features_of_all_sizes_in_groups_that_a_huge_lam_holds_together(seed):
    """One correction of a Newton step left errors there, at which the steps came to a halt."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(34, 4)) * [3e-2, 4e-3, 1.0, 500.0]
    y = rng.choice([-1.0, 1.0], 34)
    data = LocalData(X, y, [0, 12, 21, 34])
    graph = Graph.from_edges([(0, 1), (0, 2), (1, 2)])
    result = solve(Problem(graph, data, loss=Hinge(), lam=300.0))
    assert result.status is Status.OPTIMAL
    _, point = oracle(graph, data, Hinge(), L2Norm(), 300.0)
    assert abs(result.objective - point) <= 1e-5 * point
