"""Sums over edges and rows of large problems, in one pass each.

`dims` is a tuple of length d for compiled rows (`nefele._kernels.rows`) or None for any d. Edges
are stored by owner: those of node i are ptr[i] to ptr[i + 1].
"""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import inlined, kernel
from nefele._kernels.rows import absolute, dot, farther, load, square, store, zeros


@kernel
def shift(  # type: ignore[no-untyped-def]
    dims, kind, depth, ptr, tail, scale, give, x, w, u, out, div
):
    """Out = u - C D x, brought inside the balls of the dual norm (kind 0: l2, 1: l-infinity).

    Adds D^T out to div, and returns how far it was outside, and sum_e lam A_e phi(D w) -
    <out, D w>, phi the dual of that norm: all that a round of corrections needs, in one pass.
    """
    d = x.shape[1] if dims is None else len(dims)
    single = give.shape[1] == 1
    outside, spare = 0.0, 0.0
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            size, rise, inner = 0.0, 0.0, 0.0
            for r in range(d):
                new = u[e, r] - (give[e, 0] if single else give[e, r]) * (x[i, r] - x[j, r])
                out[e, r] = new
                step = w[i, r] - w[j, r]
                inner += new * step
                size = size + new * new if kind == 0 else max(size, abs(new))
                rise += step * step if kind == 0 else abs(step)
            ratio = (np.sqrt(size) if kind == 0 else size) / scale[e]
            outside = max(outside, ratio)
            if ratio > 1.0:
                back = max(1.0 - depth * (ratio - 1.0), 0.9) / ratio
                inner *= back
                for r in range(d):
                    out[e, r] *= back
            for r in range(d):
                div[i, r] += out[e, r]
                div[j, r] -= out[e, r]
            spare += scale[e] * (np.sqrt(rise) if kind == 0 else rise) - inner
    return outside - 1.0, spare


@kernel
def shift_rows(  # type: ignore[no-untyped-def]
    dims, depth, ptr, tail, scale, give, x, w, u, out, div, following
):
    """The same for the l2 norm and one weight per edge, with compiled rows.

    following = (change, room, unit, least, most): with `change` only what bringing edges inside
    has changed is added to div, and their give in the next round goes to `room`.
    """
    change, room, unit, least, most = following
    outside, spare = 0.0, 0.0
    for i in range(len(ptr) - 1):
        here, there, total = load(x, i, dims), load(w, i, dims), load(div, i, dims)
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            new = load(u, e, dims) - give[e, 0] * (here - load(x, j, dims))
            step = there - load(w, j, dims)
            ratio = np.sqrt(dot(new, new)) / scale[e]
            outside = max(outside, ratio)
            sent = new
            if ratio > 1.0:
                back = max(1.0 - depth * (ratio - 1.0), 0.9) / ratio
                sent = (back - 1.0 if change else back) * new
                new, ratio = back * new, back * ratio
                store(div, j, load(div, j, dims) - sent)
                total = total + sent
            elif not change:
                store(div, j, load(div, j, dims) - sent)
                total = total + sent
            if change:
                room[e, 0] = min(scale[e] * max(1.0 - ratio, least) / unit, most)
            store(out, e, new)
            spare += scale[e] * np.sqrt(dot(step, step)) - dot(new, step)
        store(div, i, total)
    return outside - 1.0, spare


@kernel
def room(u, scale, unit, least, most, out):  # type: ignore[no-untyped-def]
    """Out_e = min(lam A_e clip(1 - ||u_e|| / (lam A_e), least, 1) / unit, most)."""
    for e in range(len(u)):
        size = 0.0
        for r in range(u.shape[1]):
            size += u[e, r] * u[e, r]
        left = min(max(1.0 - np.sqrt(size) / scale[e], least), 1.0)
        out[e, 0] = min(scale[e] * left / unit, most)


@kernel
def lengths(u, scale, out):  # type: ignore[no-untyped-def]
    """out_e = ||u_e|| / scale_e."""
    for e in range(len(u)):
        size = 0.0
        for r in range(u.shape[1]):
            size += u[e, r] * u[e, r]
        out[e] = np.sqrt(size) / scale[e]


