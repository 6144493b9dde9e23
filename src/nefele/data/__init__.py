"""Local datasets, packed node by node into one array (NFL, Eq. (4))."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_finite
from nefele._html import count, facts, shown
from nefele._ids import IdIndex, as_ids, unknown_ids_message
from nefele.data._building import Index, columns_of, packed, packed_list, packed_long


class LocalData:
    """All rows of all nodes: node i owns rows `ptr[i]:ptr[i+1]`, perhaps none.

    Parameters
    ----------
    X : array of shape (n_rows, d)
        Features, node by node.
    y : array of shape (n_rows,)
        Labels.
    ptr : int array of shape (n_nodes + 1,)
        Row offsets: 0 = ptr[0] <= ... <= ptr[n_nodes] = n_rows.
    nodes : sequence of ids, optional
        Node ids; default 0, 1, ...
    sample_weight : array of shape (n_rows,), optional
        Row weights >= 0. A node's loss is the weighted mean over its rows.
    feature_names : sequence of str, optional
        Names of the columns of X.
    node_weight : array of shape (n_nodes,), optional
        Factor >= 0 of each node's mean loss; default 1. With m_i / mean(m) every row counts once.
    shrink : array of shape (d,), optional
        How much of each column the l2 and l1 terms of a loss see, >= 0; default 1. They are
        l2 ||shrink * w||^2 and l1 ||shrink * w||_1: a column of 0 is spared, such as a constant.

    Examples
    --------
    >>> rows = [([[1.0], [2.0]], [1.0, 2.0]), ([[3.0]], [3.0])]
    >>> data = LocalData.from_list(rows, nodes=["a", "b"])
    >>> data.n_nodes, data.n_rows, data.counts.tolist()
    (2, 3, [2, 1])
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        ptr: Any,
        nodes: Any = None,
        *,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
        node_weight: Any = None,
        shrink: Any = None,
    ) -> None:
        self.X = as_float_array(X, "X", 2)
        self.y = as_float_array(y, "y", 1)
        self.ptr = _as_offsets(ptr)
        n = len(self.ptr) - 1
        self.ids = np.arange(n) if nodes is None else as_ids(nodes)
        self.sample_weight = (
            None if sample_weight is None else as_float_array(sample_weight, "sample_weight", 1)
        )
        self.node_weight = (
            None if node_weight is None else as_float_array(node_weight, "node_weight", 1)
        )
        self.shrink = None if shrink is None else as_float_array(shrink, "shrink", 1)
        self.feature_names = (
            [f"x{j}" for j in range(self.X.shape[1])]
            if feature_names is None
            else [str(name) for name in feature_names]
        )
        self._check()

    def _check(self) -> None:
        rows, d = self.X.shape
        if self.ptr[0] != 0 or self.ptr[-1] != rows:
            raise ValueError(f"ptr must run from 0 to the number of rows ({rows}).")
        if (np.diff(self.ptr) < 0).any():
            raise ValueError("ptr must not decrease.")
        if len(self.ids) != len(self.ptr) - 1:
            raise ValueError(f"nodes must have {len(self.ptr) - 1} ids; got {len(self.ids)}.")
        index = IdIndex(self.ids)
        if not index.unique:
            raise ValueError(f"Node ids must be distinct; {index.first_duplicate()!r} is repeated.")
        if d == 0:
            raise ValueError("X must have at least one feature column; got none.")
        if len(self.feature_names) != d:
            raise ValueError(f"feature_names must have {d} names; got {len(self.feature_names)}.")
        for name, values in (("y", self.y), ("sample_weight", self.sample_weight)):
            if values is not None and len(values) != rows:
                raise ValueError(f"{name} must have one entry per row ({rows}); got {len(values)}.")
        check_finite(
            self.X, lambda at: f'X at {self._place(at[0])}, column "{self.feature_names[at[1]]}"'
        )
        check_finite(self.y, lambda at: f"y at {self._place(at[0])}")
        if self.sample_weight is not None:
            check_finite(self.sample_weight, lambda at: f"sample_weight at {self._place(at[0])}")
            if (self.sample_weight < 0).any():
                r = int(np.argmax(self.sample_weight < 0))
                raise ValueError(
                    f"sample_weight must be >= 0; got {self.sample_weight[r]} at {self._place(r)}."
                )
        if self.node_weight is not None:
            self._check_node_weight(self.node_weight)
        if self.shrink is not None:
            self._check_shrink(self.shrink)

    def _check_node_weight(self, weight: Array) -> None:
        if len(weight) != self.n_nodes:
            raise ValueError(
                f"node_weight must have one entry per node ({self.n_nodes}); got {len(weight)}."
            )
        bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
        if bad.size:
            node = self.ids[bad[0] : bad[0] + 1].tolist()[0]
            raise ValueError(
                f"node_weight must be finite and >= 0; got {weight[bad[0]]} at node {node!r}."
            )

    def _check_shrink(self, shrink: Array) -> None:
        if len(shrink) != self.d:
            raise ValueError(
                f"shrink must have one entry per column ({self.d}); got {len(shrink)}."
            )
        bad = np.flatnonzero(~(np.isfinite(shrink) & (shrink >= 0)))
        if bad.size:
            raise ValueError(
                f"shrink must be finite and >= 0; got {shrink[bad[0]]} at column "
                f'"{self.feature_names[bad[0]]}". Use 0 to spare a column.'
            )

    def _place(self, row: int) -> str:
        i = int(np.searchsorted(self.ptr, row, side="right")) - 1
        return f"node {self.ids[i : i + 1].tolist()[0]!r}, its row {row - self.ptr[i]}"

    def __repr__(self) -> str:
        return f"LocalData(n_nodes={self.n_nodes}, n_rows={self.n_rows}, d={self.d})"

    def _repr_html_(self) -> str:
        rows, empty = self.counts, int((self.counts == 0).sum())
        return facts(
            f"LocalData: {count(self.n_rows, 'row')} of {count(self.n_nodes, 'node')}",
            {
                "rows of a node": f"{rows.min()} to {rows.max()}, median {np.median(rows):g}",
                "nodes without rows": empty,
                "features": shown(self.feature_names),
            },
        )

    @property
    def n_nodes(self) -> int:
        """Number of nodes, those without rows included."""
        return len(self.ptr) - 1

    @property
    def n_rows(self) -> int:
        """Number of rows over all nodes."""
        return len(self.X)

    @property
    def d(self) -> int:
        """Number of features."""
        return self.X.shape[1]

    @cached_property
    def counts(self) -> Index:
        """Rows m_i of each node, shape (n_nodes,)."""
        return np.diff(self.ptr)

    @cached_property
    def row_node(self) -> Index:
        """Position of the owner of each row, shape (n_rows,)."""
        return np.repeat(np.arange(self.n_nodes), self.counts)

    @cached_property
    def row_weight(self) -> Array:
        """Weight of each row in L_i: 1/m_i, or s_r / sum of s over the node, times the node's.

        A node whose sample weights are all zero counts as a node without data.
        """
        if self.sample_weight is None:
            share = 1.0 / self.counts[self.row_node]
        else:
            total = np.bincount(self.row_node, self.sample_weight, self.n_nodes)
            share = self.sample_weight / np.where(total > 0, total, 1.0)[self.row_node]
        return share if self.node_weight is None else share * self.node_weight[self.row_node]

    @cached_property
    def labelled(self) -> NDArray[np.bool_]:
        """Nodes that have data, shape (n_nodes,)."""
        return np.bincount(self.row_node, self.row_weight, self.n_nodes) > 0

    def blocks(self) -> Iterator[tuple[Index, Index]]:
        """Groups of nodes with equally many rows, for batched linear algebra.

        Yields node positions (k,) and their row numbers (k, m), for each row count m > 0.
        """
        for m in np.unique(self.counts):
            if m > 0:
                nodes = np.flatnonzero(self.counts == m)
                yield nodes, self.ptr[nodes][:, None] + np.arange(m)

    def node_sum(self, rows: Array) -> Array:
        """Sum of row values over each node, shape (n_nodes, ...)."""
        if rows.ndim == 1:
            return np.bincount(self.row_node, rows, self.n_nodes).astype(np.float64, copy=False)
        out = np.zeros((self.n_nodes, *rows.shape[1:]))
        full = np.flatnonzero(self.counts)
        if full.size:  # reduceat is wrong on empty segments: sum over the non-empty nodes only
            out[full] = np.add.reduceat(rows, self.ptr[full], axis=0)
        return out

    def align(self, ids: NDArray[Any]) -> LocalData:
        """The same data in the node order of `ids`; ids without rows become empty nodes."""
        ids = as_ids(ids)
        if np.array_equal(ids, self.ids):
            return self
        where = IdIndex(ids).positions(self.ids)
        if (where < 0).any():
            raise ValueError(unknown_ids_message(ids, self.ids[where < 0], "the data"))
        owner = where[self.row_node]
        weight = None
        if self.node_weight is not None:
            weight = np.ones(len(ids))
            weight[where] = self.node_weight
        rows = packed(self.X, self.y, owner, ids, self.sample_weight)
        return LocalData(
            **rows._asdict(),
            feature_names=self.feature_names,
            node_weight=weight,
            shrink=self.shrink,
        )

    def subset(self, nodes: Index) -> LocalData:
        """The data of some nodes, given by position."""
        nodes = np.asarray(nodes, dtype=np.int64)
        counts = self.counts[nodes]
        ptr = np.concatenate([[0], np.cumsum(counts)])
        rows = np.repeat(self.ptr[nodes] - ptr[:-1], counts) + np.arange(ptr[-1])
        return LocalData(
            self.X[rows],
            self.y[rows],
            ptr,
            self.ids[nodes],
            sample_weight=None if self.sample_weight is None else self.sample_weight[rows],
            feature_names=self.feature_names,
            node_weight=None if self.node_weight is None else self.node_weight[nodes],
            shrink=self.shrink,
        )

    @classmethod
    def from_long(
        cls,
        X: Any,
        y: Any,
        node_ids: Any,
        nodes: Any = None,
        *,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> LocalData:
        """Local datasets from one long table and the node id of each row.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        y : array of shape (n_rows,)
        node_ids : array of shape (n_rows,)
            Id of the node that owns each row, in any order.
        nodes : sequence of ids, optional
            All nodes, in the order wanted; those without rows are legal. Default: the ids in
            `node_ids`, sorted.
        sample_weight : array of shape (n_rows,), optional
        feature_names : sequence of str, optional

        Examples
        --------
        >>> data = LocalData.from_long([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], ["b", "a", "b"])
        >>> data.ids.tolist(), data.X.ravel().tolist()
        (['a', 'b'], [2.0, 1.0, 3.0])
        """
        rows = packed_long(X, y, node_ids, nodes, sample_weight)
        return cls(**rows._asdict(), feature_names=feature_names)

    @classmethod
    def from_list(
        cls,
        datasets: Sequence[tuple[Any, Any] | None],
        nodes: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
    ) -> LocalData:
        """Local datasets from a list of (X_i, y_i), one per node; None or empty means no data.

        Examples
        --------
        >>> LocalData.from_list([([[1.0, 0.0]], [2.0]), None], nodes=["a", "b"]).counts.tolist()
        [1, 0]
        """
        return cls(**packed_list(datasets, nodes)._asdict(), feature_names=feature_names)

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        node: str,
        target: str,
        features: Sequence[str] | None = None,
        nodes: Any = None,
        sample_weight: str | None = None,
    ) -> LocalData:
        """Local datasets from a pandas or polars table with a node column.

        Parameters
        ----------
        df : pandas or polars DataFrame
        node, target : str
            Columns with the node id and the label.
        features : sequence of str, optional
            Feature columns; default all the others.
        nodes : sequence of ids, optional
            All nodes, in the order wanted.
        sample_weight : str, optional
            Column with row weights.

        Examples
        --------
        >>> import pandas as pd
        >>> df = pd.DataFrame({"shop": ["007", "008"], "price": [1.0, 2.0], "sold": [5.0, 3.0]})
        >>> LocalData.from_frame(df, node="shop", target="sold").ids.tolist()
        ['007', '008']
        """
        columns = columns_of(df, node, target, features, sample_weight)
        return cls.from_long(**columns._asdict(), nodes=nodes)


def _as_offsets(ptr: Any) -> Index:
    array = np.asarray(ptr)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"ptr must be a one-dimensional integer array; got {array.dtype} of {array.shape}."
        )
    if len(array) < 2:
        raise ValueError("The data must have at least one node; got none.")
    return array.astype(np.int64)
