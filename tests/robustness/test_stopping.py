"""How a solve ends: iteration limits, unreachable tolerances, interrupts, repeated runs."""

import hashlib
import signal
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pytest

from nefele import ConvergenceWarning, LocalData, Problem, Status, solve
from nefele.solvers import PrimalDual
from tests.robustness.problems import LOSSES, PENALTIES, data, path, table


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_max_iter_is_a_status_a_warning_and_a_valid_gap(loss):
    problem = Problem(path(4), data(loss), loss=loss, lam=0.1)
    best = solve(problem, tol=1e-8).objective
    with pytest.warns(ConvergenceWarning, match=r"after 3 iterations with relative gap") as caught:
        result = solve(problem, PrimalDual(polish=False), max_iter=3, tol=1e-12)
    assert len(caught) == 1 and f"{result.gap:.1e}" in str(caught[0].message)
    assert result.status is Status.MAX_ITER and result.n_iter == 3 and not result.converged
    assert "max_iter" in result.status.advice
    assert result.objective - result.gap_abs <= best * (1 + 1e-9) + 1e-12
    assert result.objective >= best - 1e-6 * abs(best)


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [*((LOSSES[0], p) for p in PENALTIES), (LOSSES[2], "squared_l2"), (LOSSES[3], "l2")],
    ids=repr,
)
def test_a_tolerance_beyond_rounding_ends_with_a_status(loss, penalty):
    problem = Problem(path(4), data(loss), loss=loss, penalty=penalty, lam=0.1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = solve(problem, tol=1e-300)
    assert result.status in (Status.OPTIMAL, Status.STALLED)
    assert [w.category for w in caught] == ([] if result.converged else [ConvergenceWarning])
    assert result.gap <= (0.0 if result.converged else 1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tol": 0.0}, "tol must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"tol": np.nan}, "tol must be"),
        ({"tol": None}, "give max_iter"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"max_iter": 2.5}, "max_iter must be"),
        ({"solver": "primaldual"}, "Did you mean"),
        ({"solver": "local"}, "lam = 0"),
        ({"solver": "quadratic_cg"}, 'Use solver="auto"'),
        ({"callback": 3}, "callback must be callable"),
        ({"w0": np.zeros(3)}, r"w0 must have shape \(4, 2\)"),
        ({"w0": np.full((4, 2), np.nan)}, "w0 must be finite"),
        ({"w0": np.full((4, 2), np.inf)}, "w0 must be finite"),
        ({"w0": np.zeros((4, 2), dtype=complex)}, "w0 must be real"),
        ({"w0": "start"}, "w0 must be numeric"),
        ({"u0": np.full((3, 2), np.nan)}, "u0 must be finite"),
        ({"u0": np.zeros((4, 2))}, r"u0 must have shape \(3, 2\)"),
    ],
    ids=repr,
)
def test_arguments_are_checked_before_any_work(options, words):
    with pytest.raises(ValueError, match=words):
        solve(Problem(path(4), data(), lam=0.1), **options)


def test_only_a_problem_is_solved():
    with pytest.raises(ValueError, match="problem must be a Problem"):
        solve([1, 2, 3])


@pytest.mark.parametrize("size", [1e3, 1e9])
def test_a_start_far_away_and_a_flow_outside_its_balls(size):
    problem = Problem(path(4), data(), lam=0.1)
    plain = solve(problem)
    result = solve(problem, w0=np.full((4, 2), size), u0=np.full((3, 2), size))
    assert result.converged
    assert result.objective == pytest.approx(plain.objective, rel=2e-6)


SLOW = PrimalDual(polish=False, gamma=1e-4)


def stop_at(record, iteration):
    if record.iteration >= iteration:
        raise KeyboardInterrupt


@pytest.mark.parametrize("penalty", ["l2", "linf"])
def test_an_interrupt_from_a_callback_returns_the_best_iterate(penalty):
    problem = Problem(path(4), data(), penalty=penalty, lam=0.1)
    result = solve(problem, SLOW, tol=1e-14, callback=lambda r: stop_at(r, 100))
    assert result.status is Status.INTERRUPTED and result.n_iter >= 100
    assert result.objective == min(r.objective for r in result.history)
    assert result.objective == pytest.approx(problem.objective(result.w), rel=1e-12)
    again = solve(problem, w0=result.w, u0=result.u)
    assert again.converged and "w0=result.w" in result.status.advice


def test_an_interrupt_after_the_last_iteration_keeps_the_result():
    result = solve(Problem(path(4), data(), lam=0.1), callback=lambda r: stop_at(r, 1))
    assert result.status in (Status.OPTIMAL, Status.INTERRUPTED)
    assert np.isfinite(result.w).all()


