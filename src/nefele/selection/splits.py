"""Splits of the rows inside each node: the parts of a node are judged by its own model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from nefele._checks import check_count, check_name
from nefele._ids import IdIndex, as_ids, distinct

Index = NDArray[np.int64]

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


class _NodeSplitter(BaseCrossValidator):
    """What the splitters share: the number of splits and where the node ids are."""

    # whoever routes metadata hands over `groups`; it is used when `node` is None
    __metadata_request__split = {"groups": True}  # noqa: RUF012

    n_splits: int
    node: Any

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits; the arguments play no part.

        Parameters
        ----------
        X, y, groups : ignored
        """
        return check_count(self.n_splits, "n_splits", low=2)

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Row numbers of the training and of the test part, split by split.

        Parameters
        ----------
        X : table or array with n_rows rows
        y : ignored
        groups : sequence of n_rows ids, optional
            Node of each row; used when `node` is None.

        Yields
        ------
        train, test : int arrays, ascending
        """
        yield from self._parts(X, groups)

    def _parts(self, X: Any, groups: Any) -> Iterator[Split]:
        raise NotImplementedError

    def _owners(self, X: Any, groups: Any) -> Index:
        """Position of each row's node in the list of distinct ids, shape (n_rows,)."""
        if self.node is None and groups is None:
            raise ValueError(
                f"{type(self).__name__} needs the node id of each row; got neither node nor "
                'groups. Use node="column of X", or pass the ids as groups.'
            )
        ids = as_ids(groups if self.node is None else column_of(X, self.node, "node"))
        if hasattr(X, "shape") and X.shape[0] != len(ids):
            raise ValueError(
                f"groups must have one id per row of X ({X.shape[0]}); got {len(ids)}."
            )
        return IdIndex(distinct(ids)).positions(ids)


@dataclass(eq=False, repr=False)
class WithinNodeKFold(_NodeSplitter):
    """K folds of the rows of every node: each fold holds out a part of each node.

    The rows of a node are cut into `n_splits` blocks whose sizes differ by at most one, and so do
    the sizes of the folds. A node with fewer rows than folds is in the test part of some folds
    only; where all its rows are held out, its model comes from its neighbours.

    Parameters
    ----------
    n_splits : int
        Number of folds, >= 2.
    node : str or int, optional
        Column of X with the node ids: a name of a pandas or polars table or of a structured
        array, or a position. None: the ids are the `groups` of `split`.
    shuffle : bool
        Whether to draw the rows of each fold at random; otherwise blocks are in row order.
    random_state : int, RandomState or None
        For `shuffle`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"shop": ["a", "a", "b", "b"], "x": [1.0, 2.0, 3.0, 4.0]})
    >>> for train, test in WithinNodeKFold(2, node="shop").split(rows):
    ...     print(train, test)
    [1 3] [0 2]
    [0 2] [1 3]
    """

    n_splits: int = 5
    _: KW_ONLY
    node: Any = None
    shuffle: bool = False
    random_state: Any = None

    def _parts(self, X: Any, groups: Any) -> Iterator[Split]:
        k = self.get_n_splits()
        if self.random_state is not None and not self.shuffle:
            raise ValueError("random_state has no effect without shuffle. Use shuffle=True.")
        owner = self._owners(X, groups)
        if len(owner) < k:
            raise ValueError(
                f"n_splits must be at most the number of rows ({len(owner)}); got {k}."
            )
        order = np.arange(len(owner))
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(len(owner))
        fold = _folds(owner, ranks(owner, order), k)
        for number in range(k):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


