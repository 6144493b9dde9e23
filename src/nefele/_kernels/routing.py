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
def _inverted(a, least):  # type: ignore[no-untyped-def]
    """Inverse in place of a symmetric matrix; whether all pivots are above `least`."""
    d = len(a)
    for c in range(d):
        if not a[c, c] > least:
            return False
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
    return True


@inlined
def _inverse(H, i, a):  # type: ignore[no-untyped-def]
    """H_i^-1 in a; whether there is one."""
    size = 0.0
    for r in range(len(a)):
        size += H[i, r, r]
        for k in range(len(a)):
            a[r, k] = H[i, r, k]
    return size > 0.0 and _inverted(a, _SINGULAR * size)


@kernel
def takers(H, bend, most, level):  # type: ignore[no-untyped-def]
    """Level 0 where tr(H_i^-1) bend_i <= most, -1 elsewhere."""
    d = H.shape[1]
    a = np.empty((d, d))
    for i in range(len(H)):
        level[i] = -1
        if _inverse(H, i, a):
            trace = 0.0
            for r in range(d):
                trace += a[r, r]
            if trace * bend[i] <= most:
                level[i] = 0


@kernel
def reach(ptr, tail, most, level, link):  # type: ignore[no-untyped-def]
    """Levels and links of all nodes that reach a taker within `most` edges; returns how many."""
    for depth in range(1, most + 1):
        found = False
        for i in range(len(ptr) - 1):
            for e in range(ptr[i], ptr[i + 1]):
                j = tail[e]
                if level[i] == depth - 1 and level[j] == -1:
                    level[j], link[j], found = depth, e, True
                elif level[j] == depth - 1 and level[i] == -1:
                    level[i], link[i], found = depth, e, True
        if not found:
            return depth - 1
    return most


@kernel
def send(depth, head, tail, level, link, r, u):  # type: ignore[no-untyped-def]
    """Send r_i to the takers: the flow u changes, r becomes zero at all others."""
    for now in range(depth, 0, -1):
        for i in range(len(level)):
            if level[i] != now:
                continue
            e = link[i]
            ahead = head[e] == i
            j = tail[e] if ahead else head[e]
            for k in range(r.shape[1]):
                u[e, k] += -r[i, k] if ahead else r[i, k]
                r[j, k] += r[i, k]
                r[i, k] = 0.0


@kernel
def take(H, level, r, x):  # type: ignore[no-untyped-def]
    """x_i = H_i^-1 r_i at the takers, zero elsewhere."""
    d = H.shape[1]
    a = np.empty((d, d))
    for i in range(len(H)):
        taken = level[i] == 0 and _inverse(H, i, a)
        for s in range(d):
            total = 0.0
            if taken:
                for k in range(d):
                    total += a[s, k] * r[i, k]
            x[i, s] = total
