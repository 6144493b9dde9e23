"""Rows as people have them, brought into the packed form of `LocalData` (NFL, Eq. (4))."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import (
    Array,
    as_float_array,
    check_flag,
    check_name,
    numpy_without_na,
    type_name,
)
from nefele._ids import IdIndex, as_ids, distinct, unknown_ids_message

Index = NDArray[np.int64]


class Packed(NamedTuple):
    """Rows node by node: the arguments of `LocalData`, which checks them."""

    X: Array
    y: Array
    ptr: Index
    nodes: NDArray[Any]
    sample_weight: Array | None
    offset: Array | None


class Columns(NamedTuple):
    """Columns of a table by their role, rows in the order of the table."""

    X: Array
    y: Array
    node_ids: Any
    sample_weight: Array | None
    offset: Array | None
    feature_names: list[str]


def packed(
    X: Array,
    y: Array,
    owner: Index,
    ids: NDArray[Any],
    sample_weight: Array | None,
    offset: Array | None,
) -> Packed:
    """Sort rows by owner (stable) and build the offsets."""
    ptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(ids)))])
    if not np.all(owner[1:] >= owner[:-1]):
        order = np.argsort(owner, kind="stable")
        X, y = X[order], y[order]
        sample_weight = None if sample_weight is None else sample_weight[order]
        offset = None if offset is None else offset[order]
    return Packed(X, y, ptr, ids, sample_weight, offset)


def packed_long(
    X: Any, y: Any, node_ids: Any, nodes: Any, sample_weight: Any, offset: Any = None
) -> Packed:
    """Pack one long table, given the node id of each row."""
    X, y = as_float_array(X, "X", 2), as_float_array(y, "y", 1)
    keys = as_ids(node_ids)
    for name, size in (("y", len(y)), ("node_ids", len(keys))):
        if size != len(X):
            raise ValueError(f"{name} must have one entry per row of X ({len(X)}); got {size}.")
    sample_weight = _by_row(sample_weight, "sample_weight", len(X))
    offset = _by_row(offset, "offset", len(X))
    ids = distinct(keys) if nodes is None else as_ids(nodes)
    owner = IdIndex(ids).positions(keys)
    if (owner < 0).any():
        raise ValueError(unknown_ids_message(ids, distinct(keys[owner < 0]), "the rows"))
    return packed(X, y, owner, ids, sample_weight, offset)


def _by_row(values: Any, name: str, rows: int) -> Array | None:
    if values is None:
        return None
    values = as_float_array(values, name, 1)
    if len(values) != rows:
        raise ValueError(f"{name} must have one entry per row ({rows}); got {len(values)}.")
    return values


def packed_list(
    datasets: Sequence[tuple[Any, Any] | None], nodes: Any, pad: bool = False
) -> Packed:
    """Pack a list of (X_i, y_i), one per node; None or empty means no data.

    With `pad` the widest X_i sets the number of columns, others end in zeros.
    """
    check_flag(pad, "pad")
    ids = np.arange(len(datasets)) if nodes is None else as_ids(nodes)
    if len(ids) != len(datasets):
        raise ValueError(f"nodes must have {len(datasets)} ids; got {len(ids)}.")
    parts: list[tuple[Array, Array]] = []
    counts = np.zeros(len(datasets), dtype=np.int64)
    d = None
    for i, item in enumerate(datasets):
        if item is None or (len(item[1]) == 0 and _length(item[0]) == 0):
            if pad and item is not None and np.ndim(item[0]) == 2:
                d = max(np.shape(item[0])[1], d or 0)
            continue
        name = f"node {ids[i : i + 1].tolist()[0]!r}"
        Xi, yi = (
            as_float_array(item[0], f"X of {name}", 2),
            as_float_array(item[1], f"y of {name}", 1),
        )
        if len(Xi) != len(yi):
            raise ValueError(f"X and y of {name} must be equally long: {len(Xi)}, {len(yi)}.")
        if d is not None and Xi.shape[1] != d and not pad:
            raise ValueError(f"All nodes must have {d} features; {name} has {Xi.shape[1]}.")
        d = max(Xi.shape[1], d or 0)
        counts[i] = len(yi)
        parts.append((Xi, yi))
    if not parts:
        raise ValueError("At least one node must have data; got none.")
    parts = [(np.pad(Xi, ((0, 0), (0, d - Xi.shape[1]))), yi) for Xi, yi in parts]
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return Packed(X, y, np.concatenate([[0], np.cumsum(counts)]), ids, None, None)


def columns_of(
    df: Any,
    node: str,
    target: str,
    features: Sequence[str] | None,
    sample_weight: str | None,
    offset: str | None = None,
    spare: Sequence[str] = (),
) -> Columns:
    """Take the columns out of a pandas or polars table; those to spare are no features."""
    if not hasattr(df, "to_numpy") or not hasattr(df, "columns"):
        advice = "Use .collect() first." if hasattr(df, "collect") else "Convert it first."
        raise ValueError(f"df must be a pandas or polars DataFrame; got {type_name(df)}. {advice}")
    columns = {str(c): df[c] for c in df.columns}
    if len(columns) != len(df.columns):
        raise ValueError(f"Column names must be distinct; got {', '.join(map(str, df.columns))}.")
    node, target = str(node), str(target)
    by_row = [None if name is None else str(name) for name in (sample_weight, offset)]
    roles = [node, target, *(name for name in by_row if name is not None), *spare]
    if features is None:
        chosen = [c for c in columns if c not in roles]
    else:
        chosen = [features] if isinstance(features, str) else [str(c) for c in features]
    for name in [*roles, *chosen]:
        check_name(name, columns, "column")
    X = np.empty((len(df), len(chosen)))
    for j, name in enumerate(chosen):
        X[:, j] = _numeric_column(columns[name], name, " or leave it out by features=[...]")
    weights, offsets = (
        None if name is None else _numeric_column(columns[name], name) for name in by_row
    )
    return Columns(
        X,
        _numeric_column(columns[target], target),
        columns[node].to_numpy(),
        weights,
        offsets,
        chosen,
    )


def node_column(df: Any, name: str, node_ids: Any) -> dict[Any, float]:
    """A column that is equal in all rows of a node, by node id."""
    values, keys = _numeric_column(df[name], name), as_ids(node_ids)
    ids = distinct(keys)
    place = IdIndex(ids).positions(keys)
    first = np.zeros(len(ids))
    first[place[::-1]] = values[::-1]
    if not np.array_equal(first[place], values):
        at = int(np.argmax(first[place] != values))
        node = keys[at : at + 1].tolist()[0]
        raise ValueError(
            f'Column "{name}" must be equal in all rows of a node; node {node!r} has '
            f"{first[place[at]]:g} and {values[at]:g}."
        )
    return dict(zip(ids.tolist(), first.tolist(), strict=True))


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _numeric_column(column: Any, name: str, otherwise: str = "") -> Array:
    values = numpy_without_na(column)
    advice = f"Encode it as numbers{otherwise}."
    if values.dtype.kind in "Mmc":
        raise ValueError(f'Column "{name}" must be real numbers; got {column.dtype}. {advice}')
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f'Column "{name}" must be numeric; got {column.dtype}. {advice}') from None
