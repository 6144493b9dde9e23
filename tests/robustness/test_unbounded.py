"""Losses whose infimum is not attained: separable classes, counts that are all zero."""

import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, Status, solve
from nefele.losses import Box, Constrained, Logistic, Multinomial, Poisson
from nefele.penalties import L2Norm, Lp, Partial, Quadratic
from nefele.program import run_alone
from nefele.solvers.steps import typical_sizes
from tests.robustness.problems import PENALTIES, lonely, path

CLASSES = ([[1.0, 0.5], [-1.0, 0.3], [2.0, -0.2]], [1.0, -1.0, 1.0])
MANY = ([[1.0, 0.5], [-1.0, 0.3], [0.5, 2.0]], [0.0, 1.0, 0.0])
ZEROS = ([[1.0, 0.5], [2.0, 0.3]], [0.0, 0.0])
CASES = [(Logistic(), CLASSES), (Multinomial(3), MANY), (Poisson(), ZEROS)]
MIXED = ([[1.0, 0.5], [1.0, 0.5], [0.3, -1.0], [0.3, -1.0]], [1.0, -1.0, 1.0, -1.0])


def solve_warned(problem, n):
    words = f"{n} nodes?, such as.*no minimiser.*labels, or counts.*regulariser, such as l2=1e-3"
    with pytest.warns(DataWarning, match=words) as caught:
        result = solve(problem)
    assert len(caught) == 1
    return result


@pytest.mark.parametrize(("loss", "rows"), CASES, ids=repr)
def test_a_single_node_stops_on_the_dual_gap(loss, rows):
    problem = Problem(lonely(), LocalData.from_list([rows]), loss=loss, lam=1.0)
    result = solve_warned(problem, 1)
    assert result.converged and result.unbounded.all()
    assert 0 <= result.objective <= 1e-11 and np.isfinite(result.w).all()


@pytest.mark.parametrize("penalty", [*PENALTIES, Lp(3)], ids=repr)
@pytest.mark.parametrize(("loss", "rows"), CASES, ids=repr)
def test_a_whole_component_stops_on_the_dual_gap(loss, rows, penalty):
    problem = Problem(path(3), LocalData.from_list(3 * [rows]), loss=loss, penalty=penalty, lam=0.1)
    result = solve_warned(problem, 3)
    assert result.converged and result.unbounded.all()
    assert 0 <= result.objective <= 1e-11


def test_an_isolated_separable_node_among_others():
    graph = Graph.from_edges([(0, 1)], nodes=[0, 1, 2])
    problem = Problem(graph, LocalData.from_list([MIXED, MIXED, CLASSES]), loss="logistic", lam=0.1)
    result = solve_warned(problem, 1)
    assert result.converged and result.unbounded.tolist() == [False, False, True]
    assert result.objective == pytest.approx(2 * np.log(2), rel=1e-5)


def test_one_separable_node_of_a_component_is_not_flagged():
    problem = Problem(
        path(3), LocalData.from_list([CLASSES, MIXED, MIXED]), loss="logistic", lam=0.1
    )
    result = solve(problem)
    assert result.converged and not result.unbounded.any()


def test_without_coupling_only_the_separable_node_is_flagged():
    problem = Problem(
        path(3), LocalData.from_list([CLASSES, MIXED, MIXED]), loss="logistic", lam=0.0
    )
    result = solve_warned(problem, 1)
    assert result.converged and result.unbounded.tolist() == [True, False, False]


def test_a_regulariser_mends_it():
    sets = LocalData.from_list(3 * [CLASSES])
    result = solve(Problem(path(3), sets, loss=Logistic(l2=1e-3), lam=0.1))
    assert result.converged and not result.unbounded.any()


@pytest.mark.parametrize("partner", ["logistic", Logistic(l2=0.1)], ids=repr)
def test_separable_nodes_of_a_mixed_network(partner):
    """A dict of losses: node 2 is alone and separable, 0 and 1 share a component."""
    graph = Graph.from_edges([(0, 1)], nodes=[0, 1, 2])
    losses = {0: "squared", 1: partner, 2: "logistic"}
    sets = LocalData.from_list([CLASSES, CLASSES, CLASSES])
    result = solve_warned(Problem(graph, sets, loss=losses, lam=0.1), 1)
    assert result.converged and result.unbounded.tolist() == [False, False, True]


def test_two_losses_that_run_away_together():
    losses = {0: "logistic", 1: "poisson"}
    sets = LocalData.from_list([([[1.0]], [-1.0]), ([[1.0]], [0.0])])
    result = solve_warned(Problem(path(2), sets, loss=losses, lam=0.1), 2)
    assert result.converged and result.unbounded.all()


def test_a_poisson_node_without_counts_is_held_by_its_neighbour():
    sets = LocalData.from_list([([[1.0], [1.0]], [0.0, 0.0]), ([[1.0]], [2.0])])
    result = solve(Problem(path(2), sets, loss="poisson", lam=0.1))
    assert result.converged and not result.unbounded.any()


