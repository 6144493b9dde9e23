"""M + D^T C D over a small graph with cycles, assembled and factorised."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele._systems.fill import dense_seconds, sparse_seconds
from nefele.graph import Graph

Index = NDArray[np.int64]
Solve = Callable[[Array], Array]

_TINY, _DENSE = 200, 1000  # unknowns up to which the matrix is dense, always and with much fill
_SETUP = 2e-3  # seconds that a sparse factorisation takes beside its arithmetic
_MOST_DENSE, _CROWDED = 4000, 0.04  # the same when so large a share of its entries is not zero
_MOST_ENTRIES = 1_000_000  # numbers in a sparse one
_RIDGES = (1e-14, 1e-11, 1e-8)  # relative to a unit diagonal


class SmallGraph:
    """The pattern of M + D^T C D, with one block of d x d numbers per node and edge."""

    def __init__(self, graph: Graph, d: int) -> None:
        self.graph, self.d, self.dense = graph, d, _dense(graph, d)
        k = np.arange(graph.n_nodes)
        self.rows = np.concatenate([k, graph.head, graph.tail])
        self.columns = np.concatenate([k, graph.tail, graph.head])
        self.ends = abs(graph.incidence_t)

    @cached_property
    def places(self) -> tuple[Index, Index, Index]:
        """Where each number goes in a matrix stored by columns: order, rows and column starts."""
        d, n = self.d, self.graph.n_nodes
        inner, shape = np.arange(d), (len(self.rows), d, d)
        i = np.broadcast_to(d * self.rows[:, None, None] + inner[:, None], shape).ravel()
        j = np.broadcast_to(d * self.columns[:, None, None] + inner, shape).ravel()
        order = np.lexsort((i, j))
        starts = np.concatenate([[0], np.cumsum(np.bincount(j, minlength=n * d))])
        return order, i[order].astype(np.int32), starts.astype(np.int32)

    @staticmethod
    def entries(graph: Graph, d: int) -> int:
        """Numbers in the matrix."""
        return (graph.n_nodes + 2 * graph.n_edges) * d * d

    @staticmethod
    def seconds(graph: Graph, d: int) -> float:
        """A guess of the time that one factorisation takes, from the widths of a band.

        Infinite where `check` raises.
        """
        if SmallGraph._too_large(graph, d):
            return np.inf
        if _dense(graph, d):
            return dense_seconds(graph.n_nodes * d)
        return sparse_seconds(graph, d)

    @staticmethod
    def _too_large(graph: Graph, d: int) -> bool:
        entries = SmallGraph.entries(graph, d)
        return graph.n_nodes * d > _MOST_DENSE and entries > _MOST_ENTRIES

    @staticmethod
    def check(graph: Graph, d: int) -> None:
        """Raise when the matrix would be too large."""
        unknowns, entries = graph.n_nodes * d, SmallGraph.entries(graph, d)
        if SmallGraph._too_large(graph, d):
            raise ValueError(
                f"Newton needs a graph without cycles, n_nodes * d <= {_MOST_DENSE}, or "
                f"(n_nodes + 2 n_edges) * d^2 <= {_MOST_ENTRIES}; got {unknowns} and {entries}. "
                'Use solver="auto".'
            )

    def factorise(self, metric: Array, C: Array) -> SmallFactor:
        """Factor M + D^T C D, with M (n_nodes, d, d) and C (n_edges, d, d)."""
        n, d = self.graph.n_nodes, self.d
        blocks = np.concatenate(
            [metric + (self.ends @ C.reshape(len(C), -1)).reshape(n, d, d), -C, -C]
        )
        return SmallFactor(self, blocks, C)


class SmallFactor:
    """The factors of the matrix, scaled to a unit diagonal and as little regularised as works."""

    def __init__(self, pattern: SmallGraph, blocks: Array, C: Array) -> None:
        self.graph, self.C = pattern.graph, C
        rows, columns = pattern.rows, pattern.columns
        diagonal = np.einsum("ijj->ij", blocks[: self.graph.n_nodes])
        self.root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        blocks = blocks / self.root[rows, :, None] / self.root[columns, None, :]
        factor = _dense_factor if pattern.dense else _sparse_factor
        for ridge in _RIDGES:
            try:
                self._apply = factor(pattern, blocks, ridge)
                return
            except (np.linalg.LinAlgError, RuntimeError, ValueError):  # singular, or overflowed
                continue
        raise np.linalg.LinAlgError("The Newton system must be positive definite.")

    def solve(self, right: Array) -> tuple[Array, Array, Array]:
        """Solution x, D x and C D x of (M + D^T C D) x = right."""
        x = self._apply((right / self.root).ravel()).reshape(right.shape) / self.root
        change = self.graph.diff(x)
        return x, change, (self.C @ change[..., None])[..., 0]


def _dense(graph: Graph, d: int) -> bool:
    """Whether the matrix is dense, or as good as that: small, crowded, or with much fill."""
    unknowns = graph.n_nodes * d
    if unknowns <= _TINY:
        return True
    crowded = SmallGraph.entries(graph, d) >= _CROWDED * unknowns**2
    if unknowns > _DENSE:
        return unknowns <= _MOST_DENSE and crowded
    return crowded or dense_seconds(unknowns) <= sparse_seconds(graph, d) + _SETUP


def _dense_factor(pattern: SmallGraph, blocks: Array, ridge: float) -> Solve:
    rows, columns = pattern.rows, pattern.columns
    n, d = rows.max() + 1, blocks.shape[1]
    matrix = np.zeros((n, d, n, d))
    matrix[rows, :, columns, :] = blocks
    matrix = matrix.reshape(n * d, n * d)
    matrix[np.diag_indices(n * d)] += ridge
    factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True)
    return lambda b: linalg.cho_solve(factor, b, check_finite=False)


def _sparse_factor(pattern: SmallGraph, blocks: Array, ridge: float) -> Solve:
    size = pattern.graph.n_nodes * blocks.shape[1]
    order, indices, starts = pattern.places
    blocks = blocks.copy()
    np.einsum("ijj->ij", blocks[: pattern.graph.n_nodes])[...] += ridge
    if not np.isfinite(blocks).all():
        raise ValueError("The matrix must be finite.")
    values = blocks.ravel()[order]
    matrix = sparse.csc_array((values, indices, starts), shape=(size, size))
    # Positive definite: pivots are taken as they come, which keeps the fill low.
    options = {"SymmetricMode": True}
    return splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve
