"""The FedRelax estimators in scikit-learn: its checks, ids, shared sets, errors, tools."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nefele import ConvergenceWarning, DataWarning, Graph, keep_node
from nefele.agnostic import FedRelaxClassifier, FedRelaxRegressor
from nefele.agnostic._shared import shared_rows
from nefele.estimators.design import Rows
from tests.agnostic.data import GRAPH, SHARED, TOWNS, fedrelax, rows

# -- scikit-learn's own checks ----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        FedRelaxRegressor(LinearRegression()),
        FedRelaxRegressor(X_shared="uniform", schedule="gauss-seidel", random_state=0),
        FedRelaxClassifier(LogisticRegression()),
        FedRelaxClassifier(X_shared=20, init="zero", random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- ids and graphs ---------------------------------------------------------------------------


def test_ids_go_by_value_and_not_by_position():
    X, y = rows()
    order = np.random.default_rng(3).permutation(len(X))
    backwards = Graph(TOWNS[::-1], 5 - GRAPH.head, 5 - GRAPH.tail, GRAPH.weight)
    options = {"alpha": 0.3, "rounds": 400, "tol": 1e-10}
    one = fedrelax(**options).fit(X, y)
    two = fedrelax(**options).set_params(graph=backwards).fit(X.iloc[order], y[order])
    np.testing.assert_allclose(one.predict(X), two.predict(X), atol=1e-8)
    beside = fedrelax(**options).set_params(node=None)
    beside.fit(X[["a", "b"]], y, node_ids=X["town"])
    np.testing.assert_allclose(
        beside.predict(X[["a", "b"]], node_ids=X["town"]), one.predict(X), atol=1e-12
    )
    assert beside.score(X[["a", "b"]], y, node_ids=X["town"]) == pytest.approx(one.score(X, y))


def test_unknown_ids():
    X, y = rows()
    with pytest.raises(ValueError, match="1 of 6 are not: 'Espoo'"):
        fedrelax().fit(X.replace({"town": {}}).assign(town=["Espoo", *X["town"][1:]]), y)
    model = fedrelax(rounds=1, tol=None).fit(X, y)
    with pytest.raises(ValueError, match=r"1 node id\(s\) were not seen in fit: 'Espoo'"):
        model.predict(X.assign(town="Espoo"))
    with pytest.raises(ValueError, match="The model has 6 nodes; pass the node of each row"):
        model.set_params(node=None).predict(X[["a", "b"]])


def test_nodes_that_no_data_reach():
    X, y = rows()
    far = Graph.from_edges([*zip(TOWNS[:-2], TOWNS[1:-1], strict=True), ("Kemi", "Inari")])
    with pytest.warns(DataWarning, match="2 nodes are not connected to any data"):
        model = fedrelax(rounds=2, tol=None).set_params(graph=far).fit(X, y)
    assert model.predict(pd.DataFrame({"town": ["Inari"], "a": [1.0], "b": [1.0]})).tolist() == [0]
    assert model.ledger_.messages == 3 * 2 * 4  # nothing is sent where nothing is known


def test_an_isolated_node_keeps_its_local_fit():
    X, y = rows()
    graph = Graph.from_edges([("Hanko", "Turku")], nodes=TOWNS[:5])
    for init in ("local", "zero"):
        model = fedrelax(init=init, rounds=50).set_params(graph=graph).fit(X, y)
        own = (X["town"] == "Oulu").to_numpy()
        alone = LinearRegression().fit(X.loc[own, ["a", "b"]].to_numpy(), y[own])
        np.testing.assert_array_equal(model.estimators_["Oulu"].coef_, alone.coef_)


def test_a_graph_learnt_inside_fit():
    X, y = rows()
    model = FedRelaxRegressor(node="town", rounds=100, random_state=0).fit(X, y)
    assert model.graph_.n_nodes == 5 and model.graph_.n_edges > 0


# -- the shared set ---------------------------------------------------------------------------


def drawn(rule, n_shared=4000):
    X, y = rows(n=200)
    values = X[["b", "a"]].to_numpy()
    weight = np.ones(200)
    weight[:50] = 3.0
    found = shared_rows(rule, n_shared, Rows(values, y, X["town"], weight), ["b", "a"], "town", 0)
    return values, weight, found


def test_gaussian_has_the_moments_of_the_rows():
    values, weight, found = drawn("gaussian")
    np.testing.assert_allclose(
        found.mean(axis=0), np.average(values, axis=0, weights=weight), atol=0.1
    )
    np.testing.assert_allclose(np.cov(found.T), np.cov(values.T, aweights=weight), atol=0.3)


def test_uniform_fills_the_ranges():
    values, _, found = drawn("uniform")
    assert (found >= values.min(axis=0)).all() and (found <= values.max(axis=0)).all()
    np.testing.assert_allclose(found.max(axis=0), values.max(axis=0), atol=0.05)


def test_a_number_takes_training_rows():
    values, _, found = drawn(30)
    assert len(found) == 30 == len({tuple(row) for row in found})
    assert {tuple(row) for row in found} <= {tuple(row) for row in values}
    assert len(drawn(10_000)[2]) == 200


def test_tables_are_matched_by_name():
    X, y = rows()
    table = pd.DataFrame(SHARED, columns=["a", "b"])
    one = fedrelax(rounds=5, tol=None, X_shared=table[["b", "a"]]).fit(X, y)
    np.testing.assert_array_equal(one.X_shared_, SHARED)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pd.DataFrame({"town": ["a"], "a": [1.0], "b": [1.0]}), "must not have the node column"),
        (pd.DataFrame({"a": [1.0], "c": [1.0]}), r"Missing: \['b'\]; unknown: \['c'\]"),
        (np.ones((3, 3)), r"the 2 features of X, without the node column; got shape \(3, 3\)"),
        ("gausian", 'No rule for X_shared "gausian". Did you mean "gaussian"?'),
        (0, "X_shared, as a number of rows, must be an integer >= 1; got 0"),
        (np.array([[np.nan, 1.0]]), r"X_shared\[0, 0\] must be finite"),
    ],
)
def test_bad_shared_sets(given, message):
    with pytest.raises(ValueError, match=message):
        fedrelax(X_shared=given).fit(*rows())


# -- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -1.0}, "alpha must be finite and >= 0; got -1.0. Use alpha=0 for local fits."),
        ({"schedule": "jacoby"}, 'Did you mean "jacobi"?'),
        ({"discrepancy": "cross-entropy"}, 'No discrepancy "cross-entropy"'),
        ({"discrepancy": ("huber", 0.0)}, "delta must be finite and > 0"),
        ({"rounds": 0}, "rounds must be an integer >= 1"),
        ({"init": "ones"}, 'No init "ones"'),
        ({"faults": 0.3}, "faults must be a nefele.runtime.Faults or None; got float"),
        ({"estimator": LinearRegression}, r"got a class. Use LinearRegression\(\)"),
        ({"estimator": LogisticRegression()}, "must be a regressor; got sklearn"),
        ({"estimator": {"Oulu": Ridge()}}, "no model for 'Hanko'"),
        ({"estimator": StandardScaler()}, "must have fit and predict"),
        ({"estimator": KNeighborsRegressor(50)}, "Node 'Hanko': KNeighborsRegressor could not"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        fedrelax(**options).fit(*rows())


def test_there_is_no_plain_file_for_arbitrary_models():
    model = fedrelax(rounds=1, tol=None).fit(*rows())
    assert not hasattr(model, "save")


# -- stopping ---------------------------------------------------------------------------------


def test_not_settling_is_a_warning():
    X, y = rows()
    with pytest.warns(ConvergenceWarning, match="stopped after 2 rounds: predictions still"):
        model = fedrelax(rounds=2, tol=1e-9).fit(X, y)
    assert not model.converged_ and model.rounds_ == 2
    done = fedrelax(rounds=2, tol=None).fit(X, y)
    assert done.converged_ and len(done.history_) == 2


def test_tol_bounds_the_last_change():
    X, y = rows()
    model = fedrelax(alpha=0.2, tol=1e-5, rounds=500).fit(X, y)
    changes = [record.change for record in model.history_]
    assert changes[-1] <= 1e-5 < changes[-2] and changes[0] == np.inf  # Kemi's first model


# -- tools ------------------------------------------------------------------------------------


def test_clone_pickle_and_untouched_inputs():
    X, y = rows()
    before = X.copy(), y.copy(), SHARED.copy()
    model = fedrelax({"Oulu": Ridge(), None: LinearRegression()}, rounds=4, tol=None)
    fitted = clone(model).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    pd.testing.assert_frame_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    np.testing.assert_array_equal(SHARED, before[2])


def test_searches_and_pipelines():
    X, y = rows(n=40)
    towns = Graph(TOWNS[:5], [0, 1, 2, 3], [1, 2, 3, 4])
    model = fedrelax(Ridge(1e-6), rounds=20, tol=None, X_shared="gaussian")
    pipeline = make_pipeline(keep_node(StandardScaler(), "town"), model.set_params(graph=towns))
    grid = {"fedrelaxregressor__alpha": [0.01, 30.0], "fedrelaxregressor__estimator__alpha": [1e-6]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_["fedrelaxregressor__alpha"] == 0.01
    assert search.score(X, y) > 0.9


def test_jobs_give_the_same_bits():
    X, y = rows()
    forest = RandomForestRegressor(3)
    one = fedrelax(forest, rounds=2, tol=None).fit(X, y)
    with joblib.parallel_config("threading"):
        two = fedrelax(forest, rounds=2, tol=None, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
