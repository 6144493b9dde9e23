"""A process that asked for a solve is killed; another goes on from its checkpoint."""

import os
import signal
import subprocess
import sys

import numpy as np
import psutil

from nefele import solve
from nefele.solvers import PrimalDual
from tests.engines.problems import posed
from tests.waiting import wait_until

LONG = """
from nefele import solve
from tests.engines.problems import posed
solve(posed(), tol=None, max_iter=10**6, engine={engine!r}, parts=2, checkpoint={to!r}, every=20)
"""


def check_resumed(engine, folder):
    """No worker outlives the process that asked, and a resumed solve has the same bits."""
    asking = subprocess.Popen([sys.executable, "-c", LONG.format(engine=engine, to=str(folder))])
    try:
        wait_until(lambda: list(folder.glob("checkpoint-*.json")), "a first checkpoint")
        started = psutil.Process(asking.pid).children(recursive=True)
    finally:
        os.kill(asking.pid, signal.SIGKILL)
        asking.wait()
    psutil.wait_procs(started, timeout=600)
    assert not [process for process in started if process.is_running()]
    last = max(int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*.json"))
    options = {"tol": None, "max_iter": last + 30}
    result = solve(posed(), engine="in_process", parts=3, resume=folder, **options)
    assert np.array_equal(result.w, solve(posed(), PrimalDual(polish=False), **options).w)
