"""The fronts of a graph, found once, and the factors of matrices with its pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.graph import Graph

Index = NDArray[np.int64]

_FEW_COLUMNS = 4  # nodes that a front may always eliminate
_ZEROS = 0.15  # share of zeros that a front may hold for being wider

_known: WeakKeyDictionary[Graph, Fronts] = WeakKeyDictionary()


class Fronts:
    """An order of elimination with little fill, and the fronts in which it goes.

    Examples
    --------
    >>> from nefele.graphs import grid
    >>> graph = grid(3, 3)
    >>> blocks = np.concatenate([4 * np.ones((9, 1, 1)), -np.ones((graph.n_edges, 1, 1))])
    >>> apply = Fronts.of(graph).factorise(blocks, 0.0)
    >>> float(apply(np.ones(9))[4])
    1.125
    """

    def __init__(self, graph: Graph) -> None:
        from nefele._kernels.cholesky import column_counts, front_rows

        n = graph.n_nodes
        order = _little_fill(graph)
        parent, counts = np.empty((2, n), dtype=np.int64)
        for last in (False, True):
            rank = np.empty(n, dtype=np.int64)
            rank[order] = np.arange(n)
            ends = np.sort(np.stack([rank[graph.head], rank[graph.tail]]), axis=0)
            column_counts(n, *_lists(n, ends[1], ends[0]), parent, counts)
            if not last:
                order = order[_postorder(parent)]
        starts, size = _wide_fronts(parent, counts)
        self.order, self.n, front = order, n, np.searchsorted(starts, np.arange(n), "right") - 1
        above = parent[starts[1:] - 1]
        child, brother = _children(np.where(above >= 0, front[above], -1))
        first = np.concatenate([[0], np.cumsum(size)])[:-1]
        rows = np.empty(int(size.sum()), dtype=np.int64)
        front_rows(starts, size, first, child, brother, *_lists(n, ends[0], ends[1]), rows)
        own = np.diff(starts)
        self.numbers, self.left = size * own, size - own
        self.largest = int(size.max())
        self.stacked = _stack(child, brother, self.left)
        at, self.place = self._places(graph, rank, front, (starts, size, first, rows))
        self.plan = (starts, size, first, rows, child, brother, at)

    @classmethod
    def of(cls, graph: Graph) -> Fronts:
        """Those of the graph, found at the first call."""
        if graph not in _known:
            _known[graph] = cls(graph)
        return _known[graph]

    def _places(
        self, graph: Graph, rank: Index, front: Index, fronts: tuple[Index, ...]
    ) -> tuple[Index, Index]:
        """Where blocks of nodes and edges go: (block, row, column, transposed), by fronts."""
        starts, size, first, rows = fronts
        n = self.n
        head = np.concatenate([rank, rank[graph.head]])
        tail = np.concatenate([rank, rank[graph.tail]])
        high, low = np.maximum(head, tail), np.minimum(head, tail)
        f = front[low]
        keys = np.repeat(np.arange(len(size)), size) * n + rows
        row = np.searchsorted(keys, f * n + high) - first[f]
        order = np.argsort(f, kind="stable")
        at = np.searchsorted(f[order], np.arange(len(size) + 1))
        place = np.stack([np.arange(len(f)), row, low - starts[f], head < tail], axis=1)
        return at, np.ascontiguousarray(place[order], dtype=np.int64)

    def factorise(self, blocks: Array, ridge: float) -> Callable[[Array], Array]:
        """Solve with the matrix of these blocks: one per node, then one per edge (head, tail).

        `blocks` has shape (n_nodes + n_edges, d, d). Raises LinAlgError where it is not positive.
        """
        from nefele._kernels.blas import constants
        from nefele._kernels.cholesky import factorise, solve

        d = blocks.shape[1]
        numbers = self.numbers * d * d
        begin = np.concatenate([[0], np.cumsum(numbers)])
        factor = np.empty(int(begin[-1]))
        stack, front = np.empty(self.stacked * d * d), np.empty((self.largest * d) ** 2)
        plan: Any = (*self.plan[:6], begin, self.plan[6])
        blocks = np.ascontiguousarray(blocks)
        if not factorise(plan, d, blocks, self.place, ridge, factor, stack, front, constants()):
            raise np.linalg.LinAlgError("The matrix must be positive definite.")

        def apply(b: Array) -> Array:
            x = b.reshape(self.n, d)[self.order].ravel()
            solve(plan, d, factor, x)
            out = np.empty((self.n, d))
            out[self.order] = x.reshape(self.n, d)
            return out.reshape(b.shape)

        return apply


def _little_fill(graph: Graph) -> Index:
    """Nodes in an order of elimination with little fill: minimum degree."""
    n, k = graph.n_nodes, np.arange(graph.n_nodes)
    rows = np.concatenate([k, graph.head, graph.tail])
    columns = np.concatenate([k, graph.tail, graph.head])
    values = np.concatenate([graph.degree + 1.0, np.full(2 * graph.n_edges, -1.0)])
    matrix = sparse.csc_array((values, (rows, columns)), shape=(n, n))
    options = {"SymmetricMode": True}
    found = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    return np.argsort(found.perm_c)


def _lists(n: int, at: Index, near: Index) -> tuple[Index, Index]:
    """For each node the `near` of all edges that are listed at it: starts, and these."""
    order = np.argsort(at, kind="stable")
    return np.searchsorted(at[order], np.arange(n + 1)), near[order]


def _postorder(parent: Index) -> Index:
    """Nodes with all descendants right before them; parents come after their children."""
    size = np.ones(len(parent), dtype=np.int64)
    up = parent.tolist()
    for i, p in enumerate(up):
        if p >= 0:
            size[p] += size[i]
    place, end, total = np.empty(len(up), dtype=np.int64), size.tolist(), 0
    room = [0] * len(up)  # where the next child's subtree ends
    for i in range(len(up) - 1, -1, -1):
        p = up[i]
        if p < 0:
            last = len(up) - 1 - total
            total += end[i]
        else:
            last = room[p]
            room[p] -= end[i]
        place[i], room[i] = last, last - 1
    return np.argsort(place)


def _wide_fronts(parent: Index, counts: Index) -> tuple[Index, Index]:
    """First node of each front (and the end), and its number of nodes."""
    fronts: list[tuple[int, int, int, int]] = []  # start, end, nodes, zeros
    up, nodes = parent.tolist(), counts.tolist()
    for i, count in enumerate(nodes):
        start, end, size, zeros = i, i + 1, count, 0
        while fronts:
            a, b, m, z = fronts[-1]
            if not start <= up[b - 1] < end:  # not a child of it
                break
            own = b - a
            more = own * (own + size - m)
            wide = own + end - start
            held = wide * (own + size)
            if not (wide <= _FEW_COLUMNS or zeros + z + more <= _ZEROS * held):
                break
            start, size, zeros = a, own + size, zeros + z + more
            fronts.pop()
        fronts.append((start, end, size, zeros))
    starts = np.array([f[0] for f in fronts] + [len(nodes)], dtype=np.int64)
    return starts, np.array([f[2] for f in fronts], dtype=np.int64)


def _children(above: Index) -> tuple[Index, Index]:
    """First child and next brother of each front, -1 for none."""
    child, brother = np.full((2, len(above)), -1, dtype=np.int64)
    for f, p in enumerate(above.tolist()):
        if p >= 0:
            brother[f], child[p] = child[p], f
    return child, brother


def _stack(child: Index, brother: Index, left: Index) -> int:
    """Most numbers that fronts leave at a time, in units of d^2."""
    top = most = 0
    places: list[int] = []
    down, beside = child.tolist(), brother.tolist()
    for f, rest in enumerate(left.tolist()):
        c = down[f]
        while c >= 0:
            top = min(top, places[c])
            c = beside[c]
        places.append(top)
        top += rest * rest
        most = max(most, top)
    return most
