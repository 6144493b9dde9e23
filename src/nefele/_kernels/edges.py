"""Passes over the edges of a large graph, those of node i being ptr[i] to ptr[i + 1].

Most are compiled for any number of parameters: memory bounds them, not arithmetic. Sums are taken
in the order of a product with a sparse matrix, and rounded as there: parts of a graph, large or
small, must give the same bits.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from nefele._kernels.rows import load, store

_njit: Any = numba.njit
kernel = _njit(cache=True, nogil=True)


@kernel
def differences(ptr, tail, w, out):  # type: ignore[no-untyped-def]
    """out_e = w_i - w_j."""
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            for r in range(w.shape[1]):
                out[e, r] = w[i, r] - w[j, r]


@kernel
def alike(ptr, tail, w, most, out):  # type: ignore[no-untyped-def]
    """out_e: whether no entry of w_i - w_j is larger than `most`."""
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            out[e], j = True, tail[e]
            for r in range(w.shape[1]):
                if not abs(w[i, r] - w[j, r]) <= most:
                    out[e] = False
                    break


@kernel
def divergence(dims, ptr, tail, u, out):  # type: ignore[no-untyped-def]
    """Add what flows out of each node, minus what flows in, to out; see `rows` for `dims`."""
    if dims is not None:
        for i in range(len(ptr) - 1):
            here = load(out, i, dims)
            for e in range(ptr[i], ptr[i + 1]):
                flow, j = load(u, e, dims), tail[e]
                here = here + flow
                store(out, j, load(out, j, dims) - flow)
            store(out, i, here)
        return
    for i in range(len(ptr) - 1):
        for e in range(ptr[i], ptr[i + 1]):
            j = tail[e]
            for r in range(u.shape[1]):
                out[i, r] += u[e, r]
                out[j, r] -= u[e, r]


@kernel
def divergence_at(nodes, ptr, middle, edges, u, out):  # type: ignore[no-untyped-def]
    """out_i at some nodes, summed as an iteration does: edges of others first, then their own.

    Those of node k are edges[ptr[k] : ptr[k + 1]], its own from middle[k] on.
    """
    own = np.empty(u.shape[1])
    for k in range(len(nodes)):
        i = nodes[k]
        for r in range(u.shape[1]):
            out[i, r] = own[r] = 0.0
        for e in edges[ptr[k] : middle[k]]:
            for r in range(u.shape[1]):
                out[i, r] -= u[e, r]
        for e in edges[middle[k] : ptr[k + 1]]:
            for r in range(u.shape[1]):
                own[r] += u[e, r]
        for r in range(u.shape[1]):
            out[i, r] += own[r]


@kernel
def at_ends(ptr, tail, values, out):  # type: ignore[no-untyped-def]
    """out_i = sum of the values of the edges whose head is i, plus that of those whose tail is."""
    far = np.zeros(len(out))
    for i in range(len(out)):
        near = 0.0
        for e in range(ptr[i], ptr[i + 1]):
            near += values[e]
            far[tail[e]] += values[e]
        out[i] = near
    for i in range(len(out)):
        out[i] += far[i]


@kernel
def add_rows(groups, rows, out):  # type: ignore[no-untyped-def]
    """Add row i to the row of its group."""
    for i in range(len(groups)):
        for r in range(rows.shape[1]):
            out[groups[i], r] += rows[i, r]


@kernel
def groups(n, head, tail, on):  # type: ignore[no-untyped-def]
    """Groups of nodes that the edges `on` join, numbered in the order of their first nodes."""
    root = np.arange(n)
    for e in range(len(head)):
        if not on[e]:
            continue
        a, b = head[e], tail[e]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        root[max(a, b)] = min(a, b)
    count = 0
    for i in range(n):  # roots come before all others of their group
        if root[i] == i:
            root[i] = count
            count += 1
        else:
            root[i] = root[root[i]]
    return root
