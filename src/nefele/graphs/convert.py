"""Graphs from what people already have; libraries are recognised without importing them."""

from __future__ import annotations

import difflib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import Array, as_float_array, check_name, type_name
from nefele._ids import IdIndex, as_ids, describe, distinct
from nefele.graph import MERGES, Graph, Index
from nefele.graphs._adjacency import fold_directions, square, undirected

_SYNONYMS = {
    "source": ("from", "src", "head", "start", "u", "i", "node1", "id1", "origin", "focal"),
    "target": ("to", "dst", "dest", "tail", "end", "v", "j", "node2", "id2", "destination"),
    "weight": ("w", "weights", "value", "strength", "similarity"),
}
_ACCEPTED = (
    "an edge list as a pandas or polars table, a networkx or igraph graph, a SciPy or dense "
    "adjacency matrix, a PyG Data, a libpysal W or Graph, or a nefele Graph"
)


class _Parts(NamedTuple):
    """Own ids of an input, and its edges as positions in them."""

    ids: NDArray[Any]
    head: Index
    tail: Index
    weight: Array | None


def as_graph(
    obj: Any, nodes: Any = None, *, weight: str | None = "weight", merge: str = "error"
) -> Graph:
    """Graph from an object of another library, matched by node id.

    ==========================  ================================================================
    Input                       Node ids and weights
    ==========================  ================================================================
    `Graph`                     returned as it is
    pandas or polars table      columns source, target and, if wanted, weight
    networkx                    its nodes; edge attribute "weight", 1 where it is missing
    igraph                      vertex "name" or 0, 1, ...; edge attribute "weight" or 1
    SciPy sparse, dense array   symmetric adjacency; row i belongs to `nodes[i]`
    PyG Data, integer (2, E)    0, 1, ...; `edge_weight`, else `edge_attr` of one column, else 1
    libpysal W, Graph           its ids and weights
    ==========================  ================================================================

    Parameters
    ----------
    obj : object
        One of the inputs above.
    nodes : sequence of ids, optional
        All node ids, in the order wanted; nodes without edges are legal, and every id of `obj`
        must be among them. Needed for a matrix, which has no ids. Default: the ids of `obj`.
    weight : str or None
        Column or edge attribute with the weights; under another name than "weight" it must be
        there. None ignores weights: every edge counts 1.
    merge : {"error", "sum", "max", "mean"}
        What to do with an edge that is given more than once, in both directions of a directed
        graph, or with a_ij != a_ji in a matrix (where a missing entry is 0). In PyG both
        directions with equal weight are one edge, under any rule.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"source": ["Oulu", "Kemi"], "target": ["Kemi", "Inari"]})
    >>> g = as_graph(df, nodes=["Oulu", "Kemi", "Inari", "Hanko"])
    >>> g.degree.tolist()
    [1, 2, 1, 0]
    """
    check_name(merge, MERGES, "merge rule")
    if isinstance(obj, Graph):
        if nodes is None and weight is not None:
            return obj
        obj.check_plain("as_graph with nodes or weight")
        own = _Parts(obj.ids, obj.head, obj.tail, None if weight is None else obj.weight)
    else:
        own = _parts(obj, nodes, weight, merge)
    if nodes is None:
        return Graph(own.ids, own.head, own.tail, own.weight, merge=merge)
    wanted = as_ids(nodes)
    place = IdIndex(wanted).positions(own.ids)
    if (place < 0).any():
        raise ValueError(_missing_message(wanted, own.ids[place < 0]))
    return Graph(wanted, place[own.head], place[own.tail], own.weight, merge=merge)


def _parts(obj: Any, nodes: Any, weight: str | None, merge: str) -> _Parts:
    libraries = {c.__module__.partition(".")[0] for c in type(obj).__mro__}
    if libraries & {"pandas", "polars"}:
        return _from_frame(obj, weight)
    if "networkx" in libraries:
        return _from_networkx(obj, weight)
    if "igraph" in libraries:
        return _from_igraph(obj, weight)
    if "libpysal" in libraries:
        return _from_libpysal(obj, weight, merge)
    if sparse.issparse(obj):
        return _from_matrix(obj, nodes, weight, merge)
    if hasattr(obj, "edge_index"):
        return _from_pyg(obj, weight)
    return _from_array(obj, nodes, weight, merge)


