"""Long solves that are interrupted, killed or resumed, and files that are damaged or foreign."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import warnings
import zipfile

import numpy as np
import pytest

from nefele import ConvergenceWarning, Graph, LocalData, Problem, Status, solve
from nefele.graphs import chain, knn
from nefele.losses import Constrained, HuberLoss, Logistic, Squared, SquaredHinge
from nefele.losses.quadratic import BoundQuadratic
from nefele.penalties import HuberPenalty
from nefele.solvers import ADMM, PrimalDual, Solver, State, StochasticPrimalDual
from nefele.solvers.loop import checkpoint
from tests.problems import chain_problem
from tests.robustness.problems import large

SLOW = PrimalDual(polish=False)


def problem():
    """Several certified points to 1e-9 with "primal_dual"."""
    return chain_problem(n=30, lam=2.0, penalty="linf", loss=Squared(l1=1e-3), seed=1)


def points_problem():
    """Points pulled together, for "merging"."""
    points = np.random.default_rng(0).normal(size=(60, 2))
    loss = BoundQuadratic(np.repeat(np.eye(2)[None], 60, axis=0), points, np.zeros(60))
    return Problem(knn(points, 5), None, loss=loss, lam=0.2)


def stop_after(iteration):
    return lambda record: record.iteration >= iteration


@pytest.fixture
def file(tmp_path):
    return tmp_path / "run.npz"


@pytest.fixture
def kept(file):
    """A checkpoint of `problem()`, stopped at its second certified point."""
    solve(problem(), "primal_dual", tol=1e-9, checkpoint=file, callback=stop_after(100))
    return file


# Going on.


CONVERGED = {
    "merging": (points_problem, 1e-3),
    "primal_dual": (problem, 1e-9),
    "auto": (lambda: chain_problem(n=30, lam=2.0, penalty="squared_l2", loss=Logistic()), 1e-9),
}


@pytest.mark.parametrize("solver", CONVERGED)
def test_a_resumed_solve_that_had_converged_ends_at_once_with_the_same_point(file, solver):
    make, tol = CONVERGED[solver]
    first = solve(make(), solver, tol=tol, checkpoint=file)
    for _ in range(2):
        again = solve(make(), solver, tol=tol, resume=file, checkpoint=file)
        assert again.status is Status.OPTIMAL and again.n_iter == first.n_iter
        assert again.gap == pytest.approx(first.gap, rel=1e-6, abs=1e-13)
        np.testing.assert_array_equal(again.w, first.w)
        np.testing.assert_array_equal(again.history, first.history)


def test_without_certificates_a_resumed_solve_proves_nothing(file):
    stop = stop_after(50)
    solve(points_problem(), "merging", tol=1e-9, certify=False, checkpoint=file, callback=stop)
    again = solve(points_problem(), "merging", tol=1e-3, certify=False, resume=file)
    assert again.certificate == "none" and again.gap == np.inf


@pytest.mark.parametrize("as_text", [True, False])
def test_a_resumed_solve_continues_counts_history_and_time(file, as_text):
    name = str(file) if as_text else file
    stop = stop_after(100)
    first = solve(problem(), "primal_dual", tol=1e-9, checkpoint=name, callback=stop)
    second = solve(problem(), "primal_dual", tol=1e-9, resume=name)
    assert first.status is Status.STOPPED and second.converged
    assert second.n_iter > first.n_iter
    np.testing.assert_array_equal(second.history[: len(first.history)], first.history)
    seconds = [record.seconds for record in second.history]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("solver", ["auto", "primal_dual", SLOW, ADMM(), "algorithm1"], ids=repr)
def test_a_resumed_solve_reaches_the_same_optimum(file, solver):
    whole = solve(problem(), solver, tol=1e-6)
    solve(problem(), solver, tol=1e-6, checkpoint=file, callback=stop_after(50))
    resumed = solve(problem(), solver, tol=1e-6, resume=file)
    assert resumed.converged
    assert abs(resumed.objective - whole.objective) <= resumed.gap_abs + whole.gap_abs


@pytest.mark.parametrize("solver", ["auto", "primal_dual", SLOW, "algorithm1"], ids=repr)
@pytest.mark.parametrize("iteration", [50, 150])
def test_a_stop_at_a_certified_point_leaves_no_trace(file, solver, iteration):
    whole = solve(problem(), solver, tol=1e-6)
    solve(problem(), solver, tol=1e-6, checkpoint=file, callback=stop_after(iteration))
    resumed = solve(problem(), solver, tol=1e-6, resume=file)
    assert resumed.n_iter == whole.n_iter and resumed.gap == whole.gap
    assert resumed.w.tobytes() == whole.w.tobytes() and resumed.u.tobytes() == whole.u.tobytes()


@pytest.mark.parametrize("solver", [PrimalDual(), SLOW], ids=repr)
def test_the_compiled_iteration_resumes(file, solver):
    whole = solve(large(), solver, tol=1e-8)
    solve(large(), solver, tol=1e-8, checkpoint=file, callback=stop_after(50))
    resumed = solve(large(), solver, tol=1e-8, resume=file)
    assert resumed.n_iter == whole.n_iter
    np.testing.assert_allclose(resumed.w, whole.w, atol=1e-8)
    rest = solve(large(), solver, tol=None, max_iter=resumed.n_iter, resume=file)
    assert rest.n_iter == resumed.n_iter


def test_without_a_tolerance_the_iterations_before_count(file):
    whole = solve(problem(), "algorithm1", tol=None, max_iter=40)
    solve(problem(), "algorithm1", tol=None, max_iter=15, checkpoint=file)
    rest = solve(problem(), "algorithm1", tol=None, max_iter=40, resume=file)
    assert rest.n_iter == 40 and [r.iteration for r in rest.history] == [40]
    np.testing.assert_array_equal(rest.w, whole.w)


def test_random_edges_go_on_where_they_were(file):
    solver = StochasticPrimalDual(seed=3)
    solve(problem(), solver, tol=None, max_iter=5, checkpoint=file)
    state = solver.init(problem(), np.zeros((30, 2)), np.zeros((29, 2)))
    for _ in range(5):
        solver.step(problem(), state)
    with np.load(file, allow_pickle=False) as stored:
        scalars = json.loads(bytes(stored["facts"]))["scalars"]
    assert scalars["rng"] == state.rng.bit_generator.state
    fresh = solver.init(problem(), state.w, state.u)
    arrays = {"w": state.w, "u": state.u, **solver.arrays(state)}
    solver.resume(problem(), fresh, scalars, arrays)
    assert fresh.rng.random() == state.rng.random()


def test_a_finished_solve_is_finished(file):
    done = solve(problem(), checkpoint=file)
    again = solve(problem(), resume=file, checkpoint=file)
    assert again.converged and again.n_iter == done.n_iter and again.gap == done.gap
    np.testing.assert_array_equal(again.w, done.w)
    np.testing.assert_array_equal(again.u, done.u)
    assert solve(problem(), tol=1e-11, resume=file).gap <= 1e-11


def test_more_iterations_after_max_iter(file):
    with pytest.warns(ConvergenceWarning):
        solve(problem(), "primal_dual", tol=1e-9, max_iter=60, checkpoint=file)
    with pytest.warns(ConvergenceWarning, match="after 60 iterations"):
        solve(problem(), "primal_dual", tol=1e-9, max_iter=60, resume=file)
    assert solve(problem(), "primal_dual", tol=1e-9, resume=file).converged


def test_a_hurried_solve_may_be_certified_later_and_the_other_way_round(file):
    stop, solver = stop_after(50), "primal_dual"
    hurried = solve(problem(), solver, tol=1e-9, certify=False, checkpoint=file, callback=stop)
    assert hurried.gap == np.inf
    proven = solve(problem(), solver, resume=file)
    assert proven.converged and proven.certificate == "dual"
    early = solve(problem(), solver, tol=1e-9, checkpoint=file, callback=stop)
    quick = solve(problem(), solver, resume=file, certify=False)
    assert quick.status is Status.UNCERTIFIED and not quick.converged
    # What was proven before stays proven.
    assert quick.objective - quick.gap_abs == pytest.approx(early.objective - early.gap_abs)


def test_a_users_own_solver_resumes_from_parameters_and_flow(file):
    class Descent(Solver):
        def init(self, problem, w0, u0):
            return State(w0.copy(), u0)

        def step(self, problem, state):
            state.u = problem.smooth_flow(state.w)
            state.w = state.w - 0.1 * (problem.loss.grad(state.w) + problem.graph.div(state.u))

    smooth = chain_problem(penalty="squared_l2")
    solve(smooth, Descent(), tol=None, max_iter=5, checkpoint=file)
    assert solve(smooth, Descent(), resume=file).converged


def test_by_time_between_certified_points(file):
    seen = []

    class Watching(PrimalDual):
        def step(self, problem, state):
            super().step(problem, state)
            seen.append(file.exists())

    solve(problem(), Watching(), tol=None, max_iter=5, checkpoint=file, checkpoint_every=0.0)
    assert seen == [False, True, True, True, True]
    seen.clear()
    os.remove(file)
    solve(problem(), Watching(), tol=None, max_iter=5, checkpoint=file, checkpoint_every=1e9)
    assert not any(seen) and file.exists()


# Interrupts and kills.


def test_ctrl_c_keeps_what_was_done(file, monkeypatch):
    calls, step = [], PrimalDual.step

    def interrupted(self, problem, state):
        calls.append(1)
        if len(calls) == 70:
            raise KeyboardInterrupt
        step(self, problem, state)

    monkeypatch.setattr(PrimalDual, "step", interrupted)
    first = solve(problem(), "primal_dual", tol=1e-9, checkpoint=file)
    assert first.status is Status.INTERRUPTED and first.n_iter == 69
    assert "resume" in first.status.advice
    resumed = solve(problem(), "primal_dual", tol=1e-9, resume=file)
    assert resumed.converged and resumed.n_iter > 69
    assert [record.iteration for record in first.history] == [50, 69]
    assert [record.iteration for record in resumed.history[:2]] == [50, 100]  # as without Ctrl-C


def test_ctrl_c_during_a_write_keeps_a_whole_file(file, monkeypatch):
    calls, save = [], np.savez

    def interrupted(target, **arrays):
        calls.append(1)
        if len(calls) == 2:
            target.write(b"half")
            raise KeyboardInterrupt
        save(target, **arrays)

    monkeypatch.setattr(np, "savez", interrupted)
    result = solve(problem(), tol=1e-9, checkpoint=file, checkpoint_every=0.0)
    assert result.status is Status.INTERRUPTED and len(calls) == 3
    assert os.listdir(file.parent) == ["run.npz"]
    assert solve(problem(), tol=1e-9, resume=file).converged


KILLED = """
    import sys
    from nefele import solve
    from nefele.solvers import PrimalDual
    from tests.robustness.problems import large
    def report(record):
        print(record.iteration, flush=True)
    solve(large(), PrimalDual(polish=False, gamma=1e-4), tol=1e-14, max_iter=10**9,
          checkpoint=sys.argv[1], checkpoint_every=0.0, callback=report)
