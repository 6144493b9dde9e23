import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, Status, solve
from nefele.result import relative_gap
from tests.problems import chain_problem


@pytest.fixture
def result():
    return solve(chain_problem(n=5, lam=0.2, seed=3), tol=1e-9)


def with_w(result, w):
    return dataclasses.replace(result, w=np.asarray(w, dtype=float))


def test_gap_is_relative_to_the_objective(result):
    size = max(abs(result.objective), 1e-6 * result.problem.objective_at_zero)
    assert result.gap == pytest.approx(result.gap_abs / size, rel=1e-12)
    assert result.objective == result.problem.objective(result.w)


def test_gap_of_a_perfect_fit_is_relative_to_the_objective_at_zero():
    problem = chain_problem()
    at_zero = problem.objective_at_zero
    assert relative_gap(problem, 0.0, 1e-9 * at_zero) == pytest.approx(1e-3)
    assert relative_gap(problem, at_zero, 1e-9 * at_zero) == pytest.approx(1e-9)
    assert relative_gap(problem, -2 * at_zero, at_zero) == pytest.approx(0.5)
    assert relative_gap(problem, 0.0, 0.0) == 0.0


def test_gap_without_any_scale_is_infinite_unless_zero():
    data = LocalData.from_list([([[1.0]], [0.0])])
    problem = Problem(Graph([0], [], []), data, lam=1.0)
    assert relative_gap(problem, 0.0, 1.0) == np.inf
    assert relative_gap(problem, 0.0, 0.0) == 0.0


def test_flow_is_inside_its_balls(result):
    ratio = result.problem.penalty.domain_ratio(result.u, result.problem.scale)
    assert (ratio <= 1 + 1e-12).all()
    assert result.u.shape == (4, 2)


def test_clusters_are_connected_groups_of_equal_nodes(result):
    equal = with_w(result, [[0, 0], [0, 0], [1, 0], [1, 0], [0, 0]])
    # The last node equals the first ones but no edge joins them.
    assert equal.clusters().tolist() == [0, 0, 1, 1, 2]
    assert with_w(result, np.ones((5, 2))).clusters().tolist() == [0] * 5


def test_clusters_tolerance_is_relative_to_the_spread(result):
    steps = with_w(result, [[0, 0], [1e-3, 0], [100, 0], [100, 1e-4], [200, 0]])
    assert steps.clusters().tolist() == [0, 0, 1, 1, 2]
    assert steps.clusters(tol=1e-6).tolist() == [0, 1, 2, 2, 3]
    assert steps.clusters(tol=0).tolist() == [0, 1, 2, 3, 4]
    assert steps.clusters(tol=1).tolist() == [0] * 5
    with pytest.raises(ValueError, match=r"tol must be finite and >= 0; got -1"):
        steps.clusters(tol=-1)


def test_clusters_of_a_solution_are_exactly_fused():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((10, 2))
    truth = [[1.0, 0.0]] * 3 + [[-3.0, 2.0]] * 3
    data = LocalData.from_list([(X, X @ w + 0.01 * rng.standard_normal(10)) for w in truth])
    graph = Graph.from_edges([(i, i + 1) for i in range(5)])
    assert solve(Problem(graph, data, lam=0.1)).clusters().tolist() == [0, 0, 0, 1, 1, 1]


def test_clusters_of_a_single_node():
    data = LocalData.from_list([([[1.0]], [2.0])], nodes=[7])
    assert solve(Problem(Graph([7], [], []), data, lam=1.0)).clusters().tolist() == [0]


@pytest.mark.parametrize("status", Status)
def test_every_status_has_advice(status):
    assert status.advice.endswith(".")


@pytest.mark.parametrize("status", [Status.MAX_ITER, Status.STALLED])
def test_advice_when_the_tolerance_is_not_reached(status):
    assert "ncrease" in status.advice and "tol" in status.advice and "rescale" in status.advice


def test_converged_means_optimal(result):
    assert result.converged and result.status == "optimal"
    assert not dataclasses.replace(result, status=Status.MAX_ITER).converged


def test_parameters_of_a_node_by_id(result):
    np.testing.assert_array_equal(result[3], result.w[3])
    with pytest.raises(ValueError, match="No node 9 in the graph"):
        result[9]


def test_repr_is_short(result):
    text = repr(result)
    assert "status=<Status.OPTIMAL" in text and "array" not in text


def test_history_is_monotone(result):
    history = result.history
    assert history[-1].iteration == result.n_iter
    assert history[-1].objective == result.objective and history[-1].gap == result.gap
    for before, after in pairwise(history):
        assert after.objective <= before.objective and after.gap <= before.gap
        assert after.iteration > before.iteration and after.seconds >= before.seconds
