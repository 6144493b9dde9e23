"""Newton steps of reduced problems, and when the first steps of iterations are found."""

import numpy as np
import pytest

from nefele import LocalData, Problem, solve
from nefele.graphs import grid
from nefele.penalties import Quadratic
from nefele.solvers import PrimalDual
from nefele.solvers.primal_dual import polish, solver


def labels(side, penalty, lam=0.3, seed=0):
    rng = np.random.default_rng(seed)
    n = side * side
    X, y = rng.standard_normal((5 * n, 2)), rng.choice([-1.0, 1.0], 5 * n)
    data = LocalData(X, y, np.arange(0, 5 * n + 1, 5))
    return Problem(grid(side, side), data, loss="logistic", penalty=penalty, lam=lam)


@pytest.mark.parametrize("side", [3, 12, 25])
@pytest.mark.parametrize("penalty", ["squared_l2", Quadratic([[2.0, 0.5], [0.5, 1.0]])])
def test_a_step_for_all_unknowns_solves_the_newton_system(side, penalty):
    """On graphs whose system is dense, and sparse; from points that are equal somewhere."""
    problem, rng = labels(side, penalty), np.random.default_rng(1)
    n, d = problem.graph.n_nodes, problem.d
    w = rng.standard_normal((n, d))
    w[1] = w[0]
    groups, k = polish.groups_of(problem, np.zeros((problem.graph.n_edges, d), dtype=bool))
    move = polish._newton_step(problem, groups, k, w, 1e-13)
    slope = problem.loss.grad(w) + problem.graph.div(problem.smooth_flow(w))
    bend = penalty.Q if isinstance(penalty, Quadratic) else np.eye(d)
    turned = problem.graph.div(problem.scale[:, None] * problem.graph.diff(move) @ bend)
    turned += np.einsum("ijk,ik->ij", problem.loss.hess(w), move)
    np.testing.assert_allclose(turned, -slope, atol=1e-9)


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf"])
def test_nodes_that_are_all_equal_move_together_whatever_the_norm(penalty):
    """The maximum norm has no curvature, and needs none where every edge is fused."""
    problem = labels(3, penalty, lam=50.0)
    w = np.random.default_rng(2).standard_normal((9, 2))
    found = polish.polish(problem, w, np.zeros_like(problem.graph.diff(w)))
    pooled = problem.loss.pooled(problem.graph.components)
    assert np.abs(found.w - found.w[0]).max() < 1e-12
    np.testing.assert_allclose(found.w, pooled, atol=1e-8)


def test_no_steps_of_iterations_are_sought_where_none_is_done(monkeypatch):
    asked = []
    first_steps = solver.first_steps
    monkeypatch.setattr(solver, "first_steps", lambda *args: asked.append(1) or first_steps(*args))
    result = solve(labels(3, "squared_l2"), "primal_dual")
    assert result.converged and result.n_iter == 0 and not asked
    assert solve(labels(3, "l2"), "primal_dual").converged and asked


def test_a_state_that_is_kept_has_its_steps():
    problem, method = labels(3, "squared_l2"), PrimalDual()
    zero = np.zeros((9, 2)), np.zeros((problem.graph.n_edges, 2))
    state = method.init(problem, *zero)
    kept = method.current(problem, state)
    told, arrays = method.scalars(state), method.arrays(state)
    assert told["gamma"] > 0
    again = method.init(problem, *zero)
    method.resume(problem, again, told, {**arrays, "w": kept[0], "u": kept[1]})
    for s in (state, again):
        method.step(problem, s)
    np.testing.assert_array_equal(state.iteration.w, again.iteration.w)
