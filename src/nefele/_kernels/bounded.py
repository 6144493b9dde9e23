"""min_w 1/2 w^T A_i w - g_i^T w + sum_j l1_ij |w_j| within bounds, node by node.

Coordinate descent finds which entries are at a bound or a kink, Newton steps settle the others.
"""

from __future__ import annotations

import numba
import numpy as np

from nefele._checks import Array
from nefele._kernels.spd import factorise, solve

_SWEEPS = 2000
_TOL = 1e-15
_EVERY = 4  # sweeps between Newton steps on the face


def box_quadratic(A: Array, g: Array, l1: Array, low: Array, high: Array, start: Array) -> Array:
    """Minimisers in [low, high] for positive definite A of shape (n, d, d); others (n, d)."""
    return _solve(A, g, l1, low, high, np.clip(start, low, high))


@numba.njit(cache=True)
def _solve(A, g, l1, low, high, w):  # type: ignore[no-untyped-def]
    for i in range(len(g)):
        if np.all(np.isfinite(A[i])) and np.all(np.isfinite(g[i])):
            _one(A[i], g[i], l1[i], low[i], high[i], w[i])
    return w


@numba.njit(cache=True)
def _one(A, g, l1, low, high, w):  # type: ignore[no-untyped-def]
    d = len(g)
    for sweep in range(_SWEEPS):
        change, size = 0.0, 0.0
        for j in range(d):
            rest = g[j]
            for k in range(d):
                rest -= A[j, k] * w[k]
            rest += A[j, j] * w[j]
            new = np.sign(rest) * max(abs(rest) - l1[j], 0.0) / A[j, j]
            new = min(max(new, low[j]), high[j])
            change = max(change, abs(new - w[j]))
            size = max(size, abs(new))
            w[j] = new
        if change <= _TOL * size:
            break
        if sweep % _EVERY == _EVERY - 1:
            _face_step(A, g, l1, low, high, w)


@numba.njit(cache=True)
def _free(l1, low, high, w):  # type: ignore[no-untyped-def]
    """Entries that are neither at a bound nor held at zero."""
    d = len(w)
    on = np.empty(d, np.int64)
    f = 0
    for j in range(d):
        if low[j] < w[j] < high[j] and (l1[j] == 0.0 or w[j] != 0.0):
            on[f] = j
            f += 1
    return on[:f]


@numba.njit(cache=True)
def _inner(A, on):  # type: ignore[no-untyped-def]
    f = len(on)
    K = np.empty((f, f))
    for p in range(f):
        for q in range(f):
            K[p, q] = A[on[p], on[q]]
    return K


@numba.njit(cache=True)
def _face_step(A, g, l1, low, high, w):  # type: ignore[no-untyped-def]
    """The minimiser over the free entries, or as far towards it as bounds and signs allow."""
    on = _free(l1, low, high, w)
    f = len(on)
    if f == 0:
        return
    slope = np.empty(f)
    for p in range(f):
        j = on[p]
        slope[p] = g[j] - l1[j] * np.sign(w[j])
        for k in range(len(w)):
            slope[p] -= A[j, k] * w[k]
    K, move = _inner(A, on), slope
    factorise(K)
    solve(K, move)
    if not np.all(np.isfinite(move)):
        return
    length = 1.0
    for p in range(f):
        j = on[p]
        edge = high[j] if move[p] > 0.0 else low[j]
        if l1[j] > 0.0 and w[j] * move[p] < 0.0:
            edge = max(edge, 0.0) if move[p] < 0.0 else min(edge, 0.0)
        if abs(move[p]) * length > abs(edge - w[j]):
            length = abs(edge - w[j]) / abs(move[p])
    for p in range(f):
        j = on[p]
        w[j] = min(max(w[j] + length * move[p], low[j]), high[j])
