"""NFL, Sec. VI-A to VI-C: numbers that an exact solver reaches, found independently."""

import numpy as np
import pytest

from nefele import solve
from tests.paper.instances import chain, mse, sbm, star, table1


@pytest.mark.parametrize(("penalty", "critical"), [("l2", 16.04144), ("l1", 15.78956)])
def test_star_fuses_at_the_critical_lam(penalty, critical):
    below = solve(star(0.999 * critical, penalty), tol=1e-10)
    above = solve(star(1.001 * critical, penalty), tol=1e-10)
    assert below.converged and above.converged
    assert np.ptp(below.w, axis=0).max() > 1e-3
    assert np.ptp(above.w, axis=0).max() < 1e-6


@pytest.mark.parametrize(("penalty", "critical"), [("l2", 16.04144), ("l1", 15.78956)])
def test_star_critical_lam_is_the_largest_leaf_gradient(penalty, critical):
    problem = star(1.0, penalty)
    loss = problem.loss
    pooled = np.linalg.solve(loss.H.sum(axis=0), loss.b.sum(axis=0))
    leaves = loss.grad(np.broadcast_to(pooled, (50, 2)))[1:]
    assert problem.penalty.dual_norm(leaves).max() == pytest.approx(critical, rel=1e-6)


def test_star_never_fuses_with_the_squared_penalty():
    result = solve(star(1000.0, "squared_l2"), tol=1e-10)
    assert np.ptp(result.w, axis=0).max() > 1e-3


def test_sbm_point_of_figure_2():
    problem, true = sbm("l1")
    assert problem.graph.n_edges == 5074
    assert int((problem.graph.head < 100).sum() - (problem.graph.tail < 100).sum()) == 87
    result = solve(problem, tol=1e-10)
    assert result.converged and result.certificate == "dual"
    assert result.objective == pytest.approx(3.473941128, rel=1e-9)
    assert mse(result.w, true) == pytest.approx(4.852845e-05, rel=1e-2)


def test_sbm_algorithm_1_with_the_papers_iterations():
    problem, true = sbm("l1")
    result = solve(problem, solver="algorithm1", tol=None, max_iter=3000)
    assert result.n_iter == 3000
    assert result.gap <= 1e-6
    assert result.objective == pytest.approx(3.473941128, rel=1e-6)
    assert mse(result.w, true) == pytest.approx(4.852845e-05, rel=1e-2)


def test_hard_sbm_where_3000_iterations_are_not_a_solution():
    problem, _ = sbm("l1", p_out=0.2, n_labelled=40)
    exact = solve(problem, tol=1e-8)
    printed = solve(problem, solver="algorithm1", tol=None, max_iter=3000)
    assert exact.objective == pytest.approx(38.69292, rel=1e-6)
    assert printed.objective == pytest.approx(40.73, abs=5e-3)
    assert printed.objective - exact.objective <= printed.gap_abs


def test_table_1_network_lasso():
    problem, true = table1("l2", 1e-3)
    assert problem.graph.n_edges == 1258
    result = solve(problem, tol=1e-10)
    assert result.converged
    assert result.objective == pytest.approx(0.1371974918, rel=1e-8)
    assert mse(result.w, true) == pytest.approx(2.83e-07, rel=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("penalty", "lam", "objective", "error"),
    [("l2", 1e-2, 1.3707224753, 8.22e-06), ("l1", 1e-2, 9.3778627505, 3.08e-04)],
)
def test_table_1_other_rows(penalty, lam, objective, error):
    problem, true = table1(penalty, lam)
    result = solve(problem, tol=1e-10)
    assert result.converged
    assert result.objective == pytest.approx(objective, rel=1e-8)
    assert mse(result.w, true) == pytest.approx(error, rel=1e-2)


@pytest.mark.parametrize(("eps", "error"), [(0.1, 7.13e-09), (0.5, 1.78e-07), (0.9, 5.78e-07)])
def test_chain(eps, error):
    found = []
    for seed in range(3):
        problem, true = chain(eps, seed)
        result = solve(problem, tol=1e-10)
        assert result.converged
        found.append(mse(result.w, true))
    assert np.mean(found) == pytest.approx(error, rel=1e-2)
