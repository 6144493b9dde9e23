"""Systems (M + D^T C D) x = r: products, and conjugate gradients with one pass per vector.

`dims` is a tuple of length d (or empty for any d), as in `primal_dual`. Edges are stored by
owner: those of node i are ptr[i] to ptr[i + 1], and their tails come after i.
"""

from __future__ import annotations

import numba
import numpy as np

_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
_MOST_UNROLLED = 8  # beyond, loops are as fast and compile sooner


def unrolled(d: int) -> tuple[int, ...]:
    """A tuple whose length tells the loops the number of parameters, if that pays off."""
    return (0,) * d if d <= _MOST_UNROLLED else ()


@numba.njit(cache=True, fastmath=_FLAGS, error_model="numpy")
def block_product(dims, blocks, x, out):  # type: ignore[no-untyped-def]
    """out_i = blocks_i x_i."""
    d = len(dims) if len(dims) > 0 else x.shape[1]
    for i in range(len(x)):
        for r in range(d):
            total = 0.0
            for k in range(d):
                total += blocks[i, r, k] * x[i, k]
            out[i, r] = total


@numba.njit(cache=True, fastmath=_FLAGS, error_model="numpy")
def product(dims, ptr, tail, give, blocks, x, out):  # type: ignore[no-untyped-def]
    """Out = M x + D^T C D x and x^T out; no blocks: M = 0.

    Tails come after their owner, so that out_i is complete once the edges of i are done.
    """
    d = len(dims) if len(dims) > 0 else x.shape[1]
    single = give.shape[1] == 1
    bend = 0.0
    out[:] = 0.0
    for i in range(len(x)):
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            for r in range(d):
                flow = (give[e, 0] if single else give[e, r]) * (x[i, r] - x[j, r])
                out[i, r] += flow
                out[j, r] -= flow
        for r in range(d):
            total = out[i, r]
            if len(blocks) > 0:
                for k in range(d):
                    total += blocks[i, r, k] * x[i, k]
            out[i, r] = total
            bend += total * x[i, r]
    return bend


@numba.njit(cache=True, fastmath=_FLAGS, error_model="numpy")
def advance(dims, alpha, inverse, x, r, p, z):  # type: ignore[no-untyped-def]
    """X += alpha p, r -= alpha z and z = P r, with P one block or one diagonal per node.

    z holds the product with p when called. Returns r^T r and r^T z.
    """
    d = len(dims) if len(dims) > 0 else x.shape[1]
    blocks = inverse.shape[1] == d and inverse.shape[2] == d
    square, inner = 0.0, 0.0
    for i in range(len(x)):
        for k in range(d):
            x[i, k] += alpha * p[i, k]
            r[i, k] -= alpha * z[i, k]
        for k in range(d):
            total = 0.0
            if blocks:
                for m in range(d):
                    total += inverse[i, k, m] * r[i, m]
            else:
                total = inverse[i, 0, min(k, inverse.shape[2] - 1)] * r[i, k]
            z[i, k] = total
            square += r[i, k] * r[i, k]
            inner += r[i, k] * total
    return square, inner


@numba.njit(cache=True, fastmath=_FLAGS, error_model="numpy")
def conjugate_gradients(dims, ptr, tail, give, blocks, inverse, x, r, goal, most):  # type: ignore[no-untyped-def]
    """Improve x until ||r|| <= goal; r is the residual at x. Returns whether that was reached."""
    z, p = np.zeros_like(r), np.zeros_like(r)
    square, rz = advance(dims, 0.0, inverse, x, r, p, z)
    p[:] = z
    for _ in range(most):
        if square <= goal * goal or not rz > 0.0:
            return True
        bend = product(dims, ptr, tail, give, blocks, p, z)
        if not bend > 0.0:
            return False
        before = rz
        square, rz = advance(dims, rz / bend, inverse, x, r, p, z)
        turn = rz / before
        for i in range(len(p)):
            for k in range(p.shape[1]):
                p[i, k] = z[i, k] + turn * p[i, k]
    return square <= goal * goal


@numba.njit(cache=True, fastmath=_FLAGS, error_model="numpy")
def block_inverse(dims, metric, ends, out):  # type: ignore[no-untyped-def]
    """out_i = (metric_i + diag(ends_i), slightly regularised)^-1, by Gauss-Jordan elimination."""
    d = len(dims) if len(dims) > 0 else metric.shape[1]
    single = ends.shape[1] == 1
    a = np.empty((d, d))
    for i in range(len(metric)):
        size = 0.0
        for r in range(d):
            for k in range(d):
                a[r, k] = metric[i, r, k]
            a[r, r] += ends[i, 0] if single else ends[i, r]
            size += a[r, r]
        floor = 1e-14 * size if size > 0.0 else 1.0
        for r in range(d):
            a[r, r] += floor
        for c in range(d):  # psd blocks need no pivoting
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
        for r in range(d):
            for k in range(d):
                out[i, r, k] = a[r, k]
