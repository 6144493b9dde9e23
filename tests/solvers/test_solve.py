import itertools
import warnings

import numpy as np
import pytest

from nefele import (
    ConvergenceWarning,
    DataWarning,
    Graph,
    LocalData,
    Problem,
    Status,
    graphs,
    solve,
)
from nefele.losses import Logistic, Squared
from nefele.solvers import Local, Newton, PrimalDual, QuadraticCG, Solver, State, as_solver
from tests.problems import chain_problem


def slow_problem():
    """A problem that needs several certified points at a tight tolerance."""
    return chain_problem(n=30, lam=2.0, penalty="linf", loss=Squared(l1=1e-3), seed=1)


def test_auto_picks_by_problem():
    assert isinstance(as_solver("auto", chain_problem()), PrimalDual)
    assert isinstance(as_solver("auto", chain_problem(penalty="squared_l2")), QuadraticCG)
    assert isinstance(as_solver("auto", chain_problem(lam=0.0)), Local)
    lasso = chain_problem(penalty="squared_l2", loss=Squared(l1=0.1))
    assert isinstance(as_solver("auto", lasso), Newton)
    given = PrimalDual(gamma=2.0)
    assert as_solver(given, chain_problem()) is given


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": 0.0}, "tol must be finite and > 0; got 0.0."),
        ({"tol": -1e-3}, "tol must be finite and > 0; got -0.001."),
        ({"tol": None}, "tol=None runs exactly max_iter iterations; give max_iter."),
        ({"max_iter": 0}, "max_iter must be an integer >= 1; got 0."),
        ({"max_iter": 2.5}, "max_iter must be an integer >= 1; got 2.5."),
        ({"solver": "primaldual"}, 'No solver "primaldual". Did you mean "primal_dual"?'),
        ({"w0": np.zeros((1, 2))}, "w0 must have shape (4, 2); got (1, 2)."),
        ({"u0": np.zeros((4, 2))}, "u0 must have shape (3, 2); got (4, 2)."),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError) as error:
        solve(chain_problem(), **options)
    assert str(error.value).startswith(message)


def test_a_whole_float_is_a_count():
    result = solve(chain_problem(), "primal_dual", tol=None, max_iter=1e1)
    assert result.n_iter == 10 and type(result.n_iter) is int


def test_problem_must_be_a_problem():
    with pytest.raises(ValueError, match="problem must be a Problem; got dict"):
        solve({})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 0.0}, "gamma must be finite and > 0; got 0.0."),
        ({"relax": 2.0}, "relax must be in (0, 2); got 2.0."),
    ],
)
def test_bad_solver_options(options, message):
    with pytest.raises(ValueError) as error:
        PrimalDual(**options)
    assert str(error.value) == message


@pytest.mark.parametrize("rounds", [1, 7, 120])
@pytest.mark.parametrize("solver", ["primal_dual", "algorithm1"])
def test_without_tol_exactly_max_iter_iterations(solver, rounds):
    steps = []

    class Counting(PrimalDual):
        def step(self, problem, state):
            steps.append(1)
            super().step(problem, state)

    printed = solver == "algorithm1"
    options = vars(PrimalDual.as_printed()) if printed else {}
    result = solve(chain_problem(), Counting(**options), tol=None, max_iter=rounds)
    assert len(steps) == result.n_iter == rounds
    assert result.status is Status.FINISHED and not result.converged
    assert len(result.history) == 1 and np.isfinite(result.gap)


def test_max_iter_warns_with_the_gap_and_carries_advice():
    with pytest.warns(ConvergenceWarning, match=r"Stopped after 3 iterations with relative gap"):
        result = solve(slow_problem(), "primal_dual", tol=1e-12, max_iter=3)
    assert result.status is Status.MAX_ITER and result.n_iter == 3
    assert result.status.advice.startswith("Increase max_iter or tol")
    better = solve(slow_problem(), "primal_dual", tol=1e-6)
    assert result.objective - result.gap_abs <= better.objective


