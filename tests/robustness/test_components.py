"""Disconnected graphs, isolated nodes, nodes and whole components without data."""

import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, solve
from nefele.losses import Squared
from tests.reference.oracle import oracle
from tests.robustness.problems import LOSSES, PENALTIES, data, lonely, path, table


def two_paths(nodes=8):
    edges = [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)]
    return Graph.from_edges(edges, nodes=range(nodes))


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_disconnected_graph_equals_its_components(loss, penalty):
    first, second = table(loss, seed=1), table(loss, seed=2)
    options = dict(loss=loss, penalty=penalty, lam=0.1)
    whole = solve(Problem(two_paths(), LocalData.from_list(first + second), **options))
    parts = [
        solve(Problem(path(4), LocalData.from_list(rows), **options)) for rows in (first, second)
    ]
    assert whole.converged
    assert whole.objective == pytest.approx(sum(r.objective for r in parts), rel=3e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", ["l2", "squared_l2"])
def test_an_isolated_node_gets_its_local_minimiser(loss, penalty):
    rows = table(loss, n=5)
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], nodes=range(5))
    problem = Problem(graph, LocalData.from_list(rows), loss=loss, penalty=penalty, lam=0.3)
    result = solve(problem)
    alone = solve(Problem(lonely(), LocalData.from_list(rows[4:]), loss=loss, lam=0.3))
    assert result.converged and not result.undetermined.any()
    here, best = problem.loss.value(result.w)[4], alone.objective
    assert here == pytest.approx(best, abs=1e-5 * abs(result.objective))


@pytest.mark.parametrize("penalty", ["l2", "squared_l2"])
@pytest.mark.parametrize("warm", [False, True])
def test_an_isolated_rank_deficient_node_gets_the_least_norm_fit(penalty, warm):
    X, y = np.array([[1.0, 1.0, 0.0]]), np.array([4.0])
    rows = [*table(n=2, d=3), (X, y)]
    problem = Problem(
        Graph.from_edges([(0, 1)], nodes=range(3)),
        LocalData.from_list(rows),
        penalty=penalty,
        lam=0.3,
    )
    result = solve(problem, w0=np.full((3, 3), 7.0) if warm else None, tol=1e-10)
    np.testing.assert_allclose(result.w[2], [2.0, 2.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[2], LOSSES[3]], ids=repr)
def test_components_without_data_are_zero_flagged_and_warned_about_once(penalty, warm, loss):
    graph = two_paths(9)  # node 8 is isolated
    sets = LocalData.from_list(table(loss))
    starts = dict(w0=np.ones((9, 2)), u0=np.full((6, 2), 0.05)) if warm else {}
    with pytest.warns(DataWarning, match="5 nodes are not connected to any data") as caught:
        result = solve(Problem(graph, sets, loss=loss, penalty=penalty, lam=0.1), **starts)
    assert len(caught) == 1
    assert result.converged
    assert result.undetermined.tolist() == 4 * [False] + 5 * [True]
    assert not result.w[4:].any()
    without = solve(Problem(path(4), sets, loss=loss, penalty=penalty, lam=0.1))
    assert result.objective == pytest.approx(without.objective, rel=3e-6)


def test_without_coupling_each_node_without_data_is_undetermined():
    rows = [*table(n=1), None]
    with pytest.warns(DataWarning, match="1 node") as caught:
        result = solve(Problem(path(2), LocalData.from_list(rows), lam=0.0), w0=np.ones((2, 2)))
    assert len(caught) == 1
    assert result.undetermined.tolist() == [False, True]
    assert not result.w[1].any()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_no_data_at_all(loss):
    empty = LocalData.from_long(np.zeros((0, 2)), [], np.array([], dtype=int), nodes=[0, 1])
    with pytest.warns(DataWarning, match="2 nodes") as caught:
        result = solve(Problem(path(2), empty, loss=loss, lam=1.0))
    assert len(caught) == 1
    assert result.converged and result.objective == 0.0 and not result.w.any()


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES[:6], ids=repr)
def test_a_connected_node_without_data_is_correct_and_certified(loss, penalty):
    rows = table(loss, n=4)
    rows[1] = None
    problem = Problem(path(4), LocalData.from_list(rows), loss=loss, penalty=penalty, lam=0.1)
    result = solve(problem)
    _, best = oracle(problem.graph, problem.data, loss, problem.penalty, 0.1)
    assert result.converged and np.isfinite(result.gap_abs) and not result.undetermined.any()
    assert result.objective <= best + 2e-6 * abs(best)
    assert result.objective - result.gap_abs <= best + 1e-9 * abs(best)


def test_sample_weights_of_zero_are_no_data():
    sets = LocalData(
        np.ones((4, 1)), [1.0, 1.0, 9.0, 9.0], [0, 2, 4], sample_weight=[1.0, 1.0, 0.0, 0.0]
    )
    result = solve(Problem(path(2), sets, lam=1.0))
    np.testing.assert_allclose(result.w, 1.0, rtol=1e-6)


def test_a_single_node_is_a_local_fit():
    X, y = table(n=1)[0]
    result = solve(Problem(lonely(), LocalData.from_list([(X, y)]), lam=5.0))
    np.testing.assert_allclose(result.w[0], np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-9)
    assert result.u.shape == (0, 2) and result.clusters().tolist() == [0]


@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_single_edge_with_one_parameter(penalty):
    sets = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    problem = Problem(path(2), sets, penalty=penalty, lam=1.0)
    result = solve(problem)
    _, best = oracle(problem.graph, sets, Squared(), problem.penalty, 1.0)
    assert result.converged
    assert result.objective == pytest.approx(best, rel=2e-6)


def test_data_of_another_graph_are_an_error():
    with pytest.raises(ValueError, match="3"):
        Problem(path(3), data(n=4), lam=1.0)
