"""MPI: the result of one process, whoever is killed. All runs are in a network of their own."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from nefele import solve
from nefele.engines import partition
from nefele.losses import Logistic
from nefele.runtime.checkpoints import checkpoints
from nefele.runtime.cutting import cut
from nefele.runtime.drivers.mpi_ranks import run_ranks
from nefele.runtime.job import Job, Packed, links_of
from nefele.runtime.plan import Plan
from nefele.solvers import PrimalDual
from tests.engines.deadly import Deadly
from tests.engines.orphaned import check_resumed
from tests.engines.problems import posed, written

STEPS = PrimalDual(polish=False)
PARTS = [2, *(pytest.param(count, marks=pytest.mark.slow) for count in (1, 4))]
ROOT = Path(__file__).parents[2]
ALONE = Path(__file__).with_name("alone.sh")
MPIEXEC = Path(sysconfig.get_path("scripts")) / "mpiexec"


@pytest.fixture(autouse=True)
def in_a_network_of_its_own(monkeypatch):
    monkeypatch.setenv("NEFELE_MPIEXEC", f"{ALONE} {MPIEXEC}")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))


@pytest.fixture(scope="module")
def problem():
    return posed()


@pytest.fixture(scope="module")
def alone(problem):
    return solve(problem, STEPS, tol=None, max_iter=80)


@pytest.mark.parametrize("parts", PARTS)
def test_the_bits_of_one_process(problem, alone, parts):
    result = solve(problem, tol=None, max_iter=80, engine="mpi", parts=parts)
    assert np.array_equal(result.w, alone.w)
    assert result.gap == pytest.approx(alone.gap, rel=0, abs=1e-9)
    assert len(result.costs.parts) == parts
    assert all(part.compute > 0 for part in result.costs.parts)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["l2", "l1", "squared_l2"])
@pytest.mark.parametrize("loss", ["squared", Logistic(l2=0.05)], ids=["squared", "logistic"])
def test_the_bits_of_one_process_for_losses_and_penalties(loss, penalty):
    problem = posed(loss, penalty)
    alone = solve(problem, STEPS, tol=None, max_iter=40)
    for parts in (1, 2, 4):
        result = solve(problem, tol=None, max_iter=40, engine="mpi", parts=parts)
        assert np.array_equal(result.w, alone.w)
        assert result.gap == pytest.approx(alone.gap, rel=0, abs=1e-9)


def run_deadly(problem, folder, restarts=5, **deadly):
    """A solve whose processes kill themselves; W of the whole and how many attempts were lost."""
    made = cut(problem, 2)
    kept = checkpoints(folder, 20, {"problem": "p", "solver": "s"})
    kept = Deadly(kept.folder, kept.every, kept.marks, **deadly)
    job = Job(Plan(STEPS, None, 80), links_of(made), kept)
    done, lost = run_ranks(job, [Packed.of(part) for part in made], None, restarts)
    w = np.full((problem.graph.n_nodes, problem.d), np.nan)
    for part, one in zip(made, done, strict=True):
        w[part.nodes] = one.ended.w
    return w, lost


def test_processes_killed_in_an_iteration_and_in_writing(problem, alone, tmp_path):
    w, lost = run_deadly(problem, tmp_path, at=((33, 1),), writing=((60, 0),))
    assert lost == 2 and np.array_equal(w, alone.w)


@pytest.mark.slow
def test_processes_are_not_started_for_ever(problem, tmp_path):
    with pytest.raises(RuntimeError, match="may be lost at most 0 times"):
        run_deadly(problem, tmp_path, restarts=0, at=((5, 1),))


@pytest.mark.slow
def test_progress_is_told_and_may_end_the_solve(problem):
    seen = []
    result = solve(problem, tol=1e-13, engine="mpi", parts=2, callback=lambda r: not seen.append(r))
    assert result.status == "stopped" and seen[0].iteration == 50
    assert all(isinstance(record.gap, float) for record in seen)


@pytest.mark.slow
def test_an_error_of_a_process_is_that_of_the_solve(problem, tmp_path):
    solve(problem, tol=None, max_iter=10, engine="in_process", parts=2, checkpoint=tmp_path)
    for path in tmp_path.glob("part-*"):
        path.unlink()
    with pytest.raises(ValueError, match="iteration 10 is missing, damaged"):
        solve(problem, tol=None, max_iter=80, engine="mpi", parts=2, resume=tmp_path)


ASKS = """
import numpy as np
from nefele import solve
from nefele.engines import partition
from tests.engines.problems import posed, written
from tests.waiting import wait_until
try:
    result = solve(posed(), tol=None, max_iter=80, engine="mpi", parts={parts})
    print(np.float64(result.w.sum()).hex())
except ValueError as error:
    print(error)
"""


@pytest.mark.parametrize("parts", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_processes_that_a_scheduler_has_started(alone, parts):
    start = [ALONE, MPIEXEC, "-n", "2", "--map-by", ":OVERSUBSCRIBE", "--mca", "btl", "self,sm"]
    run = subprocess.run(
        [*start, sys.executable, "-c", ASKS.format(parts=parts)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    said = f"parts must be the number of MPI processes, 2; got {parts}"
    expected = np.float64(alone.w.sum()).hex() if parts == 2 else said
    assert run.stdout.count(expected) == 2


def test_no_mpiexec(problem, monkeypatch, tmp_path):
    monkeypatch.delenv("NEFELE_MPIEXEC")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(ImportError, match=r"nefele\[mpi\]"):
        solve(problem, tol=None, max_iter=5, engine="mpi", parts=2)


def test_an_mpiexec_that_starts_nothing_is_said_at_once(problem, monkeypatch, tmp_path):
    broken = tmp_path / "mpiexec"
    broken.write_text("#!/bin/sh\necho no slots here\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("NEFELE_MPIEXEC", str(broken))
    with pytest.raises(ValueError, match="It said: no slots here"):
        solve(problem, engine="mpi", parts=2)


def test_an_mpiexec_that_starts_nothing_for_root_says_what_to_set(problem, monkeypatch, tmp_path):
    broken = tmp_path / "mpiexec"
    broken.write_text("#!/bin/sh\necho an attempt to run as root. Long words follow.\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("NEFELE_MPIEXEC", str(broken))
    with pytest.raises(ValueError, match=r"starts none for root.*Set both") as caught:
        solve(problem, engine="mpi", parts=2)
    assert "Long words" not in str(caught.value)


READS = """
import sys
from nefele.engines import solve_parts
try:
    solve_parts(sys.argv[1], sys.argv[2], lam=0.1, tol=1e-3, engine="mpi")
except ValueError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_part_that_one_process_cannot_read_ends_all(problem, tmp_path):
    parts = tmp_path / "parts"
    partition(*written(tmp_path, problem), parts=2, out=parts, node="place", target="y")
    (parts / "part-00001.parquet").write_bytes((parts / "part-00000.parquet").read_bytes())
    start = [ALONE, MPIEXEC, "-n", "2", "--map-by", ":OVERSUBSCRIBE", "--mca", "btl", "self,sm"]
    line = [*start, sys.executable, "-c", READS, parts, tmp_path / "fit"]
    run = subprocess.run(line, capture_output=True, text=True, check=True, timeout=600)
    assert run.stdout.count("part-00001.parquet' must be as it was written") == 2


@pytest.mark.slow
def test_the_process_that_asked_is_killed_and_the_solve_resumed(tmp_path):
    check_resumed("mpi", tmp_path)
