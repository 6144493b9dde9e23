"""Ridge and lasso terms spare the intercept, as everywhere in statistics."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso, LogisticRegression, PoissonRegressor, Ridge

import nefele
from nefele.losses import HuberLoss, Logistic, Multinomial, Poisson, Squared
from nefele.result import DataWarning
from tests.estimators.data import PLAIN


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    return X, X @ [1.0, -2.0, 0.5] + 10.0 + 0.1 * rng.normal(size=80)


def test_regression_equals_ridge(rows):
    X, y = rows
    theirs = Ridge(alpha=1.0 * len(y)).fit(X, y)
    ours = nefele.GTVRegressor(loss=Squared(l2=1.0), tol=1e-10, **PLAIN).fit(X, y)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-6)
    assert ours.intercept_[0] == pytest.approx(theirs.intercept_, abs=1e-6)
    assert ours.intercept_[0] == pytest.approx(10.0, abs=0.5)


def test_regression_equals_lasso(rows):
    X, y = rows
    theirs = Lasso(alpha=0.3, tol=1e-12).fit(X, y)
    ours = nefele.GTVRegressor(loss=Squared(l1=0.6), tol=1e-10, **PLAIN).fit(X, y)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-5)
    assert ours.intercept_[0] == pytest.approx(theirs.intercept_, abs=1e-5)


def test_classes_equal_logistic_regression(rows):
    X, y = rows
    labels = np.where(y > 9.0, "high", "low")
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, labels)
    loss = Logistic(l2=1 / (2 * 0.5 * len(y)))
    ours = nefele.GTVClassifier(loss=loss, tol=1e-10, **PLAIN).fit(X, labels)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


def test_three_classes_equal_logistic_regression(rows):
    X, y = rows
    labels = np.digitize(y, [9.0, 11.0])
    theirs = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(X, labels)
    loss = Multinomial(n_classes=3, l2=1 / (2 * 0.5 * len(y)))
    ours = nefele.GTVClassifier(loss=loss, tol=1e-10, **PLAIN).fit(X, labels)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-3)


def test_counts_equal_the_poisson_regressor(rows):
    X, _ = rows
    y = np.random.default_rng(1).poisson(np.exp(2.0 + 0.3 * X[:, 0])).astype(float)
    theirs = PoissonRegressor(alpha=0.2, tol=1e-10, max_iter=10_000).fit(X, y)
    ours = nefele.GTVRegressor(loss=Poisson(l2=0.1), tol=1e-10, **PLAIN).fit(X, y)
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-4)
    assert ours.intercept_[0] == pytest.approx(theirs.intercept_, abs=1e-4)


@pytest.mark.parametrize("loss", [Squared(l2=0.3), HuberLoss(l2=0.3)], ids=repr)
def test_a_shift_of_the_target_shifts_the_intercept_alone(rows, loss):
    """The ridge would see the target's unit if it shrank the intercept."""
    X, y = rows
    near, far = (
        nefele.GTVRegressor(loss=loss, tol=1e-8).fit(X, y + move) for move in (0.0, 1000.0)
    )
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-3)
    np.testing.assert_allclose(far.intercept_ - near.intercept_, 1000.0, atol=1e-3)


def test_all_nodes_of_a_graph_and_the_pooled_model(rows):
    X, y = rows
    ids = np.arange(len(y)) % 4
    options = {"loss": Squared(l2=1.0), "tol": 1e-10, "unseen": "pooled", **PLAIN}
    model = nefele.GTVRegressor(nefele.graphs.chain(4), alpha=1e4, **options)
    model.fit(X, y, node_ids=ids)
    theirs = Ridge(alpha=1.0 * len(y)).fit(X, y)
    np.testing.assert_allclose(model.intercept_, theirs.intercept_, atol=1e-4)
    assert model.pooled_intercept_ == pytest.approx(theirs.intercept_, abs=1e-4)


def test_the_cross_validated_form_and_a_saved_model(rows, tmp_path):
    X, y = rows
    ids = np.arange(len(y)) % 4
    options = {"loss": Squared(l2=1.0), "n_alphas": 3, "cv": 2, "tol": 1e-6}
    model = nefele.GTVRegressorCV(nefele.graphs.chain(4), penalty="l2", **options).fit(
        X, y, node_ids=ids
    )
    np.testing.assert_allclose(model.intercept_, 10.0, atol=1.0)
    model.save(tmp_path / "model.nefele", rows=True)
    again = nefele.load(tmp_path / "model.nefele")
    assert again.status_ == "optimal"
    problem, w, u = again.solution()
    np.testing.assert_array_equal(problem.data.shrink, [1.0, 1.0, 1.0, 0.0])
    assert problem.certificate(w, u).gap_abs < 1e-3


def test_without_an_intercept_every_column_is_shrunk(rows):
    X, y = rows
    constant = np.column_stack([X, np.ones(len(y))])
    theirs = Ridge(alpha=1.0 * len(y), fit_intercept=False).fit(constant, y)
    ours = nefele.GTVRegressor(loss=Squared(l2=1.0), fit_intercept=False, tol=1e-10, **PLAIN)
    np.testing.assert_allclose(ours.fit(constant, y).coef_[0], theirs.coef_, atol=1e-6)


def test_one_class_alone_runs_away_and_it_is_said():
    """As in LogisticRegression, a ridge on the slopes does not hold an intercept."""
    X = pd.DataFrame({"shop": list("aabb"), "price": [1.0, 2.0, 1.0, 2.0]})
    model = nefele.GTVClassifier(alpha=0.0, node="shop", loss=Logistic(l2=0.1))
    model.set_params(graph=nefele.Graph(["a", "b"], [], []))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, ["yes", "yes", "yes", "no"])
    said = [str(w.message) for w in caught if issubclass(w.category, DataWarning)]
    assert any("'a'" in text and "no minimiser" in text for text in said)
    assert not any("'b'" in text for text in said)


def test_own_data_of_one_class_are_not_held_against_own_models():
    """Such a node has no model of its own; it is judged by the one for all, not by infinity."""
    rng = np.random.default_rng(2)
    ids, X = np.repeat(np.arange(6), 12), rng.normal(size=(72, 1))
    y = np.where(X[:, 0] + rng.normal(size=72) > 0, "b", "a")
    for node in (1, 3, 5):
        y[ids == node] = "a"
        y[np.flatnonzero(ids == node)[0]] = "b"  # one row, which one fold holds out
    model = nefele.GTVClassifierCV(nefele.graphs.chain(6), loss=Logistic(l2=0.01), n_alphas=3, cv=3)
    model.fit(X, y, node_ids=ids)
    assert model.baseline_scores_["own"] > 1.5 * model.baseline_scores_["pooled"]
