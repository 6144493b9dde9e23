"""Which rows are held out: a part of the rows of every node, the latest ones where time counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._ids import IdIndex, distinct
from nefele.estimators import ForwardWithinNode, WithinNodeKFold
from nefele.selection.splits import as_times, dense_ranks, ranks

Index = NDArray[np.int64]


def hold_out(ids: NDArray[Any], times: NDArray[Any] | None, seed: int) -> tuple[Index, Index]:
    """Training and held-out rows: of each node a quarter, rounded down, but at least one of two.

    Without times the rows are drawn at random. With times the latest times of the node are held
    out, those that come nearest to a quarter of its rows and are at most half of them; rows of one
    node with the same time are never on both sides.

    Examples
    --------
    >>> ids = np.array(list("aaaaaaaabbc"))
    >>> train, test = hold_out(ids, np.arange(11), seed=0)
    >>> test.tolist()
    [6, 7, 9]
    """
    owner = IdIndex(distinct(ids)).positions(ids)
    if times is None:
        times = ranks(owner, np.random.default_rng(seed).permutation(len(ids)))
        late = _latest(owner, times)
        if not late.any():
            raise ValueError(
                "Some node must have at least 2 rows, so that one can be held out; none has. Use a "
                "node column that gathers rows."
            )
    else:
        ticks = as_times(times)
        late = _latest(owner, ticks)
        if not late.any():
            raise ValueError(_why_none(owner, ticks))
    return np.flatnonzero(~late), np.flatnonzero(late)


def spare(ids: NDArray[Any], train: Index, test: Index, seed: int) -> tuple[Index, Index]:
    """The same, but of nodes with 2 or 3 rows only so many give one that it is a quarter in all.

    How far nodes differ is learnt from nodes with several rows.

    Examples
    --------
    >>> ids = np.repeat(np.arange(100), 2)
    >>> train, test = spare(ids, *hold_out(ids, None, seed=0), seed=0)
    >>> len(test), len(train)
    (50, 150)
    """
    owner = IdIndex(distinct(ids)).positions(ids)
    count = np.bincount(owner)
    back = np.zeros(len(test), dtype=bool)
    for rows in (2, 3):
        small = np.flatnonzero(count[owner[test]] == rows)
        keep = max(round(len(small) * rows / 4), min(len(small), 1))
        order = np.random.default_rng([seed, rows]).permutation(len(small))
        back[small[order[keep:]]] = True
    return np.sort(np.append(train, test[back])), test[~back]


def _latest(owner: Index, times: Index) -> NDArray[np.bool_]:
    """Which rows are the latest of their node: about a quarter, at most half."""
    count = np.bincount(owner)
    rows = np.lexsort((times, owner))
    new = np.ones(len(rows), dtype=bool)
    new[1:] = (np.diff(owner[rows]) != 0) | (np.diff(times[rows]) != 0)
    begin = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
    since = np.empty(len(rows), dtype=np.int64)  # rows of the node at this time or later
    since[rows] = np.cumsum(count)[owner[rows]] - begin
    wanted = np.maximum(count // 4, 1)[owner]
    miss = 2 * np.abs(since - wanted) + (since > wanted)  # of two as near, the fewer rows
    miss[2 * since > count[owner]] = 4 * len(rows)
    least = np.full(len(count), 4 * len(rows))
    np.minimum.at(least, owner, miss)
    best = np.zeros(len(count), dtype=np.int64)
    taken = (miss == least[owner]) & (miss < 4 * len(rows))
    np.maximum.at(best, owner[taken], since[taken])
    return np.asarray(since <= best[owner])


def _why_none(owner: Index, times: Index) -> str:
    """Error text when no node has latest rows that can be held out."""
    if int(dense_ranks(owner, times).max(initial=0)) == 0:
        return (
            "Some node must have at least 2 times, so that the latest can be held out; in every "
            "node all rows have the same time. Leave out --time, or name another column."
        )
    return (
        "The latest time of a node must have at most half of its rows, so that it can be held out; "
        "in every node it has more. Leave out --time, or use a finer time."
    )


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
    longest = int(dense_ranks(owner, as_times(times)).max()) + 1
    if longest < 3:
        raise ValueError(
            f"Choosing alpha forward in time needs a node with at least 3 training times; the "
            f"longest has {longest}. Leave out --time, or give --alpha."
        )
    table = np.empty(len(ids), dtype=[("id", ids.dtype), ("time", np.int64)])
    table["id"], table["time"] = ids, as_times(times)
    splitter = ForwardWithinNode(min(folds, longest - 1), node="id", time="time")
    return list(splitter.split(table))
