"""Cholesky factors of symmetric matrices with the pattern of a graph, by fronts.

Columns with the same rows below them form a front: a dense matrix that gathers what the fronts
before it leave, is eliminated in part, and passes the rest on (Duff and Reid 1983). Blocks of
d x d numbers per pair of nodes; the fronts are found once for a pattern.
"""

from __future__ import annotations

import numpy as np

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


@inlined
def _eliminate(F, m, k):  # type: ignore[no-untyped-def]
    """Replace the first k columns of the lower half of F by those of its Cholesky factor.

    The rest becomes what they leave of it. Four columns at a time: a matrix product for wide fronts
    is an eighth faster over 100 x 100 nodes and takes half a minute to compile. False if F is not
    positive.
    """
    b = np.empty((4, m))
    for p in range(0, k, 4):
        end = min(p + 4, k)
        for c in range(p, end):
            for q in range(p, c):
                a = F[c, q]
                for i in range(c, m):
                    F[i, c] -= a * F[i, q]
            pivot = F[c, c]
            if not 0 < pivot < np.inf:
                return False
            root = np.sqrt(pivot)
            F[c, c] = root
            for i in range(c + 1, m):
                F[i, c] /= root
        wide = end - p
        for c in range(4):
            for i in range(end, m):
                b[c, i] = F[i, p + c] if c < wide else 0.0
        for i in range(end, m):
            x0, x1, x2, x3 = b[0, i], b[1, i], b[2, i], b[3, i]
            row = F[i]
            for j in range(end, min(i + 1, F.shape[1])):
                row[j] -= x0 * b[0, j] + x1 * b[1, j] + x2 * b[2, j] + x3 * b[3, j]
    return True


@kernel
def factorise(plan, d, blocks, place, ridge, factor, stack, front):  # type: ignore[no-untyped-def]
    """Factor the matrix front by front into `factor`; False if it is not positive definite.

    `place` says for each front which blocks go where: (block, row, column, transposed).
    """
    starts, size, first, rows, child, brother, begin, at_place = plan
    local = np.empty(starts[-1], dtype=np.int64)
    tops = np.zeros(len(size), dtype=np.int64)
    top = 0
    for f in range(len(size)):
        m, k = size[f] * d, (starts[f + 1] - starts[f]) * d
        F = front[: m * m].reshape(m, m)
        F[:] = 0.0
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
            for i in range(left):
                r = local[rows[first[c] + own + i]]
                for j in range(i + 1):
                    s = local[rows[first[c] + own + j]]
                    for a in range(d):
                        for b in range(d):
                            F[r + a, s + b] += U[i * d + a, j * d + b]
            c = brother[c]
        if not _eliminate(F, m, k):
            return False
        L = factor[begin[f] : begin[f] + m * k].reshape(m, k)
        L[:] = F[:, :k]
        rest = m - k
        top = base
        tops[f] = top
        stack[top : top + rest * rest].reshape(rest, rest)[:] = F[k:, k:]
        top += rest * rest
    return True


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
        o = starts[f] * d
        for i in range(k):
            total = x[o + i]
            for j in range(i):
                total -= L[i, j] * x[o + j]
            x[o + i] = total / L[i, i]
        for i in range(k, m):
            total = 0.0
            for j in range(k):
                total += L[i, j] * x[o + j]
            x[rows[first[f] + i // d] * d + i % d] -= total
    for f in range(len(size) - 1, -1, -1):
        m, k = size[f] * d, (starts[f + 1] - starts[f]) * d
        L = factor[begin[f] : begin[f] + m * k].reshape(m, k)
        o = starts[f] * d
        for j in range(k):
            y[j] = x[o + j]
        for i in range(k, m):
            v = x[rows[first[f] + i // d] * d + i % d]
            for j in range(k):
                y[j] -= L[i, j] * v
        for i in range(k - 1, -1, -1):
            v = y[i] / L[i, i]
            x[o + i] = v
            for j in range(i):
                y[j] -= L[i, j] * v
