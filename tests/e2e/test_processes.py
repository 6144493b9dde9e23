"""Crashes at every file operation, and several writers: a run is whole, or it is not there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.commands import edges, weather

ROOT = Path(__file__).parents[2]
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@pytest.fixture
def find(tmp_path):
    weather().write_csv(tmp_path / "weather.csv")
    edges().write_csv(tmp_path / "edges.csv")

    def find(*args):
        command = [sys.executable, "-m", "tests.e2e.processes", str(tmp_path), *map(str, args)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=3000)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return find


def check_crashes(found):
    assert found["points"] > 60 and found["files"] > 8
    assert found["wrong"] == []


@forks
@pytest.mark.parametrize("kind", ["fresh", "force"])
def test_a_crash_leaves_a_whole_run_and_the_same_command_goes_on(find, kind):
    check_crashes(find("crash", kind, 31))


@forks
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fresh", "force"])
def test_a_crash_before_every_file_operation(find, kind):
    check_crashes(find("crash", kind, 1))


def check_writers(found):
    """One run whole, and nobody failed: those who did not win were refused."""
    assert set(found["codes"]) <= {0, 2} and 0 in found["codes"]
    assert len(found["whose"]) == 1 and found["codes"][found["whose"][0]] == 0


@forks
@pytest.mark.parametrize("kind", ["plain", "force"])
def test_four_writers_do_not_mix(find, kind):
    found = find("together", kind, 4)
    check_writers(found)
    if kind == "plain":
        assert found["codes"].count(0) == 1


@forks
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["plain", "force"])
@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("repeat", range(3))
def test_two_and_eight_writers_do_not_mix(find, kind, count, repeat):
    check_writers(find("together", kind, count))
