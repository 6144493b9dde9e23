import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nefele._ids import IdIndex, as_ids, describe, distinct, unknown_ids_message


class Tensor:
    """Array-like that is neither a list nor a NumPy array."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


@pytest.mark.parametrize(
    ("given_ids", "kind", "expected"),
    [
        ([3, 1, 2], "i", [3, 1, 2]),
        (range(2), "i", [0, 1]),
        (np.array([1, 2], dtype=np.uint8), "i", [1, 2]),
        (["007", "7"], "U", ["007", "7"]),
        (np.array(["a", "b"], dtype=object), "U", ["a", "b"]),
        ([1.0, 2.0], "i", [1, 2]),
        ([1, 2.0], "i", [1, 2]),
        (np.array([4.0, 5.0]), "i", [4, 5]),
        ([0.5, 2.0], "O", [0.5, 2.0]),
        ([True, False], "O", [True, False]),
        (np.array([True, False]), "O", [True, False]),
        ([1, "1"], "O", [1, "1"]),
        ([(0, 0), (0, 1)], "O", [(0, 0), (0, 1)]),
        ([("a",)], "O", [("a",)]),
        ([b"x", b"y"], "O", [b"x", b"y"]),
        ([], "O", []),
        (Tensor([5, 6]), "i", [5, 6]),
        (pd.Series(["b", "a"], dtype="category"), "U", ["b", "a"]),
        (pd.Categorical([2, 1]), "i", [2, 1]),
        (pd.Series([1, 2], dtype="Int64"), "i", [1, 2]),
        (pd.Series(["x", "y"], dtype="string"), "U", ["x", "y"]),
        (pd.Index([7, 8]), "i", [7, 8]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), "U", ["b", "a"]),
        (pl.Series([1, 2], dtype=pl.Int16), "i", [1, 2]),
    ],
)
def test_ids_keep_their_value_and_type(given_ids, kind, expected):
    ids = as_ids(given_ids)
    assert ids.dtype.kind == kind
    assert ids.tolist() == expected
    assert [type(a) for a in ids.tolist()] == [type(b) for b in expected]


@pytest.mark.parametrize(
    "values",
    [
        [1, None],
        ["a", None],
        ["a", float("nan")],
        [1.0, np.nan],
        np.array([1.0, np.nan]),
        np.array([1.0, np.inf]),
        pd.Series(["a", None], dtype="string"),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(["a", pd.NA], dtype=object),
        pd.Series(["a", None], dtype="category"),
        pl.Series([1, None]),
        pl.Series(["a", None]),
    ],
)
def test_missing_id_is_an_error_that_names_its_position(values):
    with pytest.raises(ValueError, match=r"node id must not be missing; got .* at position 1"):
        as_ids(values)


@pytest.mark.parametrize("values", ["abc", b"abc", 5, None])
def test_a_single_value_is_not_a_sequence_of_ids(values):
    with pytest.raises(ValueError, match="must be a sequence"):
        as_ids(values)


def test_unhashable_and_two_dimensional_ids_are_errors():
    with pytest.raises(ValueError, match="must be hashable"):
        as_ids([[1], [2]])
    with pytest.raises(ValueError, match=r"one-dimensional; got shape \(2, 2\)"):
        as_ids(np.eye(2))


@pytest.mark.parametrize(
    "values", [np.array([1, 2**63], dtype=np.uint64), [1, 2**63], [1, 2**80], [1.0, 1e300]]
)
def test_ids_beyond_64_bits_keep_their_value(values):
    ids = as_ids(values)
    assert ids.tolist() == list(values)
    assert IdIndex(ids).positions(as_ids(values)).tolist() == [0, 1]


def test_whole_floats_that_cannot_be_exact_integers_are_kept():
    assert as_ids([2**53 + 1, 1.0]).tolist() == [2**53 + 1, 1.0]


@pytest.mark.parametrize(
    "ids", [[0, 1, 2], [5, 6, 7], [7, 5, 6], ["b", "a", "c"], [1, "a", (2, 3)], [-1, 0, 1]]
)
def test_positions_invert_any_order(ids):
    index = IdIndex(as_ids(ids))
    assert index.unique
    assert index.positions(as_ids(ids[::-1])).tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("ids", "keys", "expected"),
    [
        ([0, 1, 2], [3, -1, 1], [-1, -1, 1]),
        ([10, 5], [5, 7, 11], [1, -1, -1]),
        (["a", "b"], ["b", "bb", ""], [1, -1, -1]),
        (["1", "2"], [1, 2], [-1, -1]),
        ([1, 2], ["1", "2"], [-1, -1]),
        ([1, 2], [2, "1"], [1, -1]),
        (["a", 2], [2], [1]),
        ([], [1], [-1]),
        ([1], [], []),
        (["007"], ["7"], [-1]),
    ],
)
def test_unknown_keys_get_minus_one(ids, keys, expected):
    assert IdIndex(as_ids(ids)).positions(as_ids(keys)).tolist() == expected


def test_extreme_integers_are_matched_without_overflow():
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    assert IdIndex(as_ids([low, high])).positions(as_ids([high, low, 0])).tolist() == [1, 0, -1]
    assert IdIndex(as_ids([high - 1, high])).positions(as_ids([high, low])).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("ids", "repeated"), [([1, 2, 1], 1), (["a", "b", "b"], "b"), ([1, "a", "a"], "a")]
)
def test_duplicates_are_found(ids, repeated):
    index = IdIndex(as_ids(ids))
    assert not index.unique
    assert index.first_duplicate() == repeated


def test_first_duplicate_of_distinct_ids_is_none():
    assert IdIndex(as_ids([1, 2])).first_duplicate() is None


def test_distinct_sorts_one_type_and_keeps_the_order_of_mixed_types():
    assert distinct(as_ids([3, 1]), as_ids([2, 3])).tolist() == [1, 2, 3]
    assert distinct(as_ids(["b"]), as_ids(["a", "b"])).tolist() == ["a", "b"]
    assert distinct(as_ids(["b", 1]), as_ids([1, "a"])).tolist() == ["b", 1, "a"]
    assert distinct(as_ids([]), as_ids([2])).tolist() == [2]
    assert distinct(as_ids([]), as_ids([])).tolist() == []


def test_describe_is_short_and_shows_plain_values():
    assert describe(as_ids(["a", "b"])) == "'a', 'b'"
    assert describe(np.arange(9)) == "0, 1, 2, 3, 4, ... (9 in all)"


def test_unknown_ids_message_hints_at_mixed_up_types():
    text = unknown_ids_message(as_ids(["1", "2"]), as_ids([1, 2]), "the data")
    assert "unknown: 1, 2." in text
    assert "text such as '1'" in text and "int such as 1" in text and "convert one side" in text


@pytest.mark.parametrize(
    ("where", "owner", "advice"),
    [
        ("the data", "the graph", "Add the nodes to the graph or drop these rows."),
        ("loss", "the graph", "Add the nodes to the graph or drop these keys of the dict."),
        ("the rows", "nodes", "Add these ids to nodes or drop these rows."),
        ("the edges", "nodes", "Add these ids to nodes or drop these edges."),
    ],
)
def test_unknown_ids_message_shows_the_known_ids_and_advice_for_the_place(where, owner, advice):
    text = unknown_ids_message(as_ids(["a"]), as_ids(["b"]), where)
    assert text.startswith(f"Every node id of {where} must be ") and "unknown: 'b'." in text
    assert text.endswith(f" The ids of {owner}: 'a'. {advice}")


@settings(derandomize=True, deadline=None)
@given(
    st.one_of(
        st.lists(st.integers(-50, 50), unique=True),
        st.lists(st.text("ab01", max_size=3), unique=True),
        st.lists(st.one_of(st.integers(0, 9), st.text("ab0", max_size=2)), unique=True),
    ),
    st.lists(st.one_of(st.integers(-60, 60), st.text("ab01", max_size=3))),
)
def test_positions_agree_with_a_dictionary(ids, keys):
    lookup = {key: i for i, key in enumerate(ids)}
    found = IdIndex(as_ids(ids)).positions(as_ids(keys))
    assert found.tolist() == [lookup.get(key, -1) for key in keys]
