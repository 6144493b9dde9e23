import subprocess
import sys
from types import SimpleNamespace

import igraph
import libpysal
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from nefele.graph import Graph
from nefele.graphs import as_graph, chain

TABLES = pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
PAIR = np.array([[0.0, 2.0], [2.0, 0.0]])


class Tensor:
    """Stands for a tensor that tracks gradients on a device."""

    def __init__(self, values, ready=False):
        self.values, self.ready = np.asarray(values), ready

    def detach(self):
        return Tensor(self.values)

    def cpu(self):
        return Tensor(self.values, ready=True)

    def __array__(self, dtype=None, copy=None):
        if not self.ready:
            raise TypeError("cannot convert a device tensor")
        return self.values


def pyg(edge_index, **attributes):
    return SimpleNamespace(edge_index=np.array(edge_index), **attributes)


def edges(graph):
    """{(id, id): weight} with sorted pairs."""
    a, b = graph.ids[graph.head].tolist(), graph.ids[graph.tail].tolist()
    pairs = (tuple(sorted(p, key=str)) for p in zip(a, b, strict=True))
    return dict(zip(pairs, graph.weight.tolist(), strict=True))


def test_a_graph_is_returned_as_it_is():
    g = chain(3, weight=2.0)
    assert as_graph(g) is g
    assert as_graph(g, weight=None).weight.tolist() == [1.0, 1.0]


def test_a_graph_is_extended_and_reordered_by_nodes():
    g = Graph(["a", "b", "c"], [0, 1], [1, 2], [1.0, 2.0])
    out = as_graph(g, nodes=["c", "new", "a", "b"])
    assert out.ids.tolist() == ["c", "new", "a", "b"]
    assert edges(out) == edges(g)
    assert out.degree.tolist() == [1, 0, 1, 2]


def test_ids_missing_in_nodes_are_listed():
    with pytest.raises(ValueError, match=r"every node of the graph; missing: 1, 2\. Given: 0, 5\."):
        as_graph(chain(3), nodes=[0, 5])
    with pytest.raises(ValueError, match=r"missing: 0, 1\. nodes has ids such as '0': convert"):
        as_graph(chain(2), nodes=["0", "1"])


def test_repeated_nodes_are_an_error():
    with pytest.raises(ValueError, match="distinct; 1 is repeated"):
        as_graph(chain(2), nodes=[0, 1, 1])


@TABLES
def test_edge_list(table):
    df = table({"target": ["a", "007"], "weight": [1, 2], "source": ["b", "a"]})
    g = as_graph(df)
    assert g.ids.tolist() == ["007", "a", "b"]
    assert edges(g) == {("a", "b"): 1.0, ("007", "a"): 2.0}
    assert edges(as_graph(df, weight=None)) == {("a", "b"): 1.0, ("007", "a"): 1.0}


@TABLES
def test_edge_list_without_weights_and_with_lonely_nodes(table):
    g = as_graph(table({"source": [2, 3], "target": [1, 2]}), nodes=[3, 9, 2, 1])
    assert g.ids.tolist() == [3, 9, 2, 1]
    assert edges(g) == {(1, 2): 1.0, (2, 3): 1.0}


@TABLES
def test_edge_list_with_another_weight_column(table):
    df = table({"source": [1], "target": [2], "km": [7.5]})
    assert edges(as_graph(df, weight="km")) == {(1, 2): 7.5}
    with pytest.raises(ValueError, match=r"columns source, target, miles; got source, target, km"):
        as_graph(df, weight="miles")


@TABLES
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["from", "to"], r"got from, to\. Rename 'from' to 'source', 'to' to 'target'"),
        (["source", "traget"], r"Rename 'traget' to 'target'"),
        (["source", "target", "weigth"], r"at most weight; .* Rename 'weigth' to 'weight'"),
        (["source", "target", "w"], r"Rename 'w' to 'weight'"),
        (["Source", "Target"], r"Rename 'Source' to 'source', 'Target' to 'target'"),
        (["source", "target", "weight", "colour"], r"Select only .*: source, target, weight"),
        (["source"], r"must have the columns source, target and at most weight; got source\.$"),
    ],
)
def test_edge_list_with_other_columns_says_what_to_do(table, names, words):
    with pytest.raises(ValueError, match=words):
        as_graph(table({name: [1] for name in names}))


