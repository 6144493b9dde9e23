"""Boosted trees to compare with: one model with the node as a category, and FedRelax on top."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError

from nefele import LocalData, graphs
from nefele.agnostic import NodeBoosting, RelaxedBoosting, boosted, boosting
from nefele.baselines import compare

N = 6


def rows(n=N, count=30, seed=0):
    """A bent curve and a level of each node."""
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(n), count)
    X = rng.normal(size=(len(ids), 2))
    y = X[:, 0] ** 2 + 2.0 * rng.normal(size=n)[ids] + 0.3 * rng.normal(size=len(ids))
    return X, y, ids


def test_one_model_is_histogram_boosting_with_the_node_as_a_category():
    X, y, ids = rows()
    names = np.array([f"n{i}" for i in ids])
    table = np.column_stack([X, ids])
    theirs = HistGradientBoostingRegressor(categorical_features=[2], random_state=0).fit(table, y)
    ours = NodeBoosting().fit(X, y, node_ids=names)
    np.testing.assert_array_equal(ours.predict(X, node_ids=names), theirs.predict(table))
    label = np.where(y > 1, "high", "low")
    theirs = HistGradientBoostingClassifier(categorical_features=[2], random_state=0)
    theirs.fit(table, label)
    ours = NodeBoosting("classification").fit(X, label, node_ids=names)
    np.testing.assert_array_equal(ours.predict(X, node_ids=names), theirs.predict(table))
    np.testing.assert_array_equal(
        ours.predict_proba(X, node_ids=names), theirs.predict_proba(table)
    )


def test_weights_of_rows_are_used():
    X, y, ids = rows()
    weight = np.where(y > 0, 1.0, 1e-6)
    heavy = NodeBoosting().fit(X, y, weight, node_ids=ids).predict(X, node_ids=ids)
    plain = NodeBoosting().fit(X, y, node_ids=ids).predict(X, node_ids=ids)
    assert heavy.mean() > plain.mean()


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_more_nodes_than_categories(task):
    X, y, ids = rows(n=300, count=4)
    target = y if task == "regression" else (y > 1).astype(int)
    model = NodeBoosting(task).fit(X, target, node_ids=ids)
    errors = np.abs(model.predict(X, node_ids=ids) - target).mean()
    assert errors < 0.7 * np.abs(target - np.median(target)).mean()
    assert np.isfinite(model.predict(X[:2], node_ids=["new", "newer"]).astype(float)).all()


def test_nodes_of_few_rows_are_told_apart_too():
    ids = np.repeat(np.arange(20), 8)
    y = ids % 2 + 0.0
    model = NodeBoosting().fit(np.zeros((160, 1)), y, node_ids=ids)
    assert np.abs(model.predict(np.zeros((160, 1)), node_ids=ids) - y).max() < 0.1


def test_unknown_nodes_are_missing_values():
    X, y, ids = rows()
    found = NodeBoosting().fit(X, y, node_ids=ids).predict(X[:3], node_ids=[97, 98, 99])
    assert np.isfinite(found).all()


def test_fedrelax_corrects_what_one_model_leaves_over():
    X, y, ids = rows()
    seen = []
    model = RelaxedBoosting(graph=graphs.chain(N))
    model.fit(X, y, node_ids=ids, told=lambda: seen.append(1))
    assert len(seen) == boosted.N_FITS
    base = model.base_.predict(X, node_ids=ids)
    more = model.model_.predict(X, node_ids=ids)
    np.testing.assert_allclose(model.predict(X, node_ids=ids), base + more)
    assert sorted(model.model_.estimators_) == list(range(N))
    assert model.alpha_ in [s / (2 * 5 / 6) for s in boosted._STRENGTHS]  # mean degree of a chain
    assert 0 < np.abs(more).max() < np.abs(y).max()


def test_classes_are_corrected_in_log_odds_and_joined_by_a_centre():
    X, y, ids = rows(count=40)
    label = np.where(y > 1, "high", "low")
    model = RelaxedBoosting("classification").fit(X, label, node_ids=ids)
    share = model.predict_proba(X, node_ids=ids)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    likeliest = model.classes_[share.argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X, node_ids=ids), likeliest)
    assert (model.predict(X, node_ids=ids) == label).mean() > 0.8
    assert len(model.model_.nodes_) == N + 1  # the centre has no rows


def test_both_are_methods_of_compare_beside_others():
    X, y, ids = rows(count=24)
    chain = graphs.chain(N)
    data = LocalData.from_long(X, y, ids, chain.ids)
    methods = {"one": NodeBoosting(), **boosting(chain)}
    found = compare(methods, data, chain, n_splits=1)
    assert [row.name for row in found.rows] == ["one", boosted.ONE, boosted.RELAXED]
    assert found["one"].error == found[boosted.ONE].error  # the same method again
    linear = compare(["local"], data, chain, n_splits=1)
    assert found[boosted.ONE].error < linear["local"].error


def test_the_same_seed_gives_the_same_model():
    X, y, ids = rows(count=15)
    model = RelaxedBoosting(graph=graphs.chain(N), random_state=3)
    first, again = (clone(model).fit(X, y, node_ids=ids).predict(X, node_ids=ids) for _ in "ab")
    np.testing.assert_array_equal(first, again)


def test_bad_input_is_refused():
    X, y, ids = rows(count=10)
    with pytest.raises(ValueError, match="task"):
        boosting(task="ranking")
    for model in (NodeBoosting(), RelaxedBoosting()):
        with pytest.raises(ValueError, match="one entry per row; got 60, 59 and 60"):
            model.fit(X, y[1:], node_ids=ids)
        with pytest.raises(NotFittedError):
            model.predict(X, node_ids=ids)
    with pytest.raises(ValueError, match="two classes or more; got 1"):
        NodeBoosting("classification").fit(X, np.zeros(60), node_ids=ids)
    with pytest.raises(ValueError, match="at most two classes; got 3"):
        RelaxedBoosting("classification").fit(X, ids % 3, node_ids=ids)
