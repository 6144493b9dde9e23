"""Solves in several threads at once: one thread of linear algebra meanwhile, as before after."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from nefele import solve
from nefele._threads import one_blas_thread, one_thread
from tests.problems import chain_problem

LONG = 600  # seconds after which a test that hangs gives up


def blas():
    """Threads that each library of linear algebra may use now."""
    return {
        lib["num_threads"]
        for lib in ThreadpoolController().select(user_api="blas").info()
        if lib["internal_api"] == "openblas"
    }


@pytest.fixture
def two():
    """Two threads, whatever the machine has."""
    np.linalg.eigh(np.eye(2))
    with threadpool_limits(2, user_api="blas"):
        if blas() != {2}:
            pytest.skip("needs OpenBLAS, whose threads can be set")
        yield


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