def _missing_message(wanted: NDArray[Any], missing: NDArray[Any]) -> str:
    text = f"nodes must list every node of the graph; missing: {describe(missing)}."
    kinds = {type(key).__name__ for key in wanted[:1].tolist() + missing[:1].tolist()}
    if len(kinds) > 1:
        return f"{text} nodes has ids such as {describe(wanted[:1])}: convert one side."
    return f"{text} Given: {describe(wanted)}. Add them, or remove them from the graph."


def _from_frame(df: Any, weight: str | None) -> _Parts:
    if not hasattr(df, "to_numpy") or not hasattr(df, "columns"):
        raise ValueError(
            f"An edge list must be a DataFrame; got {type(df).__name__}. "
            "Use .collect() on a lazy table first; a Series has only one column."
        )
    columns = [str(c) for c in df.columns]
    required = ["source", "target"]
    allowed = [*required, "weight" if weight is None else weight]
    if weight not in (None, "weight"):
        required = allowed
    if (
        len(set(columns)) < len(columns)
        or set(columns) - set(allowed)
        or set(required) - set(columns)
    ):
        raise ValueError(columns_message(columns, allowed, required))
    first, second = as_ids(df["source"], "source id"), as_ids(df["target"], "target id")
    ids = distinct(first, second)
    index = IdIndex(ids)
    values = as_float_array(df[weight], "weight", 1) if weight in columns else None
    return _Parts(ids, index.positions(first), index.positions(second), values)


def columns_message(columns: list[str], allowed: list[str], required: list[str]) -> str:
    rename = {}
    for name in allowed:
        if name not in columns:
            close = [c for c in columns if c.lower() in (name, *_SYNONYMS.get(name, ()))]
            close = close or difflib.get_close_matches(name, columns, n=1)
            rename.update({c: name for c in close[:1] if c not in allowed})
    optional = [name for name in allowed if name not in required]
    text = f"An edge list must have the columns {', '.join(required)}"
    text += f" and at most {', '.join(optional)}" if optional else ""
    text += f"; got {', '.join(columns) or 'none'}."
    if rename:
        text += f" Rename {', '.join(f'{old!r} to {new!r}' for old, new in rename.items())}."
    if set(columns) - set(allowed) - set(rename):
        text += f" Select only the columns of the edge list: {', '.join(allowed)}."
    return text


def _from_networkx(graph: Any, weight: str | None) -> _Parts:
    place = {node: i for i, node in enumerate(graph.nodes)}
    head, tail, values = [], [], []
    for u, v, value in graph.edges(data=weight or "weight", default=None):
        if value is None and weight not in (None, "weight"):
            raise ValueError(
                f'Every edge must have the attribute "{weight}"; ({u!r}, {v!r}) has none. '
                "Set it, or ignore weights by weight=None."
            )
        head.append(place[u])
        tail.append(place[v])
        values.append(1.0 if value is None or weight is None else value)
    weights = as_float_array(values, "weight", 1)
    return _Parts(as_ids(list(place)), _index(head), _index(tail), weights)


def _from_igraph(graph: Any, weight: str | None) -> _Parts:
    n = graph.vcount()
    ids = as_ids(graph.vs["name"]) if "name" in graph.vs.attributes() else np.arange(n)
    names = graph.es.attributes()
    if weight is not None and weight != "weight":
        check_name(weight, names, "edge attribute")
    edges = _index(graph.get_edgelist()).reshape(-1, 2)
    values = as_float_array(graph.es[weight], "weight", 1) if weight in names else None
    return _Parts(ids, edges[:, 0], edges[:, 1], values)


def _from_libpysal(obj: Any, weight: str | None, merge: str) -> _Parts:
    if hasattr(obj, "id_order"):
        ids, binary = as_ids(obj.id_order), 'w.transform = "b"'
    elif hasattr(obj, "unique_ids"):
        ids, binary = as_ids(obj.unique_ids), 'g.transform("b")'
    else:
        raise ValueError(_unknown_message(obj))
    advice = (
        f"Row-standardised weights are not symmetric: make them binary by {binary} or "
        'weight=None; for one-sided neighbours use merge="max" or "mean".'
    )
    return _fold(square(obj.sparse), ids, weight, merge, advice)


