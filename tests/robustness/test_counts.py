"""Poisson losses where exponentials overflow between the start and the optimum."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Absolute, Constrained, HuberLoss, Poisson, SquaredHinge
from nefele.penalties import HuberPenalty, L1Norm, LinfNorm, Partial, Quadratic
from nefele.solvers import PrimalDual
from tests.robustness.problems import path


def rows(*nodes):
    return LocalData.from_list([None if n is None else tuple(map(np.array, n)) for n in nodes])


def within(problem, optimum, **options):
    """The optimum, as another method has it, is reached in few iterations."""
    result = solve(problem, max_iter=200, **options)
    assert result.converged, result.status
    assert result.objective - result.gap_abs <= optimum + 1e-6 * abs(optimum)
    assert result.objective <= optimum + result.gap_abs + 1e-6 * abs(optimum)
    return result


FAR = rows(([[300.0]], [8e4]), ([[1.0]], [900.0]))


@pytest.mark.parametrize(
    ("penalty", "optimum"), [("l2", -828397.944), ("squared_l2", -828381.852)], ids=str
)
def test_large_counts_with_features_of_unlike_size(penalty, optimum):
    within(Problem(path(2), FAR, "poisson", penalty, lam=1.0), optimum)


def test_a_node_without_edges_and_one_without_rows():
    data = rows(([[-300.0]], [8e4]), None, ([[-1.0]], [900.0]))
    graph = Graph.from_edges([(0, 1)], nodes=range(3))
    within(Problem(graph, data, "poisson", "squared_l2", lam=1.0), -828404.7044)


def test_first_steps_are_found_where_the_pooled_fit_overflows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2)) * np.repeat([1.0, 300.0], 6)[:, None]
    data = LocalData(X, rng.poisson(1e4, 12).astype(float), [0, 6, 12])
    problem = Problem(path(2), data, "poisson", lam=1.0)
    solver = PrimalDual()
    with np.errstate(all="ignore"):  # as in a solve
        state = solver.init(problem, np.zeros((2, 2)), np.zeros((1, 2)))
    assert 0 < state.gamma < np.inf and 0 < state.unit < np.inf


def test_kinds_of_losses_side_by_side():
    data = rows(([[1.0, -0.8]], [1.0]), ([[-2.0, 0.6]], [0.4]), ([[1.0, 1.0]], [800.0]))
    losses = {0: SquaredHinge(), 1: Absolute(l2=(1.0, 0.0)), 2: Poisson(l1=0.05)}
    graph = Graph.from_edges([(0, 1)], nodes=range(3))
    within(Problem(graph, data, losses, Partial(L1Norm(), on=[0]), lam=1.0), -4547.355)


def test_kinds_of_edges_side_by_side():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(9, 1))
    data = LocalData(X, rng.poisson(700.0, 9).astype(float), [0, 3, 6, 9])
    penalty = {(0, 1): Partial(HuberPenalty(delta=0.135), on=[0]), (1, 2): LinfNorm()}
    loss = {0: Poisson(), 1: HuberLoss(), 2: Poisson(l2=1e-3)}
    result = solve(Problem(path(3), data, loss, penalty, lam=0.02), max_iter=200)
    assert result.converged


def test_columns_of_unlike_size():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3)) * [1e-3, 1.0, 1e4]
    data = LocalData(X, rng.poisson(500.0, 40).astype(float), range(0, 41, 5))
    star = Graph.from_edges([(0, i) for i in range(1, 8)])
    assert solve(Problem(star, data, "poisson", "l1", lam=0.1), max_iter=300).converged


def test_counts_that_contradict_each_other():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 2)) * 100
    data = LocalData(X, rng.poisson(10.0 ** rng.uniform(0, 5, 30)).astype(float), range(0, 31, 6))
    for penalty in ("l2", "squared_l2", "linf"):
        assert solve(Problem(path(5), data, "poisson", penalty, lam=1.0), max_iter=600).converged


def test_nothing_runs_away_along_differences_that_cost_nothing():
    rng = np.random.default_rng(5)
    ring = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)])
    data = LocalData(
        rng.normal(size=(9, 3)) * 30, rng.poisson(2000.0, 9).astype(float), [0, 5, 7, 7, 9]
    )
    problem = Problem(ring, data, "poisson", Quadratic(Q=np.ones((3, 3))), lam=0.1)
    result = solve(problem, max_iter=600)
    assert result.converged and np.abs(result.w).max() < 1e4


@pytest.mark.parametrize("seed", range(4))
def test_shares_whose_exponentials_are_huge(seed):
    X = np.random.default_rng(seed).normal(size=(4, 3)) * 100
    data = LocalData(X, [3.0, 5, 8, 2], [0, 4, 4])
    result = solve(Problem(path(2), data, Constrained(Poisson(), "simplex"), lam=0.1), max_iter=500)
    assert result.converged
    np.testing.assert_allclose(result.w.sum(axis=1), 1.0, atol=1e-9)


def test_shares_where_the_middle_of_the_simplex_overflows():
    data = rows(([[2000.0, 0.0]], [5.0]), None)
    problem = Problem(path(2), data, Constrained(Poisson(), "simplex"), lam=0.1)
    within(problem, 5 - 5 * np.log(5))
