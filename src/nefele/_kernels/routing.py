"""What is missing at some nodes, sent along edges to nodes whose losses can take it.

Edges are stored by owner: those of node i are ptr[i] to ptr[i + 1], and their tails come after i.
`level` is 0 at nodes that take, the number of edges to the nearest of them elsewhere, and -1 where
none can be reached; `link` is the first edge on the way there.
"""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import inlined, kernel

_SINGULAR = 1e-10  # least pivot, relative to the trace


@inlined
def _factorise(H, i, a, inverse):  # type: ignore[no-untyped-def]
    """H_i = L D L^T, L D below the diagonal of a; returns tr(D^-1), or inf where H_i is singular.

    That is no more than tr(H_i^-1), but its last term and that of any small pivot are of its size.
    """
    d, size, total = len(inverse), 0.0, 0.0
    for r in range(d):
        size += H[i, r, r]
    for c in range(d):
        pivot = H[i, c, c]
        for k in range(c):
            pivot -= a[c, k] * a[c, k] * inverse[k]
        if not pivot > _SINGULAR * size:
            return np.inf
        inverse[c] = 1.0 / pivot
        total += inverse[c]
        for r in range(c + 1, d):
            entry = H[i, r, c]
            for k in range(c):
                entry -= a[r, k] * a[c, k] * inverse[k]
            a[r, c] = entry
    return total


@kernel
def takers(H, bend, most, level):  # type: ignore[no-untyped-def]
    """Level 0 where tr(D_i^-1) bend_i <= most for H_i = L D L^T, -1 elsewhere."""
    d = H.shape[1]
    a, inverse = np.empty((d, d)), np.empty(d)
    for i in range(len(H)):
        level[i] = 0 if _factorise(H, i, a, inverse) * bend[i] <= most else -1


@kernel
def reach(ptr, tail, most, level, link):  # type: ignore[no-untyped-def]
    """Levels and links of all nodes that reach a taker within `most` edges; returns how many."""
    for depth in range(1, most + 1):
        found = False
        for i in range(len(ptr) - 1):
            if level[i] == depth - 1:
                for e in range(ptr[i], ptr[i + 1]):
                    if level[tail[e]] == -1:
                        level[tail[e]], link[tail[e]], found = depth, e, True
            elif level[i] == -1:
                for e in range(ptr[i], ptr[i + 1]):
                    if level[tail[e]] == depth - 1:
                        level[i], link[i], found = depth, e, True
                        break
        if not found:
            return depth - 1
    return most


@kernel
def send(depth, head, tail, level, link, r, u, links, before):  # type: ignore[no-untyped-def]
    """Send r_i to the takers: the flow u changes, r becomes zero at all others.

    `links` become the edges that were used, `before` the flow there before.
    """
    used = 0
    for now in range(depth, 0, -1):
        for i in range(len(level)):
            if level[i] != now:
                continue
            e = link[i]
            ahead = head[e] == i
            j = tail[e] if ahead else head[e]
            links[used] = e
            for k in range(r.shape[1]):
                before[used, k] = u[e, k]
                u[e, k] += -r[i, k] if ahead else r[i, k]
                r[j, k] += r[i, k]
                r[i, k] = 0.0
            used += 1


@kernel
def take(H, level, r):  # type: ignore[no-untyped-def]
    """r_i becomes H_i^-1 r_i at the takers, zero elsewhere."""
    d = H.shape[1]
    a, inverse = np.empty((d, d)), np.empty(d)
    for i in range(len(H)):
        if level[i] != 0:
            r[i] = 0.0
            continue
        _factorise(H, i, a, inverse)
        for c in range(d):
            for k in range(c):
                r[i, c] -= a[c, k] * r[i, k]
            r[i, c] *= inverse[c]
        for c in range(d - 1, -1, -1):
            total = 0.0
            for k in range(c + 1, d):
                total += a[k, c] * r[i, k]
            r[i, c] -= total * inverse[c]
