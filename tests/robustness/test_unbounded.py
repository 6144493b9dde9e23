"""Losses whose infimum is not attained: separable classes, counts that are all zero."""

import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, solve
from nefele.losses import Logistic, Multinomial, Poisson
from nefele.penalties import L2Norm, Lp, Partial, Quadratic
from tests.robustness.problems import PENALTIES, lonely, path

CLASSES = ([[1.0, 0.5], [-1.0, 0.3], [2.0, -0.2]], [1.0, -1.0, 1.0])
MANY = ([[1.0, 0.5], [-1.0, 0.3], [0.5, 2.0]], [0.0, 1.0, 0.0])
ZEROS = ([[1.0, 0.5], [2.0, 0.3]], [0.0, 0.0])
CASES = [(Logistic(), CLASSES), (Multinomial(3), MANY), (Poisson(), ZEROS)]
MIXED = ([[1.0, 0.5], [1.0, 0.5], [0.3, -1.0], [0.3, -1.0]], [1.0, -1.0, 1.0, -1.0])


def solve_warned(problem, n):
    words = f"{n} nodes?, such as.*no minimiser.*labels, or counts.*regulariser, such as l2=1e-3"
    with pytest.warns(DataWarning, match=words) as caught:
        result = solve(problem)
    assert len(caught) == 1
    return result


@pytest.mark.parametrize(("loss", "rows"), CASES, ids=repr)
def test_a_single_node_stops_on_the_dual_gap(loss, rows):
    problem = Problem(lonely(), LocalData.from_list([rows]), loss=loss, lam=1.0)
    result = solve_warned(problem, 1)
    assert result.converged and result.unbounded.all()
    assert 0 <= result.objective <= 1e-11 and np.isfinite(result.w).all()


@pytest.mark.parametrize("penalty", [*PENALTIES, Lp(3)], ids=repr)
@pytest.mark.parametrize(("loss", "rows"), CASES, ids=repr)
def test_a_whole_component_stops_on_the_dual_gap(loss, rows, penalty):
    problem = Problem(path(3), LocalData.from_list(3 * [rows]), loss=loss, penalty=penalty, lam=0.1)
    result = solve_warned(problem, 3)
    assert result.converged and result.unbounded.all()
    assert 0 <= result.objective <= 1e-11


def test_an_isolated_separable_node_among_others():
    graph = Graph.from_edges([(0, 1)], nodes=[0, 1, 2])
    problem = Problem(graph, LocalData.from_list([MIXED, MIXED, CLASSES]), loss="logistic", lam=0.1)
    result = solve_warned(problem, 1)
    assert result.converged and result.unbounded.tolist() == [False, False, True]
    assert result.objective == pytest.approx(2 * np.log(2), rel=1e-5)


def test_one_separable_node_of_a_component_is_not_flagged():
    problem = Problem(
        path(3), LocalData.from_list([CLASSES, MIXED, MIXED]), loss="logistic", lam=0.1
    )
    result = solve(problem)
    assert result.converged and not result.unbounded.any()


def test_without_coupling_only_the_separable_node_is_flagged():
    problem = Problem(
        path(3), LocalData.from_list([CLASSES, MIXED, MIXED]), loss="logistic", lam=0.0
    )
    result = solve_warned(problem, 1)
    assert result.converged and result.unbounded.tolist() == [True, False, False]


def test_a_regulariser_mends_it():
    sets = LocalData.from_list(3 * [CLASSES])
    result = solve(Problem(path(3), sets, loss=Logistic(l2=1e-3), lam=0.1))
    assert result.converged and not result.unbounded.any()


@pytest.mark.parametrize("partner", ["logistic", Logistic(l2=0.1)], ids=repr)
def test_separable_nodes_of_a_mixed_network(partner):
    """A dict of losses: node 2 is alone and separable, 0 and 1 share a component."""
    graph = Graph.from_edges([(0, 1)], nodes=[0, 1, 2])
    losses = {0: "squared", 1: partner, 2: "logistic"}
    sets = LocalData.from_list([CLASSES, CLASSES, CLASSES])
    result = solve_warned(Problem(graph, sets, loss=losses, lam=0.1), 1)
    assert result.converged and result.unbounded.tolist() == [False, False, True]


def test_two_losses_that_run_away_together():
    losses = {0: "logistic", 1: "poisson"}
    sets = LocalData.from_list([([[1.0]], [-1.0]), ([[1.0]], [0.0])])
    result = solve_warned(Problem(path(2), sets, loss=losses, lam=0.1), 2)
    assert result.converged and result.unbounded.all()


def test_a_poisson_node_without_counts_is_held_by_its_neighbour():
    sets = LocalData.from_list([([[1.0], [1.0]], [0.0, 0.0]), ([[1.0]], [2.0])])
    result = solve(Problem(path(2), sets, loss="poisson", lam=0.1))
    assert result.converged and not result.unbounded.any()


def test_a_class_that_no_row_has_does_not_end_the_solve_and_is_named():
    rng = np.random.default_rng(0)
    rows = [(np.c_[rng.normal(size=(20, 2)), np.ones(20)], rng.integers(0, 2, 20)) for _ in "abcd"]
    problem = Problem(
        path(4), LocalData.from_list(rows), loss=Multinomial(n_classes=3), penalty="l2", lam=0.1
    )
    with pytest.warns(DataWarning, match=r"no minimiser.*l2=1e-3"):
        result = solve(problem)
    assert result.converged and result.gap <= 1e-6 and result.unbounded.all()
    assert result.n_iter <= 1000


@pytest.mark.parametrize("penalty", [Partial(L2Norm(), [0]), Quadratic(np.diag([1.0, 0.0]))])
def test_a_node_that_runs_away_in_a_personal_direction_is_named(penalty):
    """One class at a node whose intercept is its own: only that node, not its neighbours."""
    one = (MIXED[0], [1.0, 1.0, 1.0, 1.0])
    rows = [(np.c_[np.array(x)[:, 0], np.ones(4)], y) for x, y in (MIXED, one, MIXED)]
    problem = Problem(path(3), LocalData.from_list(rows), loss="logistic", penalty=penalty, lam=0.1)
    result = solve_warned(problem, 1)
    assert result.unbounded.tolist() == [False, True, False]