def _from_matrix(matrix: Any, nodes: Any, weight: str | None, merge: str) -> _Parts:
    coordinates = square(matrix)
    n = coordinates.shape[0]
    if nodes is None:
        raise ValueError(
            f"An adjacency matrix has no node ids: nodes must name its {n} rows. "
            "Use as_graph(matrix, nodes=range(n)) for 0, 1, ..."
        )
    ids = as_ids(nodes)
    if len(ids) != n:
        raise ValueError(f"nodes must have one id per row of the adjacency ({n}); got {len(ids)}.")
    advice = 'Symmetrise it, or use merge="mean", "max" or "sum".'
    return _fold(coordinates, ids, weight, merge, advice)


def _fold(
    matrix: sparse.coo_array, ids: NDArray[Any], weight: str | None, merge: str, advice: str
) -> _Parts:
    if weight is None:
        matrix.data = (matrix.data != 0).astype(np.float64)
    return _Parts(ids, *undirected(matrix, ids, merge, advice))


def _from_pyg(data: Any, weight: str | None) -> _Parts:
    edges = _numpy(data.edge_index)
    if edges.ndim != 2 or edges.shape[0] != 2 or (edges.size and edges.dtype.kind not in "iu"):
        raise ValueError(
            f"edge_index must be an integer array of shape (2, E); got {edges.dtype} of shape "
            f"{edges.shape}."
        )
    return _from_edge_index(edges, getattr(data, "num_nodes", None), _pyg_weight(data, weight))


def _pyg_weight(data: Any, weight: str | None) -> Array | None:
    if weight is None:
        return None
    names = ("edge_weight", "edge_attr") if weight == "weight" else (weight,)
    for name in names:
        values = getattr(data, name, None)
        if values is None:
            continue
        array = _numpy(values)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise ValueError(
                f"{name} must have one number per edge, shape (E,) or (E, 1); got {array.shape}. "
                "Set edge_weight, or ignore weights by weight=None."
            )
        return as_float_array(array, name, 1)
    if weight != "weight":
        raise ValueError(f'No edge attribute "{weight}". Use weight=None to ignore weights.')
    return None


def _from_edge_index(edges: NDArray[Any], n: Any, weight: Array | None) -> _Parts:
    head, tail = edges.astype(np.int64)
    largest = int(edges.max()) if edges.size else -1
    n = largest + 1 if n is None else int(n)
    if largest >= n or (edges.size and edges.min() < 0):
        raise ValueError(
            f"edge_index must hold node numbers 0..{n - 1}; got {edges.min()}..{largest}. "
            "Correct num_nodes or the edges."
        )
    values = np.ones(len(head)) if weight is None else weight
    if len(values) == len(head):  # a wrong length is left for Graph to report
        head, tail, values = fold_directions(head, tail, values, n)
    return _Parts(np.arange(n), head, tail, values)


def _from_array(obj: Any, nodes: Any, weight: str | None, merge: str) -> _Parts:
    if not (hasattr(obj, "__array__") or isinstance(obj, list | tuple)):
        raise ValueError(_unknown_message(obj))
    try:
        array = _numpy(obj)
    except ValueError:
        raise ValueError(_unknown_message(obj)) from None
    integer = array.dtype.kind in "iu"
    if array.ndim != 2 or array.dtype.kind not in "fiubc":
        raise ValueError(_unknown_message(obj))
    if integer and array.shape == (2, 2):
        raise ValueError(
            "An integer array of shape (2, 2) may be an adjacency or an edge index. Use "
            "as_graph(array.astype(float), nodes) for an adjacency, "
            "Graph.from_edges(array.T) for an edge index."
        )
    if array.shape[0] == array.shape[1]:
        return _from_matrix(array, nodes, weight, merge)
    if integer and array.shape[0] == 2:
        return _from_edge_index(array, None, None)
    raise ValueError(
        f"An array must be a square adjacency or an integer edge index of shape (2, E); got "
        f"{array.dtype} of shape {array.shape}. Use Graph.from_edges for pairs of ids."
    )


def _unknown_message(obj: Any) -> str:
    return (
        f"as_graph takes {_ACCEPTED}; got {type_name(obj)}. Use Graph.from_edges for pairs of ids."
    )


def _numpy(values: Any) -> NDArray[Any]:
    """Array of a tensor, also of one that tracks gradients or lives on a device."""
    for method in ("detach", "cpu"):
        if hasattr(values, method):
            values = getattr(values, method)()
    return np.asarray(values)


def _index(values: list[Any]) -> Index:
    return np.array(values, dtype=np.int64)
