"""min_w 1/2 w^T A_i w - g_i^T w + sum_j l1_ij |w_j| within bounds, or on a simplex, node by node.

Coordinate descent finds which entries are at a bound or a kink, Newton steps settle the others.
On a simplex the multiplier of sum_j w_j = total is the root of a piecewise linear function.
"""

from __future__ import annotations

import numba
import numpy as np

from nefele._checks import Array

_SWEEPS = 2000
_TOL = 1e-15
_EVERY = 4  # sweeps between Newton steps on the face
_ROOTS = 200  # most trials of a multiplier


def box_quadratic(A: Array, g: Array, l1: Array, low: Array, high: Array, start: Array) -> Array:
    """Minimisers in [low, high] for positive definite A of shape (n, d, d); others (n, d)."""
    return _solve(A, g, l1, low, high, np.clip(start, low, high))


def simplex_quadratic(A: Array, g: Array, l1: Array, total: float, start: Array) -> Array:
    """Minimisers with entries >= 0 that sum to total."""
    w = np.maximum(start, 0.0)
    return _on_simplex(A, g, l1, np.full(len(g), total), w)


@numba.njit(cache=True)
def _solve(A, g, l1, low, high, w):  # type: ignore[no-untyped-def]
    for i in range(len(g)):
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
    move = np.linalg.solve(_inner(A, on), slope)
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


@numba.njit(cache=True)
def _on_simplex(A, g, l1, total, w):  # type: ignore[no-untyped-def]
    n, d = g.shape
    low, high, none = np.zeros(d), np.full(d, np.inf), np.zeros(d)
    for i in range(n):
        right = g[i] - l1[i]  # entries are >= 0: the l1 term is linear
        # With the multiplier m the entries are those for right - m; their sum falls in m.
        below, above = -np.inf, np.inf
        m = np.mean(right) - total[i] / d * np.mean(np.diag(A[i]))
        for _ in range(_ROOTS):
            _one(A[i], right - m, none, low, high, w[i])
            off = np.sum(w[i]) - total[i]
            if abs(off) <= 1e-14 * total[i]:
                break
            if off > 0.0:
                below = m
            else:
                above = m
            on = _free(none, low, high, w[i])
            bend = 0.0
            if len(on):
                bend = np.sum(np.linalg.solve(_inner(A[i], on), np.ones(len(on))))
            step = off / bend if bend > 0.0 else -np.inf
            new = m + step
            if not below < new < above:
                if np.isinf(below):
                    new = m - 2 * (np.abs(right).max() + np.abs(m) + 1.0)
                elif np.isinf(above):
                    new = m + 2 * (np.abs(right).max() + np.abs(m) + 1.0)
                else:
                    new = 0.5 * (below + above)
            if new == m:
                break
            m = new
        summed = np.sum(w[i])
        if summed > 0.0:
            w[i] *= total[i] / summed
        else:
            w[i] = total[i] / d
    return w