@TABLES
def test_edge_list_errors_name_the_place(table):
    with pytest.raises(ValueError, match=r"target id must not be missing; got .* at position 1"):
        as_graph(table({"source": ["a", "b"], "target": ["b", None]}))
    with pytest.raises(ValueError, match=r'got nan at edge 1 \("b", "c"\)'):
        as_graph(table({"source": ["a", "b"], "target": ["b", "c"], "weight": [1, None]}))
    with pytest.raises(ValueError, match="weight must be numeric"):
        as_graph(table({"source": ["a"], "target": ["b"], "weight": ["big"]}))


@TABLES
def test_edge_list_repetition_follows_the_merge_rule(table):
    df = table({"source": ["a", "b"], "target": ["b", "a"], "weight": [1.0, 3.0]})
    with pytest.raises(ValueError, match="is repeated"):
        as_graph(df)
    assert edges(as_graph(df, merge="mean")) == {("a", "b"): 2.0}


def test_edge_list_with_categories_nullable_ints_and_repeated_names():
    df = pd.DataFrame({"source": pd.Categorical(["b", "a"]), "target": pd.Categorical(["c", "b"])})
    assert as_graph(df).ids.tolist() == ["a", "b", "c"]
    df = pd.DataFrame({"source": pd.array([1], "Int64"), "target": pd.array([2], "Int64")})
    assert as_graph(df).ids.tolist() == [1, 2]
    with pytest.raises(ValueError, match="got source, target, target"):
        as_graph(pd.DataFrame([[1, 2, 3]], columns=["source", "target", "target"]))


def test_lazy_table_and_series_are_errors():
    with pytest.raises(ValueError, match=r"must be a DataFrame; got LazyFrame\. Use \.collect\(\)"):
        as_graph(pl.LazyFrame({"source": [1], "target": [2]}))
    with pytest.raises(ValueError, match="must be a DataFrame; got Series"):
        as_graph(pd.Series([1, 2]))


@TABLES
def test_empty_edge_list_needs_nodes(table):
    df = table({"source": [], "target": []})
    assert as_graph(df, nodes=["a"]).n_edges == 0
    with pytest.raises(ValueError, match="at least one node"):
        as_graph(df)


def test_networkx_keeps_order_lonely_nodes_and_tuples():
    graph = nx.grid_2d_graph(2, 2)
    graph.add_node("lonely")
    graph.edges[(0, 0), (0, 1)]["weight"] = 0.5
    g = as_graph(graph)
    assert g.ids.tolist() == [(0, 0), (0, 1), (1, 0), (1, 1), "lonely"]
    assert g.neighbors((0, 0)) == [(0, 1), (1, 0)]
    assert g.weight.tolist() == [0.5, 1.0, 1.0, 1.0]
    assert as_graph(graph, weight=None).weight.tolist() == [1.0] * 4


def test_networkx_named_weight_must_be_on_every_edge():
    graph = nx.Graph()
    graph.add_edge("a", "b", km=3.0)
    assert as_graph(graph, weight="km").weight.tolist() == [3.0]
    graph.add_edge("b", "c")
    with pytest.raises(ValueError, match=r'attribute "km"; \(\'b\', \'c\'\) has none'):
        as_graph(graph, weight="km")


@pytest.mark.parametrize(
    "graph",
    [
        nx.DiGraph([(0, 1, {"weight": 1.0}), (1, 0, {"weight": 3.0})]),
        nx.MultiGraph([(0, 1, {"weight": 1.0}), (0, 1, {"weight": 3.0})]),
    ],
)
def test_networkx_directed_and_multiple_edges_follow_the_merge_rule(graph):
    with pytest.raises(ValueError, match=r"\(0, 1\) is repeated"):
        as_graph(graph)
    found = [as_graph(graph, merge=rule).weight[0] for rule in ("sum", "max", "mean")]
    assert found == [4.0, 3.0, 2.0]


