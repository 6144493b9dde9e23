"""A solve by parts is the solve of one process: to the last bit, however the nodes are spread."""

import numpy as np
import pytest

from nefele.losses import Logistic
from nefele.program import run_alone, steady_totals
from nefele.runtime import InProcess
from nefele.runtime.cutting import cut, owners
from nefele.runtime.plan import Plan
from nefele.runtime.solving import solve_part
from nefele.solvers import PrimalDual, solve
from nefele.solvers.primal_dual.fused import Fused, good_order
from tests.engines.problems import posed

STEPS = {"scaled": PrimalDual(polish=False), "printed": PrimalDual.as_printed()}
LOSSES = {"squared": "squared", "logistic": Logistic(l2=0.05)}


def by_parts(problem, parts, plan):
    """W of the whole, and where the first part has ended."""
    made = cut(problem, parts)
    links = {part.name: list(part.says) for part in made}
    ended = InProcess(links, {part.name: solve_part(part, plan) for part in made}).run()
    w = np.full((problem.graph.n_nodes, problem.d), np.nan)
    for part in made:
        w[part.nodes] = ended[part.name].w
    return w, ended[0]


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("weights", [True, False], ids=["weights", "equal weights"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "squared_l2"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_a_fixed_number_of_iterations_has_the_bits_of_one_process(loss, penalty, weights, steps):
    problem = posed(loss, penalty, weights=weights)
    assert Fused.fits(problem) == (loss == "squared")
    alone = solve(problem, steps, tol=None, max_iter=45)
    for parts in (1, 2, 4):
        w, ended = by_parts(problem, parts, Plan(steps, None, 45))
        assert np.array_equal(w, alone.w)
        assert ended.gap == pytest.approx(alone.gap, rel=0, abs=1e-9)
        assert ended.n_iter == 45 and ended.status == "finished"


def test_nodes_in_a_poor_order_are_put_in_a_better_one_in_all_parts_alike():
    problem = posed(side=150, shuffled=True)
    assert good_order(problem.graph) is not None
    steps = STEPS["scaled"]
    alone = solve(problem, steps, tol=None, max_iter=12)
    w, _ = by_parts(problem, 3, Plan(steps, None, 12))
    assert np.array_equal(w, alone.w)


def test_a_solve_to_a_tolerance_ends_as_in_one_process():
    problem = posed()
    alone = solve(problem, STEPS["scaled"], tol=1e-4)
    w, ended = by_parts(problem, 3, Plan(STEPS["scaled"], 1e-4, 10_000))
    assert ended.status == alone.status == "optimal"
    assert ended.n_iter == alone.n_iter and np.array_equal(w, alone.w)
    assert [r.iteration for r in ended.history] == [r.iteration for r in alone.history]


def test_the_last_iteration_is_certified_whatever_the_tolerance():
    _, ended = by_parts(posed(), 2, Plan(STEPS["scaled"], 1e-12, 60))
    assert ended.status == "max_iter" and np.isfinite(ended.gap)
    assert [r.iteration for r in ended.history] == [50, 60]


def test_who_watches_may_stop_the_solve():
    problem = posed()
    made = cut(problem, 2)
    plan = Plan(STEPS["scaled"], 1e-12, 10_000)
    programs = {
        0: solve_part(made[0], plan, watch=lambda record: record.iteration >= 100),
        1: solve_part(made[1], plan),
    }
    ended = InProcess({0: [1], 1: [0]}, programs).run()
    assert {e.status for e in ended.values()} == {"stopped"}
    assert {e.n_iter for e in ended.values()} == {100}


def test_numbers_that_overflow_end_the_solve():
    _, ended = by_parts(posed(), 2, Plan(PrimalDual(gamma=1e200, polish=False), 1e-3, 200))
    assert ended.status in ("failed", "max_iter", "stalled")
    assert np.isfinite(ended.objective)


@pytest.mark.parametrize("rows", [1, 7, 5000])
def test_steady_totals_do_not_depend_on_who_has_which_rows(rows):
    rng = np.random.default_rng(rows)
    values = rng.standard_normal((rows, 3)) * 10.0 ** rng.integers(-12, 12, (rows, 1))
    found = run_alone(steady_totals(values))[0]
    np.testing.assert_allclose(found, values.sum(axis=0), rtol=1e-9)
    for _ in range(3):
        number = rng.integers(0, 3, rows)
        programs = {k: steady_totals(values[number == k]) for k in range(3)}
        again = InProcess({0: [1], 1: [0, 2], 2: [1]}, programs).run()
        assert all(np.array_equal(a[0], found) for a in again.values())


def test_parts_are_numbered_by_their_first_nodes_and_about_equal():
    graph = posed().graph
    owner = owners(graph, 4)
    assert [int(np.argmax(owner == k)) for k in range(4)] == sorted(
        int(np.argmax(owner == k)) for k in range(4)
    )
    assert np.bincount(owner).max() <= 1.2 * graph.n_nodes / 4
    assert owners(graph, np.arange(graph.n_nodes)[::-1] // 98).tolist() == [0] * 98 + [1] * 98


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (0, "parts must be"),
        (True, "parts must be"),
        (1000, "at most the number of nodes"),
        (2.0, "parts must be a number of parts"),
        ([0, 1], "shape"),
    ],
)
def test_bad_parts_are_refused(parts, said):
    with pytest.raises(ValueError, match=said):
        cut(posed(), parts)


def test_what_is_no_problem_is_refused():
    with pytest.raises(ValueError, match="must be a Problem"):
        cut("problem", 2)
