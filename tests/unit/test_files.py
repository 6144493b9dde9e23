"""Whole files, and one writer for a folder."""

import os
import subprocess
import sys

import pytest

from nefele._files import LOCK, clear_parts, only_writer, write_whole

HOLD = """
import sys
from pathlib import Path
from nefele._files import only_writer

with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of the folder."""
    args = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        yield process
        process.kill()


def test_a_second_writer_is_refused_and_told_by_whom(tmp_path, holder):
    message = rf"must have one writer at a time; process {holder.pid} on \S+ is writing"
    with pytest.raises(ValueError, match=message), only_writer(tmp_path):
        pass
    assert holder.poll() is None


def test_the_lock_of_a_process_that_was_killed_is_taken_over(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert (tmp_path / LOCK).is_file()
    with only_writer(tmp_path):
        pass
    assert os.listdir(tmp_path) == []


def test_a_lock_is_given_back(tmp_path):
    for _ in range(2):
        with only_writer(tmp_path):
            with pytest.raises(ValueError, match=f"process {os.getpid()}"), only_writer(tmp_path):
                pass
            assert os.listdir(tmp_path) == [LOCK]
    assert os.listdir(tmp_path) == []


def test_only_what_dead_processes_left_is_cleared(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = tmp_path / f".a.npz.{gone.pid}-x1.part"
    alive = tmp_path / f".a.npz.{os.getpid()}-x2.part"
    other = tmp_path / ".notes.part"
    for file in (dead, alive, other):
        file.touch()
    clear_parts(tmp_path, "b.npz")
    assert dead.exists()
    clear_parts(tmp_path, "a.npz")
    assert not dead.exists() and alive.exists() and other.exists()


def test_names_as_long_as_the_system_allows(tmp_path):
    path = tmp_path / ("x" * 250)
    write_whole(path, lambda part: part.write_text("all"))
    assert path.read_text() == "all" and len(os.listdir(tmp_path)) == 1
