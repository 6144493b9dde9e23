"""Node ids, unseen nodes, graph builders, and what the errors say."""

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

import nefele
from nefele import GTVClassifier, GTVRegressor
from nefele.estimators import GraphBuilder, MomentsKNN, SpatialKNN
from nefele.losses import Squared
from tests.estimators.data import PLACES, ROADS, TOWNS, parameters, towns

WHERE = pd.DataFrame(PLACES, index=["latitude", "longitude"]).T


def test_graphs_of_every_kind():
    X, y = towns()
    edges = list(ROADS.itertuples(index=False, name=None))
    expected = GTVRegressor(ROADS, node="town", alpha=0.3, tol=1e-10).fit(X, y)
    for graph in (
        nefele.Graph.from_edges(edges),
        nx.Graph(edges),
        pl.DataFrame(ROADS.to_dict("list")),
    ):
        model = GTVRegressor(graph, node="town", alpha=0.3, tol=1e-10).fit(X, y)
        order = expected.graph_.positions(model.nodes_)
        np.testing.assert_allclose(model.coef_, expected.coef_[order], atol=1e-7)


def test_no_node_and_no_graph_is_one_pooled_node():
    X, y = towns()
    model = GTVRegressor().fit(X[["tmin", "wind"]], y)
    assert model.nodes_.tolist() == [0] and model.coef_.shape == (1, 2)
    least = np.linalg.lstsq(np.column_stack([X[["tmin", "wind"]], np.ones(60)]), y, rcond=None)[0]
    np.testing.assert_allclose(parameters(model)[0], least, atol=1e-9)


def test_no_graph_means_one_of_moments():
    X, y = towns(empty=())
    model = GTVRegressor(node="town", alpha=0.1).fit(X, y)
    named = GTVRegressor(MomentsKNN(), node="town", alpha=0.1).fit(X, y)
    assert model.graph_ == named.graph_ and model.graph_.n_edges > 0
    by_ids = GTVRegressor(alpha=0.1).fit(X[["tmin", "wind"]], y, node_ids=X["town"])
    assert by_ids.graph_ == model.graph_


def test_moments_find_the_two_regimes():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(20), 30)
    shift = np.where(ids < 10, 0.0, 5.0)
    x = rng.normal(size=600) + shift
    y = np.where(ids < 10, x, -x) + 0.1 * rng.normal(size=600)
    model = GTVRegressor(MomentsKNN(k=3), alpha=0.01).fit(x[:, None], y, node_ids=ids)
    across = (model.graph_.head < 10) & (model.graph_.tail >= 10)
    assert not across.any()
    np.testing.assert_allclose(model.coef_[:10], 1.0, atol=0.1)
    np.testing.assert_allclose(model.coef_[10:], -1.0, atol=0.1)


