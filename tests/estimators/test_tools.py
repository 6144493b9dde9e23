"""Inside scikit-learn's tools: pipelines, searches, importances, with pandas and with polars."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io
from scipy import sparse
from sklearn import set_config
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nefele
from nefele import GTVClassifier, GTVRegressor, keep_node
from nefele.estimators import MomentsKNN, SpatialKNN
from tests.estimators.data import PLACES, ROADS, TOWNS, towns

TABLES = pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def as_table(X, table):
    return X if table is pd.DataFrame else pl.DataFrame(X.to_dict("list"))


def pipeline(**options):
    return make_pipeline(
        keep_node(StandardScaler(), node="town"), GTVRegressor(ROADS, node="town", **options)
    )


@TABLES
def test_pipeline_predicts_as_by_hand(table):
    X, y = towns()
    given = as_table(X, table)
    model = pipeline(alpha=0.3).fit(given, y)
    scaled = X.assign(**{c: (X[c] - X[c].mean()) / X[c].std(ddof=0) for c in ("tmin", "wind")})
    by_hand = GTVRegressor(ROADS, node="town", alpha=0.3).fit(scaled, y)
    np.testing.assert_allclose(model.predict(given), by_hand.predict(scaled), atol=1e-8)
    assert model.score(given, y) > 0.9


@TABLES
def test_grid_search_over_graph_and_alpha_together(table):
    X, y = towns()
    search = GridSearchCV(
        pipeline(),
        {
            "gtvregressor__alpha": [0.01, 0.3],
            "gtvregressor__graph": [ROADS, nefele.as_graph(ROADS), MomentsKNN(k=2)],
        },
        cv=KFold(3, shuffle=True, random_state=0),
        scoring="neg_mean_absolute_error",
    )
    search.fit(as_table(X, table), y)
    assert len(search.cv_results_["params"]) == 6
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(as_table(X, table)).shape == (len(y),)


def test_parameters_of_a_builder_are_searchable():
    X, y = towns(empty=())
    model = GTVRegressor(SpatialKNN(coords=PLACES), node="town", alpha=0.1)
    search = GridSearchCV(model, {"graph__k": [1, 3], "graph__weight": ["unit", "exp"]}, cv=3)
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.graph_.n_nodes == 6
    assert model.graph.k is None  # untouched: every fit works on a clone


@TABLES
def test_permutation_importance(table):
    X, y = towns(120)
    model = GTVRegressor(ROADS, node="town", alpha=0.1).fit(as_table(X, table), y)
    piped = pipeline(alpha=0.1).fit(as_table(X, table), y)
    with warnings.catch_warnings():
        # scikit-learn makes an array of a polars table here, and warns that its names are lost.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        found = permutation_importance(model, as_table(X, table), y, n_repeats=3, random_state=0)
        again = permutation_importance(piped, as_table(X, table), y, n_repeats=3, random_state=0)
    np.testing.assert_allclose(found.importances_mean, again.importances_mean, rtol=0.2)
    at = dict(zip(X.columns, found.importances_mean, strict=True))
    assert at["tmin"] > 0.1 and at["wind"] > 0.1 and at["town"] > 0.1


@TABLES
def test_cross_validation(table):
    X, y = towns(90)
    given = as_table(X, table)
    model = GTVRegressor(ROADS, node="town", alpha=0.1)
    found = cross_val_predict(model, given, y, cv=KFold(3, shuffle=True, random_state=0))
    assert np.mean((found - y) ** 2) < 0.3 * np.var(y)
    assert (cross_val_score(model, given, y, cv=KFold(3, shuffle=True, random_state=0)) > 0.7).all()


@pytest.mark.filterwarnings("ignore::nefele.DataWarning")
def test_whole_nodes_held_out():
    """Nodes of the graph without training rows still predict, from their neighbours."""
    X, y = towns(90)
    model = GTVRegressor(ROADS, node="town", alpha=0.1)
    found = cross_val_predict(model, X, y, cv=GroupKFold(5), groups=X["town"])
    assert np.isfinite(found).all() and np.mean((found - y) ** 2) < np.var(y)


def test_probabilities_in_cross_validation():
    X, y = towns(90)
    code = np.where(y + np.random.default_rng(0).normal(size=90) > np.median(y), "warm", "cold")
    model = GTVClassifier(ROADS, node="town", alpha=0.1)
    found = cross_val_predict(model, X, code, cv=3, method="predict_proba")
    assert found.shape == (90, 2)
    scores = cross_val_score(model, X, code, cv=3, scoring="roc_auc")
    assert scores.mean() > 0.7


def test_clone_keeps_the_graph_object():
    graph = nefele.as_graph(ROADS)
    model = clone(GTVRegressor(graph, node="town", penalty="l1"))
    assert model.graph is graph
    other = clone(GTVRegressor(MomentsKNN(k=3)))
    assert other.graph.k == 3 and other.get_params()["graph__k"] == 3


def by_joblib(model, path):
    joblib.dump(model, path)
    return joblib.load(path)


def by_skops(model, path):
    skops.io.dump(model, path)
    kinds = skops.io.get_untrusted_types(file=path)
    assert all(kind.startswith("nefele.") for kind in kinds)
    return skops.io.load(path, trusted=kinds)


@pytest.mark.parametrize(
    "copied", [lambda model, path: pickle.loads(pickle.dumps(model)), by_joblib, by_skops]
)
def test_pickling(copied, tmp_path):
    X, y = towns()
    model = GTVRegressor(nefele.as_graph(ROADS), node="town", alpha=0.3).fit(X, y)
    again = copied(model, tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.partial_fit(X, y).coef_, model.partial_fit(X, y).coef_)


def test_the_same_model_from_every_kind_of_X():
    X, y = towns()
    plain = X[["tmin", "wind"]].to_numpy()
    ids, polars = X["town"].to_numpy(), as_table(X, pl.DataFrame)
    expected = GTVRegressor(ROADS, node="town", alpha=0.3).fit(X, y)
    for given, options in [
        (X.to_numpy(), {"node": 1}),
        (X.to_numpy().astype(str), {"node": 1}),
        (X.to_numpy().tolist(), {"node": -2}),
        (X, {"node": 1}),
        (X[["town", "tmin", "wind"]], {"node": "town"}),
        (X.assign(town=X["town"].astype("category")), {"node": "town"}),
        (X.astype({"town": "string", "tmin": "Float64"}), {"node": "town"}),
        (polars, {"node": "town"}),
        (polars.with_columns(pl.col("town").cast(pl.Categorical)), {"node": "town"}),
    ]:
        model = GTVRegressor(ROADS, alpha=0.3, **options).fit(given, y)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-8)
        np.testing.assert_allclose(model.predict(given), expected.predict(X), atol=1e-8)
    for given in (plain, sparse.csr_array(plain), sparse.coo_matrix(plain)):
        model = GTVRegressor(ROADS, alpha=0.3).fit(given, y, node_ids=ids)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-8)
        found = model.predict(given, node_ids=ids)
        np.testing.assert_allclose(found, expected.predict(X), atol=1e-8)
        assert model.score(given, y, node_ids=ids) == pytest.approx(expected.score(X, y))


def test_ids_stay_as_they_are():
    X = pd.DataFrame({"shop": ["007", "08", "007", "08"], "x": [1.0, 2.0, 3.0, 4.0]})
    model = GTVRegressor(node="shop", alpha=0.1).fit(X, [1.0, 2.0, 3.0, 4.0])
    assert model.nodes_.tolist() == ["007", "08"]
    numbers = X.assign(shop=[7, 8, 7, 8])
    assert GTVRegressor(node="shop", alpha=0.1).fit(numbers, [1.0, 2, 3, 4]).nodes_.tolist() == [
        7,
        8,
    ]


def test_row_order_does_not_matter():
    X, y = towns()
    order = np.random.default_rng(0).permutation(len(y))
    first = GTVRegressor(ROADS, node="town", alpha=0.3, tol=1e-10).fit(X, y)
    other = GTVRegressor(ROADS, node="town", alpha=0.3, tol=1e-10).fit(X.iloc[order], y[order])
    np.testing.assert_allclose(first.coef_, other.coef_, atol=1e-8)


def test_metadata_routing_of_node_ids():
    X, y = towns()
    set_config(enable_metadata_routing=True)
    try:
        model = GTVRegressor(ROADS, alpha=0.3).set_fit_request(node_ids=True)
        model.set_score_request(node_ids=True)
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=3)
        search.fit(X[["tmin", "wind"]], y, node_ids=X["town"].to_numpy())
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    finally:
        set_config(enable_metadata_routing=False)


# -- keep_node ----------------------------------------------------------------------------------


@TABLES
def test_keep_node_returns_a_table_like_the_one_given(table):
    X, _ = towns()
    for node in ("town", None):
        out = keep_node(StandardScaler(), node=node).fit_transform(as_table(X, table))
        assert isinstance(out, table) and list(out.columns) == ["town", "tmin", "wind"]
        assert list(out["town"]) == X["town"].tolist()
        assert float(np.std(out["tmin"].to_numpy())) == pytest.approx(1.0)


def test_keep_node_with_set_output():
    X, _ = towns()
    kept = keep_node(StandardScaler(), node="town")
    assert kept.fit(X).get_feature_names_out().tolist() == ["town", "tmin", "wind"]
    given = as_table(X, pl.DataFrame)
    assert isinstance(kept.set_output(transform="polars").fit_transform(given), pl.DataFrame)
    out = kept.set_output(transform="pandas").fit_transform(X)
    assert isinstance(out, pd.DataFrame) and out["town"].tolist() == X["town"].tolist()
    inner = keep_node(StandardScaler().set_output(transform="pandas"), node="town")
    assert inner.fit_transform(X).columns.tolist() == ["town", "tmin", "wind"]


def test_keep_node_with_arrays_and_more_columns():
    from sklearn.preprocessing import PolynomialFeatures

    X, y = towns()
    wide = keep_node(PolynomialFeatures(2, include_bias=False), node="town")
    assert wide.fit_transform(X).columns.tolist()[:3] == ["town", "tmin", "wind"]
    model = make_pipeline(wide, GTVRegressor(ROADS, node="town", alpha=0.3)).fit(X, y)
    assert model[-1].coef_.shape == (6, 5)
    out = keep_node(StandardScaler(), node=1).fit_transform(X.to_numpy())
    assert out[:, 1].tolist() == X["town"].tolist() and out.shape == (60, 3)


def test_keep_node_errors():
    X, _ = towns()
    with pytest.raises(ValueError, match=r'No node column "twon"\. Did you mean "town"'):
        keep_node(StandardScaler(), node="twon").fit(X)
    with pytest.raises(ValueError, match="0 columns hold no numbers"):
        keep_node(StandardScaler()).fit(X[["tmin", "wind"]])


def test_towns_are_all_there():
    assert set(TOWNS) == set(PLACES)
