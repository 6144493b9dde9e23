"""Ray that a solve starts itself: it ends with the solve, or with the process that asked for it."""

import numpy as np
import pytest

from nefele import solve
from nefele.runtime.drivers.ray_cluster import Connected
from nefele.solvers import PrimalDual
from tests.engines.listening import LOOPBACK, listening
from tests.engines.orphaned import check_resumed
from tests.engines.problems import posed

STEPS = PrimalDual(polish=False)


@pytest.fixture(scope="module")
def problem():
    return posed()


@pytest.mark.slow
def test_the_process_that_asked_is_killed_and_the_solve_resumed(tmp_path):
    check_resumed("ray", tmp_path)


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
