"""Ray that a solve starts itself: it ends with the solve, or with the process that asked for it."""

import os
import signal
import subprocess
import sys

import numpy as np
import psutil
import pytest

from nefele import solve
from nefele.runtime.drivers.ray_cluster import Connected
from nefele.solvers import PrimalDual
from tests.engines.listening import LOOPBACK, listening
from tests.engines.problems import posed
from tests.waiting import wait_until

STEPS = PrimalDual(polish=False)


@pytest.fixture(scope="module")
def problem():
    return posed()


ASKS = """
from nefele import solve
from tests.engines.problems import posed
solve(posed(), tol=None, max_iter=100_000, engine="ray", parts=2, checkpoint={folder!r}, every=20)
"""


@pytest.mark.slow
def test_the_process_that_asked_is_killed_and_the_solve_resumed(problem, tmp_path):
    asking = subprocess.Popen([sys.executable, "-c", ASKS.format(folder=str(tmp_path))])
    try:
        wait_until(lambda: list(tmp_path.glob("checkpoint-*.json")), "a first checkpoint")
        started = psutil.Process(asking.pid).children(recursive=True)
    finally:
        os.kill(asking.pid, signal.SIGKILL)
        asking.wait()
    psutil.wait_procs(started, timeout=600)
    assert not [process for process in started if process.is_running()]
    last = max(int(path.stem.split("-")[1]) for path in tmp_path.glob("checkpoint-*.json"))
    n_iter = last + 30
    result = solve(
        problem, tol=None, max_iter=n_iter, engine="in_process", parts=3, resume=tmp_path
    )
    alone = solve(problem, STEPS, tol=None, max_iter=n_iter)
    assert np.array_equal(result.w, alone.w)


@pytest.mark.slow
def test_ray_is_started_here_and_ended_when_nobody_has(problem):
    import ray

    assert not ray.is_initialized()
    result = solve(problem, tol=None, max_iter=20, engine="ray", parts=2)
    assert np.array_equal(result.w, solve(problem, STEPS, tol=None, max_iter=20).w)
    assert not ray.is_initialized()
    with Connected(None, 2):
        assert all(ip.startswith(LOOPBACK) for ip in listening())


@pytest.mark.parametrize("address", ["127.0.0.1:1", "nonsense"])
def test_an_address_without_a_cluster(problem, address):
    with pytest.raises(ValueError, match="address must be that of a running Ray cluster"):
        solve(problem, engine="ray", parts=2, address=address)
