"""Intervals by resampling: coverage, batches, predictions."""

import numpy as np
import pandas as pd
import pytest

import nefele
from nefele.estimators import GTVClassifier, GTVRegressor, intervals
from nefele.estimators.cv import GTVRegressorCV
from nefele.estimators.intervals import bootstrap_intervals
from tests.estimators.data import PLAIN

GRAPH = nefele.graphs.sbm([6, 6], p_in=0.8, p_out=0.05, seed=0)
TRUE = np.repeat([[2.0, 0.0], [-2.0, 1.0]], 6, axis=0)


def data(seed, rows=25):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(12), rows)
    X = rng.normal(size=(len(ids), 2))
    return X, (X * TRUE[ids]).sum(axis=1) + rng.normal(size=len(ids)), ids


@pytest.fixture(scope="module")
def model():
    X, y, ids = data(0)
    return GTVRegressor(GRAPH, alpha=0.05, **PLAIN).fit(X, y, node_ids=ids)


def test_coverage_is_near_the_level():
    """Somewhat below it: neighbours pull, and 25 rows tell little about their own noise."""
    hits, mean_hits = [], []
    for seed in range(10):
        X, y, ids = data(seed)
        model = GTVRegressor(GRAPH, alpha=0.02, fit_intercept=False).fit(X, y, node_ids=ids)
        found = bootstrap_intervals(model, n_boot=60, level=0.9, seed=seed)
        hits.append((found.coef_low < TRUE) & (found.coef_high > TRUE))
        low, high = found.predict(X[::25], node_ids=ids[::25])
        mean = (X * TRUE[ids]).sum(axis=1)[::25]
        mean_hits.append((low < mean) & (mean < high))
    assert 0.8 < np.mean(hits) < 0.95
    assert 0.8 < np.mean(mean_hits) < 0.95


def test_batches_give_what_single_fits_give(model, monkeypatch):
    whole = bootstrap_intervals(model, n_boot=6)
    monkeypatch.setattr(intervals, "_BATCH", 1)
    single = bootstrap_intervals(model, n_boot=6)
    assert np.allclose(whole.coef_samples, single.coef_samples, atol=2e-2)


def test_a_sample_is_the_fit_with_these_row_weights(model):
    X, y, ids = data(0)
    found = bootstrap_intervals(model, n_boot=2, seed=3)
    shape = (25 - 3 - 1) / 25  # 25 rows, three parameters
    weight = np.random.default_rng(3).standard_gamma(shape, size=(2, len(y)))
    order = np.argsort(ids, kind="stable")
    row = np.empty(len(y))
    row[order] = weight[1]
    again = GTVRegressor(GRAPH, alpha=0.05, tol=1e-8, **PLAIN).fit(X, y, row, node_ids=ids)
    assert np.allclose(found.coef_samples[1], again.coef_, atol=2e-2)


def test_same_seed_same_bits_and_narrower_with_a_lower_level(model):
    wide, again = (bootstrap_intervals(model, n_boot=20, seed=1) for _ in range(2))
    assert (wide.coef_low == again.coef_low).all()
    narrow = bootstrap_intervals(model, n_boot=20, seed=1, level=0.5)
    assert (narrow.coef_high - narrow.coef_low <= wide.coef_high - wide.coef_low).all()
    assert (wide.intercept_low < wide.intercept_high).all()
    assert wide.coef_samples.shape == (20, 12, 2)


def test_rows_can_be_given_again_and_weighting_by_rows(model):
    X, y, ids = data(0)
    given = bootstrap_intervals(model, X, y, node_ids=ids, n_boot=4)
    assert np.allclose(given.coef_low, bootstrap_intervals(model, n_boot=4).coef_low)
    options = {"alpha": 0.05, "weighting": "rows", "standardize": False}
    by_rows = GTVRegressor(GRAPH, **options).fit(X, y, node_ids=ids)
    found = bootstrap_intervals(by_rows, n_boot=4)
    assert np.allclose(found.coef_low, given.coef_low, atol=2e-2)  # equally many rows everywhere


def test_classes_give_intervals_of_probabilities():
    X, y, ids = data(0)
    rows = pd.DataFrame(X, columns=["a", "b"]).assign(node=ids)
    model = GTVClassifier(GRAPH, node="node", alpha=0.02).fit(rows, np.where(y > 0, "up", "down"))
    low, high = bootstrap_intervals(model, n_boot=10).predict(rows[:5])
    assert low.shape == (5, 2) and (low >= 0).all() and (high <= 1).all() and (low < high).all()
    middle = model.predict_proba(rows[:5])
    assert ((low - 0.1 < middle) & (middle < high + 0.1)).all()


