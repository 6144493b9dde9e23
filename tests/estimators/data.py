"""Small datasets with a node column, and the same problem written for the core."""

import numpy as np
import pandas as pd

import nefele

TOWNS = ["Hanko", "Turku", "Pori", "Vaasa", "Oulu", "Kemi"]
ROADS = pd.DataFrame({"source": TOWNS[:-1], "target": TOWNS[1:]})
# The papers' problem: every node counts once, features are as they come.
PLAIN = {"weighting": "nodes", "standardize": False}
PLACES = {
    "Hanko": (59.8, 22.9),
    "Turku": (60.5, 22.3),
    "Pori": (61.5, 21.8),
    "Vaasa": (63.1, 21.6),
    "Oulu": (65.0, 25.5),
    "Kemi": (65.7, 24.6),
}


def towns(n_rows=60, seed=0, empty=("Kemi",)):
    """Rows of six towns in two regimes; some towns have none. Returns X and y."""
    rng = np.random.default_rng(seed)
    known = [name for name in TOWNS if name not in empty]
    # Every town at least three times, then more of some than of others.
    share = np.arange(1, len(known) + 1) / np.arange(1, len(known) + 1).sum()
    names = np.concatenate(
        [known, known, known, rng.choice(known, n_rows - 3 * len(known), p=share)]
    )
    X = pd.DataFrame(
        {"tmin": rng.normal(size=n_rows), "town": names, "wind": rng.normal(size=n_rows)}
    )
    north = X["town"].isin(["Vaasa", "Oulu", "Kemi"]).to_numpy()
    y = np.where(north, 1.0, 2.0) * X["tmin"] - X["wind"] + np.where(north, 3.0, 7.0)
    return X, (y + 0.3 * rng.normal(size=n_rows)).to_numpy()


def core(X, y, alpha, *, penalty="l2", loss="squared", tol=1e-12, graph=ROADS, **weights):
    """The core's solution of the problem that the estimator should solve: intercepts spared."""
    graph = nefele.as_graph(graph)
    design = np.column_stack([X["tmin"], X["wind"], np.ones(len(X))])
    rows = nefele.LocalData.from_long(design, y, X["town"], graph.ids, **weights)
    own = {"sample_weight": rows.sample_weight, "shrink": [1.0, 1.0, 0.0]}
    data = nefele.LocalData(rows.X, rows.y, rows.ptr, rows.ids, **own)
    return nefele.solve(nefele.Problem(graph, data, loss=loss, penalty=penalty, lam=alpha), tol=tol)


def parameters(model):
    """Coefficients and intercepts side by side, shape (n_nodes, d + 1)."""
    return np.column_stack([model.coef_, model.intercept_])
