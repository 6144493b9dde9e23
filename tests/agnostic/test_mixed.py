"""Networks of unlike models: coupling helps where neighbours are alike and rows are few."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from nefele import Graph
from nefele.agnostic import (
    FedRelaxClassifier,
    FedRelaxRegressor,
    TorchClassifier,
    TorchRegressor,
)

N_NODES, N_TRAIN, N_TEST, ALPHA = 14, 10, 100, 0.1
NET = {"epochs": 60, "lr": 0.02, "random_state": 0}
BOOST = {"max_iter": 15, "min_samples_leaf": 4, "max_leaf_nodes": 6, "random_state": 0}
REGRESSORS = [
    Ridge(),
    DecisionTreeRegressor(min_samples_leaf=3, random_state=0),
    RandomForestRegressor(8, min_samples_leaf=2, random_state=0),
    HistGradientBoostingRegressor(**BOOST),
    SVR(C=10.0),
    KNeighborsRegressor(3),
    TorchRegressor(**NET),
]
CLASSIFIERS = [
    LogisticRegression(),
    DecisionTreeClassifier(min_samples_leaf=3, random_state=0),
    RandomForestClassifier(8, min_samples_leaf=2, random_state=0),
    HistGradientBoostingClassifier(**BOOST),
    SVC(),
    KNeighborsClassifier(3),
    TorchClassifier(**NET),
]


def two_clusters(seed, classes):
    """A graph of two dense clusters, training rows and test rows: X, y, node of each row."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat([0, 1], N_NODES // 2)
    alike = cluster[:, None] == cluster
    links = np.triu(rng.random((N_NODES, N_NODES)) < np.where(alike, 0.8, 0.05), 1)
    graph = Graph(np.arange(N_NODES), *np.nonzero(links))

    def draw(count):
        node = np.repeat(np.arange(N_NODES), count)
        X = rng.uniform(-2, 2, (len(node), 2))
        one, two = 2 * X[:, 0] + np.abs(X[:, 1]), -2 * X[:, 0] + X[:, 1]
        y = np.where(cluster[node] == 0, one, two) + 0.5 * rng.standard_normal(len(node))
        return X, (y > 0).astype(int) if classes else y, node

    return graph, draw(N_TRAIN), draw(N_TEST)


def errors(seed, classes):
    """Mean test error of local models, of pooled ones of the same kinds, and of FedRelax."""
    graph, (X, y, node), (X_test, y_test, node_test) = two_clusters(seed, classes)
    kinds = CLASSIFIERS if classes else REGRESSORS
    models = {i: kinds[i % len(kinds)] for i in range(N_NODES)}
    method = FedRelaxClassifier if classes else FedRelaxRegressor

    def error(found):
        return np.mean(found != y_test) if classes else np.mean((found - y_test) ** 2)

    def fedrelax(alpha):
        model = method(
            models,
            graph=graph,
            alpha=alpha,
            X_shared="uniform",
            n_shared=80,
            rounds=6,
            tol=None,
            random_state=0,
        ).fit(X, y, node_ids=node)
        return error(model.predict(X_test, node_ids=node_test))

    pooled = np.empty(len(y_test))
    with threadpool_limits(1):
        for k, kind in enumerate(kinds):
            mine = node_test % len(kinds) == k
            pooled[mine] = clone(kind).fit(X, y).predict(X_test[mine])
    return fedrelax(0.0), error(pooled), fedrelax(ALPHA)


@pytest.mark.parametrize("classes", [False, True], ids=["regression", "classification"])
def test_coupling_beats_local_and_pooled_models(classes):
    found = np.array([errors(seed, classes) for seed in range(5)])
    local, pooled, coupled = found.T
    assert (coupled < local).sum() >= 4 and (coupled < pooled).sum() >= 4
    assert coupled.mean() < 0.9 * local.mean() and coupled.mean() < 0.5 * pooled.mean()


def test_every_kind_of_model_gains_from_its_neighbours():
    """Not only the mean over a network of the one model that is best."""
    graph, (X, y, node), (X_test, y_test, node_test) = two_clusters(1, classes=False)
    models = {i: REGRESSORS[i % 7] for i in range(N_NODES)}
    options = {"graph": graph, "X_shared": "uniform", "n_shared": 60, "rounds": 4, "tol": None}
    gains = np.zeros(7)
    for alpha, sign in ((0.0, 1.0), (ALPHA, -1.0)):
        model = FedRelaxRegressor(models, alpha=alpha, random_state=0, **options).fit(
            X, y, node_ids=node
        )
        off = (model.predict(X_test, node_ids=node_test) - y_test) ** 2
        gains += sign * np.bincount(node_test % 7, off) / np.bincount(node_test % 7)
    assert (gains > 0).sum() >= 5


def test_predictions_of_neighbours_come_together():
    graph, (X, y, node), _ = two_clusters(2, classes=False)
    models = {i: REGRESSORS[i % 7] for i in range(N_NODES)}
    options = {"graph": graph, "X_shared": "uniform", "n_shared": 60, "rounds": 4, "tol": None}
    apart = []
    for alpha in (0.0, 0.1, 2.0):
        model = FedRelaxRegressor(models, alpha=alpha, random_state=0, **options).fit(
            X, y, node_ids=node
        )
        p = np.array([model.estimators_[i].predict(model.X_shared_) for i in range(N_NODES)])
        apart.append(np.mean(graph.diff(p) ** 2))
    assert apart[0] > 1.5 * apart[1] and apart[1] > 1.5 * apart[2]
