"""Block elimination on a forest, leaves first: (M + D^T C D) x = r without fill.

A node k with parent p keeps what its subtree weighs, S_k = M_k + the shares of its children. With
A_k = S_k + C_e of the edge e to the parent, eliminating x_k leaves the parent

    S_p += S_k - S_k A_k^-1 S_k  =  C_e - C_e A_k^-1 C_e                                    (1)
    r_p += r_k - S_k A_k^-1 r_k  =  C_e A_k^-1 r_k                                          (2)

and then, from the root down,

    x_k - x_p = A_k^-1 (r_k - S_k x_p)    or    x_k = A_k^-1 (r_k + C_e x_p).               (3)

The left forms lose no digits where the edge is stiff (C_e beyond S_k), the right ones where it is
slack; neither do D x and C D x, which are returned with x. `dims` is a tuple of length d (or empty
for any d), as in `primal_dual`.
"""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import inlined, kernel

_NOISE = 1e-14  # pivots below this share of the diagonal are rounding errors


@inlined
def _cholesky(d, A):  # type: ignore[no-untyped-def]
    """Lower factor in place, pivots inverted; zero where nothing holds a direction, so x = 0."""
    for j in range(d):
        pivot = A[j, j]
        for k in range(j):
            pivot -= A[j, k] * A[j, k]
        A[j, j] = 1.0 / np.sqrt(pivot) if pivot > _NOISE * A[j, j] else 0.0
        for i in range(j + 1, d):
            total = A[i, j]
            for k in range(j):
                total -= A[i, k] * A[j, k]
            A[i, j] = total * A[j, j]


@inlined
def _solve(d, L, b):  # type: ignore[no-untyped-def]
    """Overwrite b by A^-1 b."""
    for i in range(d):
        total = b[i]
        for k in range(i):
            total -= L[i, k] * b[k]
        b[i] = total * L[i, i]
    for i in range(d - 1, -1, -1):
        total = b[i]
        for k in range(i + 1, d):
            total -= L[k, i] * b[k]
        b[i] = total * L[i, i]


@kernel
def factorise(dims, order, parent, edge, C, S, L, G, stiff):  # type: ignore[no-untyped-def]
    """Factors L_k of A_k, and (A_k^-1 B_k)^T in G_k, where B_k is the smaller of S_k and C_e.

    S holds M on entry and the weights of the subtrees on return.
    """
    d = len(dims) if len(dims) > 0 else S.shape[1]
    B = np.empty((d, d))
    for k in order:
        e, p = edge[k], parent[k]
        if p < 0:
            for i in range(d):
                for j in range(d):
                    L[k, i, j] = S[k, i, j]
            _cholesky(d, L[k])
            continue
        subtree, link = 0.0, 0.0
        for i in range(d):
            subtree += S[k, i, i]
            link += C[e, i, i]
        stiff[k] = link >= subtree
        for i in range(d):
            for j in range(d):
                L[k, i, j] = S[k, i, j] + C[e, i, j]
                B[i, j] = S[k, i, j] if stiff[k] else C[e, i, j]
                G[k, i, j] = B[i, j]
        _cholesky(d, L[k])
        for j in range(d):
            _solve(d, L[k], G[k, j])
        for i in range(d):
            for j in range(i + 1):
                total = B[i, j]
                for m in range(d):
                    total -= B[i, m] * G[k, j, m]
                S[p, i, j] += total
                if i != j:
                    S[p, j, i] += total


@kernel
def substitute(dims, order, parent, edge, head, C, S, L, G, stiff, r, x, difference, flow):  # type: ignore[no-untyped-def]
    """Solution x, D x and C D x for the right side r, which is overwritten."""
    d = len(dims) if len(dims) > 0 else S.shape[1]
    for k in order:
        p = parent[k]
        for i in range(d):
            x[k, i] = r[k, i]
        _solve(d, L[k], x[k])
        if p < 0:
            continue
        for i in range(d):
            total = 0.0
            for j in range(d):
                total += G[k, i, j] * r[k, j]
            r[p, i] += r[k, i] - total if stiff[k] else total
    for at in range(len(order) - 1, -1, -1):
        k = order[at]
        e, p = edge[k], parent[k]
        if p < 0:
            continue
        sign = 1.0 if head[e] == k else -1.0
        turn = -1.0 if stiff[k] else 1.0
        for j in range(d):
            for i in range(d):
                x[k, i] += turn * G[k, j, i] * x[p, j]
        for i in range(d):
            here = x[k, i]
            difference[e, i] = sign * (here if stiff[k] else here - x[p, i])
            x[k, i] = here + x[p, i] if stiff[k] else here
        for i in range(d):
            total = 0.0
            if stiff[k]:
                for j in range(d):
                    total += S[k, i, j] * x[k, j]
                flow[e, i] = sign * (r[k, i] - total)
            else:
                for j in range(d):
                    total += C[e, i, j] * difference[e, j]
                flow[e, i] = total


@kernel
def carry(order, parent, edge, head, give, r, x, flow):  # type: ignore[no-untyped-def]
    """Solution x and C D x of D^T C D x = r, x = 0 at the roots; r becomes the subtree sums.

    No difference over an edge without weight.
    """
    d = r.shape[1]
    single = give.shape[1] == 1
    for k in order:
        e, p = edge[k], parent[k]
        if p >= 0:
            sign = 1.0 if head[e] == k else -1.0
            for i in range(d):
                flow[e, i] = sign * r[k, i]
                r[p, i] += r[k, i]
    for at in range(len(order) - 1, -1, -1):
        k = order[at]
        e, p = edge[k], parent[k]
        for i in range(d):
            x[k, i] = 0.0 if p < 0 else x[p, i]
            weight = 0.0 if p < 0 else give[e, 0] if single else give[e, i]
            if weight > 0.0:
                x[k, i] += r[k, i] / weight