def test_networkx_one_direction_is_one_edge_and_loops_are_errors():
    assert as_graph(nx.DiGraph([(1, 0), (1, 2)])).n_edges == 2
    with pytest.raises(ValueError, match="self-loop at 'a'"):
        as_graph(nx.Graph([("a", "a")]))
    with pytest.raises(ValueError, match=r"weight must be > 0; got -1.0 at edge 0 \(0, 1\)"):
        as_graph(nx.Graph([(0, 1, {"weight": -1.0})]))


def test_igraph_names_and_weights():
    graph = igraph.Graph([(0, 1), (2, 1)])
    assert as_graph(graph) == Graph([0, 1, 2], [0, 1], [1, 2])
    graph.vs["name"] = ["c", "a", "b"]
    graph.es["weight"] = [1.5, 2.5]
    g = as_graph(graph, nodes=["a", "b", "c"])
    assert edges(g) == {("a", "c"): 1.5, ("a", "b"): 2.5}


def test_igraph_errors():
    graph = igraph.Graph([(0, 1), (1, 0)], directed=True)
    graph.es["strength"] = [1.0, 3.0]
    with pytest.raises(ValueError, match="is repeated"):
        as_graph(graph)
    assert as_graph(graph, weight="strength", merge="max").weight.tolist() == [3.0]
    with pytest.raises(ValueError, match=r'"strenght"\. Did you mean "strength"'):
        as_graph(graph, weight="strenght")
    graph.vs["name"] = ["a", "a"]
    with pytest.raises(ValueError, match="distinct; 'a' is repeated"):
        as_graph(graph, merge="max")


def test_igraph_without_edges():
    assert as_graph(igraph.Graph(n=2)).degree.tolist() == [0, 0]


@pytest.mark.parametrize(
    "convert",
    [
        np.array,
        np.ndarray.tolist,
        sparse.csr_array,
        sparse.coo_matrix,
        sparse.dok_array,
        Tensor,
    ],
)
def test_adjacency_of_any_kind(convert):
    matrix = np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.5], [0.0, 0.5, 0.0]])
    g = as_graph(convert(matrix), nodes=["c", "a", "b"])
    assert g == Graph(["c", "a", "b"], [0, 1], [1, 2], [2.0, 0.5])
    assert as_graph(convert(matrix), ["c", "a", "b"], weight=None).weight.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
def test_adjacency_needs_ids(convert):
    with pytest.raises(ValueError, match="no node ids: nodes must name its 2 rows"):
        as_graph(convert(PAIR))
    with pytest.raises(ValueError, match=r"one id per row of the adjacency \(2\); got 3"):
        as_graph(convert(PAIR), nodes=["a", "b", "c"])


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0, 1], [0.5, 0]], r"got 1 at \('a', 'b'\) and 0\.5 at \('b', 'a'\)\. Symmetrise"),
        ([[0, 0], [0.5, 0]], r"got 0 at \('a', 'b'\) and 0\.5 at"),
        ([[0, 1], [1, 2.0]], r"2 on the diagonal is a self-loop at 'b'"),
        ([[0, -1.0], [-1.0, 0]], r"weight must be finite and >= 0; got -1\.0 at \('a', 'b'\)"),
        ([[0, np.nan], [np.nan, 0]], r"got nan at \('a', 'b'\)"),
        ([[0, 1j], [1j, 0]], "The adjacency must be real; got dtype complex128"),
    ],
)
def test_bad_adjacency_names_the_place(convert, matrix, words):
    with pytest.raises(ValueError, match=words):
        as_graph(convert(matrix), nodes=["a", "b"])


