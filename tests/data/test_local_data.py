import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nefele.data import LocalData
from nefele.losses import Squared


def small():
    """Nodes a (two rows), b (none), c (one row)."""
    return LocalData(
        [[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]], [1.0, 2.0, 3.0], [0, 2, 2, 3], ["a", "b", "c"]
    )


@st.composite
def long_tables(draw):
    n = draw(st.integers(1, 6))
    owner = draw(st.lists(st.integers(0, n - 1), max_size=20))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    return n, np.array(owner, dtype=int), rng.normal(size=(len(owner), 2)), rng.random(len(owner))


def frame(**columns):
    base = {"shop": ["b", "a", "b"], "price": [1.0, 2.0, 3.0], "sold": [5.0, 6.0, 7.0]}
    return base | columns


LIBRARIES = pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])


def test_sizes_counts_and_owners():
    data = small()
    assert (data.n_nodes, data.n_rows, data.d) == (3, 3, 2)
    assert data.counts.tolist() == [2, 0, 1]
    assert data.row_node.tolist() == [0, 0, 2]
    assert data.labelled.tolist() == [True, False, True]
    assert data.feature_names == ["x0", "x1"]
    assert repr(data) == "LocalData(n_nodes=3, n_rows=3, d=2)"


def test_default_ids_are_positions():
    assert LocalData([[1.0], [2.0]], [1.0, 2.0], [0, 1, 2]).ids.tolist() == [0, 1]


def test_row_weights_are_means_over_the_node():
    assert small().row_weight.tolist() == [0.5, 0.5, 1.0]
    data = LocalData([[1.0]] * 4, [0.0] * 4, [0, 2, 4], sample_weight=[1.0, 3.0, 0.0, 0.0])
    assert data.row_weight.tolist() == [0.25, 0.75, 0.0, 0.0]
    assert data.labelled.tolist() == [True, False]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_feature_names_node_row_and_column(bad):
    with pytest.raises(ValueError) as error:
        LocalData(
            [[1.0, 2.0], [3.0, 4.0], [5.0, bad]], [0.0] * 3, [0, 1, 3], ["Oulu", "Kemi"],
            feature_names=["wind", "rain"],
        )  # fmt: skip
    assert f"X at node 'Kemi', its row 1, column \"rain\" must be finite; got {bad}" in str(
        error.value
    )


def test_sample_weights_of_a_node_have_a_finite_sum():
    X, y, ptr = [[1.0]] * 3, [1.0, 2.0, 3.0], [0, 1, 3]
    LocalData(X, y, ptr, sample_weight=[1e308, 1e308, 0.0])
    with pytest.raises(ValueError, match=r"sum of a node's sample_weight .* got inf at node 'b'"):
        LocalData(X, y, ptr, ["a", "b"], sample_weight=[1.0, 1e308, 1e308])


def test_bad_label_and_sample_weight_name_the_node():
    X, ptr, nodes = [[1.0], [2.0]], [0, 1, 2], ["a", "b"]
    with pytest.raises(ValueError, match=r"y at node 'b', its row 0 must be finite; got nan"):
        LocalData(X, [1.0, np.nan], ptr, nodes)
    with pytest.raises(ValueError, match=r"sample_weight at node 'a', its row 0 must be finite"):
        LocalData(X, [1.0, 2.0], ptr, nodes, sample_weight=[np.inf, 1.0])
    with pytest.raises(ValueError, match=r"sample_weight must be >= 0; got -1.0 at node 'b'"):
        LocalData(X, [1.0, 2.0], ptr, nodes, sample_weight=[1.0, -1.0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": [1.0, 2.0]}, r"X must have 2 dimension\(s\); got shape \(2,\)"),
        ({"X": [[1.0], [2.0, 3.0]]}, "X must be a rectangular array"),
        ({"X": np.zeros((2, 0))}, "at least one feature column"),
        ({"X": [[1j], [2.0]]}, "X must be real; got dtype complex128"),
        ({"X": [["a"], ["b"]]}, "X must be numeric"),
        ({"X": np.array([["2020-01-01"], ["2020-01-02"]], "M8[D]")}, "X must be numeric"),
        ({"y": [1.0]}, r"y must have one entry per row \(2\); got 1"),
        ({"y": [[1.0], [2.0]]}, r"y must have 1 dimension.* got shape \(2, 1\)\. Use y\.ravel\(\)"),
        ({"y": [[1.0, 2.0]] * 2}, r"y must have 1 dimension.* got shape \(2, 2\)\.$"),
        ({"ptr": [0, 1]}, r"ptr must run from 0 to the number of rows \(2\)"),
        ({"ptr": [1, 2]}, "ptr must run from 0"),
        ({"ptr": [0, 2, 1, 2], "nodes": list("abc")}, "ptr must not decrease"),
        ({"ptr": [0.0, 1.0, 2.0]}, "ptr must be a one-dimensional integer array; got float64"),
        ({"ptr": 2}, "ptr must be a one-dimensional integer array"),
        ({"ptr": [0]}, "at least one node"),
        ({"nodes": ["a"]}, "nodes must have 2 ids; got 1"),
        ({"nodes": ["a", "a"]}, "distinct; 'a' is repeated"),
        ({"sample_weight": [1.0]}, "sample_weight must have one entry per row"),
        ({"feature_names": ["p", "q"]}, "feature_names must have 1 names; got 2"),
    ],
)
def test_inconsistent_input_is_an_error(change, words):
    good = {"X": [[1.0], [2.0]], "y": [1.0, 2.0], "ptr": [0, 1, 2], "nodes": ["a", "b"]}
    with pytest.raises(ValueError, match=words):
        LocalData(**(good | change))


