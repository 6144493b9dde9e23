"""Coordinate descent for min_w 1/2 w^T A_i w - g_i^T w + sum_j l1_ij |w_j| at each node i."""

from __future__ import annotations

import numba
import numpy as np

from nefele._checks import Array

_SWEEPS = 10_000
_TOL = 1e-14


def lasso_quadratic(A: Array, g: Array, l1: Array, start: Array) -> Array:
    """Minimisers for positive definite A, shapes (n, d, d), (n, d), (n, d), (n, d) -> (n, d)."""
    return _solve(A, g, l1, start.copy())


@numba.njit(cache=True)
def _solve(A, g, l1, w):  # type: ignore[no-untyped-def]
    n, d = g.shape
    for i in range(n):
        for _ in range(_SWEEPS):
            change, size = 0.0, 0.0
            for j in range(d):
                rest = g[i, j]
                for k in range(d):
                    rest -= A[i, j, k] * w[i, k]
                rest += A[i, j, j] * w[i, j]
                new = np.sign(rest) * max(abs(rest) - l1[i, j], 0.0) / A[i, j, j]
                change = max(change, abs(new - w[i, j]))
                size = max(size, abs(new))
                w[i, j] = new
            if change <= _TOL * size:
                break
    return w