def test_cv_models_and_a_single_node():
    X, y, ids = data(0)
    model = GTVRegressorCV(GRAPH, penalty="l2", alphas=[0.1, 0.01], cv=2).fit(X, y, node_ids=ids)
    assert bootstrap_intervals(model, n_boot=3).coef_low.shape == (12, 2)
    alone = GTVRegressor().fit(X, y)
    low, high = bootstrap_intervals(alone, n_boot=20).predict(X[:3])
    assert (low < alone.predict(X[:3])).all() and (alone.predict(X[:3]) < high).all()


@pytest.mark.parametrize("loss", ["squared", "poisson"])
@pytest.mark.parametrize("features", ["linear", "spline"])
def test_a_centre_and_common_curves_are_resampled_too(loss, features):
    """Poisson models carry the curves as a column, whose weight each resample has its own of."""
    X, y, ids = data(0)
    y = y + 2 * X[:, 1] ** 2
    y = np.round(np.exp(y / 4)) if loss == "poisson" else y
    options = {"scale": [1.0, 1.0, 1.0], "hub": 0.5, "features": features, "unseen": "centre"}
    model = GTVRegressor(GRAPH, penalty="squared_l2", alpha=0.1, loss=loss, **options)
    model.fit(X, y, node_ids=ids)
    found = bootstrap_intervals(model, n_boot=40)
    assert found.coef_samples.shape == (40, 12, 2)
    assert found.centre_samples[0].shape == (40, 2)
    low, high = found.predict(X[::10], node_ids=np.append(ids[:-10:10], [99]))
    middle = model.predict(X[::10], node_ids=np.append(ids[:-10:10], [99]))
    assert (low < high).all() and ((low < middle) & (middle < high)).mean() > 0.8


def test_the_coupling_that_cross_validation_chose_is_resampled():
    X, y, ids = data(0)
    model = GTVRegressorCV(GRAPH).fit(X, y, node_ids=ids)
    found = bootstrap_intervals(model, n_boot=40)
    assert found.coef_low.shape == (12, 2)
    assert ((found.coef_low < model.coef_) & (model.coef_ < found.coef_high)).mean() > 0.8


def test_a_node_without_rows_follows_its_neighbours():
    X, y, ids = data(0)
    on = ids != 3
    model = GTVRegressor(GRAPH, alpha=0.05).fit(X[on], y[on], node_ids=ids[on])
    found = bootstrap_intervals(model, n_boot=10)
    assert (found.coef_high[3] > found.coef_low[3]).all()


def test_errors(model):
    with pytest.raises(ValueError, match=r"level must be between 0 and 1; got 1\.5"):
        bootstrap_intervals(model, level=1.5)
    with pytest.raises(ValueError, match="n_boot must be an integer >= 2"):
        bootstrap_intervals(model, n_boot=1)
    with pytest.raises(ValueError, match="must be a fitted GTVRegressor"):
        bootstrap_intervals("model")
    with pytest.raises(ValueError, match="y must come with X"):
        bootstrap_intervals(model, np.zeros((2, 2)))


def test_unseen_nodes_have_the_intervals_of_the_pooled_model():
    X, y, ids = data(0)
    model = GTVRegressor(GRAPH, alpha=0.05, unseen="pooled").fit(X, y, node_ids=ids)
    found = bootstrap_intervals(model, n_boot=40)
    low, high = found.predict(X[:4], node_ids=[99, 99, 99, 0])
    middle = model.predict(X[:4], node_ids=[99, 99, 99, 0])
    assert ((low < middle) & (middle < high)).all()
    alone = bootstrap_intervals(GTVRegressor().fit(X, y), n_boot=40)
    wide = np.subtract(*alone.predict(X[:3])[::-1])
    assert np.allclose((high - low)[:3], wide, rtol=0.6)


def test_random_state_is_an_int_a_generator_or_a_random_state(model):
    first = bootstrap_intervals(model, n_boot=3, random_state=4)
    for same in ({"seed": 4}, {"random_state": np.random.default_rng(4)}):
        assert (bootstrap_intervals(model, n_boot=3, **same).coef_low == first.coef_low).all()
    one, two = (
        bootstrap_intervals(model, n_boot=3, random_state=np.random.RandomState(4))
        for _ in range(2)
    )
    assert (one.coef_low == two.coef_low).all()
