"""Bad input: what must hold, what came, where, what to do."""

import numpy as np
import pytest

from nefele import Graph, GraphSelectorCV, GTVRegressor
from nefele.graph_learning import (
    AlternatingGraph,
    BlockModelCleanup,
    DegreeGraph,
    DelaunayGraph,
    EmbeddingKNN,
    GlassoGraph,
    LinkPrediction,
    LossGraph,
    PoolingGainGraph,
    RadiusGraph,
    SmoothSignalGraph,
    TestGraph,
    WassersteinGraph,
    choose_by_validation,
    connect_graph,
    graph_diagnostics,
    graph_from_discrepancy,
    learn_smooth_graph,
)
from tests.graph_learning.data import as_rows, planted, ring


@pytest.fixture(scope="module")
def rows():
    return as_rows(*planted(0, n=5, m=6)[:3])


def lonely():
    X, y, ids, _ = planted(0, n=6, m=6)
    keep = np.r_[0:24, 24, 30]  # one row each at the last two nodes
    return as_rows(X[keep], y[keep], ids[keep])


def test_too_few_rows_for_a_covariance():
    with pytest.raises(ValueError, match=r"2 of 6 nodes: 'node 04', 'node 05'. Use shrinkage=0.1"):
        WassersteinGraph(k=2).fit_graph(lonely())
    graph = WassersteinGraph(k=2, shrinkage=0.1).fit_graph(lonely())
    assert graph.degree.min() >= 2


def test_no_covariance_anywhere():
    alone = as_rows(np.ones((3, 1)), np.ones(3), ["a", "b", "c"])
    with pytest.raises(ValueError, match="3 of 3 nodes"):
        WassersteinGraph(shrinkage=0.5).fit_graph(alone)


def test_too_few_rows_for_a_test():
    with pytest.raises(ValueError, match=r"at least 2 rows per node.*'node 04', 'node 05'"):
        TestGraph().fit_graph(lonely())


def test_too_few_rows_to_know_the_noise():
    X, y, ids, _ = planted(0, n=6, m=3)
    with pytest.raises(ValueError, match=r"more rows than parameters \(3\)"):
        PoolingGainGraph().fit_graph(as_rows(X, y, ids))


@pytest.mark.parametrize(
    "builder",
    [
        WassersteinGraph(k=5),
        EmbeddingKNN(k=5),
        LossGraph(k=5),
        PoolingGainGraph(k=5),
        TestGraph(k=5),
        SmoothSignalGraph(k=5),
        AlternatingGraph(k=5),
    ],
)
def test_k_must_be_below_the_number_of_nodes(builder, rows):
    with pytest.raises(
        ValueError, match=r"k must be smaller than the number of nodes \(5\); got 5"
    ):
        builder.fit_graph(rows)


@pytest.mark.parametrize("builder", [RadiusGraph(50.0), DelaunayGraph()])
def test_latitude_out_of_range(builder, rows):
    import pandas as pd

    table = pd.DataFrame({"lat": [60.0, 91.0], "lon": [24.0, 25.0]}, index=["a", "b"])
    here = as_rows(np.ones((2, 1)), np.ones(2), ["a", "b"], coords=table)
    with pytest.raises(ValueError, match=r"latitude must lie in \[-90, 90\].*91.0 at node 'b'"):
        builder.fit_graph(here)
    with pytest.raises(ValueError, match="needs coords"):
        builder.fit_graph(rows)


def test_glasso_needs_to_know_which_rows_belong_together(rows):
    with pytest.raises(ValueError, match="needs time="):
        GlassoGraph(signals="target").fit_graph(rows)
    with pytest.raises(ValueError, match='No column "day"'):
        GlassoGraph(signals="target", time="day").fit_graph(rows)
    with pytest.raises(ValueError, match="time must be below 2 features; got 2"):
        GlassoGraph(signals="target", time=2).fit_graph(rows)
    with pytest.raises(ValueError, match="equal values at different nodes; got none"):
        GlassoGraph(signals="target", time=0).fit_graph(rows)
    same = as_rows(np.zeros((4, 1)), np.arange(4.0), ["a", "a", "b", "b"])
    with pytest.raises(ValueError, match="0 comes again at node 'a'"):
        GlassoGraph(signals="target", time=0).fit_graph(same)


