"""Damped Newton prox of the common pointwise losses, node by node.

argmin_z sum_r c_r f(x_r^T z + o_r, y_r) + sum_j l2_j z_j^2 + ||z - v||^2 / (2 step) for each node.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from nefele._kernels.spd import solve

LOGISTIC, POISSON, HUBER, SQUARED_HINGE = range(4)
_STEPS = 100
_HALVINGS = 40
_TOL = 1e-13


@numba.njit(cache=True, error_model="numpy")
def _row_value(kind, delta, z, y):  # type: ignore[no-untyped-def]
    if kind == LOGISTIC:
        t = y * z
        return math.log1p(math.exp(-abs(t))) + max(-t, 0.0)
    if kind == POISSON:
        return np.exp(z) - y * z
    if kind == SQUARED_HINGE:
        short = max(0.0, 1.0 - y * z)
        return short * short
    r = abs(z - y)
    return 0.5 * r * r if r <= delta else delta * (r - 0.5 * delta)


@numba.njit(cache=True, error_model="numpy")
def _row_slopes(kind, delta, z, y):  # type: ignore[no-untyped-def]
    """First and second derivative."""
    if kind == LOGISTIC:
        e = math.exp(-abs(z))
        p = 1.0 / (1.0 + e) if z >= 0.0 else e / (1.0 + e)
        bend = e / ((1.0 + e) * (1.0 + e))
        return (p - 1.0 if y > 0.0 else p), bend
    if kind == POISSON:
        e = np.exp(z)
        return e - y, e
    if kind == SQUARED_HINGE:
        short = 1.0 - y * z
        return (-2.0 * y * short, 2.0) if short > 0.0 else (0.0, 0.0)
    r = z - y
    if abs(r) <= delta:
        return r, 1.0
    return math.copysign(delta, r), 0.0


@numba.njit(cache=True, error_model="numpy")
def _dot(X, r, z):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(z)):
        total += X[r, j] * z[j]
    return total


@numba.njit(cache=True, error_model="numpy")
def _excess(kind, delta, X, y, o, c, first, last, l2, back, v, z):  # type: ignore[no-untyped-def]
    """Objective of the prox at z."""
    total = 0.0
    for r in range(first, last):
        total += c[r] * _row_value(kind, delta, _dot(X, r, z) + o[r], y[r])
    for j in range(len(z)):
        total += l2[j] * z[j] * z[j] + 0.5 * back * (z[j] - v[j]) * (z[j] - v[j])
    return total


@numba.njit(cache=True, error_model="numpy")
def _solve_spd(A, b):  # type: ignore[no-untyped-def]
    """Solve A x = b in place by Cholesky, reading and writing the lower half of A only."""
    d = len(b)
    for j in range(d):
        for k in range(j):
            A[j, j] -= A[j, k] * A[j, k]
        A[j, j] = np.sqrt(max(A[j, j], 1e-300))
        for i in range(j + 1, d):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
            A[i, j] /= A[j, j]
    solve(A, b)


@numba.njit(cache=True, error_model="numpy")
def _node_prox(kind, delta, X, y, o, c, first, last, l2, back, v, z, A, move, trial):  # type: ignore[no-untyped-def]
    """The prox point of one node, written into z; the last three arrays are for work."""
    d = len(z)
    now = _excess(kind, delta, X, y, o, c, first, last, l2, back, v, z)
    if kind == POISSON:  # far up the exponential Newton steps are short and inaccurate
        for guess in (v.copy(), np.zeros(d)):
            new = _excess(kind, delta, X, y, o, c, first, last, l2, back, v, guess)
            if not now <= new:
                z[:], now = guess, new
    for _ in range(_STEPS):
        A[:] = 0.0
        for j in range(d):
            A[j, j] = back + 2.0 * l2[j]
            move[j] = -back * (z[j] - v[j]) - 2.0 * l2[j] * z[j]
        for r in range(first, last):
            slope, bend = _row_slopes(kind, delta, _dot(X, r, z) + o[r], y[r])
            slope, bend = slope * c[r], bend * c[r]
            for j in range(d):
                move[j] -= slope * X[r, j]
                for k in range(j + 1):
                    A[j, k] += bend * X[r, j] * X[r, k]
        _solve_spd(A, move)
        size, top = 0.0, 0.0
        for j in range(d):
            size = max(size, abs(move[j]))
            top = max(top, abs(z[j] + move[j]), abs(v[j]))
        if not size > _TOL * top:
            break
        before, length = now, 1.0
        for _ in range(_HALVINGS):
            for j in range(d):
                trial[j] = z[j] + length * move[j]
            new = _excess(kind, delta, X, y, o, c, first, last, l2, back, v, trial)
            if new <= now + 1e-14 * abs(now):
                now = new
                for j in range(d):
                    z[j] = trial[j]
                break
            length *= 0.5
        if not now < before:  # a step that brings nothing is a rounding error
            break


@numba.njit(cache=True, error_model="numpy")
def newton_prox(kind, delta, X, y, o, ptr, c, labelled, l2, v, step, z):  # type: ignore[no-untyped-def]
    """Prox points, written into z, which holds the first guesses; nodes without rows get v."""
    n, d = z.shape
    A, move, trial = np.empty((d, d)), np.empty(d), np.empty(d)
    for i in range(n):
        if not labelled[i]:
            z[i] = v[i]
            continue
        rows = (X, y, o, c, ptr[i], ptr[i + 1])
        _node_prox(kind, delta, *rows, l2[i], 1.0 / step[i], v[i], z[i], A, move, trial)
    return z
