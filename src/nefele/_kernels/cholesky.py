"""Cholesky factors of symmetric matrices with the pattern of a graph, by fronts.

Columns with the same rows below them form a front: a dense matrix that gathers what the fronts
before it leave, is eliminated in part, and passes the rest on (Duff and Reid 1983). Blocks of
d x d numbers per pair of nodes; the fronts are found once for a pattern.
"""

from __future__ import annotations

import numpy as np

from nefele._kernels.blas import eliminate
from nefele._kernels.compiled import inlined, kernel


@kernel
def column_counts(n, ptr, near, parent, counts):  # type: ignore[no-untyped-def]
    """Rows of each column of the factor, itself included, and the elimination tree.

    `near[ptr[i]:ptr[i + 1]]` are the neighbours of node i that come before it.
    """
    mark = np.full(n, -1, dtype=np.int64)
    for i in range(n):
        parent[i], mark[i], counts[i] = -1, i, 1
        for at in range(ptr[i], ptr[i + 1]):
            j = near[at]
            while mark[j] != i:
                if parent[j] == -1:
                    parent[j] = i
                counts[j] += 1
                mark[j] = i
                j = parent[j]


@kernel
def front_rows(starts, size, first, child, brother, ptr, near, rows):  # type: ignore[no-untyped-def]
    """Nodes of each front in ascending order, those that it eliminates first.

    Front f eliminates nodes starts[f] to starts[f + 1], has `size[f]` nodes and writes them to
    rows[first[f]:]; `near` are the neighbours that come after a node.
    """
    n = starts[-1]
    mark = np.full(n, -1, dtype=np.int64)
    for f in range(len(size)):
        at, end = first[f], starts[f + 1]
        for i in range(starts[f], end):
            mark[i] = f
            rows[at] = i
            at += 1
        begin = at
        for i in range(starts[f], end):
            for k in range(ptr[i], ptr[i + 1]):
                j = near[k]
                if mark[j] != f:
                    mark[j] = f
                    rows[at] = j
                    at += 1
        c = child[f]
        while c >= 0:
            for k in range(first[c] + starts[c + 1] - starts[c], first[c] + size[c]):
                j = rows[k]
                if mark[j] != f:
                    mark[j] = f
                    rows[at] = j
                    at += 1
            c = brother[c]
        for k in range(begin + 1, at):  # np.sort takes seconds to compile; fronts are small
            j, place = rows[k], k
            while place > begin and rows[place - 1] > j:
                rows[place] = rows[place - 1]
                place -= 1
            rows[place] = j
        size[f] = at - first[f]


@kernel
def factorise(plan, d, blocks, place, ridge, factor, stack, front, constants):  # type: ignore[no-untyped-def]
    """Factor the matrix front by front into `factor`; False if it is not positive definite.

    `place` says for each front which blocks go where: (block, row, column, transposed). Only the
    lower halves of fronts count.
    """
    starts, size, first, rows, child, brother, begin, at_place = plan
    local = np.empty(starts[-1], dtype=np.int64)
    tops = np.zeros(len(size), dtype=np.int64)
    runs = np.empty((len(local), 3), dtype=np.int64)
    top = 0
    for f in range(len(size)):
        m, k = size[f] * d, (starts[f + 1] - starts[f]) * d
        F = front[: m * m].reshape(m, m)
        for i in range(m):
            for j in range(i + 1):
                F[i, j] = 0.0
        for i in range(size[f]):
            local[rows[first[f] + i]] = i * d
        for q in range(at_place[f], at_place[f + 1]):
            e, r, c, turned = place[q, 0], place[q, 1] * d, place[q, 2] * d, place[q, 3]
            for a in range(d):
                for b in range(d):
                    F[r + a, c + b] = blocks[e, b, a] if turned else blocks[e, a, b]
        for i in range(k):
            F[i, i] += ridge
        base = top
        c = child[f]
        while c >= 0:  # what the fronts before it have left
            own = starts[c + 1] - starts[c]
            left = size[c] - own
            U = stack[tops[c] : tops[c] + (left * d) ** 2].reshape(left * d, left * d)
            base = min(base, tops[c])
            count = _runs(rows[first[c] + own : first[c] + size[c]], local, d, runs)
            _gather(F, U, runs, count)
            c = brother[c]
        if not eliminate(F, m, k, constants):
            return False
        L = factor[begin[f] : begin[f] + m * k].reshape(m, k)
        L[:] = F[:, :k]
        rest = m - k
        top = base
        tops[f] = top
        U = stack[top : top + rest * rest].reshape(rest, rest)
        for i in range(rest):
            for j in range(i + 1):
                U[i, j] = F[k + i, k + j]
        top += rest * rest
    return True


@inlined
def _runs(nodes, local, d, runs):  # type: ignore[no-untyped-def]
    """Ranges of rows that stay neighbours in the next front: (from, to, length); their number."""
    count = 0
    for j in range(len(nodes)):
        to = local[nodes[j]]
        if count and runs[count - 1, 1] + runs[count - 1, 2] == to:
            runs[count - 1, 2] += d
        else:
            runs[count, 0], runs[count, 1], runs[count, 2] = j * d, to, d
            count += 1
    return count


@inlined
def _gather(F, U, runs, count):  # type: ignore[no-untyped-def]
    """Add the lower half of U to that of F, range by range."""
    for q in range(count):
        for i in range(runs[q, 2]):
            to, source = F[runs[q, 1] + i], U[runs[q, 0] + i]
            for p in range(q + 1):
                s, t = runs[p, 0], runs[p, 1]
                for j in range(runs[p, 2]):
                    to[t + j] += source[s + j]


@kernel
def solve(plan, d, factor, x):  # type: ignore[no-untyped-def]
    """Solve for x of shape (n d,) in place."""
    starts, size, first, rows, _, _, begin, _ = plan
    longest = 0
    for f in range(len(size)):
        longest = max(longest, size[f] * d)
    y = np.empty(longest)
    for f in range(len(size)):
        m, k = size[f] * d, (starts[f + 1] - starts[f]) * d
        L = factor[begin[f] : begin[f] + m * k].reshape(m, k)
        own = x[starts[f] * d : starts[f] * d + k]
        for i in range(k):
            total = own[i]
            for j in range(i):
                total -= L[i, j] * own[j]
            own[i] = total / L[i, i]
        for q in range(k // d, size[f]):
            node = rows[first[f] + q] * d
            for r in range(d):
                total = 0.0
                for j in range(k):
                    total += L[q * d + r, j] * own[j]
                x[node + r] -= total
    for f in range(len(size) - 1, -1, -1):
        m, k = size[f] * d, (starts[f + 1] - starts[f]) * d
        L = factor[begin[f] : begin[f] + m * k].reshape(m, k)
        own = x[starts[f] * d : starts[f] * d + k]
        for j in range(k):
            y[j] = own[j]
        for q in range(k // d, size[f]):
            node = rows[first[f] + q] * d
            for r in range(d):
                v = x[node + r]
                for j in range(k):
                    y[j] -= L[q * d + r, j] * v
        for i in range(k - 1, -1, -1):
            v = y[i] / L[i, i]
            own[i] = v
            for j in range(i):
                y[j] -= L[i, j] * v
