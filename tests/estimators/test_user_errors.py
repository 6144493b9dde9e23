"""Columns that are no features, X without features, Ctrl-C inside a fit."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV

import nefele
from nefele import solvers
from nefele.estimators import (
    ConvexClustering,
    GraphSignalSmoother,
    GTVRegressor,
    GTVRegressorCV,
    bootstrap_intervals,
)
from nefele.result import Status
from tests.estimators.data import ROADS, towns


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_a_forgotten_node_column_is_named(table):
    X, y = towns()
    X = table(X.to_dict("list"))
    with pytest.raises(
        ValueError, match=r"must be numbers; got '\w+' in column \"town\".* node=\"town\""
    ):
        GTVRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"node=\"town\""):
        GTVRegressorCV(cv=2).fit(X, y)


def test_another_column_of_text_is_named():
    X, y = towns()
    with pytest.warns(nefele.DataWarning, match=r'"sky" is left out: it has one value only'):
        GTVRegressor(ROADS, node="town").fit(X.assign(sky="blue"), y)
    with pytest.raises(ValueError, match=r'column "sky"\. Encode it'):
        nefele.FedRelaxRegressor(ROADS, node="town").fit(X.assign(sky="blue"), y)
    with pytest.raises(ValueError, match=r"in column 1\..* node=1"):
        GTVRegressor().fit(X.to_numpy(dtype=object), y)


@pytest.mark.parametrize("graph", [ROADS, None])
@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame])
def test_without_features_the_node_means_are_smoothed(table, graph):
    X, y = towns(empty=())
    only = table({"town": X["town"].tolist()})
    model = GTVRegressor(graph, node="town", alpha=0.0).fit(only, y)
    mean = pd.Series(y).groupby(X["town"].to_numpy()).mean()
    assert model.coef_.shape == (len(model.nodes_), 0)
    assert np.allclose(model.predict(only), mean[X["town"]], atol=1e-3)
    smooth = GTVRegressor(graph, node="town", alpha=0.5, standardize=True).fit(only, y)
    assert np.ptp(smooth.intercept_) < np.ptp(mean)
    with pytest.raises(ValueError, match="must have a feature beside the node ids"):
        GTVRegressor(graph, node="town", fit_intercept=False).fit(only, y)


def test_columns_of_the_same_name_are_refused():
    X, y = towns()
    X.columns = ["a", "town", "a"]
    with pytest.raises(ValueError, match="must have distinct names; got 'a' 2 times"):
        GTVRegressor(ROADS, node="town").fit(X, y)


def interrupting(solve, after=0):
    """A solve that ends as by Ctrl-C, from the given call on."""
    calls = []

    def run(*args, **options):
        calls.append(args)
        result = solve(*args, **options)
        return replace(result, status=Status.INTERRUPTED) if len(calls) > after else result

    run.calls = calls
    return run


def test_an_interrupted_fit_raises_and_a_grid_search_stops(monkeypatch):
    X, y = towns()
    run = interrupting(solvers.solve)
    fitted = GTVRegressor(ROADS, node="town", alpha=0.1).fit(X, y)
    monkeypatch.setattr("nefele.paths.follow.solve", run)
    for model in (
        GTVRegressor(ROADS, node="town", alpha=0.1),
        GTVRegressorCV(ROADS, node="town"),
        GTVRegressorCV(ROADS, node="town", penalty="l2", alphas=[1.0, 0.1], cv=2),
    ):
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    run.calls.clear()
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(fitted, {"alpha": [0.1, 0.2, 0.3]}, cv=2).fit(X, y)
    assert len(run.calls) == 1
    with pytest.raises(KeyboardInterrupt):
        bootstrap_intervals(fitted, n_boot=3)


def test_an_interrupted_path_raises(monkeypatch):
    monkeypatch.setattr("nefele.paths.follow.solve", interrupting(solvers.solve, after=2))
    points = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(KeyboardInterrupt):
        ConvexClustering().fit(points)
    grid = nefele.graphs.grid(3, 4)
    with pytest.raises(KeyboardInterrupt):
        GraphSignalSmoother(grid, alphas=[1.0, 0.5, 0.5, 0.1]).fit(None, points[:, 0])


def test_a_path_that_is_whole_does_not_raise():
    points = np.random.default_rng(0).normal(size=(12, 2))
    assert ConvexClustering().fit(points).n_clusters_ >= 1
    smooth = GraphSignalSmoother(nefele.graphs.grid(3, 4), alphas=[1.0, 0.5, 0.1])
    assert np.isfinite(smooth.fit(None, points[:, 0]).signal_).all()


@pytest.mark.parametrize("standardize", [False, True])
def test_features_whose_squares_overflow_are_named(standardize):
    X, y, ids = np.ones((6, 2)), np.arange(6.0), np.repeat(["a", "b", "c"], 2)
    X[:, 1] = np.arange(6.0)
    model = GTVRegressor(alpha=0.1, standardize=standardize)
    graph = nefele.Graph.from_edges([("a", "b"), ("b", "c")])
    X[3, 0] = -1e308
    with pytest.raises(ValueError, match=r"got -1e\+308 in column 0, row 3"):
        model.set_params(graph=graph).fit(X, y, node_ids=ids)
    X[3, 0] = 2.0
    model.fit(X, y, node_ids=ids)
    X[3, 0] = 1e308
    with pytest.raises(ValueError, match="squares overflow"):
        model.predict(X, node_ids=ids)