def test_blocks_group_nodes_by_row_count():
    data = LocalData(np.arange(5.0)[:, None], np.zeros(5), [0, 2, 2, 3, 5])
    found = [(nodes.tolist(), rows.tolist()) for nodes, rows in data.blocks()]
    assert found == [([2], [[2]]), ([0, 3], [[0, 1], [3, 4]])]


@settings(derandomize=True, deadline=None)
@given(long_tables())
def test_node_sum_matches_a_loop(table):
    n, owner, X, y = table
    data = LocalData.from_long(X, y, owner, range(n))
    for rows in (y, X, X[:, :, None] * X[:, None, :]):
        expected = np.zeros((n, *rows.shape[1:]))
        np.add.at(expected, owner, rows)
        packed = rows[np.argsort(owner, kind="stable")]
        assert np.allclose(data.node_sum(packed), expected)


@settings(derandomize=True, deadline=None)
@given(long_tables())
def test_every_row_stays_with_its_node_in_its_order(table):
    n, owner, X, y = table
    data = LocalData.from_long(X, y, owner, range(n))
    for i in range(n):
        rows = slice(data.ptr[i], data.ptr[i + 1])
        assert np.array_equal(data.X[rows], X[owner == i])
        assert np.array_equal(data.y[rows], y[owner == i])


@settings(derandomize=True, deadline=None)
@given(long_tables(), st.randoms(use_true_random=False))
def test_align_and_subset_undo_a_permutation(table, random):
    n, owner, X, y = table
    data = LocalData.from_long(X, y, owner, range(n))
    order = list(range(n))
    random.shuffle(order)
    mixed = data.subset(np.array(order))
    back = mixed.align(data.ids)
    assert mixed.ids.tolist() == order
    assert np.array_equal(back.X, data.X) and np.array_equal(back.y, data.y)
    assert np.array_equal(back.ptr, data.ptr)


def test_align_matches_by_id_and_adds_empty_nodes():
    data = LocalData([[1.0], [2.0]], [1.0, 2.0], [0, 1, 2], ["b", "a"], sample_weight=[0.5, 2.0])
    out = data.align(np.array(["a", "new", "b"]))
    assert out.X.ravel().tolist() == [2.0, 1.0]
    assert out.counts.tolist() == [1, 0, 1]
    assert out.sample_weight.tolist() == [2.0, 0.5]
    assert data.align(data.ids) is data


def test_align_lists_ids_the_graph_does_not_have():
    with pytest.raises(
        ValueError, match=r"the data must be a node of the graph; unknown: 'b', 'c'"
    ):
        small().align(["a", "z"])
    with pytest.raises(ValueError, match=r"int such as 1, these are text such as 'a': convert"):
        small().align([1, 2, 3])


def test_subset_keeps_names_weights_and_empty_nodes():
    data = LocalData([[1.0], [2.0]], [1.0, 2.0], [0, 2, 2], sample_weight=[1, 2], feature_names="p")
    out = data.subset(np.array([1, 0]))
    assert out.counts.tolist() == [0, 2]
    assert out.sample_weight.tolist() == [1.0, 2.0]
    assert out.feature_names == ["p"]


def test_from_long_sorts_ids_or_follows_nodes():
    X, y = [[1.0], [2.0], [3.0]], [1, 2, 3]
    assert LocalData.from_long(X, y, ["7", "007", "7"]).ids.tolist() == ["007", "7"]
    data = LocalData.from_long(X, y, pd.Categorical(["b", "a", "b"]), ["b", "none", "a"])
    assert data.counts.tolist() == [2, 0, 1]
    assert data.y.tolist() == [1.0, 3.0, 2.0]


