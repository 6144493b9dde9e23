"""Rows of towns in two regimes, the graph between them, and the same problem for the core."""

import numpy as np
import pandas as pd

from nefele import Graph, LocalData, Problem, solve
from nefele.agnostic import FedRelaxClassifier, FedRelaxRegressor
from nefele.penalties import Quadratic

TOWNS = ["Hanko", "Turku", "Pori", "Vaasa", "Oulu", "Kemi"]
GRAPH = Graph.from_edges(
    [*zip(TOWNS[:-1], TOWNS[1:], strict=True), ("Hanko", "Vaasa")],
    weight=[1.0, 0.5, 2.0, 1.5, 0.7, 0.3],
    nodes=TOWNS,
)


def rows(seed=0, n=60, classes=0):
    """Rows of five towns; Kemi has none."""
    rng = np.random.default_rng(seed)
    town = rng.permutation(np.resize(TOWNS[:5], n))
    X = pd.DataFrame({"town": town, "a": rng.normal(size=n), "b": rng.normal(1, 2, size=n)})
    north = np.isin(town, TOWNS[3:])
    y = np.where(north, 1.0, 2.0) * X["a"] - X["b"] + np.where(north, 3.0, 0.0)
    y = y.to_numpy() + 0.3 * rng.normal(size=n)
    if classes:
        y = np.array(["low", "mid", "top"])[np.digitize(y, [-1.0, 2.0][: classes - 1])]
    return X, y


SHARED = np.random.default_rng(9).normal(0.5, 1.5, (40, 2))


def fedrelax(estimator=None, **options):
    options = {"X_shared": SHARED, "random_state": 0} | options
    return FedRelaxRegressor(estimator, graph=GRAPH, node="town", **options)


def classifier(estimator=None, **options):
    options = {"X_shared": SHARED, "random_state": 0} | options
    return FedRelaxClassifier(estimator, graph=GRAPH, node="town", **options)


def core(X, y, alpha, intercept=True, **weights):
    """The core's solution with the penalty that couples predictions on the shared rows."""
    ones, shared = np.ones((len(X), 1)), SHARED
    design = X[["a", "b"]].to_numpy()
    if intercept:
        design = np.hstack([design, ones])
        shared = np.hstack([SHARED, np.ones((len(SHARED), 1))])
    data = LocalData.from_long(design, y, X["town"], GRAPH.ids, **weights)
    penalty = Quadratic(shared.T @ shared / len(shared))
    return solve(Problem(GRAPH, data, penalty=penalty, lam=2 * alpha), tol=1e-13)


def parameters(model, intercept=True):
    fits = [model.estimators_[town] for town in TOWNS]
    return np.array([np.append(f.coef_, f.intercept_ if intercept else []) for f in fits])
