"""Splits inside nodes: every row held out once, no row on both sides, no look into the future."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, TimeSeriesSplit, cross_val_score

from nefele.selection.splits import ForwardWithinNode, WithinNodeKFold

OWNERS = st.lists(st.integers(0, 4), min_size=8, max_size=40)


def table(owners, **columns):
    return pd.DataFrame({"node": owners, **columns})


@settings(derandomize=True, max_examples=60, deadline=None)
@given(OWNERS, st.integers(2, 6), st.booleans())
def test_folds_partition_the_rows_of_every_node_evenly(owners, k, shuffle):
    splitter = WithinNodeKFold(k, node="node", shuffle=shuffle, random_state=0 if shuffle else None)
    owners = np.array(owners)
    held = np.zeros(len(owners), dtype=int)
    sizes, per_node = [], []
    for train, test in splitter.split(table(owners)):
        assert sorted([*train, *test]) == list(range(len(owners)))
        held[test] += 1
        sizes.append(len(test))
        per_node.append(np.bincount(owners[test], minlength=5))
    assert (held == 1).all() and len(sizes) == splitter.get_n_splits()
    assert max(sizes) - min(sizes) <= 1
    assert (np.ptp(per_node, axis=0) <= 1).all()


@settings(derandomize=True, max_examples=60, deadline=None)
@given(OWNERS, st.integers(2, 4), st.data())
def test_forward_never_trains_on_the_time_of_a_test_row_or_later(owners, k, data):
    times = data.draw(
        st.lists(st.integers(0, 12), min_size=len(owners), max_size=len(owners)), label="times"
    )
    rows = table(owners, time=times)
    longest = rows.groupby("node")["time"].nunique().max()
    splitter = ForwardWithinNode(k, node="node", time="time")
    if longest <= k:
        with pytest.raises(ValueError, match="smaller than the number of times"):
            next(splitter.split(rows))
        return
    tested = np.zeros(len(rows), dtype=int)
    for train, test in splitter.split(rows):
        assert len(test) and not set(train) & set(test)
        tested[test] += 1
        for node, part in rows.iloc[test].groupby("node"):
            seen = rows.iloc[train]
            past = seen["time"][seen["node"] == node]
            assert len(past) and past.max() < part["time"].min()
    assert tested.max() <= 1


def test_one_node_equals_the_splitters_of_scikit_learn():
    X, groups = np.zeros((17, 1)), np.zeros(17, dtype=int)
    for ours, theirs in (
        (WithinNodeKFold(5), KFold(5)),
        (ForwardWithinNode(4), TimeSeriesSplit(4)),
    ):
        for (a, b), (c, d) in zip(ours.split(X, None, groups), theirs.split(X), strict=True):
            assert a.tolist() == c.tolist() and b.tolist() == d.tolist()


def test_small_nodes_are_spread_over_the_folds():
    owners = np.arange(10)  # one row each
    sizes = [len(test) for _, test in WithinNodeKFold(5).split(np.zeros((10, 1)), None, owners)]
    assert sizes == [2] * 5


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_tables_and_arrays_give_the_same_splits(make):
    columns = {"x": [1.0] * 6, "node": ["b", "a", "b", "a", "b", "a"], "t": [3, 3, 2, 2, 1, 1]}
    structured = np.zeros(6, dtype=[("x", float), ("node", "U1"), ("t", int)])
    for name, values in columns.items():
        structured[name] = values
    for splitter in (
        WithinNodeKFold(2, node="node"),
        ForwardWithinNode(2, node="node", time="t"),
    ):
        expected = [(a.tolist(), b.tolist()) for a, b in splitter.split(make(columns))]
        found = [(a.tolist(), b.tolist()) for a, b in splitter.split(structured)]
        assert expected == found
    by_position = WithinNodeKFold(2, node=1).split(make(columns))
    by_groups = WithinNodeKFold(2).split(make(columns), None, columns["node"])
    for (a, b), (c, d) in zip(by_position, by_groups, strict=True):
        assert a.tolist() == c.tolist() and b.tolist() == d.tolist()


@pytest.mark.parametrize(
    "times",
    [
        pd.date_range("2020-01-01", periods=6),
        pd.date_range("2020-01-01", periods=6, tz="Europe/Helsinki"),
        [f"2020-0{k}" for k in range(1, 7)],
    ],
)
def test_dates_are_times(times):
    rows = pd.DataFrame({"node": list("aaabbb"), "t": times}).iloc[::-1]
    first = next(iter(ForwardWithinNode(2, node="node", time="t").split(rows)))
    assert [part.tolist() for part in first] == [[2, 5], [1, 4]]


def test_works_inside_scikit_learn():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"node": np.repeat([0, 1], 10), "x": rng.normal(size=20)})
    scores = cross_val_score(
        LinearRegression(), rows, rows["x"], cv=WithinNodeKFold(5, node="node")
    )
    assert len(scores) == 5 and np.allclose(scores, 1.0)
    scores = cross_val_score(
        LinearRegression(), rows, rows["x"], cv=WithinNodeKFold(5), groups=rows["node"]
    )
    assert np.allclose(scores, 1.0)
    assert "WithinNodeKFold(n_splits=5" in repr(WithinNodeKFold())


def test_shuffle_depends_on_the_seed_only():
    rows = table([0] * 8 + [1] * 8)

    def tests(seed):
        splitter = WithinNodeKFold(4, node="node", shuffle=True, random_state=seed)
        return [test.tolist() for _, test in splitter.split(rows)]

    assert tests(0) == tests(0) != tests(1)


@pytest.mark.parametrize(
    ("splitter", "match"),
    [
        (WithinNodeKFold(2), "needs the node id of each row; got neither"),
        (WithinNodeKFold(1, node="node"), "n_splits must be an integer >= 2; got 1"),
        (WithinNodeKFold(9, node="node"), r"at most the number of rows \(4\); got 9"),
        (WithinNodeKFold(2, node="nod"), 'No node column "nod". Did you mean "node"'),
        (WithinNodeKFold(2, node="node", random_state=0), "no effect without shuffle"),
        (ForwardWithinNode(2, node="node"), r"longest node \(2\); got 2"),
        (
            ForwardWithinNode(2, node="node", time="when"),
            "time must not be missing; it is at row 1",
        ),
        (ForwardWithinNode(2, node="node", time="mixed"), "time must have an order"),
    ],
)
def test_errors_say_what_to_do(splitter, match):
    rows = table([0, 0, 1, 1], when=[1.0, np.nan, 1.0, 2.0], mixed=[1, "a", 2, "b"])
    with pytest.raises(ValueError, match=match):
        next(splitter.split(rows))


def test_errors_for_arrays():
    with pytest.raises(ValueError, match="X has no column names"):
        next(WithinNodeKFold(2, node="node").split(np.zeros((4, 2))))
    with pytest.raises(ValueError, match=r"node must be a column of X; got 5"):
        next(WithinNodeKFold(2, node=5).split(np.zeros((4, 2))))
    with pytest.raises(ValueError, match=r"one id per row of X \(4\); got 3"):
        next(WithinNodeKFold(2).split(np.zeros((4, 2)), None, [0, 1, 1]))
