"""Columns, weights and offsets of very unlike size, which no curvature at zero tells of."""

import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, solve
from nefele.losses import Absolute, Hinge, Logistic, Quantile
from nefele.penalties import Quadratic
from tests.robustness.problems import lonely, path


def test_an_offset_that_makes_one_class_all_but_certain():
    data = LocalData(
        [[-0.5], [5e4], [20.0]],
        [1.0, 1.0, 1.0],
        [0, 1, 1, 3],
        offset=[-14.933, -0.44, -0.53],
    )
    graph = Graph.from_edges([(1, 2)], nodes=range(3))
    with pytest.warns(DataWarning, match="no minimiser"):  # one class in every node
        result = solve(Problem(graph, data, "logistic", "l1", lam=0.1), max_iter=100)
    assert result.converged and result.objective <= 1e-5


def test_lasso_of_a_logistic_loss_with_large_offsets_and_features():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 2)) * [0.3, 3e4]
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    offset = 30.0 * rng.normal(size=60)
    weight = 10.0 ** rng.uniform(-8, 8, 60)
    data = LocalData(X, y, range(0, 61, 10), sample_weight=weight, offset=offset)
    star = Graph.from_edges([(0, i) for i in range(1, 6)])
    result = solve(Problem(star, data, Logistic(l1=0.02), "l1", lam=4e-7), max_iter=200)
    assert result.converged


def test_one_node_with_columns_far_apart():
    data = LocalData([[9e4, 7e-7], [-1e5, -5e-7]], [2.0, -2.0], [0, 2])
    problem = Problem(lonely(), data, Quantile(q=0.263), lam=1.0)
    result = solve(problem)
    assert result.converged and result.objective <= 1e-6


@pytest.mark.parametrize("loss", [Absolute(), Quantile(q=0.3), Hinge()], ids=repr)
def test_columns_far_apart_are_those_of_equal_size_in_other_units(loss):
    rng = np.random.default_rng(2)
    X, unit = rng.normal(size=(24, 3)), np.array([1e-6, 1.0, 1e5])
    y = rng.normal(size=24) if not isinstance(loss, Hinge) else rng.choice([-1.0, 1.0], 24)
    graph = Graph.from_edges([], nodes=range(3))
    plain, scaled = (LocalData(X * c, y, [0, 8, 16, 24]) for c in (1.0, unit))
    best = solve(Problem(graph, plain, loss, lam=1.0))
    found = solve(Problem(graph, scaled, loss, lam=1.0))
    assert found.converged
    assert found.objective == pytest.approx(best.objective, rel=1e-5)


@pytest.mark.parametrize("seed", [3, 7, 8])
def test_singular_springs_are_examined_before_rounding_errors_rule(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3)) * [1e3, 2e5, 1e-6]
    y = rng.normal(size=20) * np.repeat([500.0, 5.0, 0.1, 3.0], 5)
    data = LocalData(X, y, [0, 5, 10, 15, 20])
    b = np.array([[0.3, -1.2, 0.5]])
    penalty = Quadratic(Q=b.T @ b)
    result = solve(Problem(path(4), data, Quantile(q=0.263), penalty, lam=0.25), max_iter=200)
    assert result.converged
