"""Features of the nodes, not of their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import IdIndex, distinct


def group_level(X: Array, node_ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Which columns never change inside a node, though they differ between nodes.

    No node can learn the coefficient of such a column from its own rows.

    Parameters
    ----------
    X : array of shape (n_rows, d)
    node_ids : array of shape (n_rows,)

    Returns
    -------
    bool array of shape (d,)
        All False unless some node has two rows.

    Examples
    --------
    >>> X = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 7.0]])
    >>> group_level(X, np.array(["a", "a", "b"])).tolist()
    [False, True]
    """
    nodes = distinct(node_ids)
    if len(nodes) == len(node_ids) or len(nodes) < 2:
        return np.zeros(X.shape[1], dtype=bool)
    owner = IdIndex(nodes).positions(node_ids)
    first = np.zeros(len(nodes), dtype=np.int64)
    first[owner[::-1]] = np.arange(len(owner))[::-1]  # the first row of each node
    fixed = (X[first[owner]] == X).all(axis=0)
    return np.asarray(fixed & (X[0] != X).any(axis=0))
