"""Undirected edges from inputs that hold both directions: matrices and edge indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import Array, as_float_array
from nefele.graph import Index

_ROUNDING = 1e-12  # relative difference of a_ij and a_ji that still counts as symmetric


def square(matrix: Any) -> sparse.coo_array:
    """Square real matrix, dense or sparse, as coordinates without repeated places."""
    if sparse.issparse(matrix):
        rows = matrix.tocoo()
        if rows.dtype.kind not in "fiub":
            raise ValueError(f"The adjacency must be real; got dtype {rows.dtype}.")
        out = sparse.coo_array(rows, dtype=np.float64, copy=True)
        out.sum_duplicates()
    else:
        out = sparse.coo_array(as_float_array(matrix, "The adjacency", 2))
    if out.shape[0] != out.shape[1]:
        raise ValueError(f"The adjacency must be square; got shape {out.shape}.")
    return out


def undirected(
    matrix: sparse.coo_array, ids: NDArray[Any], merge: str, advice: str
) -> tuple[Index, Index, Array]:
    """Edges (head, tail, weight) of an adjacency matrix.

    A symmetric matrix gives its upper triangle. Otherwise `merge` makes one weight of a_ij and
    a_ji (a missing entry is 0): a_ij + a_ji, max(a_ij, a_ji) or (a_ij + a_ji) / 2.
    """
    _check_entries(matrix, ids)
    upper = sparse.triu(matrix, 1, format="csr")
    lower = sparse.tril(matrix, -1, format="csr").T.tocsr()
    high = upper.maximum(lower)
    apart = (high - upper.minimum(lower)).tocoo()
    limit = _ROUNDING * high[apart.row, apart.col] if apart.nnz else np.zeros(0)
    bad = np.flatnonzero(apart.data > limit)
    if not bad.size:
        half = high.tocoo()
        return half.row, half.col, half.data
    if merge == "error":
        i, j = apart.row[bad[0]], apart.col[bad[0]]
        a, b = ids[[i, j]].tolist()
        raise ValueError(
            f"The adjacency must be symmetric; got {upper[i, j]:.6g} at ({a!r}, {b!r}) and "
            f"{lower[i, j]:.6g} at ({b!r}, {a!r}). {advice}"
        )
    both = high if merge == "max" else (upper + lower) * (0.5 if merge == "mean" else 1.0)
    edges = both.tocoo()
    return edges.row, edges.col, edges.data


def _check_entries(matrix: sparse.coo_array, ids: NDArray[Any]) -> None:
    bad = np.flatnonzero(~(matrix.data >= 0) | np.isinf(matrix.data))
    if bad.size:
        a, b = ids[[matrix.row[bad[0]], matrix.col[bad[0]]]].tolist()
        raise ValueError(
            f"weight must be finite and >= 0; got {matrix.data[bad[0]]} at ({a!r}, {b!r}). "
            "Drop the entry or use abs()."
        )
    loops = np.flatnonzero((matrix.row == matrix.col) & (matrix.data != 0))
    if loops.size:
        i = matrix.row[loops[0]]
        raise ValueError(
            f"An edge must join two different nodes; {matrix.data[loops[0]]:g} on the diagonal "
            f"is a self-loop at {ids[i : i + 1].tolist()[0]!r}. Set the diagonal to zero."
        )


def fold_directions(
    head: Index, tail: Index, weight: Array, n_nodes: int
) -> tuple[Index, Index, Array]:
    """Count i -> j and j -> i of equal weight as one edge; leave all other repetitions alone.

    When {i, j} comes p times forwards and q times backwards with the same weight, max(p, q)
    edges remain. Self-loops are left for `Graph` to report.
    """
    if not len(head) or (head == tail).any():
        return head, tail, weight
    key = np.minimum(head, tail) * n_nodes + np.maximum(head, tail)
    order = np.lexsort((weight, key))
    key, weight, forward = key[order], weight[order], (head < tail)[order]
    new = np.concatenate([[True], (key[1:] != key[:-1]) | (weight[1:] != weight[:-1])])
    group, size = np.cumsum(new) - 1, int(new.sum())
    there = np.bincount(group[forward], minlength=size)
    back = np.bincount(group[~forward], minlength=size)
    times = np.maximum(there, back)
    key, weight = np.repeat(key[new], times), np.repeat(weight[new], times)
    return key // n_nodes, key % n_nodes, weight