def test_a_class_that_no_row_has_does_not_end_the_solve_and_is_named():
    rng = np.random.default_rng(0)
    rows = [(np.c_[rng.normal(size=(20, 2)), np.ones(20)], rng.integers(0, 2, 20)) for _ in "abcd"]
    problem = Problem(
        path(4), LocalData.from_list(rows), loss=Multinomial(n_classes=3), penalty="l2", lam=0.1
    )
    with pytest.warns(DataWarning, match=r"no minimiser.*l2=1e-3"):
        result = solve(problem)
    assert result.converged and result.gap <= 1e-6 and result.unbounded.all()
    assert result.n_iter <= 1000


@pytest.mark.parametrize("penalty", [Partial(L2Norm(), [0]), Quadratic(np.diag([1.0, 0.0]))])
def test_a_node_that_runs_away_in_a_personal_direction_is_named(penalty):
    """One class at a node whose intercept is its own: only that node, not its neighbours."""
    one = (MIXED[0], [1.0, 1.0, 1.0, 1.0])
    rows = [(np.c_[np.array(x)[:, 0], np.ones(4)], y) for x, y in (MIXED, one, MIXED)]
    problem = Problem(path(3), LocalData.from_list(rows), loss="logistic", penalty=penalty, lam=0.1)
    result = solve_warned(problem, 1)
    assert result.unbounded.tolist() == [False, True, False]


def separated(seed=0):
    """Labels that the first entry separates with a positive weight, and such as nothing does."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8, 2))
    noise = rng.choice([-1.0, 1.0], 8)
    return (X, np.where(X[:, 0] > 0, 1.0, -1.0)), (X, noise), (X, -noise)


@pytest.mark.parametrize("within", ["nonnegative", Box(-1.0, np.inf), Box(-np.inf, (np.inf, 0.5))])
def test_within_an_unbounded_set_nodes_that_run_away_are_named_and_held(within):
    """It once took all iterations, to a gap of 1, and named no node."""
    easy, *mixed = separated()
    graph = Graph.from_edges([(0, 1), (2, 3)])
    loss, rows = Constrained(Logistic(), within), [easy, easy, *mixed]
    result = solve_warned(Problem(graph, LocalData.from_list(rows), loss=loss, lam=0.1), 2)
    assert result.converged and result.gap <= 1e-6 and result.n_iter < 200
    assert result.unbounded.tolist() == [True, True, False, False]
    assert loss.within.inside(result.w).all()
    others = solve(Problem(path(2), LocalData.from_list(mixed), loss=loss, lam=0.1))
    assert others.status is Status.OPTIMAL
    assert result.objective == pytest.approx(others.objective, rel=5e-3)
    alone = solve_warned(Problem(path(2), LocalData.from_list(rows[:2]), loss=loss, lam=0.1), 2)
    assert alone.converged and 0 <= alone.objective <= 5e-3
    with pytest.warns(DataWarning, match="no minimiser"):
        single = solve(Problem(graph, LocalData.from_list(rows), loss=loss, lam=0.0))
    assert single.converged and single.unbounded[:2].all()


def test_the_first_order_method_holds_nodes_within_a_set():
    easy, *_ = separated()
    data = LocalData.from_list([easy, easy])
    problem = Problem(path(2), data, loss=Constrained(Logistic()), lam=0.1)
    with pytest.warns(DataWarning, match="no minimiser"):
        result = solve(problem, "primal_dual", tol=1e-2)
    assert result.status is Status.HELD and result.unbounded.all() and (result.held > 0).all()


def test_only_directions_that_the_set_leaves_open_run_away():
    easy, noise, _ = separated()
    rows = LocalData.from_list([easy, easy])
    flipped = LocalData.from_list([(easy[0], -easy[1])] * 2)
    both = LocalData.from_list([easy, (-easy[0], easy[1])])  # against each other
    for data, within, runs in (
        (rows, "nonnegative", True),
        (flipped, "nonnegative", False),
        (flipped, Box(-np.inf, 2.0), True),
        (rows, Box(-1.0, 3.0), False),
        (rows, Box(-1.0, (3.0, np.inf)), False),
        (rows, "simplex", False),
        (both, "nonnegative", False),
    ):
        problem = Problem(path(2), data, loss=Constrained(Logistic(), within), lam=0.1)
        assert problem.unbounded().all() == problem.unbounded().any() == runs
    losses = {0: Constrained(Logistic(), Box(0.0, 1.0)), 1: "logistic"}
    mixed = LocalData.from_list([noise, easy])
    assert not Problem(path(2), mixed, loss=losses, lam=0.1).unbounded().any()
    own = Problem(path(2), mixed, loss=losses, penalty=Partial(L2Norm(), [1]), lam=0.1)
    assert own.unbounded().tolist() == [False, True]
    counts = LocalData.from_list([(np.abs(easy[0]), np.zeros(8))] * 2)
    for within, runs in ((Box(-1.0, np.inf), False), (Box(-np.inf, 0.0), True)):
        problem = Problem(path(2), counts, loss=Constrained(Poisson(), within), lam=0.1)
        assert problem.unbounded().any() == runs


def test_fits_that_differ_by_rounding_errors_are_no_unit_of_parameters():
    """Steps as short as these errors once kept classes within a set at zero."""
    (X, y), *_ = separated()
    data = LocalData.from_list([(X, (y > 0) * 1.0)] * 3)
    problem = Problem(path(3), data, loss=Constrained(Multinomial(2)), lam=0.1)
    assert run_alone(typical_sizes(problem))[0] > 0.1
