"""Wrong maps, penalties, sets and batches: told before any work, never taken in silence."""

import numpy as np
import pandas as pd
import pytest

import nefele
from nefele import (
    ConvexClustering,
    GTVRegressor,
    GTVRegressorCV,
    LocalData,
    Problem,
    Stream,
)
from nefele.graphs import chain, mapped, trend
from nefele.losses import Box, Constrained, GraphicalLasso, Squared, matrices
from nefele.penalties import ByEdge, L1Norm, L2Norm, Partial, edge_penalties
from nefele.theory import suggest_nodes

GRAPH = chain(3)
EYE = np.eye(2)


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X, ids = rng.standard_normal((60, 2)), np.repeat(np.arange(3), 20)
    return X, X @ [1.0, -1.0] - 5.0 + 0.1 * rng.standard_normal(60), ids


@pytest.mark.parametrize("edges", ["x", 5, [((0, 1), (EYE, EYE))]])
def test_maps_of_edges_come_in_a_dict(edges):
    with pytest.raises(ValueError, match="edges must be a dict by pairs of node ids; got"):
        mapped(GRAPH, edges=edges)


@pytest.mark.parametrize("maps", [None, 3.0, [[1.0, 0.0]], EYE])
def test_an_edge_has_a_pair_of_maps(maps):
    with pytest.raises(ValueError, match=r"edges\[\(0, 1\)\] must be a pair of maps"):
        mapped(GRAPH, edges={(0, 1): maps})


def test_an_edge_is_named_once():
    with pytest.raises(ValueError, match=r"edges names \(1, 0\) twice"):
        mapped(GRAPH, edges={(0, 1): (EYE, EYE), (1, 0): (2 * EYE, EYE)})
    data = LocalData.from_list([None, ([[1.0]], [1.0]), None])
    kinds = {(0, 1): "l1", (1, 0): "linf", None: "l2"}
    with pytest.raises(ValueError, match=r"penalty names the edge \(1, 0\) in both orders"):
        Problem(GRAPH, data, penalty=kinds, lam=1.0)


def test_lengths_agree_with_the_maps():
    with pytest.raises(ValueError, match=r"d\[0\] must be the number of columns .*\(2\); got 3"):
        mapped(GRAPH, nodes={0: [[1.0, 0.0]]}, d={0: 3})


@pytest.mark.parametrize("on", [None, 3, "01", [0.5], [True, False], [[0]], ["a"], [np.nan]])
def test_partial_takes_integer_positions(on):
    with pytest.raises(ValueError, match="on must name at least one entry, by integer positions"):
        Partial(L2Norm(), on)


@pytest.mark.parametrize("penalties", [L1Norm(), None, "l1"])
def test_by_edge_takes_a_sequence(penalties):
    with pytest.raises(ValueError, match="penalties must be Penalty objects, at least one; got"):
        ByEdge(penalties, [0, 0])


def test_edge_penalties_reads_tables_of_names():
    table = pd.DataFrame({"source": [0, 1], "target": [1, 2], "penalty": ["l1", None]})
    assert list(edge_penalties(table)) == [(0, 1), None]
    with pytest.raises(ValueError, match=r"edges must be a pandas or polars DataFrame; got str"):
        edge_penalties("edges.csv")
    with pytest.raises(ValueError, match=r"penalty must be one of .*; got 2.0"):
        edge_penalties(table.assign(penalty=[2.0, np.nan]))
    with pytest.raises(ValueError, match=r"edges names \(0, 1\) twice"):
        edge_penalties(pd.concat([table[:1], table[:1].assign(penalty="l2")]))


def test_precision_matrices():
    with pytest.raises(ValueError, match=r"w must have 2 dimension\(s\); got shape \(3,\)"):
        matrices([1.0, 0.0, 1.0])
    X, y, ids = rows()
    data = LocalData.from_long(X, y, ids, offset=np.ones(60))
    with pytest.raises(ValueError, match="GraphicalLasso takes no offset"):
        Problem(GRAPH, data, loss=GraphicalLasso(0.1), lam=1.0)


def test_pad_is_a_flag():
    with pytest.raises(ValueError, match="pad must be True or False; got 'yes'"):
        LocalData.from_list([([[1.0]], [1.0])], pad="yes")


def test_a_stream_predicts_rows_of_nodes():
    X, y, ids = rows()
    stream = Stream(GRAPH, 2, lam=0.1)
    stream.partial_fit(X, y, ids)
    for few in (ids[:1], ids[:2]):
        with pytest.raises(ValueError, match=r"node_ids must have one entry per row of X \(60\)"):
            stream.predict(X, few)
    with pytest.raises(ValueError, match=r"X\[0, 1\] must be finite; got nan"):
        stream.predict([[0.0, np.nan]], [0])


def test_unknown_candidates_are_named():
    data = LocalData.from_list([([[1.0]], [1.0]), None, None])
    with pytest.raises(ValueError, match="Every node id of candidates must be a node"):
        suggest_nodes(Problem(GRAPH, data, lam=1.0), 1, candidates=[9])


def test_estimators_refuse_what_their_parameters_do_not_mean():
    X, y, ids = rows()
    for loss, message in (
        (Constrained(Squared(), Box(0, 0.5)), "use fit_intercept=False and standardize=False"),
        (GraphicalLasso(0.1), "GraphicalLasso predicts nothing"),
    ):
        for make in (GTVRegressor, GTVRegressorCV):
            with pytest.raises(ValueError, match=message):
                make(GRAPH, loss=loss, penalty="l2").fit(X, y, node_ids=ids)
    for loss in (Constrained(Squared()), Squared(l2=(0.1, 0.1, 0.0))):
        with pytest.raises(ValueError, match=r'must go with a penalty by name.*penalty="auto"'):
            GTVRegressorCV(GRAPH, loss=loss, fit_intercept=False, standardize=False).fit(
                X, y, node_ids=ids
            )
    coupling = mapped(GRAPH, nodes={0: [[1.0, 0.0]], 1: [[1.0, 0.0]], 2: [[0.0, 1.0]]})
    with pytest.raises(ValueError, match='penalty="auto" takes no couplings by linear maps'):
        GTVRegressorCV(coupling, standardize=False).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="Maps compare parameters as they are"):
        GTVRegressor(coupling, fit_intercept=False).fit(X, y, node_ids=ids)
    with pytest.raises(ValueError, match="as_graph with nodes or weight takes no couplings"):
        nefele.as_graph(trend(chain(5), 2), nodes=range(5))
    with pytest.raises(ValueError, match="ConvexClustering takes no couplings by linear maps"):
        ConvexClustering(graph=trend(chain(60), 2)).fit(X)


@pytest.mark.parametrize("make", [GTVRegressor, GTVRegressorCV])
def test_estimators_with_bounds_on_the_coefficients(make):
    X, y, ids = rows()
    loss = Constrained(Squared(), Box(0, 0.5))
    model = make(GRAPH, loss=loss, penalty="l2", fit_intercept=False, standardize=False)
    coef = model.fit(X, y, node_ids=ids).coef_
    assert coef.min() >= -1e-9 and coef.max() <= 0.5 + 1e-9
