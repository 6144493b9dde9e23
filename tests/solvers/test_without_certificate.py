"""Solves without certificates, and the residual that they stop on."""

import warnings

import numpy as np
import pytest

from nefele import ConvergenceWarning, Problem, Status, path, solve
from nefele.losses import Absolute, Logistic, Poisson, Squared
from nefele.solvers import PrimalDual
from nefele.solvers.loop.residual import residual
from tests.problems import chain_problem, random_problem

LOSSES = [Squared(), Squared(l1=0.1), Logistic(l2=0.01), Poisson(l2=0.01), Absolute()]


def test_the_result_says_so():
    result = solve(chain_problem(), certify=False)
    assert result.status is Status.UNCERTIFIED and not result.converged
    assert "certificate='none'" in repr(result) and "gap=inf" in repr(result)
    assert "uncertified" in repr(result) and "certify=False" in result.status.advice
    assert all(r.gap == np.inf and r.guess >= 0 for r in result.history)
    assert result.history[-1].guess <= 1e-6 and result.leak == 0


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", "huber", "squared_l2"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_the_objective_is_as_near_as_the_tolerance_says(loss, penalty):
    problem = chain_problem(n=12, penalty=penalty, loss=loss)
    best = solve(problem, tol=1e-8).objective
    result = solve(problem, tol=1e-4, certify=False)
    assert result.status is Status.UNCERTIFIED
    assert result.objective - best <= 1e-4 * abs(best)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("penalty", ["l2", "squared_l2"])
def test_the_residual_is_never_above_the_gap_of_the_same_flow(seed, penalty):
    """And zero at a solution, where both are rounding errors."""
    problem = random_problem(seed, penalty=penalty)
    rng = np.random.default_rng(seed)
    found = problem.certificate(
        rng.standard_normal((problem.graph.n_nodes, problem.d)), 0 * u_of(problem)
    )
    w = rng.standard_normal((problem.graph.n_nodes, problem.d))
    gap = problem.objective(w) - found.lower
    assert residual(problem, w, found.u) <= (1 + 1e-9) * gap


def u_of(problem):
    return np.zeros((problem.graph.n_edges, problem.d))


def test_the_residual_of_a_solution_is_small_and_away_from_it_is_not():
    problem = chain_problem(n=8)
    best = solve(problem, tol=1e-12)
    assert residual(problem, best.w, best.u) <= 1e-10
    off = best.w + 0.1 * np.random.default_rng(0).standard_normal(best.w.shape)
    true = problem.objective(off) - best.objective
    assert residual(problem, off, best.u) >= 0.1 * true


def test_a_flow_is_scaled_into_its_balls():
    problem = chain_problem(lam=0.5)
    u = problem.inside(np.full((3, 2), 7.0))
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 0.5)
    assert (problem.with_lam(0.0).inside(np.ones((3, 2))) == 0).all()


def test_a_residual_above_the_tolerance_warns():
    problem = chain_problem(n=30, lam=2.0, penalty="linf", loss=Squared(l1=1e-3), seed=1)
    with pytest.warns(ConvergenceWarning, match=r"after 3 iterations with guess .* > tol"):
        result = solve(problem, "primal_dual", tol=1e-9, max_iter=3, certify=False)
    assert result.status is Status.MAX_ITER and result.gap == np.inf


def test_no_warning_when_the_residual_is_reached():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(chain_problem(), certify=False)


def test_without_tol_exactly_max_iter_iterations():
    result = solve(chain_problem(), "algorithm1", tol=None, max_iter=7, certify=False)
    same = solve(chain_problem(), "algorithm1", tol=None, max_iter=7)
    assert result.status is Status.FINISHED and result.n_iter == 7
    assert result.certificate == "none" and result.gap == np.inf
    np.testing.assert_array_equal(result.w, same.w)


def test_no_certificate_is_computed(monkeypatch):
    def never(*args, **options):
        raise AssertionError

    monkeypatch.setattr(Problem, "certificate", never)
    assert solve(chain_problem(), certify=False).status is Status.UNCERTIFIED
    assert solve(chain_problem(), "admm", certify=False).status is Status.UNCERTIFIED


def test_a_callback_and_an_interrupt_work_the_same():
    problem = chain_problem(n=30, lam=2.0, penalty="linf", loss=Squared(l1=1e-3), seed=1)
    stopped = solve(problem, "primal_dual", tol=1e-12, certify=False, callback=lambda record: True)
    assert stopped.status is Status.STOPPED and stopped.certificate == "none"

    def interrupt(record):
        raise KeyboardInterrupt

    result = solve(problem, "primal_dual", tol=1e-12, certify=False, callback=interrupt)
    assert result.status is Status.INTERRUPTED and result.gap == np.inf
    assert np.isfinite(result.w).all()


def test_numbers_that_overflow_are_a_failure():
    class Wild(PrimalDual):
        def step(self, problem, state):
            super().step(problem, state)
            state.iteration.w1 = state.iteration.w1 * np.nan

    with pytest.warns(ConvergenceWarning, match="failed"):
        result = solve(chain_problem(), Wild(polish=False), certify=False)
    assert result.status is Status.FAILED and result.certificate == "none"


@pytest.mark.parametrize("value", [None, 1, "no"])
def test_certify_must_be_a_flag(value):
    with pytest.raises(ValueError, match="certify must be True or False"):
        solve(chain_problem(), certify=value)
    with pytest.raises(ValueError, match="certify must be True or False"):
        path(chain_problem(), certify=value)


def test_a_path_without_certificates():
    problem = chain_problem(n=6)
    proven, quick = path(problem, n_lams=5), path(problem, n_lams=5, certify=False)
    np.testing.assert_allclose(quick.objectives, proven.objectives, rtol=2e-4)
    assert not quick.converged and (quick.gaps == np.inf).all()
    assert repr(quick).endswith("not certified)")


def test_a_path_without_certificates_warns_of_points_that_were_missed(monkeypatch):
    monkeypatch.setattr(PrimalDual, "max_iter", 1)
    problem = chain_problem(n=20)
    with pytest.warns(ConvergenceWarning, match="the largest guess is"):
        path(problem, [0.5, 0.05], tol=1e-12, certify=False)