@pytest.mark.parametrize(
    ("builder", "words"),
    [
        (WassersteinGraph(eta=-1.0), "eta must be finite and >= 0"),
        (WassersteinGraph(k=2, shrinkage=2.0), r"shrinkage must lie in \[0, 1\]"),
        (LossGraph(k="best"), 'No choice of k "best"'),
        (LossGraph(k=0), "k must be an integer >= 1"),
        (LossGraph(weight="heavy"), 'No weight "heavy"'),
        (LossGraph(normalize="mena"), 'Did you mean "mean"'),
        (LossGraph(l2=0.0), "l2 must be finite and > 0"),
        (EmbeddingKNN("tsn", k=2), 'Did you mean "tsne"'),
        (EmbeddingKNN("tsne", k=2, perplexity=9.0), r"below the number of nodes \(5\)"),
        (TestGraph("f"), 'No test "f"'),
        (TestGraph(level=1.0), r"level must lie in \(0, 1\)"),
        (DegreeGraph(9.0), r"at most the number of other nodes \(4\)"),
        (DegreeGraph(2.0, similarity=GlassoGraph()), "similarity must be a builder with a discrep"),
        (SmoothSignalGraph(k=2, theta=1.0), "k or theta, not both"),
        (LinkPrediction(LossGraph), "must be an object"),
        (LinkPrediction(3), "needs a graph or a graph builder; got int"),
        (BlockModelCleanup(n_blocks=9), r"at most the number of nodes \(5\)"),
        (RadiusGraph(0.0), "radius must be finite and > 0"),
    ],
)
def test_parameters(builder, words, rows):
    with pytest.raises(ValueError, match=words):
        builder.fit_graph(rows)


def test_functions(rows):
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        graph_from_discrepancy(["a", "b"], np.zeros((3, 3)))
    with pytest.raises(ValueError, match="must not be NaN; got NaN at row 0, column 1"):
        connect_graph(Graph(["a", "b"], [], []), [[0.0, np.nan], [np.nan, 0.0]])
    with pytest.raises(ValueError, match="Z must be >= 0"):
        learn_smooth_graph([[0.0, -1.0], [-1.0, 0.0]])
    with pytest.raises(ValueError, match="at least one candidate"):
        choose_by_validation(LossGraph(), rows, values=[])


def test_selector():
    X, y, ids, _ = planted(0, n=5, m=6)
    for graphs, words in [
        ({}, "at least one candidate"),
        (LossGraph(), "must be a dict"),
        ({"no edges": LossGraph()}, "is that of a reference"),
        ({"far": LossGraph(k=7)}, 'Candidate "far": k must be smaller'),
    ]:
        with pytest.raises(ValueError, match=words):
            GraphSelectorCV(graphs).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="give node= or node_ids="):
        GraphSelectorCV().fit(X, y)
    with pytest.raises(ValueError, match="all rows are of one"):
        GraphSelectorCV().fit(X, y, node_ids=["a"] * len(y))
    with pytest.raises(ValueError, match="give each node 2 rows or more"):
        GraphSelectorCV().fit(X, y, node_ids=np.arange(len(y)))
    with pytest.raises(ValueError, match="must be a GTVRegressorCV"):
        GraphSelectorCV(estimator=GTVRegressor()).fit(X, y, node_ids=ids)


def test_diagnostics(rows):
    X, y, ids, _ = planted(0, n=5, m=6)
    graph = ring(ids)
    with pytest.raises(ValueError, match="graph must be a Graph"):
        graph_diagnostics(graph.adjacency)
    with pytest.raises(ValueError, match="Result or a fitted GTV estimator"):
        graph_diagnostics(graph, GTVRegressor(graph))
    other = GTVRegressor(LossGraph(k=1), alpha=0.1).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="must be over this graph"):
        graph_diagnostics(graph, other)
