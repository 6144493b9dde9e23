"""Many small matrices: threads of the linear algebra library only wait for each other.

Measured on two busy cores: a reduced solve of 240 unknowns took 240 ms with two threads and 3 ms
with one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit NumPy's and SciPy's linear algebra to one thread inside the `with` block."""
    return _controller().limit(limits=1, user_api="blas")
