"""Damped Newton prox of the multinomial loss, node by node.

argmin_z sum_r c_r (log sum_k exp(x_r^T z_k) - x_r^T z_y) + sum_j l2_j z_j^2
+ ||z - v||^2 / (2 step), z holding the weights of class 0, of class 1, ... (as `newton` for
losses of one prediction).
"""

from __future__ import annotations

import math

import numba
import numpy as np

from nefele._kernels.newton import _HALVINGS, _STEPS, _TOL, _solve_spd

_SLACK = 1e-13  # relative rise of the objective that its rounding errors explain


@numba.njit(cache=True, error_model="numpy")
def _logits(x, z, t):  # type: ignore[no-untyped-def]
    """Write x^T z_k into t; returns the largest."""
    d, top = len(x), -np.inf
    for k in range(len(t)):
        total = 0.0
        for j in range(d):
            total += x[j] * z[k * d + j]
        t[k] = total
        top = max(top, total)
    return top


@numba.njit(cache=True, error_model="numpy")
def _softmax(t, top):  # type: ignore[no-untyped-def]
    """Replace predictions, of which `top` is the largest, by chances."""
    mass = 0.0
    for k in range(len(t)):
        t[k] = math.exp(t[k] - top)
        mass += t[k]
    for k in range(len(t)):
        t[k] /= mass


@numba.njit(cache=True, error_model="numpy")
def _excess(X, label, c, first, last, l2, back, v, z, t):  # type: ignore[no-untyped-def]
    """Objective of the prox at z."""
    total = 0.0
    for r in range(first, last):
        top, mass = _logits(X[r], z, t), 0.0
        for k in range(len(t)):
            mass += math.exp(t[k] - top)
        total += c[r] * (top - t[label[r]] + math.log(mass))
    for j in range(len(z)):
        total += l2[j] * z[j] * z[j] + 0.5 * back * (z[j] - v[j]) * (z[j] - v[j])
    return total


@numba.njit(cache=True, error_model="numpy")
def _add_row(x, label, c, p, A, move):  # type: ignore[no-untyped-def]
    """Add the row's Hessian to the lower half of A, take its gradient off the move.

    The Hessian's block of classes a and b is c p_a (1_ab - p_b) x x^T.
    """
    d = len(x)
    for a in range(len(p)):
        slope = c * (p[a] - (1.0 if a == label else 0.0))
        for i in range(d):
            move[a * d + i] -= slope * x[i]
        for b in range(a + 1):
            bend = c * p[a] * ((1.0 if a == b else 0.0) - p[b])
            for i in range(d):
                part = bend * x[i]
                for j in range(i + 1 if a == b else d):
                    A[a * d + i, b * d + j] += part * x[j]


@numba.njit(cache=True, error_model="numpy")
def _newton_move(X, label, c, first, last, l2, back, v, z, p, A, move):  # type: ignore[no-untyped-def]
    """Write the Newton step at z into move."""
    A[:] = 0.0
    for j in range(len(z)):
        A[j, j] = back + 2.0 * l2[j]
        move[j] = -back * (z[j] - v[j]) - 2.0 * l2[j] * z[j]
    for r in range(first, last):
        _softmax(p, _logits(X[r], z, p))
        _add_row(X[r], label[r], c[r], p, A, move)
    _solve_spd(A, move)


@numba.njit(cache=True, error_model="numpy")
def multinomial_prox(n_classes, X, label, ptr, c, labelled, l2, v, step, z):  # type: ignore[no-untyped-def]
    """Prox points, written into z, which holds the first guesses; nodes without rows get v."""
    n, size = z.shape
    A, move, trial, p = np.empty((size, size)), np.empty(size), np.empty(size), np.empty(n_classes)
    for i in range(n):
        first, last = ptr[i], ptr[i + 1]
        if not labelled[i]:
            z[i] = v[i]
            continue
        back = 1.0 / step[i]
        now, still = _excess(X, label, c, first, last, l2[i], back, v[i], z[i], p), 0
        for _ in range(_STEPS):
            _newton_move(X, label, c, first, last, l2[i], back, v[i], z[i], p, A, move)
            large, top = 0.0, 0.0
            for j in range(size):
                large = max(large, abs(move[j]))
                top = max(top, abs(z[i, j] + move[j]), abs(v[i, j]))
            if not large > _TOL * top:
                break
            before, length = now, 1.0
            for _ in range(_HALVINGS):
                for j in range(size):
                    trial[j] = z[i, j] + length * move[j]
                new = _excess(X, label, c, first, last, l2[i], back, v[i], trial, p)
                if new <= now + _SLACK * abs(now):
                    now = new
                    z[i] = trial
                    break
                length *= 0.5
            still = 0 if now < before else still + 1
            if still == 2:  # the first step that brings nothing still mends the gradient
                break
    return z


@numba.njit(cache=True, error_model="numpy")
def multinomial_grams(X, ptr, c, z, out):  # type: ignore[no-untyped-def]
    """Hessians of all nodes at predictions z, shape (n_rows, n_classes), added to `out`."""
    p, move = np.empty(z.shape[1]), np.empty(out.shape[1])
    for i in range(len(ptr) - 1):
        A = out[i]
        for r in range(ptr[i], ptr[i + 1]):
            p[:] = z[r]
            _softmax(p, p.max())
            _add_row(X[r], 0, c[r], p, A, move)
        for g in range(len(A)):
            for h in range(g):
                A[h, g] = A[g, h]


@numba.njit(cache=True, error_model="numpy")
def class_predictions(X, ptr, w, out):  # type: ignore[no-untyped-def]
    """out_rk = x_r^T w_ik for the rows of node i, whose row of w holds the classes one by one."""
    d = X.shape[1]
    for i in range(len(ptr) - 1):
        for r in range(ptr[i], ptr[i + 1]):
            for k in range(out.shape[1]):
                total = 0.0
                for j in range(d):
                    total += X[r, j] * w[i, k * d + j]
                out[r, k] = total


@numba.njit(cache=True, error_model="numpy")
def class_pulls(X, c, a, ptr, out):  # type: ignore[no-untyped-def]
    """Add sum_r c_r a_rk x_r over the rows of node i to class k of out_i."""
    d = X.shape[1]
    for i in range(len(ptr) - 1):
        for r in range(ptr[i], ptr[i + 1]):
            for k in range(a.shape[1]):
                weight = c[r] * a[r, k]
                for j in range(d):
                    out[i, k * d + j] += weight * X[r, j]


@numba.njit(cache=True, error_model="numpy")
def chances(z):  # type: ignore[no-untyped-def]
    """Replace predictions of each row by the chances of its classes."""
    for r in range(len(z)):
        _softmax(z[r], z[r].max())


@numba.njit(cache=True, error_model="numpy")
def class_losses(z, label, out):  # type: ignore[no-untyped-def]
    """out_r = log sum_k exp(z_rk) - z_ry."""
    for r in range(len(z)):
        top, mass = z[r].max(), 0.0
        for k in range(z.shape[1]):
            mass += math.exp(z[r, k] - top)
        out[r] = top - z[r, label[r]] + math.log(mass)
