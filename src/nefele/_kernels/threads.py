"""How many threads a compiled loop may use now."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import threading
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
    """Numba's threads in the main thread of the main process, otherwise one.

    GNU's OpenMP ends a forked process that goes on with its parent's threads, and Numba's own
    "workqueue" ends one that launches from two threads. Workers share the cores anyway.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or _forked or multiprocessing.parent_process() is not None or not _has_layer():
        return 1
    return int(numba.get_num_threads())


@cache
def _has_layer() -> bool:
    """Whether Numba has a threading layer that may be used beside other threads."""
    config: Any = numba.config
    if config.THREADING_LAYER == "workqueue":
        return False
    for name in ("tbbpool", "omppool"):
        try:
            importlib.import_module(f"numba.np.ufunc.{name}")
        except ImportError:
            continue
        return True
    return False
