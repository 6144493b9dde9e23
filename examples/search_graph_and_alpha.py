"""Choose the graph and the strength of the coupling together, in one grid search.

The graph is a parameter like any other: given graphs compete with graphs that are learnt inside
each training fold, so that nothing of the held-out rows leaks into them.

Run it: python examples/search_graph_and_alpha.py
"""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nefele
from nefele.estimators import MomentsKNN

N_METERS, N_ROWS = 30, 10


def make_meters(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Electricity meters of two kinds of houses, which use heat in different ways."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(N_METERS), N_ROWS)
    kind = owner % 2
    cold, people = rng.normal(10, 4, len(owner)), rng.normal(2, 0.5, len(owner)) + 3 * kind
    use = np.where(kind, 0.2, 1.5) * cold + 2 * people + rng.normal(0, 2, len(owner))
    X = pd.DataFrame({"meter": [f"m{i}" for i in owner], "cold": cold, "people": people})
    return X, use


def main() -> None:
    X, y = make_meters()
    meters = sorted(X["meter"].unique())
    wrong = nefele.graphs.chain(len(meters), nodes=meters)  # neighbours by name only
    model = make_pipeline(
        nefele.keep_node(StandardScaler(), node="meter"), nefele.GTVRegressor(node="meter")
    )
    alphas = {"gtvregressor__alpha": [0.01, 0.1, 1.0]}
    search = GridSearchCV(
        model,
        [
            {"gtvregressor__graph": [wrong], **alphas},
            {"gtvregressor__graph": [MomentsKNN()], "gtvregressor__graph__k": [2, 4], **alphas},
        ],
        cv=KFold(3, shuffle=True, random_state=0),
        scoring="neg_root_mean_squared_error",
    ).fit(X, y)
    table = pd.DataFrame(search.cv_results_)
    learnt = [isinstance(graph, MomentsKNN) for graph in table["param_gtvregressor__graph"]]
    best = table.groupby(learnt)["mean_test_score"].max()
    print(f"root mean squared error, neighbours by name   {-best[False]:.2f}")
    print(f"root mean squared error, learnt neighbours    {-best[True]:.2f}")
    print("chosen:", {k.removeprefix("gtvregressor__"): v for k, v in search.best_params_.items()})


def picture() -> Any:
    """Errors at held-out rows along alpha, for both graphs."""
    import matplotlib.pyplot as plt

    X, y = make_meters()
    wrong = nefele.graphs.chain(N_METERS, nodes=sorted(X["meter"].unique()))
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for name, graph in {"neighbours by name": wrong, "learnt": MomentsKNN(k=4)}.items():
        search = nefele.GTVRegressorCV(
            graph, node="meter", penalty="l2", alphas=[0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
        ).fit(X, y)
        error = np.sqrt(-search.cv_results_["mean_test_score"])
        ax.semilogx(search.cv_results_["alpha"], error, marker="o", label=name)
    ax.set(xlabel="alpha", ylabel="error at held-out rows")
    ax.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
