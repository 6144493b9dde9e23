"""Leaving a node out: the linear system and the refit agree with a problem that never had it."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.penalties import Quadratic
from nefele.robust import without_node
from nefele.robust.example import stations
from nefele.theory import edge_influence
from tests.robust.networks import alone, small_problem


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("penalty", ["squared_l2", "l2", "huber"])
def test_it_is_the_fit_that_never_had_the_node(penalty, seed):
    problem, _ = small_problem(seed, penalty)
    found = without_node(problem, 1)
    rest = np.arange(problem.graph.n_nodes) != 1
    expected = solve(alone(problem, [1]), tol=1e-13).w
    assert found.w[rest] == pytest.approx(expected[rest], abs=1e-6)
    before = solve(problem, tol=1e-13).w
    assert found.change[rest] == pytest.approx((expected - before)[rest], abs=1e-5)
    assert np.isnan(found.w[1]).all() and np.isnan(found.size[1])
    assert found.method == ("exact" if penalty == "squared_l2" else "refit")


def test_a_leaf_is_its_only_edge():
    data = LocalData.from_list([([[1.0]], [float(i)]) for i in range(3)])
    problem = Problem(Graph.from_edges([(0, 1), (1, 2)]), data, penalty="squared_l2", lam=1.0)
    found, edge = without_node(problem, 2), edge_influence(problem, [1])
    assert found.change[:2] == pytest.approx(edge.change[0, :2], abs=1e-12)


def test_what_hung_on_the_node_is_left_without_an_answer():
    data = LocalData.from_list([([[1.0]], [1.0]), ([[1.0]], [2.0]), None])
    problem = Problem(Graph.from_edges([(0, 1), (1, 2)]), data, penalty="squared_l2", lam=1.0)
    found = without_node(problem, 1)
    assert np.isfinite(found.w[0]).all() and np.isnan(found.w[2]).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: without_node(stations(), 99), "Captured nodes must be nodes of the graph"),
        (lambda: without_node("p", 0), "problem must be a Problem; got str"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("least", [1.0, 0.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_quadratic_penalty_of_any_regular_matrix_is_exact(seed, least):
    """With a matrix that spares a direction it is a refit."""
    problem, _ = small_problem(seed, "squared_l2")
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((problem.d, problem.d)))[0]
    values = np.linspace(least, 3.0, problem.d) if problem.d > 1 else np.array([2.0])
    penalty = Quadratic((turn * values) @ turn.T)
    problem = Problem(problem.graph, problem.data, penalty=penalty, lam=problem.lam)
    found = without_node(problem, 1, tol=1e-13)
    rest = np.arange(problem.graph.n_nodes) != 1
    expected = solve(alone(problem, [1]), tol=1e-13).w
    assert found.w[rest] == pytest.approx(expected[rest], abs=1e-6)
    assert found.method == ("exact" if values.min() > 0 else "refit")
