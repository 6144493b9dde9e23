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
from nefele.data._building import (
    Index,
    columns_of,
    node_column,
    packed,
    packed_list,
    packed_long,
)
from nefele.data._checking import (
    as_node_weight,
    as_offsets,
    check_by_row,
    check_node_weight,
    check_shape,
    check_shrink,
    check_weight_sums,
    check_weights,
)


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
    node_weight : array of shape (n_nodes,) or dict, optional
        Factor >= 0 of each node's mean loss, in the order of the nodes or by id; default 1. With
        m_i / mean(m) every row counts once.
    shrink : array of shape (d,), optional
        How much of each column the l2 and l1 terms of a loss see, >= 0; default 1. They are
        l2 ||shrink * w||^2 and l1 ||shrink * w||_1: a column of 0 is spared, such as a constant.
    offset : array of shape (n_rows,), optional
        Known part of each row's prediction, x^T w + offset; default 0. For counts the logarithm of
        the exposure: how long, or among how many, was counted.

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
        offset: Any = None,
    ) -> None:
        self.X = as_float_array(X, "X", 2)
        self.y = as_float_array(y, "y", 1)
        self.ptr = as_offsets(ptr)
        n = len(self.ptr) - 1
        self.ids = np.arange(n) if nodes is None else as_ids(nodes)
        self.sample_weight = (
            None if sample_weight is None else as_float_array(sample_weight, "sample_weight", 1)
        )
        self.node_weight = as_node_weight(node_weight, self.ids)
        self.shrink = None if shrink is None else as_float_array(shrink, "shrink", 1)
        self.offset = None if offset is None else as_float_array(offset, "offset", 1)
        self.feature_names = (
            [f"x{j}" for j in range(self.X.shape[1])]
            if feature_names is None
            else [str(name) for name in feature_names]
        )
        self._check()

    def _check(self) -> None:
        rows, d = self.X.shape
        check_shape(self.ptr, self.ids, self.feature_names, rows, d)
        check_finite(
            self.X, lambda at: f'X at {self._place(at[0])}, column "{self.feature_names[at[1]]}"'
        )
        for name in ("y", "sample_weight", "offset"):
            check_by_row(getattr(self, name), name, rows, self._place)
        if self.sample_weight is not None:
            check_weights(self.sample_weight, self._place)
            check_weight_sums(self._weight_sums, self.ids)
        if self.node_weight is not None:
            check_node_weight(self.node_weight, self.ids)
        if self.shrink is not None:
            check_shrink(self.shrink, self.feature_names)

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
    def _weight_sums(self) -> Array:
        """Sum of the sample weights of each node, shape (n_nodes,)."""
        found = np.bincount(self.row_node, self.sample_weight, self.n_nodes)
        return np.asarray(found, dtype=float)

    @cached_property
    def row_weight(self) -> Array:
        """Weight of each row in L_i: 1/m_i, or s_r / sum of s over the node, times the node's.

        A node whose sample weights are all zero counts as a node without data.
        """
        if self.sample_weight is None:
            share = 1.0 / self.counts[self.row_node]
        else:
            total = self._weight_sums
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
        """Sum of row values over each node, shape (n_nodes, ...).

        Parameters
        ----------
        rows : array of shape (n_rows, ...)
            A value for each row, in the order of `X`.
        """
        if rows.ndim == 1:
            return np.bincount(self.row_node, rows, self.n_nodes).astype(np.float64, copy=False)
        if self._full is None:
            return np.add.reduceat(rows, self.ptr[:-1], axis=0, dtype=float)
        out = np.zeros((self.n_nodes, *rows.shape[1:]))
        if self._full.size:
            out[self._full] = np.add.reduceat(rows, self.ptr[self._full], axis=0)
        return out

    @cached_property
    def _full(self) -> Index | None:
        """Nodes with rows, None where all have: reduceat is wrong on empty segments."""
        full = np.flatnonzero(self.counts)
        return None if full.size == self.n_nodes > 0 else full

    def align(self, ids: NDArray[Any]) -> LocalData:
        """The same data in the node order of `ids`; ids without rows become empty nodes.

        Parameters
        ----------
        ids : array of shape (n,)
            Every id of the data, and perhaps more.
        """
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
        rows = packed(self.X, self.y, owner, ids, self.sample_weight, self.offset)
        return LocalData(
            **rows._asdict(),
            feature_names=self.feature_names,
            node_weight=weight,
            shrink=self.shrink,
        )

    def subset(self, nodes: Index) -> LocalData:
        """The data of some nodes, given by position.

        Parameters
        ----------
        nodes : int array of shape (k,)
            Positions in `ids`.
        """
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
            offset=None if self.offset is None else self.offset[rows],
        )

    def shifted(self) -> LocalData:
        """The same data with the offsets taken from the labels, for losses of x^T w - y.

        Examples
        --------
        >>> LocalData([[1.0]], [5.0], [0, 1], offset=[2.0]).shifted().y.tolist()
        [3.0]
        """
        if self.offset is None:
            return self
        return LocalData(
            self.X,
            self.y - self.offset,
            self.ptr,
            self.ids,
            sample_weight=self.sample_weight,
            feature_names=self.feature_names,
            node_weight=self.node_weight,
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
        node_weight: Any = None,
        offset: Any = None,
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
        sample_weight, offset : arrays of shape (n_rows,), optional
        feature_names : sequence of str, optional
        node_weight : array of shape (n_nodes,) or dict by node id, optional

        Examples
        --------
        >>> data = LocalData.from_long([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0], ["b", "a", "b"])
        >>> data.ids.tolist(), data.X.ravel().tolist()
        (['a', 'b'], [2.0, 1.0, 3.0])
        """
        rows = packed_long(X, y, node_ids, nodes, sample_weight, offset)
        return cls(**rows._asdict(), feature_names=feature_names, node_weight=node_weight)

    @classmethod
    def from_list(
        cls,
        datasets: Sequence[tuple[Any, Any] | None],
        nodes: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        node_weight: Any = None,
        pad: bool = False,
    ) -> LocalData:
        """Local datasets from a list of (X_i, y_i), one per node; None or empty means no data.

        `node_weight` has a factor per node, in this order or by id. With `pad` nodes may have
        different numbers of features: the fewer are filled up with columns of zeros.

        Parameters
        ----------
        datasets : sequence of (X_i, y_i) or None
            X_i of shape (m_i, d), y_i of shape (m_i,).
        nodes : sequence of ids, optional
            One per dataset; default 0, 1, ...
        feature_names : sequence of str, optional
        node_weight : array of shape (n_nodes,) or dict by node id, optional
            Factor of each node's loss.
        pad : bool
            Whether nodes may have different numbers of features.

        Examples
        --------
        >>> LocalData.from_list([([[1.0, 0.0]], [2.0]), None], nodes=["a", "b"]).counts.tolist()
        [1, 0]
        """
        rows = packed_list(datasets, nodes, pad)
        return cls(**rows._asdict(), feature_names=feature_names, node_weight=node_weight)

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
        node_weight: Any = None,
        offset: str | None = None,
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
        sample_weight, offset : str, optional
            Columns with row weights and with the known part of the predictions.
        node_weight : str, array of shape (n_nodes,) or dict, optional
            Column with the factor of the row's node, equal in all of its rows; or the factors in
            the order of the nodes or by id.

        Examples
        --------
        >>> import pandas as pd
        >>> df = pd.DataFrame({"shop": ["007", "008"], "price": [1.0, 2.0], "sold": [5.0, 3.0]})
        >>> LocalData.from_frame(df, node="shop", target="sold").ids.tolist()
        ['007', '008']
        """
        spare = [] if not isinstance(node_weight, str) else [node_weight]
        columns = columns_of(df, node, target, features, sample_weight, offset, spare)
        if spare:
            node_weight = node_column(df, node_weight, columns.node_ids)
        return cls.from_long(**columns._asdict(), nodes=nodes, node_weight=node_weight)
