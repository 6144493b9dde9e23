"""The states panel: the coupled models predict held-out years best, on most splits."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold

import nefele
from nefele import GTVRegressor

STATES = nefele.datasets.load_states()


def table(data):
    X = pd.DataFrame(data.X[:, :4], columns=data.feature_names[:4])
    return X.assign(state=data.ids[data.row_node]), data.y


def mean_error(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2))


def test_agrees_with_the_demo_at_its_lam():
    """reference.md: l2, lam = 1e-3, mean test error .00093 over five seeds."""
    errors = []
    for seed in range(5):
        train, test = (table(part) for part in nefele.datasets.split_states(STATES, seed))
        options = {"alpha": 1e-3, "tol": 1e-6, "standardize": False}
        model = GTVRegressor(STATES.graph, node="state", **options).fit(*train)
        errors.append(mean_error(model, *test))
    assert np.mean(errors) == pytest.approx(0.00093, rel=2e-2)


@pytest.mark.parametrize("seed", range(5))
def test_a_grid_search_beats_own_data_and_pooled(seed):
    train, test = (table(part) for part in nefele.datasets.split_states(STATES, seed))
    search = GridSearchCV(
        GTVRegressor(STATES.graph, node="state"),
        {"alpha": [1e-4, 1e-3, 1e-2]},
        cv=KFold(3, shuffle=True, random_state=0),
        scoring="neg_mean_squared_error",
    ).fit(*train)
    own = GTVRegressor(STATES.graph, node="state", alpha=0.0).fit(*train)
    pooled = GTVRegressor().fit(train[0].drop(columns="state"), train[1])
    chosen = mean_error(search, *test)
    assert chosen < mean_error(own, *test)
    assert chosen < mean_error(pooled, test[0].drop(columns="state"), test[1])
