"""FedRelax with privacy: noisy predictions of models of disjoint shards."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor

from nefele import FedRelaxClassifier, FedRelaxRegressor
from nefele.privacy import Bounds, Budget, Privacy
from tests.privacy.data import two_clusters


@pytest.fixture(scope="module")
def towns():
    return two_clusters(60, nodes=4, d=2)


def promise(epsilon=5.0, **more):
    return Privacy(epsilon, 1e-6, bounds=Bounds(x=4.0, y=(-4, 4)), shards=5, **more)


SHARED = np.random.default_rng(0).uniform(-2, 2, (8, 2))


def relaxed(graph, **more):
    options = {"graph": graph, "alpha": 0.3, "X_shared": SHARED, "rounds": 3, "privacy": promise()}
    return FedRelaxRegressor(Ridge(), **options | more)


def test_all_rounds_are_paid_for_at_once(towns):
    X, y, ids, graph = towns
    budget = Budget(5.0, 1e-6)
    known = promise(budget=budget, insecure_testing=True, seed=0)
    model = relaxed(graph, alpha=0.02, privacy=known).fit(X, y, node_ids=ids)
    assert [(r.what, r.count) for r in budget.releases] == [("predictions", 4)]
    assert budget.spent == pytest.approx(5.0, rel=1e-3)
    assert model.rounds_ == 3
    assert "4 releases" in model.privacy_.text()
    assert model.score(X, y, node_ids=ids) > 0.4


def test_what_is_said_is_noisy_and_inside_the_bounds(towns):
    X, y, ids, graph = towns
    said = []
    for _ in range(2):
        model = relaxed(graph).fit(X, y, node_ids=ids)
        said.append([model.history_[-1].change])
        assert np.isnan(model.history_[-1].objective)  # it would be of raw rows
    assert said[0] != said[1]


def test_classes(towns):
    X, y, ids, graph = towns
    model = FedRelaxClassifier(
        LogisticRegression(),
        graph=graph,
        alpha=0.3,
        X_shared=SHARED,
        rounds=2,
        privacy=Privacy(5.0, 1e-6, bounds=Bounds(x=4.0), shards=5, insecure_testing=True, seed=0),
    ).fit(X, y > 0, node_ids=ids)
    assert model.score(X, y > 0, node_ids=ids) > 0.7


def test_without_coupling_nothing_is_said_and_nothing_is_charged(towns):
    X, y, ids, graph = towns
    budget = Budget(5.0, 1e-6)
    model = relaxed(graph, alpha=0.0, privacy=promise(budget=budget)).fit(X, y, node_ids=ids)
    assert budget.releases == ()
    assert not hasattr(model, "privacy_")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X_shared": "gaussian"}, "public"),
        ({"X_shared": 20}, "public"),
        ({"schedule": "random"}, "jacobi"),
        ({"graph": None}, "the graph was learnt from raw rows"),
        ({"privacy": promise(mechanism="updates")}, '"predictions" for FedRelax'),
        ({"privacy": Privacy(1.0, 1e-6, bounds=Bounds(x=1.0))}, "target must have bounds"),
        ({"privacy": 1.0}, "nefele.privacy.Privacy"),
    ],
)
def test_what_gives_no_guarantee_is_refused(towns, change, match):
    X, y, ids, graph = towns
    with pytest.raises(ValueError, match=match):
        relaxed(**{"graph": graph, **change}).fit(X, y, node_ids=ids)


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (KNeighborsRegressor(20), "could not be fitted to 12 own rows"),
        ({0: Ridge()}, "every node of the graph"),
        (LogisticRegression(), "must be a regressor"),
    ],
)
def test_models_are_tried_before_anything_is_charged(towns, estimator, match):
    X, y, ids, graph = towns
    budget = Budget(5.0, 1e-6)
    with pytest.raises(ValueError, match=match):
        relaxed(graph, privacy=promise(budget=budget)).set_params(estimator=estimator).fit(
            X, y, node_ids=ids
        )
    assert budget.releases == ()


class Fragile(Ridge):
    """Predicts NaN once it has seen a huge target."""

    def predict(self, X):
        return super().predict(X) if abs(self.intercept_) < 1e3 else np.full(len(X), np.nan)


def test_what_a_shard_cannot_predict_is_not_told_by_an_error(towns):
    X, y, ids, graph = towns
    y = y.copy()
    y[0] = 1e9
    model = relaxed(graph).set_params(estimator=Fragile()).fit(X, y, node_ids=ids)
    assert model.rounds_ == 3