def test_from_long_matches_mixed_types():
    data = LocalData.from_long([[1.0], [2.0]], [1.0, 2.0], ["hub", 3], [3, "hub"])
    assert data.y.tolist() == [2.0, 1.0]


@pytest.mark.parametrize("what", ["y", "node_ids", "sample_weight"])
def test_from_long_wrong_length(what):
    good = {"X": [[1.0], [2.0]], "y": [1.0, 2.0], "node_ids": [0, 1]}
    with pytest.raises(ValueError, match=rf"{what} must have one entry per row .*\(2\); got 1"):
        LocalData.from_long(**(good | {what: [1]}))


def test_from_long_unknown_missing_and_no_ids():
    with pytest.raises(ValueError, match=r"rows must be in nodes; unknown: 'b'.*Add these ids"):
        LocalData.from_long([[1.0], [2.0]], [1, 2], ["a", "b"], nodes=["a"])
    with pytest.raises(ValueError, match=r"node id must not be missing; got None at position 1"):
        LocalData.from_long([[1.0], [2.0]], [1, 2], ["a", None])
    with pytest.raises(ValueError, match="at least one node"):
        LocalData.from_long(np.zeros((0, 1)), [], [])


def test_nodes_may_all_be_empty():
    data = LocalData.from_long(np.zeros((0, 2)), [], [], nodes=["a", "b"])
    assert data.labelled.tolist() == [False, False]
    assert data.node_sum(data.X).tolist() == [[0.0, 0.0]] * 2


def test_sparse_and_nullable_features():
    data = LocalData.from_long(sparse.csr_array([[1.0, 0.0]]), [1.0], ["a"])
    assert data.X.tolist() == [[1.0, 0.0]]
    table = pd.DataFrame({"p": pd.array([1, None], dtype="Int64")})
    with pytest.raises(ValueError, match=r"node 'b', its row 0, column \"x0\" must be finite"):
        LocalData.from_long(table, [1.0, 2.0], ["a", "b"])


def test_from_list_with_nodes_without_data():
    data = LocalData.from_list([None, ([[1.0]], [2.0]), ([], []), (np.zeros((0, 1)), [])])
    assert data.counts.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("datasets", "words"),
    [
        ([([[1.0]], [1.0]), ([[1.0, 2.0]], [1.0])], "must have 1 features; node 1 has 2"),
        ([([[1.0], [2.0]], [1.0])], "X and y of node 0 must be equally long: 2, 1"),
        ([([[1.0]], [])], "X and y of node 0 must be equally long: 1, 0"),
        ([([1.0], [1.0])], "X of node 0 must have 2 dimension"),
        ([([[1.0]], ["high"])], "y of node 0 must be numeric"),
        ([None, ([], [])], "At least one node must have data"),
    ],
)
def test_from_list_errors_name_the_node(datasets, words):
    with pytest.raises(ValueError, match=words):
        LocalData.from_list(datasets)


def test_from_list_wrong_number_of_ids():
    with pytest.raises(ValueError, match="nodes must have 1 ids; got 2"):
        LocalData.from_list([([[1.0]], [1.0])], nodes=["a", "b"])


@LIBRARIES
def test_from_frame_uses_all_other_columns(library):
    data = LocalData.from_frame(library(frame(day=[1, 2, 3])), node="shop", target="sold")
    assert data.ids.tolist() == ["a", "b"]
    assert data.feature_names == ["price", "day"]
    assert data.X.tolist() == [[2.0, 2.0], [1.0, 1.0], [3.0, 3.0]]
    assert data.y.tolist() == [6.0, 5.0, 7.0]


@LIBRARIES
def test_from_frame_with_chosen_columns_nodes_and_weights(library):
    data = LocalData.from_frame(
        library(frame(w=[1, 2, 3], note=["x", "y", "z"])), node="shop", target="sold",
        features="price", nodes=["c", "b", "a"], sample_weight="w",
    )  # fmt: skip
    assert data.counts.tolist() == [0, 2, 1]
    assert data.sample_weight.tolist() == [1.0, 3.0, 2.0]
    assert data.feature_names == ["price"]


