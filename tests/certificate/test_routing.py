"""Large problems: one pass for a round of corrections, and dual points without a system."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.certificate import correction
from nefele.certificate.posed import inside
from nefele.certificate.routing import routed
from nefele.graphs import grid
from nefele.program import run_alone
from nefele.solvers import PrimalDual


def large(penalty="squared_l2", side=85, d=3, rows=4, share=0.6, weights=True, seed=0):
    """More numbers than compiled loops need; some nodes have no rows, or too few."""
    rng = np.random.default_rng(seed)
    graph = grid(side, side, neighbors=8)
    weight = rng.uniform(0.5, 2.0, graph.n_edges) if weights else None
    graph = Graph(graph.ids, graph.head, graph.tail, weight)
    counts = np.where(rng.random(side * side) < share, rng.integers(1, rows + 1, side * side), 0)
    X = rng.standard_normal((counts.sum(), d))
    y = X @ np.ones(d) + rng.standard_normal(len(X))
    data = LocalData(X, y, np.concatenate([[0], np.cumsum(counts)]))
    return Problem(graph, data, penalty=penalty, lam=0.3)


def near_optimum(problem, size, seed=1):
    w = solve(problem, tol=1e-10).w
    return w + size * np.random.default_rng(seed).standard_normal(w.shape)


@pytest.mark.parametrize("penalty", ["squared_l2", "l2"])
def test_a_routed_point_is_feasible_and_nothing_given_is_changed(penalty):
    problem = large(penalty)
    w = near_optimum(large(), 0.1)
    u = problem.smooth_flow(w) if penalty == "squared_l2" else problem.graph.diff(w)
    u = inside(problem, u)
    dual, given = problem.loss.dual_point(w, -problem.outflow(u)), u.copy()
    fed = routed(problem, dual, u, problem.outflow(u))
    dual.settle(fed.x)
    np.testing.assert_allclose(dual.flow(), -problem.outflow(fed.flow), atol=1e-9)
    assert np.array_equal(u, given)


def test_a_flow_that_may_be_spent_is_routed_in_its_own_memory_and_can_be_brought_back():
    problem = large()
    w = near_optimum(problem, 0.1)
    u = problem.smooth_flow(w)
    dual, given, out = problem.loss.dual_point(w, -problem.outflow(u)), u.copy(), problem.outflow(u)
    wanted = routed(problem, dual, u, out).flow
    fed = routed(problem, dual, u, out, spend=True)
    assert fed.flow is u and np.array_equal(u, wanted) and not np.array_equal(u, given)
    fed.undo()
    assert np.array_equal(u, given)


def test_the_bound_of_a_quadratic_problem_is_below_the_optimum_and_near_it():
    problem = large()
    best = solve(problem, tol=1e-12)
    w = near_optimum(problem, 1e-4)
    found = problem.certificate(w, problem.smooth_flow(w), tol=1e-4)
    low, high = best.objective - best.gap_abs, best.objective
    assert found.form == "dual" and found.lower <= high
    assert low - found.lower <= 1e-4 * abs(high)
    assert found.leak <= 1e-9 * abs(high)


def test_a_point_that_is_too_far_off_is_corrected_by_the_system():
    problem = large()
    w = near_optimum(problem, 1.0)
    u = problem.smooth_flow(w)
    routed_too = problem.certificate(w, u, tol=1e-3)
    assert routed_too.lower == pytest.approx(problem.certificate(w, u).lower, rel=1e-5)


def test_nodes_that_reach_no_regular_loss_leave_it_to_the_system():
    problem = large(rows=2)  # no node has as many rows as parameters
    w = near_optimum(problem, 1e-3)
    u = problem.smooth_flow(w)
    dual, out = problem.loss.dual_point(w, -problem.outflow(u)), problem.outflow(u)
    assert routed(problem, dual, u, out) is None
    assert solve(problem, tol=1e-8).converged


def test_components_without_data_and_nodes_without_edges_need_nothing():
    problem = large()
    graph, n = problem.graph, problem.graph.n_nodes
    more = Graph(np.arange(n + 3), [*graph.head, n], [*graph.tail, n + 1], [*graph.weight, 1.0])
    ptr = np.concatenate([problem.data.ptr, np.full(3, problem.data.ptr[-1])])
    data = LocalData(problem.data.X, problem.data.y, ptr)
    with pytest.warns(UserWarning, match="not connected to any data"):
        result = solve(Problem(more, data, penalty="squared_l2", lam=0.3), tol=1e-8)
    alone = solve(problem, tol=1e-8)
    assert result.converged and not result.w[n:].any()
    np.testing.assert_allclose(result.w[:n], alone.w, atol=1e-3)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("d", [3, 9])
def test_one_pass_does_what_several_do(penalty, d, monkeypatch):
    problem = large(penalty, d=d)
    rng = np.random.default_rng(2)
    n, E = problem.graph.n_nodes, problem.graph.n_edges
    x, w = rng.standard_normal((2, n, d))
    u, give = inside(problem, rng.standard_normal((E, d))), rng.uniform(0.1, 1, (E, 1))
    fast = run_alone(correction.shift_flow(problem, u, give, x, w))
    monkeypatch.setattr(correction, "COMPILED", np.inf)
    slow = run_alone(correction.shift_flow(problem, u, give, x, w))
    assert fast.give is None and slow.give is None
    for one, other in zip(fast[:4], slow[:4], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_a_round_begins_with_what_the_one_before_has_left():
    problem = large("l2")
    rng = np.random.default_rng(3)
    u = inside(problem, 2 * rng.standard_normal((problem.graph.n_edges, problem.d)))
    w = rng.standard_normal((problem.graph.n_nodes, problem.d))
    dual, out = problem.loss.dual_point(w, w), problem.graph.div(u)
    system = correction.LossAndFlow(problem, 1.0)
    x, give = run_alone(system.solve(dual, u, out, 0.2))
    following = system.following(dual)
    near = run_alone(correction.shift_flow(problem, u, give.copy(), x, w, following=following))
    system.moved(dual, x, near)
    missing = dual.flow() + problem.graph.div(near.flow)
    np.testing.assert_allclose(near.out, missing, atol=1e-10 * np.abs(missing).max())
    again = correction.LossAndFlow(problem, 1.0)
    x1, give1 = run_alone(again.solve(dual, near.flow, problem.graph.div(near.flow), 1e-8))
    x2, give2 = run_alone(system.solve(dual, near.flow, out, 1e-8, last=near))
    np.testing.assert_allclose(give2, give1, rtol=1e-12)
    np.testing.assert_allclose(x2, x1, atol=1e-6 * np.abs(x1).max())


@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-5, 1e-6, 1e-7])
def test_the_leak_is_negligible_whatever_the_tolerance(tol):
    problem = large("l2", weights=False)
    result = solve(problem, PrimalDual(), tol=tol)
    assert result.converged and result.certificate == "dual"
    assert result.leak <= 0.011 * max(result.gap_abs, tol * result.objective)
