"""The personal parts eliminated: (blkdiag(F^T G_i F) + R x I) u = F^T v, R a graph's or I."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele._kernels.mixed import eliminate
from nefele.graph import Graph

Index = NDArray[np.int64]

# Unknowns up to which the inverse of a graph's system is computed: again and again, or once.
DENSE, INVERTED = 1000, 1500
_PROBES = 20  # random vectors that estimate a trace


@dataclass(frozen=True, eq=False)
class Eliminated:
    """What is left of the personal parts.

    Attributes
    ----------
    log_det : float
        Of the matrix, less that of R x I.
    Z : array of shape (n_nodes, p, d + 1)
        The inverse times F^T [G, c].
    inner : array of shape (d + 1, d + 1)
        [G, c]^T F Z.
    blocks : callable
        Diagonal blocks of the inverse, shape (n_nodes, p, p).
    """

    log_det: float
    Z: Array
    inner: Array
    blocks: Callable[[], Array]


class Coupling(Protocol):
    """How the personal parts of the nodes depend on each other."""

    def eliminate(self, G: Array, c: Array, personal: Index, F: Array) -> Eliminated:
        """For sums G, c of all columns, of which some are personal, and a factor F (p, p)."""


class Apart:
    """R = I: nodes know each other through the centre only.

    Examples
    --------
    >>> G, c = np.array([[[3.0]], [[1.0]]]), np.array([[3.0], [1.0]])
    >>> Apart().eliminate(G, c, np.array([0]), np.eye(1)).blocks().ravel()
    array([0.25, 0.5 ])
    """

    def eliminate(self, G: Array, c: Array, personal: Index, F: Array) -> Eliminated:
        n, d, p = len(G), G.shape[1], len(personal)
        Z, C, inner = np.empty((n, p, d + 1)), np.empty((n, p, p)), np.empty((d + 1, d + 1))
        log_det = eliminate(G, c, personal, np.ascontiguousarray(F), Z, C, inner)
        return Eliminated(float(log_det), Z, inner, lambda: C)


@dataclass(frozen=True, eq=False)
class Joined:
    """R = rho L + (1 - rho) I with the Laplacian L of a graph of mean degree 1 (CAR, Leroux).

    Parameters
    ----------
    graph : Graph
        Its weights are divided by the mean degree.
    rho : float
        Share of the graph in the coupling, 0 <= rho < 1; the rest is the centre's.

    Examples
    --------
    >>> joined = Joined(Graph.from_edges([(0, 1)]), rho=0.5)
    >>> joined.R.toarray()
    array([[ 1. , -0.5],
           [-0.5,  1. ]])
    """

    graph: Graph
    rho: float

    @cached_property
    def R(self) -> sparse.csc_array:
        """The precision of the personal parts over the nodes, shape (n_nodes, n_nodes)."""
        graph, n = self.graph, self.graph.n_nodes
        weight = graph.weight / (mean_degree(graph) or 1.0)
        i = np.concatenate([graph.head, graph.tail, graph.head, graph.tail])
        j = np.concatenate([graph.tail, graph.head, graph.head, graph.tail])
        values = np.concatenate([-weight, -weight, weight, weight])
        laplacian = sparse.csc_array((values, (i, j)), shape=(n, n))
        return sparse.csc_array(self.rho * laplacian + (1 - self.rho) * sparse.eye_array(n))

    @cached_property
    def spread(self) -> float:
        """Mean variance of a node's deviations, 1 for the centre alone: the mean of diag R^-1."""
        n = self.graph.n_nodes
        if n <= INVERTED:
            return float(np.trace(np.linalg.inv(self.R.toarray()))) / n
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(n, _PROBES))
        return float((signs * _factor(self.R).solve(signs)).mean())

    @cached_property
    def _log_det(self) -> float:
        return _log_det(_factor(self.R))

    def eliminate(self, G: Array, c: Array, personal: Index, F: Array) -> Eliminated:
        n, d, p = len(G), G.shape[1], len(personal)
        B = G[:, personal, :]
        right = F.T @ np.concatenate([B, c[:, personal, None]], axis=2)
        A = F.T @ B[:, :, personal] @ F
        flat = right.reshape(n * p, d + 1)
        if n * p <= INVERTED:
            factor = linalg.cholesky(self._dense(A), lower=True, check_finite=False)
            own = 2.0 * float(np.log(factor.diagonal()).sum())
            Z = linalg.cho_solve((factor, True), flat, check_finite=False)
            blocks: Callable[[], Array] = partial(_diagonal_blocks, factor, n, p)
        else:
            sparse_factor = _factor(self._assembled(A))
            own, Z = _log_det(sparse_factor), np.asarray(sparse_factor.solve(flat))
            blocks = _no_blocks
        log_det = own - p * self._log_det
        return Eliminated(log_det, Z.reshape(n, p, d + 1), flat.T @ Z, blocks)

    def _dense(self, A: Array) -> Array:
        n, p, _ = A.shape
        matrix = np.zeros((n, p, n, p))
        j = np.arange(p)
        matrix[:, j, :, j] = self._dense_R
        k = np.arange(n)
        matrix[k, :, k, :] += A
        return matrix.reshape(n * p, n * p)

    @cached_property
    def _dense_R(self) -> Array:
        return np.asarray(self.R.toarray())

    def _assembled(self, A: Array) -> sparse.csc_array:
        n, p, _ = A.shape
        blocks = sparse.bsr_array((A, np.arange(n), np.arange(n + 1)), shape=(n * p, n * p))
        return sparse.csc_array(blocks + sparse.kron(self.R, sparse.eye_array(p)))


def mean_degree(graph: Graph) -> float:
    """Mean over the nodes of the sum of the weights of their edges."""
    return 2.0 * float(graph.weight.sum()) / max(graph.n_nodes, 1)


def _factor(matrix: sparse.csc_array):  # type: ignore[no-untyped-def]
    return splu(matrix, diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def _log_det(factor) -> float:  # type: ignore[no-untyped-def]
    return float(np.log(np.abs(factor.U.diagonal())).sum())


def _diagonal_blocks(factor: Array, n: int, p: int) -> Array:
    lower = np.tril(linalg.lapack.dpotri(factor, lower=1)[0])
    cut = (lower + np.tril(lower, -1).T).reshape(n, p, n, p)
    k = np.arange(n)
    return np.ascontiguousarray(cut[k, :, k, :])


def _no_blocks() -> Array:
    raise ValueError(
        f"A graph's system has an inverse up to {INVERTED} unknowns; this one is larger."
    )
