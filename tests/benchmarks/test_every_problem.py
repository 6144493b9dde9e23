"""Random problems of every kind against a cone solver: a part of benchmarks/every_problem.py."""

import every_problem
import numpy as np
import pytest
from every_problem_cases import BY_EDGE, HARD, INNER, LOSSES, MIXED, case
from every_problem_oracle import cone, running_away

# All penalties, most losses and difficulties; some have nodes without a minimiser.
QUICK = (4, 5, 12, 16, 20, 21, 25, 33, 49, 54, 58, 78, 84, 87, 91, 101, 152, 158, 232, 310)


@pytest.mark.parametrize("seed", QUICK)
def test_solved_with_a_bound_that_holds(seed):
    found = every_problem.measure(seed, "small")
    assert found["solved"] and found["gap"] <= every_problem.TOL
    assert not found["violated"] and not found["wrong status"]


@pytest.mark.parametrize("seed", [40452, 50122, 50134, 50468, 70734, 81042, 82949])
def test_some_that_once_took_more_than_20_seconds(seed):
    """Separable rows and power cones far apart; a singular penalty, features of all sizes; counts.

    The last one's start is 1e9 times the optimum, at which its weights leave few digits.
    """
    found = every_problem.measure(seed)
    assert found["solved"] and found["steps"] <= 250
    assert not found["violated"] and not found["wrong status"]


@pytest.mark.parametrize("seed", [5, 7, 10, 12, 20, 37])
def test_a_penalty_per_edge(seed):
    """The primal-dual method solves the fifth only, after 8,965 iterations."""
    found = every_problem.measure(seed, "small", BY_EDGE)
    assert found["solved"] and found["steps"] <= 100
    assert not found["violated"] and not found["wrong status"]


@pytest.mark.parametrize("seed", [1093, 1124, 1193])
def test_edges_that_hold_some_nodes_in_part(seed):
    """Two whose nodes run away where their own edges let them; factors that are inexact."""
    found = every_problem.measure(seed, kind=BY_EDGE)
    assert found["solved"] and found["steps"] <= 100
    assert not found["violated"] and not found["wrong status"]


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 400, 50))
def test_many_more(start):
    records = [every_problem.measure(seed, "small") for seed in range(start, start + 50)]
    assert not any(r["violated"] or r["wrong status"] for r in records)
    assert sum(r["solved"] for r in records) >= 49


def test_the_problems_are_of_every_kind():
    words = [case(seed, "small").words for seed in range(600)]
    assert {word["loss"] for word in words} == {*LOSSES, *MIXED}
    assert {word["hard"] for word in words} == set(HARD)
    assert {word["inner"] for word in words if word["penalty"] == "partial"} == set(INNER)
    several = {type(p).__name__ for s in range(60) for p in case(s, "", BY_EDGE).penalty.penalties}
    assert several >= {"L1Norm", "L2Norm", "LinfNorm", "Lp", "Partial", "Quadratic", "SquaredL2"}
    assert {word["penalty"] for word in words} >= {"lp", "partial", "singular", "linf", "quadratic"}


def test_a_seed_is_one_problem():
    first, second = case(7, "small"), case(7, "small")
    np.testing.assert_array_equal(first.data.X, second.data.X)
    assert first.lam == second.lam and repr(first.loss) == repr(second.loss)


def test_who_runs_away_and_what_holding_them_costs():
    posed = case(49, "small")
    away = running_away(posed)
    assert away.any() and not away.all()
    problem = posed.problem()
    np.testing.assert_array_equal(problem.unbounded(), away)
    held, ridge = problem.hold(away)
    _, point, _ = cone(posed, ridge)
    assert held.objective(point) > problem.objective(point)


def test_the_page_counts_what_was_wrong():
    good = every_problem.measure(12, "small")
    bad = {**good, "seed": 999, "solved": False, "violated": True, "seconds": 9.0}
    bad["cone seconds"] = 0.2
    page = every_problem.page([good, bad], "0 to 1")
    assert "| solved within 20 s | 1 of 2 (50.0%) |" in page
    assert "| certificates violated | 1 |" in page and "- 999:" in page
    assert "| 1 of 1 |" in page