def test_the_warning_points_at_the_callers_line():
    with pytest.warns(ConvergenceWarning) as caught:
        solve(slow_problem(), "primal_dual", tol=1e-12, max_iter=3)
    assert caught[0].filename == __file__


def test_max_iter_reached_with_the_tolerance_met_is_optimal():
    result = solve(chain_problem(), tol=1e-3, max_iter=40)
    assert result.status is Status.OPTIMAL and result.n_iter == 40


def test_callback_sees_every_certified_point_once():
    seen = []
    result = solve(slow_problem(), "primal_dual", tol=1e-9, callback=seen.append)
    assert seen == result.history and len(seen) > 2


@pytest.mark.parametrize("limit", [50, 60, 100])
def test_callback_sees_the_last_point_once_at_max_iter(limit):
    seen = []
    with pytest.warns(ConvergenceWarning):
        result = solve(
            slow_problem(), "primal_dual", tol=1e-13, max_iter=limit, callback=seen.append
        )
    assert seen == result.history and seen[-1].iteration == limit


def test_callback_returning_true_stops():
    seen = []

    def stop(record):
        seen.append(record)
        return True

    result = solve(slow_problem(), "primal_dual", tol=1e-12, callback=stop)
    assert result.status is Status.STOPPED and len(seen) == 1
    assert result.n_iter == seen[0].iteration
    assert result.objective == seen[0].objective
    assert "w0=result.w" in result.status.advice


def test_other_values_of_the_callback_do_not_stop():
    result = solve(slow_problem(), "primal_dual", tol=1e-6, callback=lambda record: "go on")
    assert result.converged


def test_callback_without_tol_is_called_at_the_end():
    seen = []
    solve(chain_problem(), tol=None, max_iter=5, callback=seen.append)
    assert [record.iteration for record in seen] == [5]


def test_keyboard_interrupt_in_a_callback_leaves_a_usable_result():
    def interrupt(record):
        raise KeyboardInterrupt

    problem = slow_problem()
    result = solve(problem, "primal_dual", tol=1e-12, callback=interrupt)
    assert result.status is Status.INTERRUPTED and result.n_iter > 0
    assert result.objective == problem.objective(result.w)
    assert result.objective < problem.objective_at_zero and np.isfinite(result.gap)
    resumed = solve(problem, tol=1e-6, w0=result.w, u0=result.u)
    assert resumed.converged


def test_keyboard_interrupt_in_a_step_leaves_a_usable_result():
    class Interrupted(PrimalDual):
        k = 0

        def step(self, problem, state):
            self.k += 1
            if self.k == 10:
                raise KeyboardInterrupt
            super().step(problem, state)

    problem = chain_problem()
    result = solve(problem, Interrupted(), tol=1e-15)
    assert result.status is Status.INTERRUPTED and result.n_iter == 9
    assert np.isfinite(result.gap) and result.objective < problem.objective_at_zero


def test_other_errors_in_a_callback_are_raised():
    with pytest.raises(ZeroDivisionError):
        solve(slow_problem(), "primal_dual", tol=1e-12, callback=lambda record: 1 / 0)


@pytest.mark.parametrize("penalty", ["l2", "squared_l2", "linf"])
def test_warm_start_at_the_solution_is_at_least_as_fast(penalty):
    problem = chain_problem(n=10, penalty=penalty)
    cold = solve(problem, tol=1e-8)
    warm = solve(problem, tol=1e-6, w0=cold.w, u0=cold.u)
    assert warm.converged and warm.n_iter <= cold.n_iter
    one = solve(problem, "primal_dual", tol=None, max_iter=1, w0=cold.w, u0=cold.u)
    assert one.gap <= 1e-2 * solve(problem, "primal_dual", tol=None, max_iter=1).gap


