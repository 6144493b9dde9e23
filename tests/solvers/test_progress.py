"""What a callback learns: the rate, the time left, and a start that is good enough."""

import math

import pytest

from nefele import Record, Status, path, solve
from nefele.losses import Squared
from nefele.solvers import PrimalDual
from tests.problems import chain_problem


def slow_problem():
    return chain_problem(n=30, lam=2.0, penalty="linf", loss=Squared(l1=1e-3), seed=1)


def test_the_first_four_fields_stay_and_the_others_have_defaults():
    record = Record(50, 3.5, 1e-7, 0.01)
    assert record == (50, 3.5, 1e-7, 0.01, math.inf, 0.0)
    assert Record._fields[:4] == ("iteration", "objective", "gap", "seconds")


@pytest.mark.parametrize(
    ("record", "tol", "expected"),
    [
        (Record(1, 1.0, math.inf, 1.0, guess=1e-2, rate=0.5), 1e-4, 4.0),
        (Record(1, 1.0, math.inf, 1.0, guess=1e-2, rate=0.0), 1e-4, math.inf),
        (Record(1, 1.0, math.inf, 1.0), 1e-4, math.inf),
        (Record(1, 1.0, 1e-5, 1.0, guess=1e-5), 1e-4, 0.0),
        (Record(1, 1.0, 0.0, 1.0, guess=0.0), 1e-4, 0.0),
    ],
)
def test_seconds_left(record, tol, expected):
    assert record.seconds_left(tol) == pytest.approx(expected)


@pytest.mark.parametrize("certify", [True, False])
def test_records_carry_the_rate(certify):
    seen = []
    result = solve(slow_problem(), "primal_dual", tol=1e-9, callback=seen.append, certify=certify)
    assert len(seen) > 2 and seen == result.history
    assert seen[0].rate == 0 and any(record.rate > 0 for record in seen)
    assert seen[-1].seconds_left(1e-9) == 0


@pytest.mark.parametrize("penalty", ["l2", "squared_l2", "linf", "huber"])
def test_a_start_at_the_solution_is_seen_at_once(penalty):
    problem = chain_problem(n=10, penalty=penalty)
    cold, seen = solve(problem, tol=1e-7), []
    warm = solve(problem, tol=1e-6, w0=cold.w, u0=cold.u, callback=seen.append)
    assert warm.converged and warm.n_iter == 0 and warm.gap <= 1e-6
    assert [record.iteration for record in seen] == [0] and seen == warm.history


def test_parameters_or_flow_alone_are_not_certified_first():
    problem = chain_problem(n=10)
    cold = solve(problem, tol=1e-6)
    assert solve(problem, "primal_dual", w0=cold.w).n_iter > 0
    assert solve(problem, "primal_dual", u0=cold.u).n_iter > 0
    assert solve(problem, "primal_dual", tol=None, max_iter=3, w0=cold.w, u0=cold.u).n_iter == 3


def test_a_start_nearly_good_enough_is_reported_and_the_solve_may_be_stopped_there():
    class Lazy(PrimalDual):
        def certify(self, problem, state, **options):
            return state.w, problem.certificate(state.w, 0 * state.u)

    problem, seen = chain_problem(n=10), []
    best = solve(problem, tol=1e-9)
    result = solve(problem, Lazy(), w0=best.w, u0=best.u, callback=lambda r: seen.append(r) or True)
    assert result.status is Status.STOPPED and result.n_iter == 0 and len(seen) == 1


def test_a_path_starts_without_iterations_where_all_nodes_agree():
    found = path(chain_problem(n=6), n_lams=4)
    assert found.results[0].n_iter == 0 and found.converged