def test_builders_learn_from_the_training_rows_only():
    seen = []

    class Spy(MomentsKNN):
        def fit_graph(self, rows):
            seen.append(rows)
            return super().fit_graph(rows)

    X, y = towns()
    GTVRegressor(Spy(k=2), node="town").fit(X.iloc[:40], y[:40])
    assert len(seen[0].X) == 40 and seen[0].feature_names == ["tmin", "wind"]
    assert seen[0].targets.shape == (40, 1)
    code = np.array(list("abc"))[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    GTVClassifier(Spy(k=2), node="town", tol=0.1, loss=nefele.losses.Logistic(l2=0.1)).fit(X, code)
    np.testing.assert_array_equal(seen[1].targets.sum(axis=1), 1)
    assert seen[1].targets.shape == (60, 3)


def test_a_builder_of_ones_own():
    class Everyone(GraphBuilder):
        def fit_graph(self, rows):
            ids = np.unique(rows.node_ids)
            return nefele.graphs.star(len(ids), nodes=ids)

    X, y = towns()
    assert GTVRegressor(Everyone(), node="town").fit(X, y).graph_.n_edges == 4


def test_spatial_neighbours_include_nodes_without_rows():
    X, y = towns()
    model = GTVRegressor(SpatialKNN(k=2), node="town", coords=WHERE, alpha=0.3).fit(X, y)
    assert set(model.nodes_) == set(TOWNS)
    assert "Kemi" in model.graph_.neighbors("Oulu")
    assert np.isfinite(model.predict(X.assign(town="Kemi"))).all()


def test_spatial_neighbours_from_columns_and_on_the_earth():
    rng = np.random.default_rng(0)
    lat, lon = [10.0, 10.0, 10.0], [179.0, -179.0, 170.0]
    rows = pd.DataFrame({"node": ["a", "b", "c"] * 4, "lat": lat * 4, "lon": lon * 4})
    model = GTVRegressor(SpatialKNN(k=1, coords=["lat", "lon"]), node="node", alpha=0.1)
    model.fit(rows, rng.normal(size=12))
    assert model.graph_.neighbors("a") == ["b", "c"]  # over the date line; c has a as nearest
    flat = GTVRegressor(SpatialKNN(k=1, coords=["lat", "lon"], metric="euclidean"), node="node")
    assert flat.fit(rows, rng.normal(size=12)).graph_.neighbors("b") == ["c"]


# -- unseen nodes -------------------------------------------------------------------------------


def test_unseen_raises_and_lists():
    X, y = towns()
    model = GTVRegressor(ROADS, node="town").fit(X, y)
    with pytest.raises(ValueError, match=r"2 node id\(s\) were not seen in fit: 'Inari', 'Rauma'"):
        model.predict(X.assign(town=["Inari", "Rauma"] * 30))


def test_unseen_pooled():
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", alpha=0.1, unseen="pooled").fit(X, y)
    mixed = X.assign(town=np.where(np.arange(60) < 5, "Inari", X["town"]))
    found = model.predict(mixed)
    plain = X[["tmin", "wind"]].to_numpy() @ model.pooled_coef_ + model.pooled_intercept_
    np.testing.assert_allclose(found[:5], plain[:5])
    np.testing.assert_allclose(found[5:], model.predict(X)[5:])


def test_unseen_pooled_of_a_multiclass_model():
    X, y = towns(90)
    code = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    options = {"alpha": 0.1, "unseen": "pooled", "loss": nefele.losses.Logistic(l2=0.01)}
    model = GTVClassifier(ROADS, node="town", **options).fit(X, code)
    assert model.predict_proba(X.assign(town="Inari")).shape == (90, 3)


@pytest.mark.parametrize(
    "coords",
    [
        {**PLACES, "Inari": (68.9, 27.0)},
        pd.concat([WHERE, pd.DataFrame([[68.9, 27.0]], ["Inari"], WHERE.columns)]),
        pl.DataFrame(
            {
                "town": [*PLACES, "Inari"],
                "lat": [*(p[0] for p in PLACES.values()), 68.9],
                "lon": [*(p[1] for p in PLACES.values()), 27.0],
            }
        ),
    ],
    ids=["dict", "pandas", "polars"],
)
def test_unseen_nearest(coords):
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", alpha=0.1, unseen="nearest", coords=coords).fit(X, y)
    np.testing.assert_array_equal(
        model.predict(X.assign(town="Inari")), model.predict(X.assign(town="Kemi"))
    )
    with pytest.raises(ValueError, match="coords must have every unseen node; missing: 'Rauma'"):
        model.predict(X.assign(town="Rauma"))


# -- errors -------------------------------------------------------------------------------------

X, Y = towns()
HOLED = X.assign(wind=X["wind"].where(X.index != 7, np.inf))


@pytest.mark.parametrize(
    ("options", "given", "message"),
    [
        ({"node": "twon"}, X, 'No node column "twon". Did you mean "town"?'),
        ({"node": "town"}, X.assign(town="Rauma"), "1 of 1 are not: 'Rauma'. The graph has 6"),
        ({"node": "town"}, X.assign(town=3), "never match: convert one side"),
        ({"node": "town"}, HOLED, r"got inf in column 'wind', row 7 of node 'Pori'.*impute"),
        ({"node": "town"}, X.assign(town=None), "must not be missing"),
        ({"node": "town"}, X.to_numpy(), "X is a numpy.ndarray without column names"),
        ({"node": 9}, X.to_numpy(), "node must be a column position 0..2; got 9"),
        ({}, X[["tmin"]], "A graph needs the node of each row"),
        ({"node": "town", "alpha": -1}, X, "alpha must be finite and >= 0; got -1"),
        ({"node": "town", "weighting": "row"}, X, 'No weighting "row". Did you mean "rows"?'),
        ({"node": "town", "unseen": "mean"}, X, 'No rule for unseen nodes "mean"'),
        ({"node": "town", "unseen": "nearest"}, X, 'unseen="nearest" needs coords'),
        ({"node": "town", "penalty": "l3"}, X, 'No penalty "l3"'),
        ({"node": "town", "loss": "sqared"}, X, 'No loss "sqared". Did you mean "squared"?'),
        ({"node": "town", "loss": Squared}, X, r"got a class. Use Squared\(\)"),
        (
            {"node": "town", "loss": 3},
            X,
            "loss must be one of absolute, huber, poisson, quantile, squared",
        ),
        ({"node": "town", "loss": nefele.losses.Hinge()}, X, "Use GTVClassifier"),
        ({"node": "town", "couple": ["wnd"]}, X, 'No feature to couple "wnd". Did you mean "wind"'),
        ({"node": "town", "couple": "wind"}, X, r"Use \['wind'\]"),
        ({"node": "town", "couple": [2]}, X, "couple must list positions 0..1; got 2"),
        ({"node": "town", "couple": [0.5]}, X, "couple must list names or positions"),
        ({"node": "town", "graph": SpatialKNN}, X, r"graph must be an object; use SpatialKNN\(\)"),
        ({"node": "town", "graph": SpatialKNN()}, X, "SpatialKNN needs coords"),
        ({"node": "town", "graph": SpatialKNN(coords={"Oulu": (1, 2)})}, X, "missing: 'Hanko'"),
        ({"node": "town", "graph": 3}, X, "as_graph takes an edge list"),
        ({"node": "town", "graph": MomentsKNN(k=0)}, X, "k must be an integer >= 1"),
    ],
)
def test_errors_say_what_to_do(options, given, message):
    with pytest.raises(ValueError, match=message):
        GTVRegressor(**{"graph": ROADS, **options}).fit(given, Y)


def test_more_errors():
    model = GTVRegressor(ROADS, node="town")
    with pytest.raises(ValueError, match="The node ids must come from one place"):
        model.fit(X, Y, node_ids=X["town"])
    with pytest.raises(ValueError, match=r"node_ids must have one id per row of X \(60\); got 59"):
        GTVRegressor(ROADS).fit(X[["tmin"]], Y, node_ids=X["town"][1:])
    with pytest.raises(ValueError, match="The model has 6 nodes; pass the node of each row"):
        GTVRegressor(ROADS).fit(X[["tmin"]], Y, node_ids=X["town"]).predict(X[["tmin"]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(X, Y).predict(X.rename(columns={"wind": "rain"}))
    with pytest.raises(ValueError, match="at least 2 classes in y over all nodes; got one class"):
        GTVClassifier(ROADS, node="town").fit(X, np.ones(60))
    with pytest.raises(ValueError, match="X has no column names"):
        GTVRegressor(ROADS, node=1, couple=["wind"]).fit(X.to_numpy(), Y)
    swapped = WHERE[["longitude", "latitude"]]
    with pytest.raises(ValueError, match="in this order"):
        GTVRegressor(SpatialKNN(), node="town", coords=swapped).fit(X, Y)
