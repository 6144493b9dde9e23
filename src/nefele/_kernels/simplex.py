"""min_w 1/2 w^T A_i w - g_i^T w over w >= 0 with entries that sum to a total, node by node.

An active-set method: Newton steps over the entries that are not zero, as far as signs allow, and
an entry that is zero set free where that is steepest. Every step makes the objective fall, so that
it may be stopped anywhere.
"""

from __future__ import annotations

import numba
import numpy as np

from nefele._checks import Array
from nefele._kernels.spd import factorise, solve

_ROUNDS = 10  # most steps, in units of the number of entries, beside
_MORE = 50
_TOL = 1e-14  # difference of slopes, in units of the terms they sum, that is none


def simplex_quadratic(A: Array, g: Array, l1: Array, total: float, start: Array) -> Array:
    """Minimisers with entries >= 0 that sum to total; the l1 term is linear there."""
    w = np.maximum(start, 0.0)
    return _on_simplex(A, g - l1, total, w)


@numba.njit(cache=True, error_model="numpy")
def _on_simplex(A, g, total, w):  # type: ignore[no-untyped-def]
    for i in range(len(g)):
        summed = np.sum(w[i])
        if summed > 0.0 and np.isfinite(summed):
            w[i] *= total / summed
        else:
            w[i] = total / len(w[i])
        size = 0.0
        for j in range(len(w[i])):
            size = max(size, A[i, j, j])
        if np.isfinite(size) and np.all(np.isfinite(g[i])):
            _one(A[i], g[i], total, w[i])
    return w


@numba.njit(cache=True, error_model="numpy")
def _one(A, g, total, w):  # type: ignore[no-untyped-def]
    d = len(w)
    slope, size = np.empty(d), np.empty(d)
    free = w > 0.0
    for _ in range(_ROUNDS * d + _MORE):
        _slopes(A, g, w, slope, size)
        blocked, moved = _face_step(A, slope, free, w)
        _normalise(total, free, w)
        if blocked >= 0:
            free[blocked] = False
            w[blocked] = 0.0
            continue
        _slopes(A, g, w, slope, size)
        best = _steepest(slope, size, free)
        if best >= 0:
            free[best] = True
        elif not moved:
            break


@numba.njit(cache=True, error_model="numpy")
def _slopes(A, g, w, slope, size):  # type: ignore[no-untyped-def]
    """How fast the objective falls in each entry, and the size of the terms of that."""
    d = len(w)
    for j in range(d):
        slope[j], size[j] = g[j], abs(g[j])
        for k in range(d):
            slope[j] -= A[j, k] * w[k]
            size[j] += abs(A[j, k] * w[k])


@numba.njit(cache=True, error_model="numpy")
def _steepest(slope, size, free):  # type: ignore[no-untyped-def]
    """The entry at zero whose growth makes the objective fall most; -1 if none does."""
    mean, count, top = 0.0, 0, 0.0
    for j in range(len(slope)):
        top = max(top, size[j])
        if free[j]:
            mean += slope[j]
            count += 1
    mean /= max(count, 1)
    best, most = -1, _TOL * top
    for j in range(len(slope)):
        if not free[j] and slope[j] - mean > most:
            best, most = j, slope[j] - mean
    return best


@numba.njit(cache=True, error_model="numpy")
def _face_step(A, slope, free, w):  # type: ignore[no-untyped-def]
    """A Newton step over the free entries, or the part of it that keeps signs.

    Returns the entry that stopped it, or -1, and whether anything but rounding errors moved.
    """
    on = np.flatnonzero(free)
    f = len(on)
    if f < 2:
        return -1, False
    K, right, ones = np.empty((f, f)), np.empty(f), np.ones(f)
    for p in range(f):
        right[p] = slope[on[p]]
        for q in range(f):
            K[p, q] = A[on[p], on[q]]
    factorise(K)
    solve(K, right)
    solve(K, ones)
    shift = np.sum(right) / np.sum(ones)
    length, blocked, moved = 1.0, -1, False
    for p in range(f):
        move = right[p] - shift * ones[p]
        if not np.isfinite(move):
            return -1, False
        right[p] = move
        if move < 0.0 and -move * length >= w[on[p]]:
            length, blocked = w[on[p]] / -move, on[p]
        if abs(move) > _TOL * (abs(w[on[p]]) + abs(move)):
            moved = moved or abs(move) > _TOL * np.max(w)
    for p in range(f):
        w[on[p]] = max(w[on[p]] + length * right[p], 0.0)
    return blocked, moved


@numba.njit(cache=True, error_model="numpy")
def _normalise(total, free, w):  # type: ignore[no-untyped-def]
    """Free entries that sum to the total, but for rounding errors."""
    summed = np.sum(w)
    for j in range(len(w)):
        w[j] = w[j] * (total / summed) if free[j] else 0.0
