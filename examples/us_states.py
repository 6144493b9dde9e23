"""48 US states: production from capital and labour, one model per state, alpha by a grid search.

Run it: python examples/us_states.py
"""

from typing import Any

import pandas as pd
from sklearn.metrics import mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold

import nefele


def table(data: nefele.LocalData) -> tuple[pd.DataFrame, pd.Series]:
    """Features with the state as a column (the constant left out), and the target."""
    X = pd.DataFrame(data.X, columns=data.feature_names).drop(columns="constant")
    return X.assign(state=data.ids[data.row_node]), pd.Series(data.y)


def main() -> None:
    states = nefele.datasets.load_states()
    (X, y), (X_test, y_test) = (
        table(part) for part in nefele.datasets.split_states(states, seed=0)
    )
    model = nefele.GTVRegressor(states.graph, node="state")
    search = GridSearchCV(
        model,
        {"alpha": [1e-4, 1e-3, 1e-2]},
        cv=KFold(3, shuffle=True, random_state=0),
        scoring="neg_mean_squared_error",
    ).fit(X, y)
    own = nefele.GTVRegressor(states.graph, node="state", alpha=0).fit(X, y)
    pooled = nefele.GTVRegressor(states.graph, node="state", alpha=1e3).fit(X, y)
    fits = {"own data only": own, "one pooled model": pooled, "coupled": search.best_estimator_}
    for name, fit in fits.items():
        print(f"{name:17} {mean_squared_error(y_test, fit.predict(X_test)):.5f}")
    print(f"alpha {search.best_params_['alpha']:g}, certified gap {fits['coupled'].dual_gap_:.1e}")


def picture() -> Any:
    """Errors in years that were not used, by the strength of the coupling."""
    import matplotlib.pyplot as plt

    states = nefele.datasets.load_states()
    train, test = (table(part) for part in nefele.datasets.split_states(states, seed=0))
    alphas = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0]
    errors = []
    for alpha in alphas:
        model = nefele.GTVRegressor(states.graph, node="state", alpha=alpha).fit(*train)
        errors.append(mean_squared_error(test[1], model.predict(test[0])))
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    ax.loglog(alphas, errors, marker="o")
    ax.set(xlabel="alpha: own data only to the left, one model to the right", ylabel="test error")
    return figure


if __name__ == "__main__":
    main()
