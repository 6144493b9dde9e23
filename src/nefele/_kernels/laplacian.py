"""The three passes of conjugate gradients on (M + D^T C D) x = r.

`dims` is a tuple of length d for compiled rows (`nefele._kernels.rows`) or None for any d, and
always where C has one weight per entry. M and the preconditioner P are symmetric: upper triangles,
row by row, of shape (n_nodes, d (d + 1) / 2); P may be one diagonal per node instead, of shape
(n_nodes, 1 or d), and M = 0 is an array without rows. Edges are stored by owner: those of node i
are ptr[i] to ptr[i + 1], and their tails come after i.
"""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import inlined, kernel
from nefele._kernels.rows import dot, load, store, symmetric, zeros


@kernel
def pack(blocks):  # type: ignore[no-untyped-def]
    """Upper triangles of symmetric blocks, row by row."""
    n, d, _ = blocks.shape
    out = np.empty((n, d * (d + 1) // 2))
    for i in range(n):
        k = 0
        for r in range(d):
            for s in range(r, d):
                out[i, k] = blocks[i, r, s]
                k += 1
    return out


@kernel
def block_product(blocks, x, out):  # type: ignore[no-untyped-def]
    """out_i = blocks_i x_i for full blocks."""
    d = x.shape[1]
    for i in range(len(x)):
        for r in range(d):
            total = 0.0
            for k in range(d):
                total += blocks[i, r, k] * x[i, k]
            out[i, r] = total


@kernel
def product(dims, ptr, tail, give, M, x, out):  # type: ignore[no-untyped-def]
    """Add M x + D^T C D x to out, zero before, and return x^T out.

    Tails come after their owner, so that out_i is complete once the edges of i are done.
    """
    if dims is None:
        return _product_any(ptr, tail, give, M, x, out)
    bend = 0.0
    for i in range(len(x)):
        here, total = load(x, i, dims), load(out, i, dims)
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            flow = give[e, 0] * (here - load(x, j, dims))
            store(out, j, load(out, j, dims) - flow)
            total = total + flow
        if len(M) > 0:
            total = total + symmetric(M, i, here)
        store(out, i, total)
        bend += dot(here, total)
    return bend


@inlined
def _product_any(ptr, tail, give, M, x, out):  # type: ignore[no-untyped-def]
    d, single, bend = x.shape[1], give.shape[1] == 1, 0.0
    for i in range(len(x)):
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            for r in range(d):
                flow = (give[e, 0] if single else give[e, r]) * (x[i, r] - x[j, r])
                out[i, r] += flow
                out[j, r] -= flow
        if len(M) > 0:
            _add_symmetric(M, i, x, out)
        for r in range(d):
            bend += out[i, r] * x[i, r]
    return bend


@inlined
def _add_symmetric(A, i, x, out):  # type: ignore[no-untyped-def]
    d, k = x.shape[1], 0
    for r in range(d):
        out[i, r] += A[i, k] * x[i, r]
        for s in range(r + 1, d):
            out[i, r] += A[i, k + s - r] * x[i, s]
            out[i, s] += A[i, k + s - r] * x[i, r]
        k += d - r


@kernel
def advance(dims, alpha, P, x, r, p, z):  # type: ignore[no-untyped-def]
    """X += alpha p, r -= alpha z and z = P r; z holds the product with p when called.

    Returns r^T r and r^T z.
    """
    square, inner = 0.0, 0.0
    d = x.shape[1]
    full = (P.shape[1] == d * (d + 1) // 2 and P.shape[1] > d) or d == 1
    if dims is not None and full:
        for i in range(len(x)):
            store(x, i, load(x, i, dims) + alpha * load(p, i, dims))
            left = load(r, i, dims) - alpha * load(z, i, dims)
            turned = symmetric(P, i, left)
            store(r, i, left)
            store(z, i, turned)
            square += dot(left, left)
            inner += dot(left, turned)
        return square, inner
    for i in range(len(x)):
        for k in range(d):
            x[i, k] += alpha * p[i, k]
            r[i, k] -= alpha * z[i, k]
            z[i, k] = 0.0 if full else P[i, min(k, P.shape[1] - 1)] * r[i, k]
        if full:
            _add_symmetric(P, i, r, z)
        for k in range(d):
            square += r[i, k] * r[i, k]
            inner += r[i, k] * z[i, k]
    return square, inner


@kernel
def turn(dims, factor, p, z):  # type: ignore[no-untyped-def]
    """P = z + factor p, and z = 0 for the next product."""
    if dims is None:
        for i in range(len(p)):
            for k in range(p.shape[1]):
                p[i, k] = z[i, k] + factor * p[i, k]
                z[i, k] = 0.0
        return
    for i in range(len(p)):
        store(p, i, load(z, i, dims) + factor * load(p, i, dims))
        store(z, i, zeros(dims))


@inlined
def invert(a):  # type: ignore[no-untyped-def]
    """Inverse in place of a positive definite matrix, by Gauss-Jordan steps without pivoting."""
    d = len(a)
    for c in range(d):
        pivot = 1.0 / a[c, c]
        a[c, c] = 1.0
        for k in range(d):
            a[c, k] *= pivot
        for r in range(d):
            if r != c:
                factor = a[r, c]
                a[r, c] = 0.0
                for k in range(d):
                    a[r, k] -= factor * a[c, k]


@kernel
def shifted_solve(H, step, right, out):  # type: ignore[no-untyped-def]
    """out_i = (I + step_i H_i)^-1 right_i."""
    n, d = right.shape
    a = np.empty((d, d))
    for i in range(n):
        for r in range(d):
            for k in range(d):
                a[r, k] = step[i] * H[i, r, k]
            a[r, r] += 1.0
        invert(a)
        for r in range(d):
            total = 0.0
            for k in range(d):
                total += a[r, k] * right[i, k]
            out[i, r] = total


@kernel
def block_inverse(M, ends):  # type: ignore[no-untyped-def]
    """Packed (M_i + diag(ends_i), slightly regularised)^-1."""
    n, d, single = len(M), 0, ends.shape[1] == 1
    while d * (d + 1) // 2 < M.shape[1]:
        d += 1
    out, a = np.empty_like(M), np.empty((d, d))
    for i in range(n):
        size, entry = 0.0, 0
        for r in range(d):
            for k in range(r, d):
                a[r, k] = a[k, r] = M[i, entry]
                entry += 1
            a[r, r] += ends[i, 0] if single else ends[i, r]
            size += a[r, r]
        floor = 1e-14 * size if size > 0.0 else 1.0
        for r in range(d):
            a[r, r] += floor
        invert(a)
        entry = 0
        for r in range(d):
            for k in range(r, d):
                out[i, entry] = a[r, k]
                entry += 1
    return out
