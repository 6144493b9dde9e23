import copy
import pickle

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nefele._kernels.groups import group_sums
from nefele.graph import Graph
from nefele.graphs import grid


@st.composite
def graphs(draw):
    n = draw(st.integers(1, 12))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    flips = draw(st.lists(st.booleans(), min_size=len(chosen), max_size=len(chosen)))
    head = [b if f else a for (a, b), f in zip(chosen, flips, strict=True)]
    tail = [a if f else b for (a, b), f in zip(chosen, flips, strict=True)]
    numbers = st.floats(1e-3, 1e3)
    weight = draw(st.lists(numbers, min_size=len(chosen), max_size=len(chosen)))
    return Graph(range(n), head, tail, weight)


def path():
    return Graph(["c", "a", "b"], head=[1, 2], tail=[0, 1], weight=[2.0, 3.0])


def test_edges_are_oriented_and_sorted():
    g = Graph(["a", "b", "c"], head=[2, 1, 2], tail=[1, 0, 0], weight=[3.0, 1.0, 2.0])
    assert g.head.tolist() == [0, 0, 1]
    assert g.tail.tolist() == [1, 2, 2]
    assert g.weight.tolist() == [1.0, 2.0, 3.0]


def test_default_and_scalar_weight():
    assert Graph([0, 1], [0], [1]).weight.tolist() == [1.0]
    assert Graph([0, 1, 2], [0, 1], [1, 2], 2).weight.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("weight", [[1, 2], pd.Series([1.0, 2.0]), pl.Series([1, 2])])
def test_weight_from_sequences_and_series(weight):
    assert Graph([0, 1, 2], [0, 1], [1, 2], weight).weight.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (-0.3, "weight must be > 0; got -0.3"),
        (np.nan, "weight must be finite; got nan"),
        (np.inf, "weight must be finite; got inf"),
        (None, "weight must be finite; got nan"),
    ],
)
def test_bad_weight_names_the_edge(bad, words):
    with pytest.raises(ValueError) as error:
        Graph(["Inari", "Kemi", "Oulu"], [0, 2], [1, 1], [1.0, bad])
    assert words in str(error.value)
    assert 'edge 1 ("Oulu", "Kemi")' in str(error.value)


@pytest.mark.parametrize("weight", [[1.0 + 0j], 1j, np.array([1j])])
def test_complex_weight_is_an_error(weight):
    with pytest.raises(ValueError, match="weight must be real; got dtype complex"):
        Graph([0, 1], [0], [1], weight)


def test_missing_entry_of_a_nullable_weight_names_the_edge():
    with pytest.raises(ValueError, match=r"got nan at edge 1 \(1, 2\)"):
        Graph([0, 1, 2], [0, 1], [1, 2], pd.Series([1, None], dtype="Int64"))


def test_text_and_wrong_length_weights_are_errors():
    with pytest.raises(ValueError, match="weight must be numeric"):
        Graph([0, 1], [0], [1], ["heavy"])
    with pytest.raises(ValueError, match=r"one entry per edge \(1\); got 2"):
        Graph([0, 1], [0], [1], [1.0, 2.0])


@pytest.mark.parametrize("zero", [0.0, -0.0, 0])
def test_weight_zero_drops_the_edge_and_keeps_the_node(zero):
    g = Graph([0, 1, 2], [0, 1], [1, 2], [zero, 1.0])
    assert (g.n_nodes, g.head.tolist(), g.degree.tolist()) == (3, [1], [0, 1, 1])


@pytest.mark.parametrize(("head", "tail"), [([0, 0], [1, 1]), ([0, 1], [1, 0])])
def test_repeated_edge_is_an_error_unless_merged(head, tail):
    with pytest.raises(ValueError, match=r'\("a", "b"\) is repeated .* merge="sum"'):
        Graph(["a", "b", "c"], head, tail)
    merged = {
        rule: Graph(["a", "b", "c"], head, tail, [1.0, 4.0], merge=rule).weight.tolist()
        for rule in ("sum", "max", "mean")
    }
    assert merged == {"sum": [5.0], "max": [4.0], "mean": [2.5]}


