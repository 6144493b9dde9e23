"""Coordinate descent on the box-constrained dual of a node's prox, for piecewise linear losses.

The prox of sum_r c_r f(x_r^T z) at v with f*(a) = a y on [low, high] is z = v - t sum_r c_r a_r x_r
where a maximises a concave quadratic over the box: one coordinate at a time finds which rows are
at a bound, Newton steps settle the others.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

# Row duals are inside the box after any number of sweeps, so a certificate stays valid.
_SWEEPS = 500
_TOL = 1e-12
_EVERY = 5  # sweeps between Newton steps on the face of the box
_MOST_FREE = 100


def box_prox(
    X: Array,
    y: Array,
    ptr: NDArray[np.int64],
    c: Array,
    low: Array,
    high: Array,
    v: Array,
    t: Array,
    a: Array,
) -> tuple[Array, Array]:
    """Prox points (n, d) and row duals (n_rows,), starting from the row duals `a`."""
    return _solve(X, y, ptr, c, low, high, v.copy(), t, a.copy())


@numba.njit(cache=True)
def _solve(X, y, ptr, c, low, high, z, t, a):  # type: ignore[no-untyped-def]
    n, d = z.shape
    for i in range(n):
        for r in range(ptr[i], ptr[i + 1]):
            for j in range(d):
                z[i, j] -= t[i] * c[r] * a[r] * X[r, j]
        top = 0.0  # largest prediction or label so far: the unit of the changes of predictions
        for sweep in range(_SWEEPS):
            worst, moved = 0.0, 0.0
            for r in range(ptr[i], ptr[i + 1]):
                size, error = 0.0, -y[r]
                for j in range(d):
                    size += X[r, j] * X[r, j]
                    error += X[r, j] * z[i, j]
                if size == 0.0 or c[r] == 0.0:
                    a[r] = high[r] if error > 0.0 else low[r]
                    continue
                new = min(max(a[r] + error / (t[i] * c[r] * size), low[r]), high[r])
                shift = t[i] * c[r] * (new - a[r])
                top = max(top, abs(y[r]), abs(error + y[r]))
                worst, moved = max(worst, abs(new - a[r])), max(moved, abs(shift) * size)
                a[r] = new
                for j in range(d):
                    z[i, j] -= shift * X[r, j]
            if worst <= _TOL and moved <= _TOL * top:
                break
            if sweep % _EVERY == _EVERY - 1:
                _face_step(X, y, ptr[i], ptr[i + 1], c, low, high, z[i], t[i], a)
    return z, a


@numba.njit(cache=True)
def _face_step(X, y, first, last, c, low, high, z, t, a):  # type: ignore[no-untyped-def]
    """Newton step over the rows strictly inside the box, up to the first bound that it meets."""
    d = len(z)
    free = np.empty(_MOST_FREE, np.int64)
    f = 0
    for r in range(first, last):
        if low[r] < a[r] < high[r]:
            if f == _MOST_FREE:
                return
            free[f] = r
            f += 1
    if f == 0:
        return
    K, g = np.empty((f, f)), np.empty(f)
    for p in range(f):
        g[p] = c[free[p]] * (np.sum(X[free[p]] * z) - y[free[p]])
        for q in range(p + 1):
            K[p, q] = t * c[free[p]] * c[free[q]] * np.sum(X[free[p]] * X[free[q]])
            K[q, p] = K[p, q]
    move = _solve_psd(K.copy(), g.copy())
    bend = np.sum(move * np.array([np.sum(K[p] * move) for p in range(f)]))
    length = np.sum(g * move) / bend if bend > 0.0 else np.inf
    for p in range(f):
        room = (high[free[p]] if move[p] > 0.0 else low[free[p]]) - a[free[p]]
        if abs(move[p]) * length > abs(room):
            length = room / move[p]
    if not np.isfinite(length):
        return
    for p in range(f):
        r = free[p]
        new = min(max(a[r] + length * move[p], low[r]), high[r])
        for j in range(d):
            z[j] -= t * c[r] * (new - a[r]) * X[r, j]
        a[r] = new


@numba.njit(cache=True)
def _solve_psd(K, g):  # type: ignore[no-untyped-def]
    """Solve K x = g in place by Cholesky, slightly regularised since K may be singular."""
    f = len(g)
    floor = 1e-13 * np.trace(K) + 1e-300
    for p in range(f):
        for q in range(p + 1):
            rest = K[p, q] + (floor if p == q else 0.0)
            for k in range(q):
                rest -= K[p, k] * K[q, k]
            K[p, q] = np.sqrt(max(rest, floor)) if p == q else rest / K[q, q]
        g[p] = (g[p] - np.sum(K[p, :p] * g[:p])) / K[p, p]
    for p in range(f - 1, -1, -1):
        g[p] = (g[p] - np.sum(K[p + 1 :, p] * g[p + 1 :])) / K[p, p]
    return g
