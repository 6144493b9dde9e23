"""Many small matrices: threads of the linear algebra library only wait for each other.

Measured on two busy cores: a reduced solve of 240 unknowns took 240 ms with two threads and 3 ms
with one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> list[Any]:
    """The libraries of linear algebra that NumPy and SciPy have loaded."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _Users:
    """Who needs one thread now. The limit is the process's, so it goes with the last of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[int] = []
        self.renew()

    def renew(self) -> None:
        """A lock of one's own, for a forked process."""
        self.lock = threading.Lock()

    def enter(self) -> list[int]:
        """One thread from now on; returns the numbers of before."""
        libs = _libraries()
        with self.lock:
            before = [lib.num_threads for lib in libs]
            if self.count == 0:
                self.first = before
            self.count += 1
            for lib in libs:
                lib.set_num_threads(1)
        return before

    def leave(self, before: list[int]) -> None:
        """The numbers of the first user after the last one; of this thread where it has its own."""
        with self.lock:
            self.count -= 1
            for lib, own, first in zip(_libraries(), before, self.first, strict=True):
                if getattr(lib, "threading_layer", None) == "openmp":
                    lib.set_num_threads(own)
                elif self.count == 0:
                    lib.set_num_threads(first)
                # Newer versions of threadpoolctl let one thread set limits until it gives up.
                if hasattr(lib, "clear_controlling_thread"):
                    lib.clear_controlling_thread()


_users = _Users()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_users.renew)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit NumPy's and SciPy's linear algebra to one thread inside the `with` block.

    Blocks may overlap in several threads: the number of before is back after the last of them.
    """
    before = _users.enter()
    try:
        yield
    finally:
        _users.leave(before)


@contextmanager
def one_thread() -> Iterator[None]:
    """The same, and one thread of OpenMP, whose number each thread has for itself."""
    with one_blas_thread(), ThreadpoolController().limit(limits=1, user_api="openmp"):
        yield


def processor_seconds() -> float:
    """User and system time so far of the process and of its children that have ended."""
    return float(sum(os.times()[:4]))
