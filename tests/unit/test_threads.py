"""Solves in several threads at once: one thread of linear algebra meanwhile, as before after."""

import os
import subprocess
import sys
import threading

import pytest

from nefele import GTVRegressorCV, _threads, solve
from nefele._threads import one_blas_thread, one_thread
from nefele.estimators import auto
from tests.problems import chain_problem
from tests.waiting import LONG


class Library:
    """A library of linear algebra whose threads can be set, whatever the machine has."""

    num_threads = 2

    def set_num_threads(self, count):
        self.num_threads = count


LIBRARIES = [Library(), Library()]


def blas():
    """Threads that each library of linear algebra may use now."""
    return {library.num_threads for library in LIBRARIES}


@pytest.fixture
def two(monkeypatch):
    """Two threads."""
    monkeypatch.setattr(_threads, "_libraries", lambda: LIBRARIES)
    yield
    assert blas() == {2}


REAL = """
import scipy.linalg
from nefele._threads import _libraries, one_blas_thread

before = [lib.num_threads for lib in _libraries()]
with one_blas_thread():
    assert [lib.num_threads for lib in _libraries()] == [1] * len(before)
assert before and [lib.num_threads for lib in _libraries()] == before
print(sorted(before)[0])
"""


def test_the_real_libraries_are_limited_and_given_back():
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}
    code = [sys.executable, "-c", REAL]
    done = subprocess.run(code, env=env, capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 1


@pytest.mark.parametrize("context", [one_blas_thread, one_thread])
def test_blocks_in_blocks(two, context):
    with context():
        with context():
            assert blas() == {1}
        assert blas() == {1}
    assert blas() == {2}


def test_an_error_inside_restores_the_threads(two):
    with pytest.raises(KeyError), one_blas_thread():
        raise KeyError
    assert blas() == {2}


def test_overlapping_blocks_restore_the_threads_after_the_last(two):
    entered, left, seen = threading.Event(), threading.Event(), []

    def second():
        with one_blas_thread():
            entered.set()
            assert left.wait(LONG)
            seen.append(blas())

    other = threading.Thread(target=second)
    with one_blas_thread():
        other.start()
        assert entered.wait(LONG)
    left.set()
    other.join(LONG)
    assert seen == [{1}] and blas() == {2}


def test_overlapping_solves_restore_the_threads_after_the_last(two):
    """The first solve begins before the second and ends before it."""
    inside, done, seen = threading.Event(), threading.Event(), []

    def second():
        def wait(record):
            inside.set()
            assert done.wait(LONG)
            seen.append(blas())
            return True

        solve(chain_problem(n=12), "primal_dual", tol=1e-300, callback=wait)

    other = threading.Thread(target=second)

    def first(record):
        other.start()
        assert inside.wait(LONG)
        return True

    solve(chain_problem(n=12), "primal_dual", tol=1e-300, callback=first)
    done.set()
    other.join(LONG)
    assert seen == [{1}] and blas() == {2}


def test_a_coupling_is_chosen_with_one_thread(two, monkeypatch):
    seen = set()

    class Looked(Exception):
        pass

    def look(*args, **options):
        seen.update(blas())
        raise Looked

    monkeypatch.setattr(auto, "Family", look)
    X, y, ids = [[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 1.0, 2.0], [0, 0, 1, 1]
    with pytest.raises(Looked):
        GTVRegressorCV().fit(X, y, node_ids=ids)
    assert seen == {1}
