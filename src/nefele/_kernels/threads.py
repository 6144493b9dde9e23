"""How many threads a compiled loop may use now, and the threads."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import numba

_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def usable() -> int:
    """As many as Numba would use in the main thread of the main process, otherwise one.

    A forked process does not have its parent's threads, and workers share the cores anyway.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or _forked or multiprocessing.parent_process() is not None:
        return 1
    config: Any = numba.config
    return int(config.NUMBA_NUM_THREADS)


@cache
def _others(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="nefele")


def together(work: Callable[[int], object], count: int) -> None:
    """Call work(0), ..., work(count - 1) side by side, and return when all are done.

    Only loops that release Python's lock run at the same time. Ctrl-C waits for the others, so
    that nothing changes arrays behind the caller's back.
    """
    others = [_others(count - 1).submit(work, k) for k in range(1, count)]
    try:
        work(0)
    finally:
        try:
            wait(others)
        except KeyboardInterrupt:
            wait(others)
            raise
    for other in others:
        other.result()
