"""BLAS and LAPACK, those of SciPy, for compiled loops: all arguments are addresses.

The functions have a name in the process, not an address in the code, so that what calls them can
be cached.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import types
from numba.extending import get_cython_function_address

from nefele._kernels.compiled import inlined


def _function(library: str, name: str, arguments: int) -> Any:
    """One of SciPy's functions, under a name of our own."""
    symbol = f"nefele_{name}"
    llvm.add_symbol(symbol, get_cython_function_address(f"scipy.linalg.{library}", name))
    return types.ExternalFunction(symbol, types.void(*arguments * [types.uintp]))


_potrf = _function("cython_lapack", "dpotrf", 5)
_trsm = _function("cython_blas", "dtrsm", 11)
_syrk = _function("cython_blas", "dsyrk", 10)


def constants() -> tuple[Any, Any, Any]:
    """What `eliminate` needs besides: letters, numbers, and room for sizes.

    Sizes have 64 bits, of which the first 32 are the same number.
    """
    letters = np.frombuffer(b"ULTN", dtype=np.uint8).copy()
    return letters, np.array([1.0, -1.0]), np.zeros(4, dtype=np.int64)


@inlined
def eliminate(F, m, k, constants):  # type: ignore[no-untyped-def]
    """Replace the first k columns of the lower half of F by those of its Cholesky factor.

    The rest of that half becomes what they leave of it. F holds m x m numbers, row by row: to
    functions that count by columns the lower half is the upper one. False if F is not positive.
    """
    letters, numbers, sizes = constants
    U, L = letters.ctypes.data, letters.ctypes.data + 1
    T, N = letters.ctypes.data + 2, letters.ctypes.data + 3
    plus, minus = numbers.ctypes.data, numbers.ctypes.data + 8
    own, all_ = sizes.ctypes.data, sizes.ctypes.data + 8
    rest, info = sizes.ctypes.data + 16, sizes.ctypes.data + 24
    here = F.ctypes.data
    sizes[0], sizes[1], sizes[2], sizes[3] = k, m, m - k, 0
    _potrf(U, own, here, all_, info)
    if sizes[3] != 0:
        return False
    for i in range(k):  # not every LAPACK looks for what is not a number
        if not 0 < F[i, i] < np.inf:
            return False
    if k < m:
        below = here + 8 * k * m
        _trsm(L, U, T, N, own, rest, plus, here, all_, below, all_)
        _syrk(U, T, rest, own, minus, below, all_, plus, below + 8 * k, all_)
    return True