@LIBRARIES
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"price": [1.0, None, 3.0]}, r"X at node 'a', its row 0, column \"price\""),
        ({"sold": [1.0, 2.0, None]}, r"y at node 'b', its row 1"),
        ({"shop": ["a", None, "b"]}, r"node id must not be missing; got .* at position 1"),
        (
            {"price": ["cheap", "fair", "dear"]},
            r'Column "price" must be numeric; .*Encode it as numbers or leave it out by features=',
        ),
        (
            {"sold": ["few", "some", "many"]},
            r'Column "sold" must be numeric; .*\. Encode it as numbers\.$',
        ),
        ({"price": [datetime.date(2024, 1, 1)] * 3}, r'Column "price" must be'),
        ({"price": [datetime.datetime(2024, 1, 1)] * 3}, r'Column "price" must be real numbers'),
    ],
)
def test_from_frame_errors_name_the_place(library, columns, words):
    with pytest.raises(ValueError, match=words):
        LocalData.from_frame(library(frame(**columns)), node="shop", target="sold")


def test_from_frame_takes_no_lazy_table_and_no_list():
    words = r"DataFrame; got polars\..*LazyFrame\. Use \.collect\(\) first\."
    with pytest.raises(ValueError, match=words):
        LocalData.from_frame(pl.LazyFrame(frame()), node="shop", target="sold")
    with pytest.raises(ValueError, match=r"DataFrame; got list\. Convert it first\."):
        LocalData.from_frame([1], node="shop", target="sold")


@LIBRARIES
def test_from_frame_suggests_a_column(library):
    with pytest.raises(ValueError, match=r'No column "shp"\. Did you mean "shop"\?'):
        LocalData.from_frame(library(frame()), node="shp", target="sold")


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean", object])
def test_nullable_columns(dtype):
    full = pd.DataFrame(frame(price=pd.array([1, 0, 1], dtype=dtype)))
    data = LocalData.from_frame(full, node="shop", target="sold")
    assert data.X.ravel().tolist() == [0.0, 1.0, 1.0]
    gap = pd.DataFrame(frame(price=pd.array([1, 0, None], dtype=dtype)))
    with pytest.raises(ValueError, match=r"node 'b', its row 1, column \"price\" must be finite"):
        LocalData.from_frame(gap, node="shop", target="sold")


def test_from_frame_with_numbered_and_repeated_column_names():
    df = pd.DataFrame([["a", 1.0, 2.0], ["b", 3.0, 4.0]])
    assert LocalData.from_frame(df, node=0, target=2).X.ravel().tolist() == [1.0, 3.0]
    df.columns = ["shop", "p", "p"]
    with pytest.raises(ValueError, match="Column names must be distinct; got shop, p, p"):
        LocalData.from_frame(df, node="shop", target="p")


def test_from_frame_complex_column_and_no_features():
    df = pd.DataFrame(frame(price=[1j, 2j, 3j]))
    with pytest.raises(ValueError, match=r'"price" must be real numbers; got complex128'):
        LocalData.from_frame(df, node="shop", target="sold")
    with pytest.raises(ValueError, match="at least one feature column"):
        LocalData.from_frame(df[["shop", "sold"]], node="shop", target="sold")


def test_inputs_are_not_changed_and_may_be_read_only_or_mapped(tmp_path):
    rng = np.random.default_rng(0)
    arrays = [rng.random((6, 2)), rng.random(6), np.array([2, 0, 1, 0, 2, 2])]
    copies = [a.copy() for a in arrays]
    mapped = []
    for k, array in enumerate(arrays):
        np.save(tmp_path / f"{k}.npy", array)
        mapped.append(np.load(tmp_path / f"{k}.npy", mmap_mode="r"))
        array.flags.writeable = False
    plain, from_disk = LocalData.from_long(*arrays), LocalData.from_long(*mapped)
    assert np.array_equal(plain.X, from_disk.X) and np.array_equal(plain.y, from_disk.y)
    assert plain.counts.tolist() == [2, 1, 3]
    for array, old in zip(arrays, copies, strict=True):
        assert np.array_equal(array, old)


@LIBRARIES
def test_from_frame_leaves_the_table_alone(library):
    df = library(frame())
    LocalData.from_frame(df, node="shop", target="sold")
    assert df.equals(library(frame()))


def test_node_weight_multiplies_the_mean_loss_and_follows_its_node():
    rows = [([[1.0], [2.0]], [1.0, 2.0]), None, ([[3.0]], [3.0])]
    plain = LocalData.from_list(rows, nodes=list("abc"))
    data = LocalData(plain.X, plain.y, plain.ptr, plain.ids, node_weight=[4.0, 1.0, 0.5])
    assert data.row_weight.tolist() == [2.0, 2.0, 0.5]
    assert data.align(np.array(["c", "x", "b", "a"])).row_weight.tolist() == [0.5, 2.0, 2.0]
    assert data.subset(np.array([2])).row_weight.tolist() == [0.5]
    w = np.array([[0.3], [0.2], [0.1]])
    once, weighted = Squared().bind(plain), Squared().bind(data)
    np.testing.assert_allclose(weighted.value(w), [4.0, 1.0, 0.5] * once.value(w))
    np.testing.assert_allclose(weighted.grad(w), [[4.0], [1.0], [0.5]] * once.grad(w))