@kernel
def correct(dims, ptr, tail, give, x, u, out):  # type: ignore[no-untyped-def]
    """Out = u - C D x; compiled rows for one weight per edge."""
    if dims is None:
        _correct_any(ptr, tail, give, x, u, out)
        return
    for i in range(len(ptr) - 1):
        here = load(x, i, dims)
        for e in range(ptr[i], ptr[i + 1]):
            store(out, e, load(u, e, dims) - give[e, 0] * (here - load(x, tail[e], dims)))


@inlined
def _correct_any(ptr, tail, give, x, u, out):  # type: ignore[no-untyped-def]
    single = give.shape[1] == 1
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            for r in range(x.shape[1]):
                out[e, r] = u[e, r] - (give[e, 0] if single else give[e, r]) * (x[i, r] - x[j, r])


@kernel
def variation(dims, kind, ptr, tail, scale, w):  # type: ignore[no-untyped-def]
    """sum_e lam A_e phi(w_i - w_j), phi the l2 norm (kind 0), the l1 norm (1), ||.||^2 / 2 (2)."""
    if dims is None:
        return _variation_any(kind, ptr, tail, scale, w)
    total = 0.0
    for i in range(len(ptr) - 1):
        here = load(w, i, dims)
        for e in range(ptr[i], ptr[i + 1]):
            step = here - load(w, tail[e], dims)
            rise = absolute(step) if kind == 1 else square(step)
            if kind == 0:
                rise = np.sqrt(rise)
            total += scale[e] * (0.5 * rise if kind == 2 else rise)
    return total


@inlined
def _variation_any(kind, ptr, tail, scale, w):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            j, rise = tail[e], 0.0
            for r in range(w.shape[1]):
                step = w[i, r] - w[j, r]
                rise += abs(step) if kind == 1 else step * step
            if kind == 0:
                rise = np.sqrt(rise)
            total += scale[e] * (0.5 * rise if kind == 2 else rise)
    return total


@kernel
def energy(dims, u, scale):  # type: ignore[no-untyped-def]
    """sum_e ||u_e||^2 / (2 scale_e), the conjugate of lam A_e ||.||^2 / 2."""
    total = 0.0
    if dims is not None:
        for e in range(len(u)):
            total += 0.5 * square(load(u, e, dims)) / scale[e]
        return total
    for e in range(len(u)):
        size = 0.0
        for r in range(u.shape[1]):
            size += u[e, r] * u[e, r]
        total += 0.5 * size / scale[e]
    return total


@kernel
def spare(dims, kind, ptr, tail, scale, w, u):  # type: ignore[no-untyped-def]
    """sum_e lam A_e phi(D w) - <u, D w>, phi the l2 norm (kind 0) or the l1 norm (1)."""
    if dims is None:
        return _spare_any(kind, ptr, tail, scale, w, u)
    total = 0.0
    for i in range(len(ptr) - 1):
        here = load(w, i, dims)
        for e in range(ptr[i], ptr[i + 1]):
            step = here - load(w, tail[e], dims)
            rise = np.sqrt(square(step)) if kind == 0 else absolute(step)
            total += scale[e] * rise - dot(load(u, e, dims), step)
    return total


@inlined
def _spare_any(kind, ptr, tail, scale, w, u):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            j, rise, inner = tail[e], 0.0, 0.0
            for r in range(w.shape[1]):
                step = w[i, r] - w[j, r]
                inner += u[e, r] * step
                rise += step * step if kind == 0 else abs(step)
            total += scale[e] * (np.sqrt(rise) if kind == 0 else rise) - inner
    return total