class InterruptedAtOnce(PrimalDual):
    def init(self, problem, w0, u0):
        raise KeyboardInterrupt


def test_an_interrupt_during_the_preparation_returns_the_start():
    problem = Problem(path(4), data(), lam=0.1)
    start = np.ones((4, 2))
    result = solve(problem, InterruptedAtOnce(), w0=start)
    assert result.status is Status.INTERRUPTED and result.gap == np.inf
    np.testing.assert_array_equal(result.w, start)
    assert result.objective == problem.objective(start)


LONG_SOLVE = """
    import signal
    import numpy as np
    from nefele import Graph, LocalData, Problem, solve
    from nefele.solvers import PrimalDual
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = np.random.default_rng(0)
    n = 50
    graph = Graph.from_edges([(i, i + 1) for i in range(n - 1)])
    data = LocalData.from_list([(rng.standard_normal((3, 2)), rng.standard_normal(3))
                                for _ in range(n)])
    problem = Problem(graph, data, lam=0.1)
    def report(record):
        print("running", flush=True)
    result = solve(problem, PrimalDual(polish=False, gamma=1e-9), tol=1e-15,
                   max_iter=10**9, callback=report)
    print(result.status, bool(np.isfinite(result.w).all()), result.gap >= 0, flush=True)
"""


def test_ctrl_c_ends_a_long_solve_with_a_result():
    code = textwrap.dedent(LONG_SOLVE)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "running\n"
        child.send_signal(signal.SIGINT)
        rest = child.communicate()[0].split("\n")
    assert child.returncode == 0
    assert rest[-2] == "interrupted True True"


def test_an_error_in_a_callback_is_not_swallowed():
    with pytest.raises(ZeroDivisionError):
        solve(Problem(path(4), data(), lam=0.1), callback=lambda r: 1 / 0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("lam", [0.0, 0.1])
def test_the_same_input_gives_the_same_bits(loss, lam):
    first, second = (
        solve(Problem(path(4), data(loss), loss=loss, lam=lam), tol=1e-7) for _ in range(2)
    )
    assert first.w.tobytes() == second.w.tobytes() and first.u.tobytes() == second.u.tobytes()
    assert first.gap == second.gap and first.n_iter == second.n_iter


@pytest.mark.parametrize("loss", [LOSSES[2], LOSSES[4]], ids=repr)
def test_one_problem_solved_twice_gives_the_same_bits(loss):
    problem = Problem(path(4), data(loss), loss=loss, lam=0.1)
    assert solve(problem).w.tobytes() == solve(problem).w.tobytes()


TWIN = """
    import hashlib
    from nefele import Problem, solve
    from nefele.losses import Absolute, Logistic, Squared
    from tests.robustness.problems import data, path
    for loss in (Squared(), Logistic(), Absolute()):
        print(hashlib.sha256(solve(Problem(path(4), data(loss), loss=loss, lam=0.1)).w).hexdigest())
"""


def test_two_processes_give_the_same_bits():
    code = textwrap.dedent(TWIN)
    runs = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert runs[0].stdout == runs[1].stdout
    here = solve(Problem(path(4), data(), lam=0.1)).w
    assert runs[0].stdout.split()[0] == hashlib.sha256(here).hexdigest()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize(("penalty", "lam"), [("l2", 0.1), ("squared_l2", 0.1), ("l2", 0.0)])
def test_a_whole_solve_changes_none_of_its_inputs(loss, penalty, lam):
    rows = table(loss)
    X, y = (np.concatenate(part) for part in zip(*rows, strict=True))
    weight = np.linspace(1.0, 2.0, len(y))
    d = Problem(path(4), LocalData(X, y, [0, 20, 40, 60, 80]), loss=loss, lam=lam).d
    w0, u0 = np.full((4, d), 0.1), np.full((3, d), 0.05)
    inputs = [X, y, weight, w0, u0]
    before = [a.copy() for a in inputs]
    for a in inputs:
        a.flags.writeable = False
    sets = LocalData(X, y, [0, 20, 40, 60, 80], sample_weight=weight)
    result = solve(Problem(path(4), sets, loss=loss, penalty=penalty, lam=lam), w0=w0, u0=u0)
    assert result.converged
    for a, b in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.shares_memory(result.w, w0) and not np.shares_memory(result.u, u0)


def test_memory_mapped_features(tmp_path):
    sets = data()
    np.save(tmp_path / "X.npy", sets.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    mapped = solve(Problem(path(4), LocalData(X, sets.y, sets.ptr), lam=0.1))
    plain = solve(Problem(path(4), sets, lam=0.1))
    assert mapped.w.tobytes() == plain.w.tobytes()
