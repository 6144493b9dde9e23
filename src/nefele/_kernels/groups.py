"""Sums and means over groups of nodes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

Index = NDArray[np.int64]

_COMPILED = 20_000  # numbers from which a compiled loop pays off


def group_sums(groups: Index, values: NDArray[Any]) -> Array:
    """Sum of the values of each group's nodes, first axis of length n_groups.

    Examples
    --------
    >>> group_sums(np.array([0, 1, 0]), np.array([[1.0], [2.0], [3.0]])).tolist()
    [[4.0], [2.0]]
    """
    rows = values.reshape(len(values), math.prod(values.shape[1:]))
    if rows.size >= _COMPILED:
        from nefele._kernels.edges import add_rows

        sums = np.zeros((int(groups.max()) + 1, rows.shape[1]))
        add_rows(groups, np.asarray(rows, dtype=float), sums)
    else:
        sums = np.stack([np.bincount(groups, column) for column in rows.T], axis=1)
    return np.asarray(sums, dtype=float).reshape(-1, *values.shape[1:])


def group_means(groups: Index, values: Array) -> Array:
    """Mean over each node's group, shape of the values (n_nodes, d)."""
    return (group_sums(groups, values) / np.bincount(groups)[:, None])[groups]
