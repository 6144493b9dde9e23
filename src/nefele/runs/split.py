"""Which rows are held out: a part of the rows of every node, the latest ones where time counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._ids import IdIndex, distinct
from nefele.estimators import ForwardWithinNode, WithinNodeKFold
from nefele.estimators.splitters import _dense_ranks, _ranks, _times

Index = NDArray[np.int64]


def hold_out(ids: NDArray[Any], times: NDArray[Any] | None, seed: int) -> tuple[Index, Index]:
    """Training and held-out rows: of each node a quarter, rounded down, but at least one of two.

    Without times the rows are drawn at random. With times a quarter of the node's times is held
    out, the latest ones; rows of one node with the same time are never on both sides.

    Examples
    --------
    >>> ids = np.array(list("aaaaaaaabbc"))
    >>> train, test = hold_out(ids, np.arange(11), seed=0)
    >>> test.tolist()
    [6, 7, 9]
    """
    owner = IdIndex(distinct(ids)).positions(ids)
    if times is None:
        rank = _ranks(owner, np.random.default_rng(seed).permutation(len(ids)))
    else:
        rank = _dense_ranks(owner, _times(times))
    count = np.zeros(owner.max() + 1, dtype=np.int64)
    np.maximum.at(count, owner, rank + 1)
    held = np.where(count < 2, 0, np.maximum(count // 4, 1))
    last = rank >= (count - held)[owner]
    if not last.any():
        what = "rows" if times is None else "times"
        raise ValueError(
            f"Some node must have at least 2 {what}, so that one can be held out; none has. Use a "
            "node column that gathers rows."
        )
    return np.flatnonzero(~last), np.flatnonzero(last)


def folds_inside(
    ids: NDArray[Any], times: NDArray[Any] | None, folds: int, seed: int
) -> list[tuple[Index, Index]]:
    """Folds of the training rows inside the nodes, forward in time where time counts."""
    if times is None:
        if len(ids) < 2:
            raise ValueError("Cross-validation needs at least 2 training rows. Give --alpha.")
        splitter: Any = WithinNodeKFold(min(folds, len(ids)), shuffle=True, random_state=seed)
        return list(splitter.split(ids, None, ids))
    owner = IdIndex(distinct(ids)).positions(ids)
    longest = int(_dense_ranks(owner, _times(times)).max()) + 1
    if longest < 3:
        raise ValueError(
            f"Choosing alpha forward in time needs a node with at least 3 training times; the "
            f"longest has {longest}. Leave out --time, or give --alpha."
        )
    table = np.empty(len(ids), dtype=[("id", ids.dtype), ("time", np.int64)])
    table["id"], table["time"] = ids, _times(times)
    splitter = ForwardWithinNode(min(folds, longest - 1), node="id", time="time")
    return list(splitter.split(table))
