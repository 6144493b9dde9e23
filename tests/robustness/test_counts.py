"""Poisson losses where exponentials overflow between the start and the optimum."""

import numpy as np
import pytest

from nefele import ConvergenceWarning, Graph, LocalData, Problem, Status, solve
from nefele.losses import Absolute, Constrained, HuberLoss, Poisson, SquaredHinge
from nefele.losses.base import BoundLoss
from nefele.losses.poisson import BoundPoisson
from nefele.penalties import HuberPenalty, L1Norm, LinfNorm, Partial, Quadratic
from nefele.program import run_alone
from nefele.solvers import Solver, State
from nefele.solvers.primal_dual.polish import _search
from nefele.solvers.steps import typical_sizes
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
    X = [[0.1, -0.1], [0.6, 0.1], [-0.5, 0.4], [130.4, 94.7], [-70.4, -126.5], [-62.3, 4.1]]
    y = [10122.0, 10069.0, 10125.0, 9941.0, 9672.0, 10050.0]
    problem = Problem(path(2), LocalData(X, y, [0, 3, 6]), "poisson", lam=1.0)
    with np.errstate(all="ignore"):  # as in a solve
        spread, _ = run_alone(typical_sizes(problem))
    assert 0 < spread < np.inf


def test_a_line_search_survives_slopes_that_are_undefined():
    data = rows(([[1.0, 1.0]], [8e4]), ([[1.0, 0.0]], [1.0]))
    problem = Problem(path(2), data, "poisson", "squared_l2", lam=1.0)
    move = np.array([[2e4, -1e4], [0.0, 0.0]])
    with np.errstate(all="ignore"):
        w, progress = _search(problem, np.zeros((2, 2)), move)
    assert progress > 0 and problem.objective(w) < problem.objective_at_zero


def test_cones_at_their_centre_do_not_keep_a_solve_where_it_is(monkeypatch):
    monkeypatch.setattr(BoundPoisson, "start", BoundLoss.start)  # far away, at zero
    result = solve(Problem(path(2), FAR, "poisson", lam=1.0), "newton", max_iter=40)
    assert result.converged


class Astray(Solver[State]):
    """Overflows until an iteration, and is at a good point from then on."""

    def __init__(self, good, until):
        self.good, self.until, self.done = good, until, 0

    def init(self, problem, w0, u0):
        return State(w0, u0)

    def step(self, problem, state):
        self.done += 1
        back = self.done >= self.until
        state.w = self.good.w.copy() if back else np.full_like(state.w, 1e6)
        state.u = self.good.u.copy() if back else state.u


def test_a_solve_may_overflow_on_its_way():
    problem = Problem(path(2), FAR, "poisson", lam=1.0)
    good = solve(problem, tol=1e-9)
    assert solve(problem, Astray(good, 60), max_iter=200).converged
    with pytest.warns(ConvergenceWarning, match="overflowed"):
        lost = solve(problem, Astray(good, np.inf), max_iter=5000)
    assert lost.status is Status.FAILED and lost.n_iter < 1000


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
    rng = np.random.default_rng(4)
    ring = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 3)])
    X, y = rng.normal(size=(9, 3)) * 30, rng.poisson(2000.0, 9).astype(float)
    data = LocalData(X, y, [0, 5, 7, 7, 9])
    problem = Problem(ring, data, "poisson", Quadratic(Q=np.ones((3, 3))), lam=1.0)
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
