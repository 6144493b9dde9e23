"""Cholesky factors of small matrices that rounding errors may have made singular."""

from __future__ import annotations

import numba
import numpy as np

_PIVOT = 1e-15  # least pivot in units of its diagonal entry


@numba.njit(cache=True, error_model="numpy")
def factorise(K):  # type: ignore[no-untyped-def]
    """Cholesky factor in the lower half, pivots kept away from zero."""
    f = len(K)
    for j in range(f):
        least = max(_PIVOT * K[j, j], 1e-300)
        for k in range(j):
            K[j, j] -= K[j, k] * K[j, k]
        K[j, j] = np.sqrt(max(K[j, j], least))
        for i in range(j + 1, f):
            for k in range(j):
                K[i, j] -= K[i, k] * K[j, k]
            K[i, j] /= K[j, j]


@numba.njit(cache=True, error_model="numpy")
def solve(K, b):  # type: ignore[no-untyped-def]
    """The solution written into b, given the factor."""
    f = len(b)
    for i in range(f):
        for k in range(i):
            b[i] -= K[i, k] * b[k]
        b[i] /= K[i, i]
    for i in range(f - 1, -1, -1):
        for k in range(i + 1, f):
            b[i] -= K[k, i] * b[k]
        b[i] /= K[i, i]
