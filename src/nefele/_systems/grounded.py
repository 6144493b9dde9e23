"""Laplacians D^T C D of a graph, one node of each component held at zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele._systems.fill import dense_seconds, sparse_seconds
from nefele._systems.laplacian import conjugate_gradients, laplacian
from nefele.graph import Graph

Index = NDArray[np.int64]

_SMALL = 100  # nodes up to which a Laplacian is dense
_MOST_DIRECT = 5000  # nodes up to which a Laplacian is factorised after
_FEW_STEPS = 50  # conjugate gradients for a digit, three to six of them, that did not suffice
_MOST_STEPS = 500


def potential(
    graph: Graph, give: Array, right: Array, rtol: float, start: Array | None = None
) -> tuple[Array, bool]:
    """X with D^T C D x = right, nearly, and whether a factorisation is the way to it.

    Conjugate gradients need as many steps as it is far across the graph: when a few do not
    suffice, a graph that is not too large is factorised.
    """
    small = graph.n_nodes <= _MOST_DIRECT
    most = int(_FEW_STEPS * np.clip(-np.log10(rtol), 3, 6)) if small else _MOST_STEPS
    system = laplacian(graph, give, columns=right.shape[1])
    x, solved = conjugate_gradients(system, right, rtol, start, most)
    if solved or not small:
        return x, False
    return laplacian_direct(graph, give, right), True


def laplacian_direct(graph: Graph, give: Array, right: Array) -> Array:
    """Solve D^T C D x = right, one node of each component held at zero."""
    _, grounded = np.unique(graph.components, return_index=True)
    keep = np.ones(graph.n_nodes, dtype=bool)
    keep[grounded] = False
    x = np.zeros_like(right)
    if not keep.any():
        return x
    place = np.cumsum(keep) - 1
    inner = keep[graph.head] & keep[graph.tail]
    head, tail = place[graph.head[inner]], place[graph.tail[inner]]
    diagonal = graph.at_ends(give)[keep]
    small = len(diagonal) <= _SMALL
    dense = small or dense_seconds(len(diagonal)) < sparse_seconds(graph)
    solver = _dense_laplacian if dense else _sparse_laplacian
    for j, weights in enumerate(give.T):
        part = slice(None) if give.shape[1] == 1 else j
        try:
            x[keep, part] = solver(head, tail, weights[inner], diagonal[:, j], right[keep, part])
        except (RuntimeError, np.linalg.LinAlgError):  # singular to working accuracy
            continue
    return x


def _dense_laplacian(head: Index, tail: Index, weights: Array, diagonal: Array, b: Array) -> Array:
    matrix = np.diag(diagonal)
    matrix[tail, head] = -weights
    factor = linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(linalg.cho_solve(factor, b, check_finite=False), dtype=float)


def _sparse_laplacian(head: Index, tail: Index, weights: Array, diagonal: Array, b: Array) -> Array:
    k = np.arange(len(diagonal))
    place = (np.concatenate([k, head, tail]), np.concatenate([k, tail, head]))
    values = np.concatenate([diagonal, -weights, -weights])
    matrix = sparse.csc_array((values, place), shape=(len(k), len(k)))
    # Positive definite: pivots are taken as they come, which keeps the fill low.
    options = {"SymmetricMode": True}
    factor = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    return np.asarray(factor.solve(b), dtype=float)