def test_merge_touches_only_repeated_edges():
    g = Graph([0, 1, 2], [1, 0, 2, 0], [2, 1, 1, 1], [1.0, 2.0, 3.0, 6.0], merge="mean")
    assert (g.head.tolist(), g.tail.tolist(), g.weight.tolist()) == ([0, 1], [1, 2], [4.0, 2.0])


def test_edges_of_weight_zero_are_no_repetition_and_do_not_enter_the_mean():
    assert Graph([0, 1], [0, 1], [1, 0], [0.0, 2.0]).weight.tolist() == [2.0]
    assert Graph([0, 1], [0, 1], [1, 0], [0.0, 2.0], merge="mean").weight.tolist() == [2.0]


def test_unknown_merge_rule_is_suggested():
    with pytest.raises(ValueError, match='Did you mean "mean"'):
        Graph([0, 1], [0], [1], merge="meen")


def test_self_loop_is_an_error_that_names_the_node():
    with pytest.raises(ValueError, match=r"edge 1 is a self-loop at 'b'"):
        Graph(["a", "b"], [0, 1], [1, 1])


def test_empty_graph_is_an_error():
    with pytest.raises(ValueError, match="at least one node; got none"):
        Graph([], [], [])


def test_single_node_has_no_edges():
    g = Graph(["only"], [], [])
    assert (g.n_edges, g.degree.tolist(), g.components.tolist()) == (0, [0], [0])
    assert g.neighbors("only") == []
    assert g.diff(np.ones((1, 2))).shape == (0, 2)
    assert g.div(np.zeros((0, 2))).tolist() == [[0.0, 0.0]]


def test_duplicate_ids_are_an_error():
    with pytest.raises(ValueError, match="distinct; 'a' is repeated"):
        Graph(["a", "b", "a"], [], [])


@pytest.mark.parametrize(
    ("head", "tail", "words"),
    [
        ([0, 1], [1], "equal length; got 2, 1"),
        ([0], [2], r"tail must hold node positions 0\.\.1; got 2\.\.2"),
        ([-1], [1], r"head must hold node positions"),
        ([0.0], [1], "head must be a one-dimensional integer array; got float64"),
        ([["a"]], [["b"]], r"of shape \(1, 1\)\. For ids use Graph.from_edges"),
    ],
)
def test_bad_positions_are_errors(head, tail, words):
    with pytest.raises(ValueError, match=words):
        Graph(["a", "b"], head, tail)


def test_degrees_and_adjacency():
    g = path()
    assert g.degree.tolist() == [1, 2, 1]
    assert g.weighted_degree.tolist() == [2.0, 5.0, 3.0]
    assert g.adjacency.toarray().tolist() == [[0, 2, 0], [2, 0, 3], [0, 3, 0]]


def test_lookup_by_id():
    g = path()
    assert g.position("b") == 2
    assert g.positions(["b", "x", "c"]).tolist() == [2, -1, 0]
    assert g.neighbors("a") == ["c", "b"]
    assert g.describe_edge(0) == 'edge 0 ("c", "a")'
    with pytest.raises(ValueError, match=r"No node 'x' in the graph. Ids: 'c', 'a', 'b'"):
        g.neighbors("x")


def test_ids_of_any_hashable_type():
    g = Graph([(0, 0), (0, 1), "hub"], [0, 1], [2, 2])
    assert g.neighbors("hub") == [(0, 0), (0, 1)]
    assert g.position((0, 1)) == 1
    assert g.describe_edge(0) == 'edge 0 ((0, 0), "hub")'


@pytest.mark.parametrize("name", ["ids", "head", "tail", "weight", "degree", "components"])
def test_arrays_are_read_only(name):
    array = getattr(path(), name)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = array[0]


def test_attributes_cannot_be_set_or_deleted():
    g = path()
    with pytest.raises(AttributeError, match="immutable"):
        g.weight = np.ones(2)
    with pytest.raises(AttributeError, match="immutable"):
        del g.weight
    assert g == path()


