"""Rows that arrive over time: the same model as with all rows at once."""

import numpy as np
import pandas as pd
import pytest

from nefele import GTVClassifier, GTVRegressor
from nefele.losses import Logistic
from tests.estimators.data import ROADS, towns

OPTIONS = {"node": "town", "alpha": 0.2, "tol": 1e-10}


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("weighting", ["nodes", "rows"])
def test_batches_give_the_model_of_all_rows(standardize, weighting):
    X, y = towns(90)
    options = {**OPTIONS, "standardize": standardize, "weighting": weighting}
    whole = GTVRegressor(ROADS, **options).fit(X, y)
    model = GTVRegressor(ROADS, **options)
    for start in (0, 30, 60):
        model.partial_fit(X[start : start + 30], y[start : start + 30])
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-6)


def test_it_goes_on_from_fit_and_starts_warm():
    X, y = towns(90)
    model = GTVRegressor(ROADS, **{**OPTIONS, "tol": 1e-6}).fit(X[:89], y[:89])
    model.partial_fit(X[89:], y[89:])
    cold = GTVRegressor(ROADS, **{**OPTIONS, "tol": 1e-6}).fit(X, y)
    assert model.n_iter_ <= cold.n_iter_
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-3)


def test_fit_starts_afresh():
    X, y = towns(90)
    model = GTVRegressor(ROADS, **OPTIONS).fit(X[:60], y[:60]).fit(X[60:], y[60:])
    np.testing.assert_array_equal(
        model.coef_, GTVRegressor(ROADS, **OPTIONS).fit(X[60:], y[60:]).coef_
    )


def test_sample_weight_and_node_ids():
    X, y = towns(60)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    plain, ids = X[["tmin", "wind"]], X["town"].to_numpy()
    options = {"alpha": 0.2, "tol": 1e-10}
    whole = GTVRegressor(ROADS, **options).fit(plain, y, weight, node_ids=ids)
    model = GTVRegressor(ROADS, **options)
    for part in (slice(0, 25), slice(25, 60)):
        model.partial_fit(plain[part], y[part], weight[part], node_ids=ids[part])
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-6)


def test_new_nodes_must_be_in_the_graph():
    X, y = towns(60)
    model = GTVRegressor(node="town").fit(X, y)
    with pytest.raises(ValueError, match="1 of 6 are not: 'Inari'"):
        model.partial_fit(X[:1].assign(town="Inari"), y[:1])


def test_columns_must_stay_the_same():
    X, y = towns(60)
    model = GTVRegressor(ROADS, node="town").fit(X, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(X.rename(columns={"wind": "rain"}), y)


def test_classes_are_named_in_the_first_call():
    X, y = towns(90)
    label = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    options = {**OPTIONS, "loss": Logistic(l2=0.01), "tol": 1e-8}
    order = np.argsort(label, kind="stable")  # the first batch lacks a class
    X, label = X.iloc[order], label[order]
    model = GTVClassifier(ROADS, **options)
    model.partial_fit(X[:60], label[:60], classes=["a", "b", "c"])
    model.partial_fit(X[60:], label[60:])
    whole = GTVClassifier(ROADS, **options).fit(X, label)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="y must have the classes 'a', 'b', 'c'; got also 'd'"):
        model.partial_fit(X[:2], pd.Series(["a", "d"]))