def test_warm_start_with_lists():
    problem = chain_problem()
    assert solve(problem, w0=np.ones((4, 2)).tolist(), u0=np.zeros((3, 2)).tolist()).converged


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute", Squared(l1=0.1)], ids=repr)
def test_lam_zero_equals_the_local_fits(loss):
    problem = chain_problem(lam=0.0, loss=loss)
    result = solve(problem, tol=1e-8)
    assert result.converged
    alone = []
    for i in range(4):
        single = Problem(Graph([i], [], []), problem.data.subset(np.array([i])), loss=loss, lam=3.0)
        alone.append(solve(single, tol=1e-8))
    assert result.objective == pytest.approx(sum(r.objective for r in alone), rel=1e-7)
    np.testing.assert_allclose(result.w, np.concatenate([r.w for r in alone]), atol=1e-4)
    assert (result.u == 0).all()


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", "squared_l2", "huber"])
@pytest.mark.parametrize("solver", ["primal_dual", "algorithm1"])
def test_lam_zero_by_the_general_solvers(solver, penalty):
    problem = chain_problem(lam=0.0, penalty=penalty)
    result = solve(problem, solver, tol=1e-6)
    assert result.objective == pytest.approx(solve(problem).objective, rel=1e-5)


def test_single_node_is_the_local_fit():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 3)), rng.standard_normal(8)
    result = solve(Problem(Graph(["a"], [], []), LocalData.from_list([(X, y)], ["a"]), lam=2.0))
    np.testing.assert_allclose(result.w[0], np.linalg.lstsq(X, y)[0], atol=1e-10)
    assert result.converged and result.u.shape == (0, 3)


def test_isolated_node_is_its_local_fit():
    graph = Graph.from_edges([(0, 1)], nodes=range(3))
    data = chain_problem(n=3).data
    for solver in ("auto", "algorithm1"):
        result = solve(Problem(graph, data, lam=0.5), solver)
        rows = slice(data.ptr[2], data.ptr[3])
        fit = np.linalg.lstsq(data.X[rows], data.y[rows])[0]
        np.testing.assert_allclose(result.w[2], fit, atol=1e-10)


