"""The empirical graph: nodes, undirected weighted edges, the incidence operator (NFL, Sec. II)."""

from __future__ import annotations

import sys
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from nefele._checks import Array, as_float_array, check_name
from nefele._html import count, facts
from nefele._ids import IdIndex, as_ids, describe, distinct, unknown_ids_message
from nefele._kernels.short_rows import row_largest

Index = NDArray[np.int64]

MERGES = ("error", "sum", "max", "mean")
_FEW = 300  # edges up to which a loop over them is faster than a sparse matrix
_COMPILED = 2_000  # edges from which compiled loops pay off


class Graph:
    """Immutable undirected graph with positive edge weights.

    Edge e joins `head[e]` < `tail[e]` (NFL, Eq. (5)); edges are sorted by (head, tail).
    The incidence operator D is the plain +-1 one (NFL, Eq. (6)): weights are never folded in.

    Parameters
    ----------
    ids : array of shape (n_nodes,)
        Distinct node ids: integers, strings, or anything hashable.
    head, tail : int arrays of shape (n_edges,)
        Positions of the edge's ends in `ids`; any orientation and order.
    weight : array of shape (n_edges,), optional
        Edge weights A_e >= 0; edges of weight zero are dropped. Default: 1.
    merge : {"error", "sum", "max", "mean"}
        What to do with an edge that is given more than once (or in both directions).

    Examples
    --------
    >>> g = Graph(["a", "b", "c"], head=[0, 2], tail=[1, 1], weight=[1.0, 0.5])
    >>> g.n_nodes, g.n_edges, g.neighbors("b")
    (3, 2, ['a', 'c'])
    """

    ids: NDArray[Any]
    head: Index
    tail: Index
    weight: Array

    #: Whether edges compare the parameters themselves, not linear images of them.
    plain = True

    def __init__(
        self, ids: Any, head: Any, tail: Any, weight: Any = None, *, merge: str = "error"
    ) -> None:
        keys = np.array(as_ids(ids))  # a copy: later changes of the input must not reach the graph
        index = IdIndex(keys)
        if not len(keys):
            raise ValueError("A graph must have at least one node; got none.")
        if not index.unique:
            raise ValueError(f"Node ids must be distinct; {index.first_duplicate()!r} is repeated.")
        check_name(merge, MERGES, "merge rule")
        head, tail = _as_positions(head, len(keys), "head"), _as_positions(tail, len(keys), "tail")
        if len(head) != len(tail):
            raise ValueError(f"head and tail must have equal length; got {len(head)}, {len(tail)}.")
        values = _as_weights(weight, keys, head, tail)
        head, tail, values = _canonical(keys, head, tail, values, merge)
        for name, array in (("ids", keys), ("head", head), ("tail", tail), ("weight", values)):
            frozen = array.view()
            frozen.flags.writeable = False
            object.__setattr__(self, name, frozen)
        object.__setattr__(self, "_index", index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("Graph is immutable; build a new one.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("Graph is immutable; build a new one.")

    def __copy__(self) -> Graph:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Graph:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (Graph, (np.array(self.ids), self.head, self.tail, self.weight))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, k), getattr(other, k))
            for k in ("ids", "head", "tail", "weight")
        )

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.n_nodes, *(getattr(self, k).tobytes() for k in ("head", "tail"))))

    def __repr__(self) -> str:
        return f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges})"

    def _repr_html_(self) -> str:
        low, high = self.weight.min(initial=np.inf), self.weight.max(initial=0.0)
        return facts(
            f"Graph: {count(self.n_nodes, 'node')}, {count(self.n_edges, 'edge')}",
            {
                "connected parts": self.components.max() + 1,
                "neighbours of a node": f"{self.degree.min()} to {self.degree.max()}",
                "weights": f"{low:.3g} to {high:.3g}" if self.n_edges else "none",
            },
        )

    def plot(
        self,
        positions: Any = None,
        groups: Any = None,
        *,
        names: bool | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the network; needs matplotlib.

        Parameters
        ----------
        positions : array of shape (n_nodes, 2) or mapping from node ids, optional
            Where the nodes are; by default by forces.
        groups : array of shape (n_nodes,), optional
            Nodes with equal entries have the same colour, such as `result.clusters()`.
        names : bool, optional
            Whether ids stand beside the nodes; by default up to 40 nodes.
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> Graph.from_edges([("a", "b"), ("b", "c")]).plot(groups=[0, 0, 1]).get_title()
        '3 nodes, 2 edges'
        """
        from nefele._draw.pictures import draw_graph

        return draw_graph(self, positions, groups, names, ax)

    @classmethod
    def from_edges(
        cls, edges: Any, weight: Any = None, nodes: Any = None, *, merge: str = "error"
    ) -> Graph:
        """Graph from pairs of node ids.

        Parameters
        ----------
        edges : array of shape (n_edges, 2) or iterable of id pairs
            Ends of each edge, by id. An integer array is fast for millions of edges.
        weight : array of shape (n_edges,) or scalar, optional
            Edge weights; default 1.
        nodes : sequence of ids, optional
            All node ids, in the order wanted; may name nodes without edges. Default: the ids
            that occur in `edges`, sorted.
        merge : {"error", "sum", "max", "mean"}
            What to do with repeated edges.

        Examples
        --------
        >>> Graph.from_edges([("Oulu", "Kemi"), ("Kemi", "Inari")], weight=[1.0, 2.0]).ids.tolist()
        ['Inari', 'Kemi', 'Oulu']
        """
        first, second = _split_pairs(edges)
        keys = distinct(first, second) if nodes is None else as_ids(nodes)
        index = IdIndex(keys)
        head, tail = index.positions(first), index.positions(second)
        if (head < 0).any() or (tail < 0).any():
            unknown = distinct(first[head < 0], second[tail < 0])
            raise ValueError(unknown_ids_message(keys, unknown, "the edges"))
        return cls(keys, head, tail, weight, merge=merge)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.ids)

    @property
    def n_edges(self) -> int:
        """Number of edges."""
        return len(self.head)

    @cached_property
    def degree(self) -> Index:
        """Number of edges at each node, shape (n_nodes,)."""
        return self._frozen(
            np.bincount(self.head, minlength=self.n_nodes)
            + np.bincount(self.tail, minlength=self.n_nodes)
        )

    @cached_property
    def weighted_degree(self) -> Array:
        """Sum of the edge weights at each node, shape (n_nodes,)."""
        return self._frozen(self.at_ends(self.weight))

    @cached_property
    def components(self) -> Index:
        """Label of the connected component of each node, shape (n_nodes,), from 0."""
        return self._frozen(self.joined(np.ones(self.n_edges, dtype=bool)))

    def joined(self, on: NDArray[np.bool_]) -> Index:
        """Label of the group of each node when only the edges `on` join them, from 0.

        Parameters
        ----------
        on : bool array of shape (n_edges,)
        """
        if not on.any():
            return np.arange(self.n_nodes)
        if self.n_edges >= _COMPILED or _at_hand():
            from nefele._kernels.edges import groups

            return np.asarray(groups(self.n_nodes, self.head, self.tail, on), dtype=np.int64)
        if self.n_edges <= _FEW:
            return _merged(self.n_nodes, self.head[on], self.tail[on])
        shape = (self.n_nodes, self.n_nodes)
        links = sparse.coo_array((np.ones(on.sum()), (self.head[on], self.tail[on])), shape=shape)
        return connected_components(links, directed=False)[1].astype(np.int64)

    def at_ends(self, values: Array) -> Array:
        """Sum of the values of the edges at each node; shape (n_nodes,) or (n_nodes, k).

        Parameters
        ----------
        values : array of shape (n_edges,) or (n_edges, k)
        """
        if values.ndim == 2:
            return np.stack([self.at_ends(column) for column in values.T], axis=1)
        n = self.n_nodes
        if self.n_edges >= _COMPILED:
            from nefele._kernels.edges import at_ends

            out = np.empty(n)
            at_ends(self.ptr, self.tail, np.ascontiguousarray(values, dtype=float), out)
            return out
        both = np.bincount(self.head, values, n) + np.bincount(self.tail, values, n)
        return np.asarray(both, dtype=float)

    @cached_property
    def adjacency(self) -> sparse.csr_array:
        """Symmetric weighted adjacency matrix, shape (n_nodes, n_nodes), sparse."""
        shape = (self.n_nodes, self.n_nodes)
        upper = sparse.coo_array((self.weight, (self.head, self.tail)), shape=shape)
        return (upper + upper.T).tocsr()

    @cached_property
    def ptr(self) -> Index:
        """Edges by their head: those of node i are ptr[i] to ptr[i + 1], shape (n_nodes + 1,)."""
        ends = np.cumsum(np.bincount(self.head, minlength=self.n_nodes))
        return self._frozen(np.concatenate([[0], ends]))

    @cached_property
    def incidence_t(self) -> sparse.csr_array:
        """D^T as a CSR matrix of shape (n_nodes, n_edges)."""
        ends = np.concatenate([self.tail, self.head])  # of a node's edges the first end in it
        order = np.argsort(ends, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=self.n_nodes))])
        values = np.where(order < self.n_edges, -1.0, 1.0)
        rows = values, order % max(self.n_edges, 1), ptr
        return sparse.csr_array(rows, shape=(self.n_nodes, self.n_edges))

    def diff(self, w: Array) -> Array:
        """D w: w[head] - w[tail] over each edge, shape (n_edges, d) (NFL, Eq. (6)).

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        """
        if self.n_edges < _COMPILED or w.dtype != float or w.ndim != 2:
            return w[self.head] - w[self.tail]
        from nefele._kernels.edges import differences

        out = np.empty((self.n_edges, w.shape[1]))
        differences(self.ptr, self.tail, np.ascontiguousarray(w), out)
        return out

    def alike(self, w: Array, most: float = 0.0) -> NDArray[np.bool_]:
        """Edges over which no entry of w differs by more than `most`, shape (n_edges,).

        Parameters
        ----------
        w : array of shape (n_nodes, d)
        most : float
        """
        if self.n_edges < _COMPILED or not self.plain or w.dtype != float or w.ndim != 2:
            return np.asarray(row_largest(self.diff(w)) <= most)
        from nefele._kernels.edges import alike

        out = np.empty(self.n_edges, dtype=bool)
        alike(self.ptr, self.tail, np.ascontiguousarray(w), most, out)
        return out

    def div(self, u: Array) -> Array:
        """D^T u: what flows out of each node minus what flows in, shape (n_nodes, d) (NFL, (7)).

        Parameters
        ----------
        u : array of shape (n_edges, d)
        """
        large = self.n_edges >= _COMPILED or _at_hand()
        if not large or u.dtype != float or u.ndim != 2:
            return self.incidence_t @ u
        from nefele._kernels.edges import divergence
        from nefele._kernels.rows import as_dims

        out = np.zeros((self.n_nodes, u.shape[1]))
        divergence(as_dims(u.shape[1]), self.ptr, self.tail, np.ascontiguousarray(u), out)
        return out

    def width(self, d: int) -> int:
        """Length of what an edge compares, and so of its flow, for d parameters.

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """
        return d

    def check_plain(self, what: str) -> None:
        """Raise, naming who asks, when edges compare linear images; see `nefele.graphs.mapped`.

        Parameters
        ----------
        what : str
            Who asks, for the message.
        """
        if not self.plain:
            raise ValueError(f"{what} takes no couplings by linear maps; got {self!r}.")

    def check_dimension(self, d: int) -> None:
        """Raise when the graph does not fit models with d parameters.

        Parameters
        ----------
        d : int
            Number of parameters of a node.
        """
        return None

    def position(self, node: Any) -> int:
        """Position of a node id in `ids`.

        Parameters
        ----------
        node : node id
            A ValueError when the graph does not have it.
        """
        found = int(self.positions([node])[0])
        if found < 0:
            raise ValueError(f"No node {node!r} in the graph. Ids: {describe(self.ids)}.")
        return found

    def positions(self, nodes: Any) -> Index:
        """Positions of node ids in `ids`, -1 for ids the graph does not have.

        Parameters
        ----------
        nodes : array of shape (k,)
            Ids.
        """
        return self._index.positions(as_ids(nodes))  # type: ignore[attr-defined]

    def neighbors(self, node: Any) -> list[Any]:
        """Ids of the neighbours of the node with this id, in graph order.

        Parameters
        ----------
        node : node id
        """
        i = self.position(node)
        row = self.adjacency.indices[self.adjacency.indptr[i] : self.adjacency.indptr[i + 1]]
        return self.ids[np.sort(row)].tolist()

    def describe_edge(self, e: int) -> str:
        """Edge e for an error message: its number and the ids of its ends.

        Parameters
        ----------
        e : int
            Position of the edge.
        """
        return f"edge {e} {_pair(self.ids, self.head[e], self.tail[e])}"

    @staticmethod
    def _frozen(array: NDArray[Any]) -> NDArray[Any]:
        array.flags.writeable = False
        return array


def _pair(ids: NDArray[Any], i: Any, j: Any) -> str:
    a, b = (f'"{key}"' if isinstance(key, str) else str(key) for key in ids[[i, j]].tolist())
    return f"({a}, {b})"


def _split_pairs(edges: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    if hasattr(edges, "to_numpy"):
        edges = edges.to_numpy()
    if isinstance(edges, np.ndarray):
        if edges.size == 0:
            return as_ids(edges.reshape(-1)), as_ids(edges.reshape(-1))
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise ValueError(f"edges must have shape (n_edges, 2); got {edges.shape}.")
        return as_ids(edges[:, 0]), as_ids(edges[:, 1])
    pairs = list(edges)
    for k, pair in enumerate(pairs):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(
                f"Each edge must be a pair of node ids; got {pair!r} at position {k}. "
                "Give weights by weight=[...]."
            )
    return as_ids([p[0] for p in pairs]), as_ids([p[1] for p in pairs])


def _as_positions(values: Any, n_nodes: int, name: str) -> Index:
    array = np.asarray(values)
    if array.size == 0:
        return np.zeros(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be a one-dimensional integer array; got {array.dtype} of shape "
            f"{array.shape}. For ids use Graph.from_edges."
        )
    if array.min() < 0 or array.max() >= n_nodes:
        raise ValueError(
            f"{name} must hold node positions 0..{n_nodes - 1}; got {array.min()}..{array.max()}."
        )
    return array.astype(np.int64)


def _as_weights(weight: Any, ids: NDArray[Any], head: Index, tail: Index) -> Array:
    if weight is None:
        return np.ones(len(head))
    if np.ndim(weight) == 0 and not hasattr(weight, "to_numpy"):
        weight = np.full(len(head), weight)
    values = as_float_array(weight, "weight", 1)
    if len(values) != len(head):
        raise ValueError(f"weight must have one entry per edge ({len(head)}); got {len(values)}.")
    bad = np.flatnonzero(~(values >= 0) | ~np.isfinite(values))
    if bad.size:
        e = bad[0]
        negative = np.isfinite(values[e])
        raise ValueError(
            f"weight must be {'> 0' if negative else 'finite'}; got {values[e]} at edge {e} "
            f"{_pair(ids, head[e], tail[e])}. Drop the edge{' or use abs()' if negative else ''}."
        )
    return values


def _at_hand() -> bool:
    """Whether compiled loops are loaded anyway: those with the same bits serve small graphs too."""
    return "numba" in sys.modules


def _canonical(
    ids: NDArray[Any], head: Index, tail: Index, weight: Array, merge: str
) -> tuple[Index, Index, Array]:
    """Head < tail, sorted, without self-loops, zero weights or repeated edges."""
    loops = np.flatnonzero(head == tail)
    if loops.size:
        node = ids[head[loops[0]] : head[loops[0]] + 1].tolist()[0]
        raise ValueError(
            f"An edge must join two different nodes; edge {loops[0]} is a self-loop at {node!r}. "
            "Drop it: it has no effect on the coupling."
        )
    keep = weight > 0
    head, tail, weight = head[keep], tail[keep], weight[keep]
    head, tail = np.minimum(head, tail), np.maximum(head, tail)
    key = head * len(ids) + tail
    if np.all(key[1:] > key[:-1]):
        return head, tail, np.array(weight)
    order = np.argsort(key, kind="stable")
    key, weight = key[order], weight[order]
    first = np.concatenate([[True], key[1:] != key[:-1]])
    if not first.all():
        if merge == "error":
            e = int(np.flatnonzero(~first)[0])
            pair = _pair(ids, key[e] // len(ids), key[e] % len(ids))
            raise ValueError(
                f"Each edge must be given once; {pair} is repeated (or given in both directions). "
                'Use nefele.as_graph(..., merge="sum"), "max" or "mean".'
            )
        weight = _merge(weight, np.flatnonzero(first), merge)
        key = key[first]
    return key // len(ids), key % len(ids), weight


def _merge(weight: Array, starts: Index, merge: str) -> Array:
    if merge == "max":
        return np.maximum.reduceat(weight, starts)
    total = np.add.reduceat(weight, starts)
    if merge == "mean":
        return total / np.diff(np.append(starts, len(weight)))
    return total


def _merged(n: int, head: Index, tail: Index) -> Index:
    """Groups of nodes that the edges join, numbered in the order of their first nodes."""
    root = list(range(n))
    for a, b in zip(head.tolist(), tail.tolist(), strict=True):
        while root[a] != a:
            root[a] = a = root[root[a]]
        while root[b] != b:
            root[b] = b = root[root[b]]
        root[max(a, b)] = min(a, b)
    count = 0
    for i, up in enumerate(root):  # roots come before all others of their group
        root[i] = count if up == i else root[up]
        count += up == i
    return np.array(root, dtype=np.int64)
