"""Couplings by linear maps, from maps of nodes and edges or the order of differences."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import (
    Array,
    as_float_array,
    check_count,
    check_finite,
    check_flag,
    type_name,
)
from nefele.graph import Graph
from nefele.graphs.mapped import MappedGraph

Index = NDArray[np.int64]


def mapped(graph: Graph, nodes: Any = None, edges: Any = None, *, d: Any = None) -> MappedGraph:
    """Couple linear images: phi(F_ei w_i - F_ej w_j) over each edge of a graph.

    Models may have different lengths and meanings; the maps say what of them is compared: a
    subset of shared parameters (rows of the identity), other units (a diagonal), time shifts,
    predictions on common points (their rows). `scale=` of the estimators is the case
    nodes = S^(-1/2), the same at all nodes.

    Parameters
    ----------
    graph : Graph
    nodes : array of shape (p, d) or dict by node id, optional
        F_i of the nodes, shape (p, d_i), for all of their edges; one array is for all nodes.
    edges : dict by pairs of node ids, optional
        Pairs (F_ei, F_ej) for single edges, shapes (p_e, d_i) and (p_e, d_j), in the order of the
        pair; they take precedence.
    d : int or dict by node id, optional
        Lengths d_i of the models that no map tells; default: the longest. What has no map at an
        edge is compared as it is.

    Returns
    -------
    MappedGraph
        For `Problem`. Shorter models are filled up: `LocalData.from_list(..., pad=True)`.

    Examples
    --------
    >>> from nefele.graphs import chain
    >>> pair = mapped(chain(2), nodes={0: [[1.0, 0.0, 0.0]], 1: [[0.0, 2.0]]})
    >>> pair.diff(np.array([[5.0, 7.0, 8.0], [9.0, 1.0, 0.0]])).tolist()
    [[3.0]]
    """
    if not isinstance(graph, Graph) or not graph.plain:
        raise ValueError(f"graph must be a plain Graph; got {graph!r}.")
    if not graph.n_edges:
        raise ValueError("graph must have an edge: maps are compared over edges.")
    own, ends = _node_maps(graph, nodes), _edge_maps(graph, edges)
    lengths = _lengths(graph, own, ends, d)
    pairs = [_pair(graph, e, own, ends, lengths) for e in range(graph.n_edges)]
    p, widest = max(len(F) for F, _ in pairs), max(lengths)
    values, rows, columns = [], [], []
    for e, pair in enumerate(pairs):
        for i, sign, F in zip((graph.head[e], graph.tail[e]), (1.0, -1.0), pair, strict=True):
            at = np.nonzero(F)
            values.append(sign * F[at])
            rows.append(e * p + at[0])
            columns.append(i * widest + at[1])
    where = np.concatenate(rows), np.concatenate(columns)
    shape = (graph.n_edges * p, graph.n_nodes * widest)
    K = sparse.csr_array((np.concatenate(values), where), shape=shape)
    return MappedGraph(graph.ids, K, graph.weight, (p, widest))


def trend(graph: Graph, order: int = 2, *, boundary: bool = False) -> Graph:
    """Differences of higher order over a graph: with the l1 norm, trend filtering on graphs.

    With L = D^T A D the rows are L^(k/2) w at the nodes for even orders k, and D L^((k-1)/2) w
    over the edges for odd ones (Wang, Sharpnack, Smola and Tibshirani 2016). On a chain these are
    the usual differences: order 1 gives pieces that are constant, 2 linear, 3 quadratic.

    Parameters
    ----------
    graph : Graph
    order : int
        Of the differences, at least 1.
    boundary : bool
        Keep the rows around nodes with one neighbour, where a chain ends. They pull the ends
        towards constants; without them straight lines cost nothing.

    Returns
    -------
    Graph
        The graph itself for order 1, else a MappedGraph.

    Examples
    --------
    >>> from nefele.graphs import chain
    >>> cubic = np.arange(5.0)[:, None] ** 3
    >>> np.abs(trend(chain(5), order=3).diff(cubic)).ravel().tolist()
    [6.0, 6.0]
    """
    order = check_count(order, "order", low=1)
    check_flag(boundary, "boundary")
    if not isinstance(graph, Graph) or not graph.plain:
        raise ValueError(f"graph must be a plain Graph; got {graph!r}.")
    if order == 1:
        return graph
    D = sparse.csr_array(graph.incidence_t.T)
    laplacian = sparse.csr_array(D.T @ sparse.diags_array(graph.weight) @ D)
    K, times = laplacian, order // 2
    for _ in range(times - 1):
        K = laplacian @ K
    keep = _inner(graph, times, boundary)
    weight = np.ones(graph.n_nodes)
    if order % 2:
        K, weight = D @ K, np.array(graph.weight)
        keep = keep[graph.head] & keep[graph.tail]
    if not keep.any():
        raise ValueError(
            f"No row of order {order} is left: all nodes are near an end. Use boundary=True."
        )
    return MappedGraph(graph.ids, sparse.csr_array(K[np.flatnonzero(keep)]), weight[keep])


def _inner(graph: Graph, times: int, boundary: bool) -> NDArray[np.bool_]:
    """Nodes with edges and, unless the boundary counts, farther than times - 1 from any leaf."""
    keep = graph.degree > (0 if boundary else 1)
    if boundary:
        return np.asarray(keep)
    leaf = graph.degree == 1
    for _ in range(times - 1):
        near = graph.at_ends((leaf[graph.head] | leaf[graph.tail]).astype(float)) > 0
        leaf = leaf | near
    return np.asarray(keep & ~leaf)


def _node_maps(graph: Graph, nodes: Any) -> dict[int, Array]:
    if nodes is None:
        return {}
    if not isinstance(nodes, dict):
        one = _matrix(nodes, "nodes")
        return dict.fromkeys(range(graph.n_nodes), one)
    return {graph.position(node): _matrix(F, f"nodes[{node!r}]") for node, F in nodes.items()}


def _edge_maps(graph: Graph, edges: Any) -> dict[tuple[int, int], tuple[Array, Array]]:
    """The maps of single edges, at the smaller position first."""
    out: dict[tuple[int, int], tuple[Array, Array]] = {}
    if not isinstance(edges, dict | None):
        raise ValueError(f"edges must be a dict by pairs of node ids; got {type_name(edges)}.")
    there = set(map(tuple, np.c_[graph.head, graph.tail].tolist()))
    for pair, maps in (edges or {}).items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise ValueError(f"edges must name pairs of node ids; got {pair!r}.")
        if not isinstance(maps, tuple | list) or len(maps) != 2:
            raise ValueError(f"edges[{pair!r}] must be a pair of maps (F, G); got {maps!r}.")
        i, j = graph.position(pair[0]), graph.position(pair[1])
        if (min(i, j), max(i, j)) not in there:
            raise ValueError(f"edges names {pair!r}, which is no edge of the graph.")
        if (min(i, j), max(i, j)) in out:
            raise ValueError(f"edges names {pair!r} twice, in both orders. Drop one.")
        first, second = (_matrix(F, f"edges[{pair!r}]") for F in maps)
        out[min(i, j), max(i, j)] = (first, second) if i < j else (second, first)
    return out


def _matrix(F: Any, name: str) -> Array:
    found = as_float_array(F, name, 2)
    check_finite(found, lambda at: f"{name}[{at[0]}, {at[1]}]")
    if not found.any():
        raise ValueError(f"{name} must not be zero: it would compare nothing.")
    return found


def _lengths(graph: Graph, own: Any, ends: Any, d: Any) -> list[int]:
    """d_i of each node, from its maps, or else as given."""
    told: dict[int, int] = {}
    seen = [(i, F) for i, F in own.items()]
    seen += [(i, F) for pair, maps in ends.items() for i, F in zip(pair, maps, strict=True)]
    for i, F in seen:
        if told.setdefault(i, F.shape[1]) != F.shape[1]:
            node = graph.ids[i : i + 1].tolist()[0]
            raise ValueError(
                f"The maps of node {node!r} must have equally many columns; got {told[i]} and "
                f"{F.shape[1]}."
            )
    if isinstance(d, dict):
        for node, length in d.items():
            length = check_count(length, f"d[{node!r}]", low=1)
            if told.setdefault(graph.position(node), length) != length:
                raise ValueError(
                    f"d[{node!r}] must be the number of columns of the node's maps "
                    f"({told[graph.position(node)]}); got {length}."
                )
    rest = max(told.values(), default=1) if d is None or isinstance(d, dict) else d
    rest = check_count(rest, "d", low=1)
    return [told.get(i, rest) for i in range(graph.n_nodes)]


def _pair(graph: Graph, e: int, own: Any, ends: Any, lengths: list[int]) -> tuple[Array, Array]:
    """The maps at both ends of an edge, the identity where there is none."""
    pair = int(graph.head[e]), int(graph.tail[e])
    if pair in ends:
        F, G = ends[pair]
    else:
        F, G = (own.get(i, np.eye(lengths[i])) for i in pair)
    if len(F) != len(G):
        raise ValueError(
            f"Both maps of an edge must have equally many rows; got {len(F)} and {len(G)} at "
            f"{graph.describe_edge(e)}."
        )
    return F, G