"""


def kept_iterations(file):
    with np.load(file, allow_pickle=False) as stored:
        return json.loads(bytes(stored["facts"]))["iteration"]


def test_a_killed_process_leaves_a_whole_file_to_go_on_from(file):
    code = textwrap.dedent(KILLED)
    command = [sys.executable, "-c", code, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for _ in range(3):
            assert child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert child.returncode == -signal.SIGKILL
    solver = PrimalDual(polish=False, gamma=1e-4)
    seen, options = [], {"tol": 1e-14, "max_iter": kept_iterations(file) + 20}
    with pytest.warns(ConvergenceWarning):
        result = solve(large(), solver, resume=file, callback=seen.append, **options)
    with pytest.warns(ConvergenceWarning):
        plain = solve(large(), solver, **options)
    assert result.n_iter == plain.n_iter and result.history[2].iteration == 150
    assert all(record.iteration > 150 for record in seen)
    assert result.objective == pytest.approx(plain.objective, rel=1e-12)
    np.testing.assert_allclose(result.w, plain.w, rtol=1e-6, atol=1e-9)


def test_kills_at_random_moments_never_leave_half_a_file(file):
    code = textwrap.dedent(KILLED)
    for wait in (0.0, 0.003, 0.011):
        command = [sys.executable, "-c", code, str(file)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(wait)
            child.kill()
        with np.load(file, allow_pickle=False) as stored:
            assert stored["w"].shape == (700, 3)


# Faults of the disk.


def test_a_fault_during_the_write_keeps_the_old_file_and_the_solve_goes_on(kept, monkeypatch):
    before = kept.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match=r"could not be written \(No space left") as caught:
        result = solve(problem(), "primal_dual", tol=1e-9, resume=kept, checkpoint=kept)
    assert result.converged and len(caught) == 1 and caught[0].filename == __file__
    assert kept.read_bytes() == before and os.listdir(kept.parent) == ["run.npz"]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("missing/run.npz", "No such file or directory"),
        ("file.txt/run.npz", "Not a directory"),
        ("folder", "is a folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_an_error_before_any_work(tmp_path, where, words):
    (tmp_path / "file.txt").write_text("text")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match="checkpoint must") as error:
        solve(problem(), Untouched(), checkpoint=tmp_path / where)
    assert words in str(error.value)


def test_a_folder_without_write_permission_is_an_error_before_any_work(tmp_path, monkeypatch):
    def refuse(**options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkpoint.tempfile, "TemporaryFile", refuse)
    with pytest.raises(ValueError, match="Permission denied"):
        solve(problem(), Untouched(), checkpoint=tmp_path / "run.npz")


class Untouched(PrimalDual):
    def init(self, problem, w0, u0):
        raise AssertionError("work was done")


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", "npz"])
def test_a_file_that_is_no_checkpoint_is_not_overwritten(tmp_path, content):
    other = tmp_path / "mine.npz"
    if content == "npz":
        np.savez(other, X=np.ones(3))
    else:
        other.write_bytes(content)
    before = other.read_bytes()
    with pytest.raises(ValueError, match="is neither and is not overwritten"):
        solve(problem(), Untouched(), checkpoint=other)
    assert other.read_bytes() == before


def test_an_older_checkpoint_is_replaced(kept):
    before = kept.read_bytes()
    solve(problem(), checkpoint=kept)
    assert kept.read_bytes() != before


# Files that do not fit.


def refused(file, target=None, solver=None, **options):
    with pytest.raises(ValueError) as error:
        solve(target or problem(), solver or Untouched(), resume=file, **options)
    assert str(file) in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.9, 0.999])
def test_a_truncated_file(kept, share):
    content = kept.read_bytes()
    kept.write_bytes(content[: int(share * len(content))])
    assert "damaged or another kind of file" in refused(kept)


def test_a_flipped_bit(kept):
    with zipfile.ZipFile(kept) as stored:
        start = stored.getinfo("best_w.npy").header_offset
    content = bytearray(kept.read_bytes())
    content[start + 300] ^= 1
    kept.write_bytes(bytes(content))
    assert "damaged" in refused(kept)


@pytest.mark.parametrize("kind", ["text", "npy", "npz", "pickle"])
def test_a_foreign_file(tmp_path, kind):
    other = tmp_path / "other"
    if kind == "npy":
        with open(other, "wb") as target:
            np.save(target, np.ones(3))
    elif kind in ("npz", "pickle"):
        with open(other, "wb") as target:
            np.savez(target, facts=np.array([{}], dtype=object) if kind == "pickle" else np.ones(3))
    else:
        other.write_text("not a checkpoint")
    assert "damaged or another kind of file" in refused(other)


def test_no_file(tmp_path):
    assert "No checkpoint" in refused(tmp_path / "run.npz")


def test_nothing_in_the_file_is_pickled(kept):
    with np.load(kept, allow_pickle=False) as stored:
        assert all(stored[name].dtype.kind in "fu" for name in stored.files)


def changed(kept, **changes):
    with np.load(kept, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    facts = {**json.loads(bytes(arrays["facts"])), **changes}
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    np.savez(kept, **arrays)


def test_another_version(kept):
    changed(kept, version=7)
    message = refused(kept)
    assert "must have format 2" in message and "has 7" in message


def test_a_file_without_all_its_parts(kept):
    with np.load(kept, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files if name != "best_w"}
    np.savez(kept, **arrays)
    assert "damaged" in refused(kept)


def base(**options):
    return chain_problem(n=8, **options)


OTHERS = {
    "lam": lambda: base(lam=0.25),
    "graph": lambda: chain_problem(n=9),
    "dimension": lambda: base(d=3),
    "data": lambda: base(seed=5),
    "penalty": lambda: base(penalty="l1"),
    "loss": lambda: base(loss="huber"),
    "ridge": lambda: base(loss=Squared(l2=0.1)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_problem(file, name):
    solve(base(), "primal_dual", tol=None, max_iter=2, checkpoint=file)
    assert "must be of the same problem" in refused(file, OTHERS[name]())


def test_other_weights_parameters_and_sample_weights(file):
    def variant(weight=1.0, delta=1.0, sample=1.0, width=1.0):
        data = chain_problem(n=3).data
        weights = np.ones(data.n_rows)
        weights[0] = sample
        local = LocalData(data.X, data.y, data.ptr, sample_weight=weights)
        graph = Graph.from_edges([(0, 1), (1, 2)], [1.0, weight])
        return Problem(graph, local, HuberLoss(delta=delta), HuberPenalty(delta=width), lam=0.3)

    solve(variant(), "primal_dual", tol=None, max_iter=2, checkpoint=file)
    assert solve(variant(), "primal_dual", tol=None, max_iter=4, resume=file).n_iter == 4
    for other in (variant(weight=2.0), variant(delta=0.5), variant(sample=2.0), variant(width=0.2)):
        refused(file, other)


def test_a_users_own_loss_is_told_by_its_values(file):
    class Distance:
        d = 1

        def __init__(self, shift):
            self.shift = shift

        def value(self, w):
            return ((w - self.shift) ** 2).sum(axis=1)

        def grad(self, w):
            return 2 * (w - self.shift)

    graph = Graph.from_edges([(0, 1), (1, 2)])

    def variant(shift):
        return Problem(graph, None, loss=Distance(shift), lam=0.1)

    solve(variant(1.0), tol=None, max_iter=2, checkpoint=file)
    assert solve(variant(1.0), tol=None, max_iter=4, resume=file).n_iter == 4
    assert "must be of the same problem" in refused(file, variant(2.0))


def test_another_solver(kept):
    for solver in ("admm", PrimalDual(gamma=1.0), "algorithm1"):
        message = refused(kept, solver=solver)
        assert "must be of the same solver" in message and "PrimalDual(" in message


@pytest.mark.parametrize("value", [3, b"", "", True, None])
def test_a_file_name_must_be_one(value):
    for name in ("checkpoint", "resume"):
        if value is not None:
            with pytest.raises(ValueError, match=f"{name} must be the name of a file"):
                solve(problem(), Untouched(), **{name: value})


@pytest.mark.parametrize("value", [-1.0, np.nan, "1"])
def test_checkpoint_every_must_be_a_time(value, file):
    with pytest.raises(ValueError, match="checkpoint_every must be"):
        solve(problem(), checkpoint=file, checkpoint_every=value)


def test_a_checkpoint_and_a_start_exclude_each_other(kept):
    with pytest.raises(ValueError, match="leave out w0 and u0"):
        solve(problem(), resume=kept, w0=np.zeros((30, 2)))


def test_overflowed_numbers_are_not_kept(kept):
    before = kept.read_bytes()

    class Wild(PrimalDual):
        def step(self, problem, state):
            super().step(problem, state)
            state.iteration.w = state.iteration.w * np.nan

    with pytest.warns(ConvergenceWarning, match="failed"):
        result = solve(problem(), Wild(polish=False), checkpoint=kept)
    assert result.status is Status.FAILED and kept.read_bytes() == before


def test_a_finished_solve_whose_proof_needs_the_duals_of_rows(tmp_path):
    """Its flow alone proves less, so that it is examined once more: the same point, at once."""
    rng = np.random.default_rng(244)
    rows = [
        (rng.normal(size=(4, 3)) * [100, 10, 0.1], np.sign(rng.normal(size=4))) for _ in range(2)
    ]
    loss = Constrained(SquaredHinge(l1=0.1), "nonnegative")
    problem = Problem(chain(2), LocalData.from_list(rows), loss, "l2", lam=1.0)
    whole = solve(problem, tol=1e-8, checkpoint=tmp_path / "run.npz")
    again = solve(problem, tol=1e-8, resume=tmp_path / "run.npz")
    assert whole.converged and (again.n_iter, again.gap) == (whole.n_iter, whole.gap)
    assert again.w.tobytes() == whole.w.tobytes()


def test_the_same_bits_after_steps_have_begun_again(tmp_path):
    """Balls much larger than the flow are made smaller, and all steps begin anew."""
    rng, graph = np.random.default_rng(1), Graph.from_edges([(0, 1), (0, 2), (1, 2)])
    rows = [(X, 1e-4 * (X.sum(1) + rng.normal(size=6))) for X in rng.normal(size=(3, 6, 3))]
    loss = Constrained(HuberLoss(delta=0.03), "nonnegative")
    problem = Problem(graph, LocalData.from_list(rows), loss, "linf", lam=1e3)
    whole = solve(problem, "newton", tol=1e-9)
    for k in range(2, whole.n_iter, 3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solve(problem, "newton", tol=1e-9, max_iter=k, checkpoint=tmp_path / "run.npz")
        again = solve(problem, "newton", tol=1e-9, resume=tmp_path / "run.npz")
        assert again.w.tobytes() == whole.w.tobytes() and again.gap == whole.gap