@kernel
def squared_errors(X, y, ptr, weight, ridge, w, out):  # type: ignore[no-untyped-def]
    """out_i = sum_r c_r (x_r^T w_i - y_r)^2 over the rows of node i, + sum_k ridge_ik w_ik^2."""
    for i in range(len(w)):
        total = 0.0
        for k in range(w.shape[1]):
            total += ridge[i, k] * w[i, k] * w[i, k]
        for r in range(ptr[i], ptr[i + 1]):
            z = -y[r]
            for k in range(w.shape[1]):
                z += X[r, k] * w[i, k]
            total += weight[r] * z * z
        out[i] = total


@kernel
def squared_conjugates(X, y, ptr, weight, ridge, p, theta, out):  # type: ignore[no-untyped-def]
    """out_i = sum_r c_r t_r (t_r / 4 + y_r) over rows, with t_r = 2 theta_i (x_r^T p_i - y_r).

    And theta_i^2 sum_k ridge_ik p_ik^2 on top of it.
    """
    for i in range(len(p)):
        total = 0.0
        for k in range(p.shape[1]):
            total += ridge[i, k] * p[i, k] * p[i, k]
        total *= theta[i] * theta[i]
        for r in range(ptr[i], ptr[i + 1]):
            z = -y[r]
            for k in range(p.shape[1]):
                z += X[r, k] * p[i, k]
            t = 2.0 * theta[i] * z
            total += weight[r] * t * (0.25 * t + y[r])
        out[i] = total


@kernel
def squared_sizes(H, b, p, out):  # type: ignore[no-untyped-def]
    """out_ij = sqrt(H_jj) sum_k sqrt(H_kk) |p_ik| + |b_ij|."""
    for i in range(len(p)):
        total = 0.0
        for k in range(p.shape[1]):
            total += np.sqrt(H[i, k, k]) * abs(p[i, k])
        for k in range(p.shape[1]):
            out[i, k] = np.sqrt(H[i, k, k]) * total + abs(b[i, k])


@kernel
def tensions(dims, ptr, tail, scale, w, out):  # type: ignore[no-untyped-def]
    """out_e = lam A_e (w_i - w_j)."""
    if dims is not None:
        for i in range(len(ptr) - 1):
            here = load(w, i, dims)
            for e in range(ptr[i], ptr[i + 1]):
                store(out, e, scale[e] * (here - load(w, tail[e], dims)))
        return
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            for r in range(w.shape[1]):
                out[e, r] = scale[e] * (w[i, r] - w[tail[e], r])


@kernel
def predictions(X, ptr, w, out):  # type: ignore[no-untyped-def]
    """out_r = x_r^T w_i for the rows of node i."""
    for i in range(len(ptr) - 1):
        for row in range(ptr[i], ptr[i + 1]):
            z = 0.0
            for k in range(X.shape[1]):
                z += X[row, k] * w[i, k]
            out[row] = z


@kernel
def grams(X, weight, ptr, out):  # type: ignore[no-untyped-def]
    """out_i += sum_r weight_r x_r x_r^T over the rows of node i."""
    d = X.shape[1]
    for i in range(len(ptr) - 1):
        A = out[i]
        for row in range(ptr[i], ptr[i + 1]):
            x = X[row]
            for r in range(d):
                weighted = weight[row] * x[r]
                for s in range(r + 1):
                    A[r, s] += weighted * x[s]
        for r in range(d):
            for s in range(r):
                A[s, r] = A[r, s]


@kernel
def pulls(X, a, ptr, out):  # type: ignore[no-untyped-def]
    """out_i += sum_r a_r x_r over the rows of node i."""
    for i in range(len(ptr) - 1):
        for row in range(ptr[i], ptr[i + 1]):
            for k in range(X.shape[1]):
                out[i, k] += a[row] * X[row, k]


@kernel
def largest(dims, values, out):  # type: ignore[no-untyped-def]
    """Largest absolute value of each column, into the single row of out, zero before."""
    if dims is not None:
        most = zeros(dims)
        for i in range(len(values)):
            most = farther(load(values, i, dims), most)
        store(out, 0, most)
        return
    for i in range(len(values)):
        for k in range(values.shape[1]):
            out[0, k] = max(out[0, k], abs(values[i, k]))
