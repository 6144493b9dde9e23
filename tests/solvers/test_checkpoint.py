"""Checkpoints: written as a whole or not at all, and a resumed solve goes on where it was."""

import json
import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

from nefele import ConvergenceWarning, LocalData, Problem, Status, solve
from nefele.graphs import grid
from nefele.solvers import PrimalDual
from tests.problems import chain_problem
from tests.waiting import wait_until


@pytest.fixture
def problem():
    return chain_problem(n=30)


def interrupted_after(k):
    calls = []

    def stop(record):
        calls.append(record)
        if len(calls) == k:
            raise KeyboardInterrupt

    return stop


SLOW = PrimalDual(polish=False, gamma=1e-3)  # far from done after a few stages


def test_resume_goes_on_and_reaches_the_same_optimum(problem, tmp_path):
    file = tmp_path / "run.npz"
    best = solve(problem, tol=1e-9)
    first = solve(problem, SLOW, tol=1e-9, callback=interrupted_after(3), checkpoint=file)
    assert first.status is Status.INTERRUPTED and file.is_file()
    again = solve(problem, SLOW, tol=1e-9, max_iter=500_000, resume=file)
    assert again.n_iter > first.n_iter
    assert [r.iteration for r in first.history] == [50, 100, 150, 150]  # the end is proven
    assert [r.iteration for r in again.history[:4]] == [50, 100, 150, 225]
    seconds = [r.seconds for r in again.history]
    assert seconds == sorted(seconds)
    assert again.objective <= best.objective + again.gap_abs + best.gap_abs


def test_a_resumed_run_equals_one_that_was_never_stopped(problem, tmp_path):
    file = tmp_path / "run.npz"
    whole = solve(problem, "algorithm1", tol=None, max_iter=100)
    solve(problem, "algorithm1", tol=None, max_iter=60, checkpoint=file)
    resumed = solve(problem, "algorithm1", tol=None, max_iter=100, resume=file)
    assert resumed.n_iter == 100
    np.testing.assert_allclose(resumed.w, whole.w, atol=1e-12)


def test_steps_are_taken_up(problem, tmp_path):
    file = tmp_path / "run.npz"
    with pytest.warns(ConvergenceWarning):
        solve(problem, PrimalDual(polish=False), tol=1e-300, max_iter=400, checkpoint=file)
    with np.load(file) as saved:
        scalars = json.loads(bytes(saved["facts"]).decode())["scalars"]
    assert set(scalars) >= {"gamma", "last", "pace", "turn"}


def test_a_finished_solve_is_not_done_again(problem, tmp_path):
    file = tmp_path / "run.npz"
    done = solve(problem, checkpoint=file)
    again = solve(problem, resume=file)
    assert again.converged and again.n_iter == done.n_iter
    np.testing.assert_array_equal(again.w, done.w)


def test_saves_by_the_clock_between_certified_points(problem, tmp_path, monkeypatch):
    replaced = []
    real = os.replace
    monkeypatch.setattr(os, "replace", lambda *a: (replaced.append(a), real(*a)))
    file = tmp_path / "run.npz"
    solve(problem, SLOW, tol=None, max_iter=120, checkpoint=file, checkpoint_every=0.0)
    assert len(replaced) > 50


def test_a_write_that_fails_keeps_the_old_file(problem, tmp_path, monkeypatch):
    file = tmp_path / "run.npz"
    solve(problem, SLOW, tol=None, max_iter=50, checkpoint=file)
    before = file.read_bytes()

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match=r"could not be written \(No space left"):
        result = solve(problem, SLOW, tol=None, max_iter=60, checkpoint=file)
    assert result.n_iter == 60
    assert file.read_bytes() == before and os.listdir(tmp_path) == ["run.npz"]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_damaged_files_are_an_error(problem, tmp_path, share):
    file = tmp_path / "run.npz"
    solve(problem, tol=None, max_iter=5, checkpoint=file)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(ValueError, match="damaged or another kind of file"):
        solve(problem, resume=file)


def test_other_files_are_an_error(problem, tmp_path):
    file = tmp_path / "other.npz"
    np.savez(file, w=np.zeros(3))
    with pytest.raises(ValueError, match="must be a checkpoint written by nefele"):
        solve(problem, resume=file)
    with pytest.raises(ValueError, match="No checkpoint"):
        solve(problem, resume=tmp_path / "none.npz")


def test_another_problem_or_solver_is_an_error(problem, tmp_path):
    file = tmp_path / "run.npz"
    solve(problem, "primal_dual", tol=None, max_iter=5, checkpoint=file)
    others = [
        problem.with_lam(2 * problem.lam),
        Problem(problem.graph, problem.data, penalty="l1", lam=problem.lam),
        Problem(problem.graph, problem.data, loss="huber", lam=problem.lam),
        Problem(problem.graph, _spared(problem.data), loss="squared", lam=problem.lam),
        Problem(grid(3, problem.graph.n_nodes), None, loss=_own(), lam=problem.lam),
    ]
    for other in others:
        with pytest.raises(ValueError, match="must be of the same problem"):
            solve(other, "primal_dual", resume=file)
    with pytest.raises(ValueError, match="must be of the same solver"):
        solve(problem, "admm", resume=file)


def _spared(data):
    return LocalData(data.X, data.y, data.ptr, data.ids, shrink=np.zeros(data.d))


def _own():
    from nefele.losses.quadratic import BoundQuadratic

    n = 3 * chain_problem(n=30).graph.n_nodes
    return BoundQuadratic(np.ones((n, 1, 1)), np.ones((n, 1)), np.ones(n))


def test_a_place_that_cannot_be_written_is_an_error_before_work(problem, tmp_path):
    calls = []
    with pytest.raises(ValueError, match="folder that can be written"):
        solve(problem, checkpoint=tmp_path / "no" / "run.npz", callback=calls.append)
    with pytest.raises(ValueError, match="is a folder"):
        solve(problem, checkpoint=tmp_path, callback=calls.append)
    with pytest.raises(ValueError, match="leave out w0"):
        solve(problem, resume="x.npz", w0=np.zeros((problem.graph.n_nodes, problem.d)))
    assert not calls


SCRIPT = """
import sys
from nefele import solve
from nefele.solvers import PrimalDual
from tests.problems import chain_problem
slow = PrimalDual(polish=False, gamma=1e-3)
solve(chain_problem(n=30), slow, tol=1e-300, max_iter=10**9,
      checkpoint=sys.argv[1], checkpoint_every=0.0)
"""


def iterations(file):
    """Of the checkpoint that is there now, 0 if there is none."""
    if not file.is_file():
        return 0
    with np.load(file, allow_pickle=False) as stored:
        return json.loads(bytes(stored["facts"]))["iteration"]


def test_a_killed_solve_can_be_resumed(problem, tmp_path):
    file = tmp_path / "run.npz"
    worker = subprocess.Popen([sys.executable, "-c", SCRIPT, str(file)])
    try:
        wait_until(lambda: iterations(file) > 20, "a checkpoint after 20 iterations")
    finally:
        worker.send_signal(signal.SIGKILL)
        worker.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = solve(problem, SLOW, tol=1e-300, max_iter=10, resume=file)
    assert result.n_iter > 20 and np.isfinite(result.gap)
    assert result.objective >= solve(problem, tol=1e-9).objective * (1 - 1e-6)
