"""M + K^T C K for a coupling by linear maps, assembled and factorised; see `graphs.mapped`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.graphs.mapped import MappedGraph

MOST_UNKNOWNS = 50_000  # of a system that is still factorised
_RIDGES = (1e-14, 1e-12, 1e-10, 1e-8)  # relative to a unit diagonal
_REFINED = 30  # steps of conjugate gradients, at most, that remove the ridge's error


class OperatorSystem:
    """The pattern of M + K^T C K, with blocks M of shape (d, d) and C of shape (p, p)."""

    def __init__(self, graph: MappedGraph, d: int) -> None:
        self.graph, self.d = graph, d
        self.K = graph.operator(d)
        self.transposed = sparse.csr_array(self.K.T)

    def factorise(self, metric: Array, C: Array) -> OperatorFactor:
        """Factor M + K^T C K, with M (n_nodes, d, d) and C (n_rows, p, p)."""
        return OperatorFactor(self, metric, C)


class OperatorFactor:
    """The factors of the matrix, scaled to a unit diagonal and a little regularised."""

    def __init__(self, system: OperatorSystem, metric: Array, C: Array) -> None:
        self.graph, self.C = system.graph, C
        A = system.transposed @ _diagonal(C) @ system.K + _diagonal(metric)
        A = sparse.csc_array((A + A.T) / 2)
        diagonal = A.diagonal()
        if not np.isfinite(A.data).all():
            raise np.linalg.LinAlgError("The Newton system must be finite.")
        self.root = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scale = sparse.diags_array(self.root)
        self.A = sparse.csc_array(scale @ A @ scale)
        eye = sparse.eye_array(len(self.root), format="csc")
        for ridge in _RIDGES:
            try:
                lu = splu(
                    self.A + ridge * eye,
                    "MMD_AT_PLUS_A",
                    diag_pivot_thresh=0.0,
                    options={"SymmetricMode": True},
                )
            except RuntimeError:  # singular
                continue
            self._apply: Callable[[Array], Array] = lu.solve
            return
        raise np.linalg.LinAlgError("The Newton system must be positive definite.")

    def solve(self, right: Array) -> tuple[Array, Array, Array]:
        """Solution x, K x and C K x of (M + K^T C K) x = right."""
        x = (self.root * self._apply(self.root * right.ravel())).reshape(right.shape)
        change = self.graph.diff(x)
        return x, change, (self.C @ change[..., None])[..., 0]

    def refined(self, right: Array, rtol: float) -> Array:
        """The solution of a consistent, perhaps singular system, by preconditioned gradients."""
        b = self.root * right.ravel()
        x, r = np.zeros_like(b), b.copy()
        goal = rtol * float(np.linalg.norm(b))
        z = self._apply(r)
        p, rz = z.copy(), float(r @ z)
        best, least = x, float(np.linalg.norm(r))
        for _ in range(_REFINED):
            if least <= goal or not rz > 0:
                break
            q = self.A @ p
            bend = float(p @ q)
            if not bend > 0:
                break
            x = x + rz / bend * p
            r = r - rz / bend * q
            size = float(np.linalg.norm(r))
            if size < least:
                best, least = x, size
            z = self._apply(r)
            rz, before = float(r @ z), rz
            p = z + rz / before * p
        return np.asarray((self.root * best).reshape(right.shape))


def _diagonal(blocks: Array) -> sparse.csr_array:
    """A block-diagonal matrix of blocks of shape (n, k, k)."""
    n, k = blocks.shape[:2]
    columns = np.repeat(np.arange(n * k).reshape(n, 1, k), k, axis=1)
    ptr = np.arange(n * k + 1) * k
    return sparse.csr_array((blocks.ravel(), columns.ravel(), ptr), shape=(n * k, n * k))
