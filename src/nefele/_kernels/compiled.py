"""How the loops with relaxed rounding are compiled: one piece of machine code for each.

Sums may be taken in another order than written, so the same source compiled in two places need
not round alike. What a kernel calls is therefore compiled into it (`inlined`). Left as a function
of its own it would exist twice, compiled by itself and as a part of its caller, and the linker
takes the first in the process that compiles and the second in all that load the caller from the
cache: their results would differ in the last bits. For the same reason several threads run the
very function that one thread runs.
"""

from __future__ import annotations

from typing import Any

import numba

_njit: Any = numba.njit
_options: Any = {"fastmath": {"reassoc", "contract", "nsz", "arcp"}, "error_model": "numpy"}

kernel = _njit(cache=True, nogil=True, **_options)
# Without entry points from Python: 1.7 s instead of 2.4 to compile an iteration.
inlined = _njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **_options)
