"""Products with M + D^T C D and with its inverse diagonal blocks, in one pass each.

`dims` is a tuple of length d (or empty for any d), as in `primal_dual`.
"""

from __future__ import annotations

import numba

_FLAGS = {"reassoc", "contract", "nsz", "arcp"}


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
def add_laplacian(dims, head, tail, give, x, out):  # type: ignore[no-untyped-def]
    """Out += D^T C D x with C_e = give_e, one weight per edge or one per entry."""
    d = len(dims) if len(dims) > 0 else x.shape[1]
    single = give.shape[1] == 1
    for e in range(len(head)):
        i, j = head[e], tail[e]
        for r in range(d):
            flow = (give[e, 0] if single else give[e, r]) * (x[i, r] - x[j, r])
            out[i, r] += flow
            out[j, r] -= flow
