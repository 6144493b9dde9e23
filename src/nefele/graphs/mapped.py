"""Couplings by linear maps: an edge compares F_ei w_i with F_ej w_j; higher differences too.

The maps are what sheaves on graphs call restriction maps: nodes may have models of different
length and meaning, and an edge says what of them must agree. A row of such a coupling is a sum

    (K w)_e = sum_i F_ei w_i

over its nodes; F = I at the head and -I at the tail is the plain graph (NFL, Eq. (6)).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from nefele._checks import Array
from nefele._ids import IdIndex
from nefele.graph import Graph

Index = NDArray[np.int64]

_MOST_VALUES = 600  # singular values that are found, 30 ms
_ROUNDING = 1e-12  # of their squares, relative to the largest


class MappedGraph(Graph):
    """Rows that compare linear images of the nodes' parameters, in the place of edges.

    Made by `nefele.graphs.mapped` and `nefele.graphs.trend`.

    Parameters
    ----------
    ids : array of shape (n_nodes,)
    operator : sparse matrix
        K, of shape (n_rows, n_nodes) when it acts on each parameter alike, else of shape
        (n_rows * p, n_nodes * d) with blocks F_ei of shape (p, d).
    weight : array of shape (n_rows,)
        Weights A_e > 0.
    block : pair of int, optional
        p and d of the blocks.

    Examples
    --------
    >>> from nefele.graphs import chain, trend
    >>> second = trend(chain(4), order=2)
    >>> second.diff(np.array([[0.0], [1.0], [4.0], [9.0]])).ravel().tolist()
    [-2.0, -2.0]
    """

    plain = False

    block: tuple[int, int] | None
    _operator: Any
    _links: Any

    def __init__(
        self, ids: Any, operator: Any, weight: Array, block: tuple[int, int] | None = None
    ) -> None:
        operator = sparse.csr_array(operator)
        p, d = (1, 1) if block is None else block
        links = _norms(operator, p, d)
        first, last = links.indices[links.indptr[:-1]], links.indices[links.indptr[1:] - 1]
        named = {"ids": np.array(ids), "head": first, "tail": last, "weight": np.array(weight)}
        for name, array in named.items():
            frozen = array.view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)
        object.__setattr__(self, "_index", IdIndex(self.ids))
        object.__setattr__(self, "block", block)
        object.__setattr__(self, "_operator", operator)
        object.__setattr__(self, "_links", links)

    def __reduce__(self) -> tuple[Any, ...]:
        return (MappedGraph, (np.array(self.ids), self._operator, self.weight, self.block))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MappedGraph):
            return False
        alike = self.block == other.block and np.array_equal(self.ids, other.ids)
        pairs = zip(self.contents, other.contents, strict=True)
        return alike and all(np.array_equal(mine, theirs) for mine, theirs in pairs)

    def __hash__(self) -> int:
        return hash((self.n_nodes, self.n_edges, self.contents[0].tobytes()))

    def __repr__(self) -> str:
        return f"MappedGraph(n_nodes={self.n_nodes}, n_rows={self.n_edges})"

    @property
    def contents(self) -> tuple[NDArray[Any], ...]:
        """The numbers of the operator and their places, and the weights."""
        K = self._operator
        return K.data, K.indices, K.indptr, self.weight

    def width(self, d: int) -> int:
        return d if self.block is None else self.block[0]

    def check_dimension(self, d: int) -> None:
        if self.block is not None and self.block[1] != d:
            raise ValueError(
                f"The maps are for {self.block[1]} parameters; the loss has {d}. Fill up shorter "
                "models with columns of zeros: LocalData.from_list(..., pad=True)."
            )

    def operator(self, d: int) -> sparse.csr_array:
        """K as a matrix of shape (n_rows * p, n_nodes * d).

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """
        if self.block is not None:
            return self._operator
        return sparse.csr_array(sparse.kron(self._operator, sparse.eye_array(d), format="csr"))

    def diff(self, w: Array) -> Array:
        """K w, shape (n_rows, p).

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        """
        if self.block is None:
            return np.asarray(self._operator @ w)
        return np.asarray((self._operator @ w.ravel()).reshape(self.n_edges, -1))

    def div(self, u: Array) -> Array:
        """K^T u, shape (n_nodes, d).

        Parameters
        ----------
        u : array of shape (n_rows, p)
        """
        if self.block is None:
            return np.asarray(self._transposed @ u)
        return np.asarray((self._transposed @ u.ravel()).reshape(self.n_nodes, -1))

    def sizes(self, u: Array) -> Array:
        """|K|^T |u|: sizes of the terms that `div` sums, shape (n_nodes, d).

        Parameters
        ----------
        u : array of shape (n_rows, p)
        """
        total = abs(self._transposed) @ np.abs(u if self.block is None else u.ravel())
        return np.asarray(total.reshape(self.n_nodes, -1))

    def at_ends(self, values: Array) -> Array:
        """Sums over the rows at each node, each times k_e / 2 ||F_ei||^2 for a row of k_e nodes.

        So steps that suit the edges of a plain graph suit these rows. Of several columns the
        largest counts: shape (n_nodes,) or (n_nodes, 1).

        Parameters
        ----------
        values : array of shape (n_rows,) or (n_rows, k)
        """
        if values.ndim == 2:
            return np.asarray(self._links.T @ values.max(axis=1))[:, None]
        return np.asarray(self._links.T @ values)

    def joined(self, on: NDArray[np.bool_]) -> Index:
        m, n = self.n_edges, self.n_nodes
        rows = self._links[np.flatnonzero(on)].tocoo()
        shape = (n + m, n + m)
        links = sparse.coo_array((np.ones(rows.nnz), (rows.coords[0] + n, rows.coords[1])), shape)
        labels = connected_components(links, directed=False)[1][:n]
        return np.unique(labels, return_inverse=True)[1].astype(np.int64)

    def neighbors(self, node: Any) -> list[Any]:
        """Ids of the nodes that share a row with the node of this id.

        Parameters
        ----------
        node : node id
        """
        rows = self._links[:, [self.position(node)]].nonzero()[0]
        near = np.unique(self._links[rows].indices)
        return self.ids[near[near != self.position(node)]].tolist()

    def describe_edge(self, e: int) -> str:
        near = self.ids[self._links[[e]].indices].tolist()
        return f"row {e} of {near}"

    @cached_property
    def degree(self) -> Index:
        """Number of rows at each node, shape (n_nodes,)."""
        return self._frozen(np.bincount(self._links.indices, minlength=self.n_nodes))

    @cached_property
    def stretch(self) -> float:
        """The least nonzero singular value of K: flows may be so much larger than what they carry.

        Zero where it takes too long to find.
        """
        K = self._operator
        if min(K.shape) > _MOST_VALUES:
            return 0.0
        gram = (K @ K.T if K.shape[0] < K.shape[1] else K.T @ K).toarray()
        values = np.linalg.eigvalsh(gram)
        return float(np.sqrt(values[values > _ROUNDING * values[-1]].min(initial=np.inf)))

    @cached_property
    def _transposed(self) -> sparse.csr_array:
        return sparse.csr_array(self._operator.T)

    @property
    def adjacency(self) -> Any:
        """None is defined: a row may join more than two nodes, by maps."""
        raise TypeError("A MappedGraph has rows with maps in the place of edges: no adjacency.")

    incidence_t = ptr = adjacency


def _norms(operator: sparse.csr_array, p: int, d: int) -> sparse.csr_array:
    """k_e / 2 ||F_ei||_2^2 of each row e and node i, shape (n_rows, n_nodes)."""
    K = operator.tocoo()
    m, n = operator.shape[0] // p, operator.shape[1] // d
    keep = K.data != 0
    i, j = (at[keep].astype(np.int64) for at in K.coords)
    pairs, place = np.unique((i // p) * n + j // d, return_inverse=True)
    blocks = np.zeros((len(pairs), p, d))
    blocks[place, i % p, j % d] = K.data[keep]
    size = np.linalg.norm(blocks, ord=2, axis=(1, 2)) ** 2
    rows = pairs // n
    count = np.bincount(rows, minlength=m)
    if (count == 0).any():
        raise ValueError(f"Row {int(np.argmin(count))} of the coupling compares nothing: drop it.")
    found = sparse.csr_array((count[rows] / 2 * size, (rows, pairs % n)), shape=(m, n))
    found.sort_indices()
    return found
