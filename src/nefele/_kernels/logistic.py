"""The prox of the logistic loss, node by node, with all rows of a node in vector registers.

Rows are kept as columns y_r x_rj for each j, so that every loop over them is one of vectors: three
times faster than the loops of `newton`, whose exponentials come one by one. Newton steps are taken
whole; where they do not shrink as fast as they should the careful ones of `newton` take over.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from nefele._kernels.compiled import inlined
from nefele._kernels.newton import _TOL, LOGISTIC, _excess, _node_prox

_ROWS = 64  # at a time
_LOG2E = 1 / math.log(2)
_HIGH, _LOW = 0.693147180369123816490, 1.90821492927058770002e-10  # of log(2), n _HIGH is exact
_ROUND = 1.5 * 2.0**52  # numbers of this size are whole, and their last bits count from zero
_SERIES = tuple(1 / math.factorial(k) for k in range(12, -1, -1))
_LEAST = -700.0
_SHRINK = 0.5  # least shrinking of whole steps

_njit: Any = numba.njit
# What is called with relaxed rounding would be compiled so as well, if it did not say otherwise.
_exact = _njit(forceinline=True, fastmath=False, error_model="numpy")


@_exact
def exponentials(x, m, power, bits):  # type: ignore[no-untyped-def]
    """Replace x[r] <= 0, r < m, by exp(x[r]) = 2^n exp(f); `bits` are the bits of `power`.

    Without a call or a branch, which would keep the loops from being vectorised.
    """
    for r in range(m):
        z = max(x[r], _LEAST)
        power[r] = z * _LOG2E + _ROUND
        n = power[r] - _ROUND
        f = (z - n * _HIGH) - n * _LOW
        p = _SERIES[0] * f + _SERIES[1]
        p = (p * f + _SERIES[2]) * f + _SERIES[3]
        p = (p * f + _SERIES[4]) * f + _SERIES[5]
        p = (p * f + _SERIES[6]) * f + _SERIES[7]
        p = (p * f + _SERIES[8]) * f + _SERIES[9]
        p = (p * f + _SERIES[10]) * f + _SERIES[11]
        x[r] = p * f + _SERIES[12]
    for r in range(m):
        bits[r] = (bits[r] + 1023) << 52
    for r in range(m):
        x[r] *= power[r]


@inlined
def _add_rows(S, c, m, z, t, e, slope, bits, A, move):  # type: ignore[no-untyped-def]
    """Add m rows' Hessian to the lower half of A and take their gradient off the move.

    `t` holds y_r o_r; with t_r = y_r (x_r^T z + o_r) and p = 1 / (1 + exp(t)) the gradient is
    -c_r p y_r x_r, the Hessian c_r p (1 - p) x_r x_r^T.
    """
    d = len(z)
    for j in range(d):
        for r in range(m):
            t[r] += S[j, r] * z[j]
    for r in range(m):
        e[r] = -abs(t[r])
    exponentials(e, m, slope, bits)
    for r in range(m):
        q = 1.0 / (1.0 + e[r])
        slope[r] = c[r] * q * (e[r] if t[r] >= 0.0 else 1.0)
        e[r] = c[r] * e[r] * q * q
    for j in range(d):
        total = 0.0
        for r in range(m):
            total += slope[r] * S[j, r]
            t[r] = e[r] * S[j, r]
        move[j] += total
        for k in range(j + 1):
            total = 0.0
            for r in range(m):
                total += t[r] * S[k, r]
            A[j, k] += total


@inlined
def _solve(A, b):  # type: ignore[no-untyped-def]
    """Solve A x = b in place by Cholesky; the diagonal of A becomes that of the inverse factor."""
    d = len(b)
    for j in range(d):
        for k in range(j):
            A[j, j] -= A[j, k] * A[j, k]
        A[j, j] = 1.0 / np.sqrt(max(A[j, j], 1e-300))
        for i in range(j + 1, d):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total * A[j, j]
    for i in range(d):
        total = b[i]
        for k in range(i):
            total -= A[i, k] * b[k]
        b[i] = total * A[i, i]
    for i in range(d - 1, -1, -1):
        b[i] *= A[i, i]
        for k in range(i):
            b[k] -= A[i, k] * b[i]


@inlined
def _move(X, y, o, c, first, last, kept, l2, back, v, z, S, rows, A, move):  # type: ignore[no-untyped-def]
    """Write the Newton step at z into move; `kept`: S has the node's rows already."""
    t, e, slope, bits = rows
    d = len(z)
    for j in range(d):
        for k in range(j):
            A[j, k] = 0.0
        A[j, j] = back + 2.0 * l2[j]
        move[j] = back * (v[j] - z[j]) - 2.0 * l2[j] * z[j]
    for start in range(first, last, _ROWS):
        m = min(_ROWS, last - start)
        for r in range(m):
            t[r] = y[start + r] * o[start + r]
        if not kept:
            for r in range(m):
                for j in range(d):
                    S[j, r] = y[start + r] * X[start + r, j]
        _add_rows(S, c[start : start + m], m, z, t, e, slope, bits, A, move)
    _solve(A, move)


@_njit(cache=True, fastmath=False, error_model="numpy")
def logistic_prox(X, y, o, ptr, c, labelled, l2, v, step, z):  # type: ignore[no-untyped-def]
    """Prox points, written into z, which holds the first guesses; nodes without rows get v."""
    n, d = z.shape
    A, move, trial, S = np.empty((d, d)), np.empty(d), np.empty(d), np.empty((d, _ROWS))
    slope = np.empty(_ROWS)
    rows = np.empty(_ROWS), np.empty(_ROWS), slope, slope.view(np.int64)
    for i in range(n):
        if not labelled[i]:
            z[i] = v[i]
            continue
        first, last, back = ptr[i], ptr[i + 1], 1.0 / step[i]
        trial[:], before, done, kept = z[i], np.inf, False, False
        while not done:
            _move(X, y, o, c, first, last, kept, l2[i], back, v[i], trial, S, rows, A, move)
            size, top, kept = 0.0, 0.0, last - first <= _ROWS
            for j in range(d):
                trial[j] += move[j]
                size = max(size, abs(move[j]))
                top = max(top, abs(trial[j]), abs(v[i, j]))
            # steps shrink quadratically: the next one would be about size^3 / before^2
            next_one = size * (size / before) ** 2 if before < np.inf else size
            done = next_one <= _TOL * top
            if not (done or size <= _SHRINK * before):
                break
            before = size
        here = (LOGISTIC, 0.0, X, y, o, c, first, last, l2[i], back, v[i])
        if not done and not _excess(*here, trial) <= _excess(*here, z[i]):
            trial[:] = z[i]
        z[i] = trial
        if not done:
            _node_prox(*here, z[i], A, move, trial)
    return z
