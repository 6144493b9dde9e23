"""Blocks of M + D^T C D over the nodes and edges of a graph, in one pass each."""

from __future__ import annotations

import numpy as np

from nefele._kernels.compiled import kernel


@kernel
def assemble(head, tail, metric, C, root, blocks):  # type: ignore[no-untyped-def]
    """Blocks of nodes, then of edges, of the matrix scaled to a unit diagonal: its root to `root`.

    Not positive diagonals stay as they are.
    """
    n, d = metric.shape[0], metric.shape[1]
    for i in range(n):
        for a in range(d):
            for b in range(d):
                blocks[i, a, b] = metric[i, a, b]
    for e in range(len(head)):
        i, j = head[e], tail[e]
        for a in range(d):
            for b in range(d):
                blocks[i, a, b] += C[e, a, b]
                blocks[j, a, b] += C[e, a, b]
    for i in range(n):
        for a in range(d):
            diagonal = blocks[i, a, a]
            root[i, a] = np.sqrt(diagonal) if diagonal > 0.0 else 1.0
        for a in range(d):
            for b in range(d):
                blocks[i, a, b] /= root[i, a] * root[i, b]
    for e in range(len(head)):
        i, j = head[e], tail[e]
        for a in range(d):
            for b in range(d):
                blocks[n + e, a, b] = -C[e, a, b] / (root[i, a] * root[j, b])


@kernel
def flows(head, tail, C, x, change, flow):  # type: ignore[no-untyped-def]
    """Differences D x and flows C D x over all edges."""
    d = x.shape[1]
    for e in range(len(head)):
        i, j = head[e], tail[e]
        for a in range(d):
            change[e, a] = x[i, a] - x[j, a]
        for a in range(d):
            total = 0.0
            for b in range(d):
                total += C[e, a, b] * change[e, b]
            flow[e, a] = total