def test_a_node_of_weight_zero_has_no_data():
    data = LocalData([[1.0], [2.0]], [1.0, 2.0], [0, 1, 2], node_weight=[0.0, 1.0])
    assert data.labelled.tolist() == [False, True]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], "node_weight must have one entry per node"),
        ([1.0, -2.0], "node_weight must be finite and >= 0; got -2.0 at node 1"),
        ([np.nan, 1.0], "node_weight must be finite and >= 0; got nan at node 0"),
    ],
)
def test_bad_node_weights(weight, message):
    with pytest.raises(ValueError, match=message):
        LocalData([[1.0], [2.0]], [1.0, 2.0], [0, 1, 2], node_weight=weight)


def test_shrink_goes_with_the_columns():
    plain = LocalData.from_list([([[1.0, 2.0]], [1.0]), ([[3.0, 1.0]], [2.0])], nodes=["b", "a"])
    data = LocalData(plain.X, plain.y, plain.ptr, plain.ids, shrink=[1.0, 0.0])
    for other in (data.align(["a", "b", "c"]), data.subset([1])):
        assert other.shrink.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("shrink", "message"),
    [
        ([1.0], r"shrink must have one entry per column \(2\); got 1"),
        ([1.0, -1.0], r'shrink must be finite and >= 0; got -1.0 at column "x1". Use 0'),
        ([np.inf, 1.0], 'shrink must be finite and >= 0; got inf at column "x0"'),
    ],
)
def test_bad_shrink(shrink, message):
    with pytest.raises(ValueError, match=message):
        LocalData([[1.0, 2.0]], [1.0], [0, 1], shrink=shrink)


@LIBRARIES
def test_every_constructor_takes_node_weights(library):
    table = frame(factor=[2.0, 0.5, 2.0])
    by_column = LocalData.from_frame(
        library(table), node="shop", target="sold", features=["price"], node_weight="factor"
    )
    assert by_column.node_weight.tolist() == [0.5, 2.0]
    by_id = LocalData.from_frame(
        library(frame()), node="shop", target="sold", node_weight={"b": 2.0}, nodes=["c", "b", "a"]
    )
    assert by_id.node_weight.tolist() == [1.0, 2.0, 1.0]
    rows = [([[1.0]], [1.0]), None]
    assert LocalData.from_list(rows, node_weight=[3.0, 1.0]).row_weight.tolist() == [3.0]
    assert LocalData.from_list(rows, ["x", "y"], node_weight={"y": 4.0}).node_weight[1] == 4.0
    long = LocalData.from_long([[1.0], [2.0]], [1.0, 2.0], ["q", "p"], node_weight={"q": 5.0})
    assert long.align(np.array(["q", "r", "p"])).node_weight.tolist() == [5.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="node_weight"):
        LocalData.from_list(rows, ["x", "y"], node_weight={"z": 1.0})
    uneven = library(frame(factor=[2.0, 0.5, 3.0]))
    with pytest.raises(ValueError, match=r'"factor" must be equal in all rows of a node; node .b.'):
        LocalData.from_frame(uneven, node="shop", target="sold", node_weight="factor")


@LIBRARIES
def test_offsets_go_with_their_rows(library):
    table = library(frame(hours=[1.0, 2.0, 3.0]))
    data = LocalData.from_frame(
        table, node="shop", target="sold", features=["price"], offset="hours", nodes=["a", "b"]
    )
    assert data.X.ravel().tolist() == [2.0, 1.0, 3.0] and data.offset.tolist() == [2.0, 1.0, 3.0]
    assert data.align(np.array(["b", "a"])).offset.tolist() == [1.0, 3.0, 2.0]
    assert data.subset([1]).offset.tolist() == [1.0, 3.0]
    assert data.shifted().y.tolist() == [4.0, 4.0, 4.0] and data.shifted().offset is None
    assert small().shifted().y.tolist() == small().y.tolist()
    with pytest.raises(ValueError, match="offset must have one entry per row"):
        LocalData.from_long([[1.0]], [1.0], ["a"], offset=[1.0, 2.0])
    with pytest.raises(ValueError, match="offset at node 0, its row 0 must be finite"):
        LocalData([[1.0]], [1.0], [0, 1], offset=[np.inf])