@pytest.mark.parametrize(("rule", "expected"), [("sum", 4.0), ("max", 3.0), ("mean", 2.0)])
def test_asymmetric_adjacency_follows_the_merge_rule(rule, expected):
    matrix = np.array([[0.0, 1.0, 4.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    one_sided = {"sum": 4.0, "max": 4.0, "mean": 2.0}[rule]
    assert as_graph(matrix, range(3), merge=rule).weight.tolist() == [expected, one_sided]


@pytest.mark.parametrize("rule", ["error", "sum", "max", "mean"])
def test_merge_rule_leaves_a_symmetric_adjacency_alone(rule):
    assert as_graph(PAIR, ["a", "b"], merge=rule).weight.tolist() == [2.0]


def test_adjacency_may_differ_by_rounding_only():
    matrix = PAIR.copy()
    matrix[0, 1] = np.nextafter(2.0, 3.0)
    assert as_graph(matrix, ["a", "b"]).weight == pytest.approx([2.0], rel=1e-15)
    matrix[0, 1] = 2.0 + 1e-9
    with pytest.raises(ValueError, match="must be symmetric"):
        as_graph(matrix, ["a", "b"])


def test_sparse_input_is_not_changed_and_not_square_is_an_error():
    matrix = sparse.coo_array(([1.0, 1.0, 2.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert as_graph(matrix, ["a", "b"], weight=None).weight.tolist() == [1.0]
    assert as_graph(matrix, ["a", "b"]).weight.tolist() == [2.0]
    assert matrix.data.tolist() == [1.0, 1.0, 2.0]
    with pytest.raises(ValueError, match=r"must be square; got shape \(2, 3\)"):
        as_graph(sparse.csr_array((2, 3)), ["a", "b"])


@settings(derandomize=True, deadline=None)
@given(st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_adjacency_comes_back(n, seed):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.5), 1)
    g = as_graph(upper + upper.T, nodes=range(n))
    assert np.array_equal(g.adjacency.toarray(), upper + upper.T)
    assert as_graph(g.adjacency, g.ids) == g


def test_pyg_both_directions_are_one_edge():
    data = pyg(
        [[0, 1, 1, 2], [1, 0, 2, 1]], num_nodes=4, edge_weight=np.array([2.0, 2.0, 3.0, 3.0])
    )
    assert as_graph(data) == Graph(range(4), [0, 1], [1, 2], [2.0, 3.0])
    for rule in ("sum", "max", "mean"):
        assert as_graph(data, merge=rule) == as_graph(data)


def test_pyg_single_direction_and_missing_number_of_nodes():
    assert as_graph(pyg([[2, 0], [0, 1]], num_nodes=None)) == Graph(range(3), [0, 0], [1, 2])
    assert as_graph(pyg([[2], [0]]), nodes=[2, 7, 1, 0]).ids.tolist() == [2, 7, 1, 0]
    assert as_graph(pyg(np.zeros((2, 0)), num_nodes=2)).n_edges == 0


def test_pyg_unequal_directions_follow_the_merge_rule():
    data = pyg([[0, 1], [1, 0]], edge_weight=np.array([1.0, 3.0]))
    with pytest.raises(ValueError, match=r"\(0, 1\) is repeated"):
        as_graph(data)
    found = [as_graph(data, merge=rule).weight[0] for rule in ("sum", "max", "mean")]
    assert found == [4.0, 3.0, 2.0]
    assert as_graph(data, weight=None).weight.tolist() == [1.0]


def test_pyg_parallel_edges_are_repetitions():
    data = pyg([[0, 0, 1, 1], [1, 1, 0, 0]])
    with pytest.raises(ValueError, match="is repeated"):
        as_graph(data)
    assert as_graph(data, merge="sum").weight.tolist() == [2.0]


@pytest.mark.parametrize("values", [[2.0, 2.0], [[2.0], [2.0]]])
@pytest.mark.parametrize("name", ["edge_weight", "edge_attr"])
def test_pyg_weight_attributes_and_tensors(name, values):
    data = SimpleNamespace(
        edge_index=Tensor([[0, 1], [1, 0]]), num_nodes=2, edge_weight=None, edge_attr=None
    )
    setattr(data, name, Tensor(values))
    assert as_graph(data).weight.tolist() == [2.0]
    assert as_graph(data, weight=name).weight.tolist() == [2.0]


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        (pyg([[0], [1]], edge_attr=np.ones((1, 3))), {}, r"edge_attr .* got \(1, 3\)\. Set edge_w"),
        (pyg([[0], [1]]), {"weight": "km"}, 'No edge attribute "km"'),
        (pyg([[0], [2]], num_nodes=2), {}, r"node numbers 0\.\.1; got 0\.\.2"),
        (pyg([[-1], [1]]), {}, r"got -1\.\.1"),
        (pyg([[0], [0]]), {}, "self-loop at 0"),
        (pyg([[0.5], [1]]), {}, r"integer array of shape \(2, E\); got float64"),
        (pyg([[0, 1, 2]]), {}, r"got int64 of shape \(1, 3\)"),
        (pyg([[0], [1]], edge_weight=np.ones(2)), {}, r"one entry per edge \(1\); got 2"),
        (pyg([[0], [1]], edge_weight=np.array([np.nan])), {}, r"got nan at edge 0 \(0, 1\)"),
        (pyg([[0], [1]]), {"nodes": ["a", "b"]}, "missing: 0, 1.*convert one side"),
    ],
)
def test_pyg_errors(data, options, words):
    with pytest.raises(ValueError, match=words):
        as_graph(data, **options)


def test_bare_edge_index():
    assert as_graph(np.array([[0, 1, 2, 1], [1, 0, 1, 2]])) == chain(3)
    assert as_graph(Tensor([[0], [1]])) == chain(2)


def test_ambiguous_and_unusable_arrays_say_how():
    with pytest.raises(ValueError, match=r"shape \(2, 2\) may be .* Graph.from_edges\(array.T\)"):
        as_graph(np.array([[0, 1], [1, 0]]), nodes=[0, 1])
    with pytest.raises(ValueError, match=r"got int64 of shape \(3, 2\)\. Use Graph.from_edges"):
        as_graph(np.array([[0, 1], [1, 2], [2, 3]]))
    with pytest.raises(ValueError, match=r"got float64 of shape \(2, 3\)"):
        as_graph(np.zeros((2, 3)))


@pytest.mark.parametrize("obj", [3, "graph", None, [("a", "b")], [[1], [1, 2]], np.zeros(3), {}])
def test_anything_else_lists_what_is_accepted(obj):
    with pytest.raises(ValueError, match=r"as_graph takes an edge list .* Use Graph.from_edges"):
        as_graph(obj)


def test_unknown_merge_rule():
    with pytest.raises(ValueError, match='No merge rule "avg"'):
        as_graph(chain(2), merge="avg")


def weights(transform):
    w = libpysal.weights.W({"b": ["a"], "a": ["b", "c"], "c": ["a"]}, silence_warnings=True)
    w.transform = transform
    return w


def pysal_graph(transform):
    return libpysal.graph.Graph.from_W(weights("b")).transform(transform)


@pytest.mark.parametrize("make", [weights, pysal_graph])
def test_libpysal_is_keyed_by_its_ids(make):
    g = as_graph(make("b"), nodes=["c", "b", "a", "island"])
    assert g.ids.tolist() == ["c", "b", "a", "island"]
    assert edges(g) == {("a", "b"): 1.0, ("a", "c"): 1.0}


@pytest.mark.parametrize("make", [weights, pysal_graph])
def test_libpysal_row_standardised_weights_are_an_error_with_advice(make):
    rows = make("r")
    with pytest.raises(
        ValueError, match=r"must be symmetric.*Row-standardised .* binary .* merge="
    ):
        as_graph(rows)
    assert edges(as_graph(rows, merge="mean")) == {("a", "b"): 0.75, ("a", "c"): 0.75}
    assert edges(as_graph(rows, merge="max")) == {("a", "b"): 1.0, ("a", "c"): 1.0}
    assert edges(as_graph(rows, weight=None)) == {("a", "b"): 1.0, ("a", "c"): 1.0}


def test_libpysal_islands_and_self_weights():
    focal, other = np.array(["a", "b", "c"]), np.array(["b", "a", "c"])
    g = as_graph(libpysal.graph.Graph.from_arrays(focal, other, np.array([1.0, 1.0, 0.0])))
    assert (g.ids.tolist(), g.degree.tolist()) == (["a", "b", "c"], [1, 1, 0])
    with pytest.raises(ValueError, match="self-loop at 'c'"):
        as_graph(libpysal.graph.Graph.from_arrays(focal, other, np.ones(3)))


def test_optional_libraries_are_not_imported():
    code = (
        "import sys; from nefele.graphs import as_graph; import scipy.sparse as s\n"
        "as_graph(s.csr_array([[0., 1.], [1., 0.]]), nodes=[0, 1])\n"
        "print(*{'pandas', 'polars', 'networkx', 'igraph', 'libpysal', 'torch'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == ""
