"""Quadratic losses by coefficients, and reduced solves on groups of nodes."""

import numpy as np
import pytest

from nefele import LocalData, Problem, solve
from nefele.graphs import grid
from nefele.losses import Squared
from nefele.losses.quadratic import BoundQuadratic
from nefele.solvers import PrimalDual
from nefele.solvers.primal_dual.quotient import reduced_solve
from nefele.solvers.primal_dual.solver import iterated


def squares(side=24, penalty="l2", lam=0.3, d=2, seed=0):
    """A grid of four squares with one model each; two nodes of five have no data."""
    rng = np.random.default_rng(seed)
    place = np.arange(side * side)
    square = 2 * (2 * (place // side) // side) + 2 * (place % side) // side
    true = 2 * rng.standard_normal((4, d))[square]
    counts = np.where(rng.random(side * side) < 0.6, 5, 0)
    owner = np.repeat(place, counts)
    X = rng.standard_normal((len(owner), d))
    y = np.einsum("rj,rj->r", X, true[owner]) + 0.1 * rng.standard_normal(len(owner))
    data = LocalData(X, y, np.concatenate([[0], np.cumsum(counts)]))
    return Problem(grid(side, side), data, penalty=penalty, lam=lam)


def quadratic_twin(problem):
    loss = problem.loss
    zero = np.zeros((problem.graph.n_nodes, problem.d))
    bound = BoundQuadratic(loss.H, loss.b, loss.value(zero))
    return Problem(problem.graph, None, loss=bound, penalty=problem.penalty, lam=problem.lam)


def test_quadratic_loss_equals_the_squared_loss():
    problem = squares(side=6)
    a, b = problem.loss, quadratic_twin(problem).loss
    rng = np.random.default_rng(3)
    w, step = rng.standard_normal((36, 2)), rng.uniform(0.1, 5.0, 36)
    np.testing.assert_allclose(a.value(w), b.value(w), atol=1e-12)
    np.testing.assert_allclose(a.grad(w), b.grad(w), atol=1e-12)
    np.testing.assert_allclose(a.prox(w, step), b.prox(w, step), atol=1e-12)
    np.testing.assert_allclose(a.minimise(), b.minimise(), atol=1e-10)
    np.testing.assert_array_equal(a.labelled, b.labelled)
    theta = rng.uniform(0.0, 1.0, 36)
    target = -rng.standard_normal((36, 2))
    # Both bound L*(theta s) from above; without row duals the bound is the exact value.
    rows, exact = (loss.dual_point(w, target).conjugate(theta) for loss in (a, b))
    assert (exact <= rows + 1e-10).all()
    one = np.ones(36)
    rows, exact = (loss.dual_point(w, target).conjugate(one) for loss in (a, b))
    np.testing.assert_allclose(rows, exact, atol=1e-10)


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", "squared_l2"])
def test_quadratic_problem_has_the_same_certified_optimum(penalty):
    problem = squares(side=6, penalty=penalty)
    a, b = solve(problem, tol=1e-8), solve(quadratic_twin(problem), tol=1e-8)
    assert a.converged and b.converged
    assert a.objective == pytest.approx(b.objective, rel=1e-7)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_reduced_solve_lowers_the_objective_of_an_early_iterate(penalty):
    problem = squares(penalty=penalty)
    solver = PrimalDual(polish=False)
    graph, d = problem.graph, problem.d
    state = solver.init(problem, np.zeros((graph.n_nodes, d)), np.zeros((graph.n_edges, d)))
    for _ in range(60):
        solver.step(problem, state)
    w, u = state.iteration.unrelaxed()
    better = reduced_solve(problem, iterated, w, u)
    assert better is not None
    assert better.objective < problem.objective(w)
    assert better.objective == pytest.approx(problem.objective(better.w), rel=1e-12)
    optimum = solve(problem, tol=1e-8)
    assert better.objective - optimum.objective < 0.2 * (problem.objective(w) - optimum.objective)


def test_without_groups_the_problem_itself_is_polished():
    problem = squares(side=6)
    nothing = np.ones((problem.graph.n_edges, 2))  # every flow outside: nothing is fused
    start = problem.loss.minimise()
    better = reduced_solve(problem, iterated, start, nothing)
    assert better.exact and better.objective < problem.objective(start)


def test_a_loss_with_kinks_only_fuses():
    problem = squares(side=6)
    lasso = Problem(problem.graph, problem.data, loss=Squared(l1=0.1), lam=0.3)
    start = np.random.default_rng(0).standard_normal((36, 2))
    better = reduced_solve(lasso, iterated, start, np.zeros((lasso.graph.n_edges, 2)))
    np.testing.assert_allclose(better.w, np.broadcast_to(start.mean(axis=0), (36, 2)), atol=1e-12)