def test_inputs_are_neither_changed_nor_shared():
    ids, head, tail = np.array([5, 6, 7]), np.array([2, 0]), np.array([1, 1])
    weight = np.array([1.0, 2.0])
    before = [a.copy() for a in (ids, head, tail, weight)]
    g = Graph(ids, head, tail, weight)
    for array, old in zip((ids, head, tail, weight), before, strict=True):
        assert np.array_equal(array, old)
        assert array.flags.writeable
        array[:] = 0
    assert g == Graph([5, 6, 7], [0, 1], [1, 2], [2.0, 1.0])


def test_read_only_and_memory_mapped_inputs_are_accepted(tmp_path):
    arrays = [np.array([4, 5, 6]), np.array([2, 0]), np.array([1, 1]), np.array([1.0, 2.0])]
    mapped = []
    for k, array in enumerate(arrays):
        np.save(tmp_path / f"{k}.npy", array)
        mapped.append(np.load(tmp_path / f"{k}.npy", mmap_mode="r"))
        array.flags.writeable = False
    g = Graph(*mapped)
    assert g == Graph(*arrays)
    assert type(g.ids) is np.ndarray


def test_pickle_and_copies_are_equal_and_frozen():
    g = Graph(["a", ("b", 1), 3], [0, 2], [1, 1], [0.5, 2.0])
    back = pickle.loads(pickle.dumps(g))
    assert back == g
    assert back.position(("b", 1)) == 1
    assert not back.weight.flags.writeable
    assert copy.copy(g) == g and copy.deepcopy({"g": g})["g"] == g


def test_equality_and_hash():
    g = path()
    assert g == path() and hash(g) == hash(path())
    assert len({g, path()}) == 1
    assert g != Graph(["c", "a", "b"], [1, 2], [0, 1], [2.0, 4.0])
    assert g != Graph([0, 1, 2], [1, 2], [0, 1], [2.0, 3.0])
    assert g != "graph"
    assert repr(g) == "Graph(n_nodes=3, n_edges=2)"