class ForwardWithinNode(_NodeSplitter):
    """Train on the past of every node, test on what follows.

    The times of a node are cut into `n_splits` + 1 blocks, the first being the longest. Split s
    trains on the first s blocks and tests on the next. Rows of one node with the same time are
    never on both sides. A node with m times, m <= `n_splits`, takes part in the last m - 1 splits.

    Each node has its own clock: when nodes are observed over different periods, the training rows
    of one may be later than the test rows of another.

    Parameters
    ----------
    n_splits : int
        Number of splits, >= 2.
    node : str or int, optional
        Column of X with the node ids, see `WithinNodeKFold`.
    time : str or int, optional
        Column of X with the times: numbers, dates, or text that sorts by time. None: rows are in
        the order of time.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"shop": ["a"] * 3 + ["b"] * 3, "year": [1, 2, 3, 3, 2, 1]})
    >>> for train, test in ForwardWithinNode(2, node="shop", time="year").split(rows):
    ...     print(train, test)
    [0 5] [1 4]
    [0 1 4 5] [2 3]
    """

    def __init__(self, n_splits: int = 5, *, node: Any = None, time: Any = None) -> None:
        self.n_splits = n_splits
        self.node = node
        self.time = time

    def _parts(self, X: Any, groups: Any) -> Iterator[Split]:
        k = self.get_n_splits()
        owner = self._owners(X, groups)
        if self.time is None:
            rank = ranks(owner, np.arange(len(owner)))
        else:
            rank = dense_ranks(owner, as_times(column_of(X, self.time, "time")))
        count = np.zeros(owner.max(initial=-1) + 1, dtype=np.int64)
        np.maximum.at(count, owner, rank + 1)
        longest = int(count.max(initial=0))
        if longest <= k:
            raise ValueError(
                f"n_splits must be smaller than the number of times of the longest node "
                f"({longest}); got {k}."
            )
        size = np.maximum(count // (k + 1), 1)
        for number in range(k):
            first = (count - (k - number) * size)[owner]
            ahead = (first >= 1) & (rank >= first) & (rank < first + size[owner])
            yield np.flatnonzero(rank < first), np.flatnonzero(ahead)


def column_of(X: Any, name: Any, role: str) -> Any:
    """A column of a table by name, of a structured array by name, of an array by position."""
    if hasattr(X, "columns"):
        columns = list(X.columns)
        if name in columns:
            return X[name]
        if isinstance(name, int | np.integer) and -len(columns) <= name < len(columns):
            return X[columns[name]]
        check_name(str(name), [str(c) for c in columns], f"{role} column")
    names = getattr(getattr(X, "dtype", None), "names", None)
    if names:
        return X[check_name(name, names, f"{role} column")]
    if not isinstance(name, int | np.integer):
        raise ValueError(
            f'{role}="{name}" names a column, but X has no column names: it is a '
            f"{type(X).__name__}. Give a table, or the position of the column."
        )
    values = np.asarray(X)
    if values.ndim != 2 or not -values.shape[1] <= name < values.shape[1]:
        raise ValueError(f"{role} must be a column of X; got {name} for X of shape {values.shape}.")
    return values[:, name]


def as_times(column: Any) -> NDArray[Any]:
    """Times that compare: numbers, dates, or anything with an order, as ranks."""
    codes = getattr(getattr(column, "cat", None), "codes", None)  # an order of its own
    if codes is not None and getattr(column.cat, "ordered", False):
        column = np.where(codes.to_numpy() >= 0, codes.to_numpy().astype(float), np.nan)
    values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if values.dtype.kind in "fMm":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing = np.array([v is None or v != v for v in values.tolist()])
    else:
        missing = np.zeros(len(values), dtype=bool)
    if missing.any():
        raise ValueError(
            f"time must not be missing; it is at row {int(np.argmax(missing))}. Drop these rows."
        )
    try:
        return np.unique(values, return_inverse=True)[1]
    except TypeError as error:
        raise ValueError(f"time must have an order; {error}. Use numbers or dates.") from None


def ranks(owner: Index, order: Index) -> Index:
    """Place of each row among the rows of its node, when rows come in the given order."""
    rank = np.empty(len(owner), dtype=np.int64)
    rows = order[np.argsort(owner[order], kind="stable")]
    start = np.searchsorted(owner[rows], owner[rows])
    rank[rows] = np.arange(len(rows)) - start
    return rank


def dense_ranks(owner: Index, times: NDArray[Any]) -> Index:
    """Place of each row's time among the distinct times of its node."""
    rows = np.lexsort((times, owner))
    new_node = np.diff(owner[rows], prepend=-1) != 0
    new_time = np.ones(len(rows), dtype=bool)
    new_time[1:] = times[rows][1:] != times[rows][:-1]
    step = np.cumsum(new_node | new_time)
    rank = np.empty(len(owner), dtype=np.int64)
    rank[rows] = step - np.maximum.accumulate(np.where(new_node, step, 0))
    return rank


def _folds(owner: Index, rank: Index, k: int) -> Index:
    """Fold of each row: blocks of each node, the larger ones handed round the folds in turn."""
    count = np.bincount(owner)
    size, extra = count // k, count % k
    large = (extra * (size + 1))[owner]
    small = np.maximum(size, 1)[owner]
    block = np.where(
        rank < large, rank // (size + 1)[owner], extra[owner] + (rank - large) // small
    )
    turn = (np.cumsum(extra) - extra) % k
    return (block + turn[owner]) % k
