"""Solves with Q = blkdiag(Q_i) + a (L (x) I) that stay accurate for weights of any size.

Q w = q is the balance of a network in which every node with data has one more edge, of the matrix
weight Q_i, to a ground held at zero. In the coordinates of a maximum spanning tree of that network
(see `nefele.theory.tree_basis`) light edges are not lost beside heavy ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele._kernels.groups import group_sums
from nefele.graph import Graph
from nefele.theory.cone_flow import block_solver
from nefele.theory.spectrum import coupled_matrix_of
from nefele.theory.tree_basis import TreeBasis

_FLAT = 1e-13  # eigenvalue of a scaled sum of Hessians that counts as zero
_SIMILAR = 1e-6  # ratio of the weights from which on a sparse factorisation is good enough
_MOST = 3000  # unknowns up to which the tree's dense system is solved
_REFINEMENTS = 2


def fixed_nodes(graph: Graph, blocks: Array) -> NDArray[np.bool_]:
    """Nodes of the components whose data fix all parameters, shape (n_nodes,).

    Q is singular on a component exactly when the sum of its Q_i is: L only knows constants.
    """
    total = group_sums(graph.components, blocks)
    size = np.sqrt(np.diagonal(total, axis1=1, axis2=2))
    full = (size > 0).all(axis=1)
    safe = np.where(size > 0, size, 1.0)
    least = np.linalg.eigvalsh(total / (safe[:, :, None] * safe[:, None, :]))[:, 0]
    return np.asarray(full & (least > _FLAT))[graph.components]


def coupled_solver(graph: Graph, blocks: Array, a: float) -> Callable[[Array], Array]:
    """Solver of Q w = right, right of shape (n_nodes, d), for data that fix all parameters.

    Examples
    --------
    >>> graph = Graph([0, 1, 2], [0, 1], [1, 2], [1e9, 1e-9])
    >>> blocks = np.array([0.0, 0.0, 1.0]).reshape(3, 1, 1)
    >>> coupled_solver(graph, blocks, 1.0)(np.array([[0.0], [0.0], [2.0]])).round(9).tolist()
    [[2.0], [2.0], [2.0]]
    """
    n, d = blocks.shape[:2]
    own = np.trace(blocks, axis1=1, axis2=2) / d
    data = np.flatnonzero(own > 0)
    weight = np.concatenate([own[data], a * graph.weight])
    if weight.min() >= _SIMILAR * weight.max() or n * d > _MOST:
        return _by_nodes(graph, blocks, a)
    head = np.concatenate([np.zeros(len(data), dtype=np.int64), graph.head + 1])
    tail = np.concatenate([data, graph.tail]) + 1
    basis = TreeBasis.of(Graph(np.arange(n + 1), head, tail, weight))  # edges keep this order
    K = np.concatenate([blocks[data], a * graph.weight[:, None, None] * np.eye(d)])
    K = K / (weight**2)[:, None, None]
    C, inner = basis.matrix, block_solver(basis.matrix, K)

    def solve(right: Array) -> Array:
        goal = basis.right(np.concatenate([-right.sum(axis=0, keepdims=True), right]))
        y = inner(goal)
        for _ in range(_REFINEMENTS):
            y = y + inner(goal - C @ (K @ (C.T @ y)[..., None])[..., 0])
        return basis.potential(y)[1:]

    return solve


def _by_nodes(graph: Graph, blocks: Array, a: float) -> Callable[[Array], Array]:
    """The same by a sparse factorisation of Q itself."""
    Q = coupled_matrix_of(graph, blocks, a)
    scale = 1 / np.sqrt(Q.diagonal())
    factor = splu(sparse.csc_array(sparse.diags_array(scale) @ Q @ sparse.diags_array(scale)))

    def solve(right: Array) -> Array:
        flat = right.ravel()
        w = scale * factor.solve(scale * flat)
        for _ in range(_REFINEMENTS):
            w = w + scale * factor.solve(scale * (flat - Q @ w))
        return w.reshape(right.shape)

    return solve