@settings(derandomize=True, deadline=None)
@given(graphs(), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_div_is_the_adjoint_of_diff(g, d, seed):
    rng = np.random.default_rng(seed)
    w, u = rng.normal(size=(g.n_nodes, d)), rng.normal(size=(g.n_edges, d))
    assert np.isclose(np.sum(g.diff(w) * u), np.sum(w * g.div(u)), atol=1e-10)


@settings(derandomize=True, deadline=None)
@given(graphs(), st.integers(0, 2**32 - 1))
def test_diff_and_div_match_loops_over_the_edges(g, seed):
    rng = np.random.default_rng(seed)
    w, u = rng.normal(size=(g.n_nodes, 2)), rng.normal(size=(g.n_edges, 2))
    out = np.zeros_like(w)
    for e, (i, j) in enumerate(zip(g.head, g.tail, strict=True)):
        assert np.array_equal(g.diff(w)[e], w[i] - w[j])
        out[i] += u[e]
        out[j] -= u[e]
    assert np.allclose(g.div(u), out, atol=1e-12)


@settings(derandomize=True, deadline=None)
@given(graphs())
def test_components_and_degrees_match_networkx(g):
    other = nx.Graph()
    other.add_nodes_from(range(g.n_nodes))
    other.add_weighted_edges_from(zip(g.head.tolist(), g.tail.tolist(), g.weight, strict=True))
    expected = {frozenset(c) for c in nx.connected_components(other)}
    found = {frozenset(np.flatnonzero(g.components == c)) for c in np.unique(g.components)}
    assert found == expected
    assert g.degree.tolist() == [other.degree(i) for i in range(g.n_nodes)]
    weighted = [other.degree(i, weight="weight") for i in range(g.n_nodes)]
    assert np.allclose(g.weighted_degree, weighted)


@settings(derandomize=True, deadline=None)
@given(graphs(), st.randoms(use_true_random=False))
def test_order_and_direction_of_the_edges_do_not_matter(g, random):
    order = list(range(g.n_edges))
    random.shuffle(order)
    again = Graph(g.ids, g.tail[order], g.head[order], g.weight[order])
    assert again == g


def test_from_edges_sorts_the_ids_it_finds():
    g = Graph.from_edges([("b", "a"), ("c", "b")], weight=[1.0, 2.0])
    assert g == Graph(["a", "b", "c"], [0, 1], [1, 2], [1.0, 2.0])


def test_from_edges_keeps_the_order_of_nodes_and_nodes_without_edges():
    g = Graph.from_edges([("b", "a")], nodes=["b", "lonely", "a"])
    assert g.ids.tolist() == ["b", "lonely", "a"]
    assert g.degree.tolist() == [1, 0, 1]


def test_from_edges_keeps_leading_zeros_apart():
    g = Graph.from_edges([("007", "7"), ("7", "07")])
    assert g.ids.tolist() == ["007", "07", "7"]


@pytest.mark.parametrize(
    "edges",
    [
        np.array([[10, 20], [20, 30]]),
        [[10, 20], (20, 30)],
        iter([(10, 20), (20, 30)]),
        pd.DataFrame({"u": [10, 20], "v": [20, 30]}),
        pl.DataFrame({"u": [10, 20], "v": [20, 30]}),
        np.array([[10.0, 20.0], [20.0, 30.0]]),
    ],
)
def test_from_edges_takes_arrays_tables_and_iterables(edges):
    assert Graph.from_edges(edges) == Graph([10, 20, 30], [0, 1], [1, 2])


def test_from_edges_with_mixed_types():
    g = Graph.from_edges([("hub", 1), (2, "hub")])
    assert g.ids.tolist() == ["hub", 2, 1]
    assert sorted(g.neighbors("hub")) == [1, 2]


def test_from_edges_without_edges():
    assert Graph.from_edges([], nodes=["a", "b"]).n_edges == 0
    assert Graph.from_edges(np.zeros((0, 2), dtype=int), nodes=[1]).ids.tolist() == [1]
    with pytest.raises(ValueError, match="at least one node"):
        Graph.from_edges([])


def test_unknown_ids_of_both_ends_are_listed():
    with pytest.raises(ValueError, match=r"the edges must be in nodes; unknown: 'x', 'y'"):
        Graph.from_edges([("a", "x"), ("y", "a")], nodes=["a", "b"])


def test_unknown_ids_of_another_type_get_a_hint():
    with pytest.raises(ValueError, match=r"text such as '1'.*int such as 1.*convert"):
        Graph.from_edges([(1, 2)], nodes=["1", "2"])


@pytest.mark.parametrize("edges", [["ab"], [("a", "b", 2.0)], [3], [("a",)]])
def test_an_edge_that_is_no_pair_is_named(edges):
    with pytest.raises(ValueError, match=r"pair of node ids; got .* at position 0"):
        Graph.from_edges(edges)


@pytest.mark.parametrize("shape", [(4, 3), (6,)])
def test_edge_array_of_wrong_shape(shape):
    with pytest.raises(ValueError, match=r"edges must have shape \(n_edges, 2\); got"):
        Graph.from_edges(np.zeros(shape, dtype=int))


def test_a_million_edges():
    n = 500_000
    i = np.arange(n)
    edges = np.concatenate([np.column_stack([i, (i + s) % n]) for s in (1, 2)])
    g = Graph.from_edges(edges[::-1], weight=np.full(2 * n, 0.5))
    assert (g.n_nodes, g.n_edges) == (n, 2 * n)
    assert (g.degree == 4).all()
    assert np.all(g.head < g.tail)
    assert not g.components.any()


def test_large_graphs_sum_over_edges_and_groups_to_the_bits_of_small_ones():
    graph, rng = grid(120, 120), np.random.default_rng(0)
    values = rng.standard_normal((graph.n_edges, 2))
    wanted = [
        np.bincount(graph.head, column, graph.n_nodes)
        + np.bincount(graph.tail, column, graph.n_nodes)
        for column in values.T
    ]
    assert np.array_equal(graph.at_ends(values), np.stack(wanted, axis=1))
    assert np.array_equal(graph.at_ends(values[:, 1]), wanted[1])
    labels = np.arange(graph.n_nodes) % 50
    rows = rng.standard_normal((graph.n_nodes, 2, 2))
    flat = [np.bincount(labels, column) for column in rows.reshape(-1, 4).T]
    assert np.array_equal(group_sums(labels, rows), np.stack(flat, axis=1).reshape(50, 2, 2))
    assert group_sums(labels[:0], rows[:0]).shape == (0, 2, 2)
