"""Commands called as processes or in this one, and small data for them."""

import contextlib
import io
import os
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import polars as pl

from nefele.cli import main
from tests.waiting import LONG

START = [sys.executable, "-c", "from nefele.cli import main; main()"]
QUICK = ("--n-alphas", "5", "--folds", "2")
FIT = ("fit", "weather.csv", "--node", "station", "--target", "tmax")
FIT += ("--features", "wind,pressure", "--penalty", "l2")  # the path of one named penalty


def process(*args, cwd, **env):
    """A command as a process of its own."""
    return subprocess.run(
        [*START, *map(str, args)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100", **env},
        cwd=cwd,
        timeout=LONG,
        check=False,
    )


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def run(*args, cwd, terminal=False):
    """A command in this process, which saves the time of all the imports."""
    out, err = _Terminal() if terminal else io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch("sys.argv", ["nefele", *map(str, args)]),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())


def weather(n_nodes=10, n_rows=12, seed=0):
    """Two groups of stations along a coast, each with a model of its own."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_nodes), n_rows)
    south = owner < n_nodes // 2
    wind, pressure = rng.normal(5, 2, len(owner)), rng.normal(1000, 10, len(owner))
    tmax = np.where(south, 3 + wind, 9 - wind) + 0.05 * (pressure - 1000)
    return pl.DataFrame(
        {
            "station": [f"{i:03d}" for i in owner],
            "date": [f"2024-01-{d + 1:02d}" for _ in range(n_nodes) for d in range(n_rows)],
            "wind": wind.round(3),
            "pressure": pressure.round(2),
            "lat": 60 + 0.5 * owner,
            "lon": np.where(south, 20.0, 29.0),
            "tmax": (tmax + rng.normal(0, 1.5, len(owner))).round(4),
        }
    )


def edges(n_nodes=10):
    ids = [f"{i:03d}" for i in range(n_nodes)]
    return pl.DataFrame({"source": ids[:-1], "target": ids[1:]})


def refused(*args, cwd, command=run, anything=False):
    """The error of a command that must fail, with nothing (or anything) on standard output."""
    done = command(*args, cwd=cwd)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert (anything or done.stdout == "") and "Traceback" not in done.stderr
    return done.stderr