def test_component_without_data_stays_zero_and_warns_once():
    graph = Graph.from_edges([("a", "b"), ("c", "d")])
    data = LocalData.from_list([([[1.0]], [1.0])], nodes=["a"])
    problem = Problem(graph, data, lam=1.0)
    with pytest.warns(
        DataWarning, match=r"2 nodes are not connected to any data, such as 'c', 'd'"
    ):
        result = solve(problem, w0=np.ones((4, 1)))
    assert result.undetermined.tolist() == [False, False, True, True]
    assert (result.w[2:] == 0).all() and result.converged
    np.testing.assert_allclose(result.w[:2], 1.0, atol=1e-3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solve(problem)
    assert len(caught) == 1
    with pytest.warns(DataWarning, match=r"3 nodes .* Use lam \(alpha\) > 0, add data, or drop"):
        solve(problem.with_lam(0.0))


def test_separable_labels_are_flagged_and_the_gap_is_met():
    X = [[1.0], [2.0], [-1.0]]
    data = LocalData.from_list([(X, [1.0, 1.0, -1.0]), (X, [1.0, 1.0, -1.0])])
    problem = Problem(Graph.from_edges([(0, 1)]), data, loss="logistic", lam=0.1)
    with pytest.warns(DataWarning, match=r"The loss of 2 nodes, such as 0, 1, has no minimiser"):
        result = solve(problem)
    assert result.unbounded.all() and result.objective < 1e-3
    ridge = solve(Problem(problem.graph, data, loss=Logistic(l2=1e-3), lam=0.1))
    assert ridge.converged and not ridge.unbounded.any()


def test_a_users_own_solver():
    class Descent(Solver):
        """Gradient descent on the smooth problem."""

        def init(self, problem, w0, u0):
            return State(w0.copy(), u0)

        def step(self, problem, state):
            diff = problem.graph.diff(state.w)
            state.u = problem.scale[:, None] * diff
            state.w = state.w - 0.1 * (problem.loss.grad(state.w) + problem.graph.div(state.u))

    problem = chain_problem(penalty="squared_l2")
    result = solve(problem, Descent(), tol=1e-6)
    assert result.converged
    assert result.objective == pytest.approx(solve(problem, tol=1e-9).objective, rel=1e-6)


def test_perfect_fit_and_zero_labels():
    X = [[1.0, 0.0], [0.0, 1.0]]
    graph = Graph.from_edges([(0, 1)])
    same = LocalData.from_list([(X, [1.0, 2.0]), (X, [1.0, 2.0])])
    result = solve(Problem(graph, same, lam=1.0))
    assert result.converged
    np.testing.assert_allclose(result.w, [[1.0, 2.0]] * 2, atol=1e-5)
    zero = LocalData.from_list([(X, [0.0, 0.0]), (X, [0.0, 0.0])])
    result = solve(Problem(graph, zero, lam=1.0))
    assert result.converged and (result.w == 0).all() and result.gap == 0


@pytest.mark.parametrize("penalty", ["l1", "l2", "linf", "squared_l2", "huber"])
@pytest.mark.parametrize("loss", [Squared(), Squared(l1=0.01), Logistic(l2=0.01)], ids=repr)
def test_without_certificates_the_result_says_so(loss, penalty):
    problem = chain_problem(n=12, loss=loss, penalty=penalty)
    best = solve(problem, tol=1e-7)
    result = solve(problem, tol=1e-6, certify=False)
    assert result.status is Status.UNCERTIFIED and not result.converged
    assert result.gap == result.gap_abs == np.inf and result.certificate == "none"
    assert "uncertified" in repr(result)
    assert result.objective <= best.objective * (1 + 1e-4) + 1e-9
    again = solve(problem, tol=1e-5, w0=result.w, u0=result.u)
    assert again.converged


def test_without_certificates_a_missed_tolerance_is_a_warning():
    problem = chain_problem(n=30)
    with pytest.warns(ConvergenceWarning, match="Stopped after 3 iterations"):
        result = solve(problem, "algorithm1", tol=1e-9, max_iter=3, certify=False)
    assert result.status is Status.MAX_ITER and result.certificate == "none"
    with pytest.raises(ValueError, match="certify must be True or False"):
        solve(problem, certify="no")


def test_no_certificate_is_computed_without(monkeypatch):
    problem = chain_problem(n=30)

    def never(*args, **options):
        raise AssertionError

    monkeypatch.setattr(Problem, "certificate", never)
    assert solve(problem, certify=False).status is Status.UNCERTIFIED


def test_a_start_at_the_optimum_needs_no_iteration():
    problem = chain_problem(n=30)
    first = solve(problem, "primal_dual")
    again = solve(problem, "primal_dual", w0=first.w, u0=first.u)
    assert again.converged and again.n_iter == 0
    assert solve(problem, "primal_dual", w0=first.w).n_iter > 0


def test_progress_has_a_rate_and_a_time_left():
    records = []
    slow = PrimalDual(polish=False, gamma=1e-2)
    solve(chain_problem(n=30), slow, tol=1e-6, callback=records.append)
    assert len(records) > 3
    assert records[0].rate == 0.0 and records[0].seconds_left(1e-6) == np.inf
    for before, now in itertools.pairwise(records):
        fell = np.log10(before.guess / now.guess) if now.guess > 0 else 0.0
        assert now.rate * (now.seconds - before.seconds) == pytest.approx(fell, abs=1e-6)
    assert records[-1].seconds_left(1.0) == 0.0


@pytest.mark.parametrize("solver", ["auto", "primal_dual", "newton"])
@pytest.mark.parametrize("shape", [(3, 2, 1), (3, 2, 2), (3, 2, 3), (10, 2, 1)])
def test_losses_that_are_straight_far_from_the_data(shape, solver):
    """Huber losses without curvature at the start, and with fewer rows than parameters."""
    n, m, d = shape
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = [(rng.standard_normal((m, d)), 5 * rng.standard_normal(m)) for _ in range(n)]
        problem = Problem(graphs.chain(n), LocalData.from_list(rows), "huber", lam=0.5)
        result = solve(problem, solver, max_iter=3000)
        assert result.status is Status.OPTIMAL, seed
        assert result.gap_abs >= result.objective - solve(problem, "admm", tol=1e-8).objective
