"""Checks of packed rows: what must hold of lengths, ids and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_finite
from nefele._ids import IdIndex, as_ids, unknown_ids_message

Index = NDArray[np.int64]


def as_offsets(ptr: Any) -> Index:
    """Row offsets as integers."""
    array = np.asarray(ptr)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"ptr must be a one-dimensional integer array; got {array.dtype} of {array.shape}."
        )
    if len(array) < 2:
        raise ValueError("The data must have at least one node; got none.")
    return array.astype(np.int64)


def check_shape(ptr: Index, ids: NDArray[Any], names: Sequence[str], rows: int, d: int) -> None:
    """Raise unless offsets, ids and feature names fit rows of this number and length."""
    if ptr[0] != 0 or ptr[-1] != rows:
        raise ValueError(f"ptr must run from 0 to the number of rows ({rows}).")
    if (np.diff(ptr) < 0).any():
        raise ValueError("ptr must not decrease.")
    if len(ids) != len(ptr) - 1:
        raise ValueError(f"nodes must have {len(ptr) - 1} ids; got {len(ids)}.")
    index = IdIndex(ids)
    if not index.unique:
        raise ValueError(f"Node ids must be distinct; {index.first_duplicate()!r} is repeated.")
    if d == 0:
        raise ValueError("X must have at least one feature column; got none.")
    if len(names) != d:
        raise ValueError(f"feature_names must have {d} names; got {len(names)}.")


def check_by_row(values: Array | None, name: str, rows: int, place: Callable[[int], str]) -> None:
    """Raise unless there is one finite number per row."""
    if values is None:
        return
    if len(values) != rows:
        raise ValueError(f"{name} must have one entry per row ({rows}); got {len(values)}.")
    check_finite(values, lambda at: f"{name} at {place(at[0])}")


def check_weights(values: Array, place: Callable[[int], str]) -> None:
    """Raise when a row's weight is negative."""
    if (values < 0).any():
        r = int(np.argmax(values < 0))
        raise ValueError(f"sample_weight must be >= 0; got {values[r]} at {place(r)}.")


def check_weight_sums(totals: Array, ids: NDArray[Any]) -> None:
    """Raise when the weights of a node's rows add up to more than a number can be."""
    bad = np.flatnonzero(~np.isfinite(totals))
    if bad.size:
        node = ids[bad[0] : bad[0] + 1].tolist()[0]
        raise ValueError(
            f"The sum of a node's sample_weight must be finite; got {totals[bad[0]]} at node "
            f"{node!r}. Divide the weights by the largest: only their ratios count."
        )


def check_node_weight(weight: Array, ids: NDArray[Any]) -> None:
    """Raise unless there is one finite factor >= 0 per node."""
    if len(weight) != len(ids):
        raise ValueError(
            f"node_weight must have one entry per node ({len(ids)}); got {len(weight)}."
        )
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        node = ids[bad[0] : bad[0] + 1].tolist()[0]
        raise ValueError(
            f"node_weight must be finite and >= 0; got {weight[bad[0]]} at node {node!r}."
        )


def check_shrink(shrink: Array, names: Sequence[str]) -> None:
    """Raise unless there is one finite factor >= 0 per column."""
    if len(shrink) != len(names):
        raise ValueError(
            f"shrink must have one entry per column ({len(names)}); got {len(shrink)}."
        )
    bad = np.flatnonzero(~(np.isfinite(shrink) & (shrink >= 0)))
    if bad.size:
        raise ValueError(
            f"shrink must be finite and >= 0; got {shrink[bad[0]]} at column "
            f'"{names[bad[0]]}". Use 0 to spare a column.'
        )


def as_node_weight(weight: Any, ids: NDArray[Any]) -> Array | None:
    """Factors in the order of the ids, given so or by id; ids that are not named have 1."""
    if weight is None:
        return None
    if not isinstance(weight, dict):
        return as_float_array(weight, "node_weight", 1)
    keys = as_ids(list(weight))
    where = IdIndex(ids).positions(keys)
    if (where < 0).any():
        raise ValueError(unknown_ids_message(ids, keys[where < 0], "node_weight"))
    out = np.ones(len(ids))
    out[where] = as_float_array(list(weight.values()), "node_weight", 1)
    return out
