"""The node ids of the rows: taken out of X, or given beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import check_name, is_frame, type_name
from nefele._ids import as_ids, describe, did_you_mean, distinct
from nefele.graph import Graph

Ids = NDArray[Any]


def split_nodes(X: Any, node: Any, node_ids: Any = None) -> tuple[Any, Ids | None]:
    """X without its node column, and the node id of each row (None: one pooled node).

    `node` is the name of the node column of a table, or its position; without one, the ids may come
    by `node_ids`.

    Examples
    --------
    >>> X, ids = split_nodes(np.array([[1.5, "007"], [2.5, "008"]], dtype=object), node=1)
    >>> X.tolist(), ids.tolist()
    ([[1.5], [2.5]], ['007', '008'])
    """
    if node_ids is not None:
        if node is not None and is_frame(X) and node in list(X.columns):
            raise ValueError(
                f"The node ids must come from one place; got node_ids and the column {node!r} of "
                "X. Leave out one of them."
            )
        return X, _per_row(as_ids(node_ids), X)
    if node is None:
        return X, None
    rest, column = take_column(X, node)
    ids = as_ids(column, f"node id (column {node!r})")
    alone = len(X.columns) == 1 if is_frame(X) else rest.shape[1] == 0
    if alone:  # some tables without columns forget how many rows they have
        rest = np.empty((len(ids), 0))
    return rest, ids


def text_column(X: Any) -> tuple[Any, Any] | None:
    """Name or position of the first column of X that holds text which is no number, and the text.

    None when there is no such column.
    """
    names = list(X.columns) if is_frame(X) else None
    for name in names or []:
        column = np.asarray(X[name].to_numpy())
        if column.dtype.kind in "Mm" and len(column):
            return name, str(column[0])
    values = np.asarray(X.to_numpy() if is_frame(X) else X)
    if values.ndim != 2 or values.dtype.kind not in "OUT":
        return None
    for place in range(values.shape[1]):
        for value in values[:, place].tolist():
            if isinstance(value, str) and not _is_number(value):
                return (place if names is None else names[place]), value
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def take_column(X: Any, node: Any) -> tuple[Any, Any]:
    """X without its node column, and this column as it is."""
    return _from_frame(X, node) if is_frame(X) else _from_array(X, node)


def column_of_array(X: Any, node: str, place: int | None, width: int) -> str | int:
    """The position that the node column had in `fit`, for an array with the same columns."""
    fits = hasattr(X, "shape") and len(X.shape) == 2 and X.shape[1] == width
    return place if place is not None and fits and not sparse.issparse(X) else node


def _per_row(ids: Ids, X: Any) -> Ids:
    rows = X.shape[0] if hasattr(X, "shape") and len(X.shape) else len(X)
    if len(ids) != rows:
        raise ValueError(f"node_ids must have one id per row of X ({rows}); got {len(ids)}.")
    return ids


def _from_frame(X: Any, node: Any) -> tuple[Any, Any]:
    names = list(X.columns)
    if isinstance(node, int | np.integer) and node not in names:
        node = names[_position(int(node), len(names))]
    if node not in names:
        check_name(str(node), [str(name) for name in names], "node column")
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(
            f"The columns of X must have distinct names; got {twice[0]!r} "
            f"{names.count(twice[0])} times. Rename or drop the others."
        )
    return X[[name for name in names if name != node]], X[node]


def _from_array(X: Any, node: Any) -> tuple[Any, Any]:
    if not isinstance(node, int | np.integer) or isinstance(node, bool):
        raise ValueError(
            f"node={node!r} names a column, but X is a {type_name(X)} without column names. Pass "
            "a pandas or polars table (in a pipeline, wrap transformers by nefele.keep_node), "
            "or the position of the column, or the ids by node_ids=."
        )
    if sparse.issparse(X):
        raise ValueError("A sparse X cannot hold node ids; pass them by node_ids=.")
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"X must have 2 dimensions, one of them the node column; got {array.ndim}."
        )
    place = _position(int(node), array.shape[1])
    rest = np.delete(array, place, axis=1)
    # Numbers written as text, as in an array that holds text ids as well.
    return (rest.astype(object) if rest.dtype.kind == "U" else rest), array[:, place]


def _position(node: int, width: int) -> int:
    if not -width <= node < width:
        raise ValueError(f"node must be a column position 0..{width - 1}; got {node}.")
    return node % width


def row_places(graph: Graph, ids: Ids) -> NDArray[np.int64]:
    """The position of each training row's node; a ValueError when the graph lacks some."""
    place = graph.positions(ids)
    if (place < 0).any():
        raise ValueError(mismatch_message(graph.ids, ids, ids[place < 0]))
    return place


def mismatch_message(known: Ids, ids: Ids, unknown: Ids) -> str:
    """Error text for training ids that the graph lacks: which, and how many on both sides."""
    given = distinct(ids)
    missing = distinct(unknown)
    idle = len(known) - (len(given) - len(missing))
    text = (
        f"Every node id of X must be a node of the graph; {len(missing)} of {len(given)} are not: "
        f"{describe(missing)}.{did_you_mean(known, missing)} The graph has {len(known)} nodes, "
        f"{idle} of them without rows: {describe(known)}."
    )
    if known.dtype.kind != missing.dtype.kind:
        return (
            f"{text} Ids such as {describe(known[:1])} and {describe(missing[:1])} never match: "
            "convert one side."
        )
    return f"{text} Drop these rows, or name all nodes by nefele.as_graph(graph, nodes=[...])."


def unseen_message(known: Ids, unknown: Ids, why: str) -> str:
    """Error text for ids at prediction that have no model."""
    missing = distinct(unknown)
    text = (
        f"{len(missing)} node id(s) were not seen in fit: {describe(missing)}."
        f"{did_you_mean(known, missing)} Known are {len(known)}: {describe(known)}."
    )
    if known.dtype.kind != missing.dtype.kind:
        return f"{text} Their types differ: convert one side."
    return f"{text} {why}"
