"""Learn who is like whom from the rows of the nodes, and ask whether that helps.

Shops of three kinds react to price and rain in different ways; nobody says which shop is of which
kind. Compared, by held-out rows: every shop alone, all shops pulled together, a random graph, and
graphs learnt from the rows. Last, a link that should not be there is found.

Run it: python examples/learn_the_graph.py
"""

from typing import Any

import numpy as np
import pandas as pd

import nefele
from nefele.graph_learning import EmbeddingKNN, LossGraph, WassersteinGraph, graph_diagnostics

N_SHOPS, N_ROWS, NOISE = 24, 16, 1.0
SLOPES = np.array([[2.0, 2.0], [-2.0, 2.0], [0.0, -2.0]])


def make_shops(seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows with a shop column, sales, and the hidden kind of each shop."""
    rng = np.random.default_rng(seed)
    kind = np.arange(N_SHOPS) % len(SLOPES)
    owner = np.repeat(np.arange(N_SHOPS), N_ROWS)
    X = rng.normal(size=(len(owner), 2))
    sales = (X * SLOPES[kind[owner]]).sum(axis=1) + NOISE * rng.normal(size=len(owner))
    table = pd.DataFrame(X, columns=["price", "rain"])
    table["shop"] = [f"shop {i:02d}" for i in owner]
    return table, sales, kind


def main() -> None:
    X, y, kind = make_shops()
    shops = sorted(X["shop"].unique())
    graphs = {
        "random": nefele.graphs.sbm([N_SHOPS], 0.2, 0.0, seed=1, nodes=shops),
        "loss": LossGraph(),
        "wasserstein": WassersteinGraph(k=4),
        "embedding": EmbeddingKNN(),
    }
    # price and rain are of one size already
    options = {"penalty": "l2", "standardize": False, "n_alphas": 5, "tol": 1e-3}
    search = nefele.GTVRegressorCV(node="shop", **options)
    found = nefele.GraphSelectorCV(graphs, estimator=search, n_shuffles=1).fit(X, y)
    print(found.summary())

    graph = found.best_graph_
    same = kind[graph.head] == kind[graph.tail]
    print(f"\nlinks between shops of one kind: {same.mean():.0%}, by chance {7 / 23:.0%}")

    wrong = nefele.Graph(graph.ids, np.append(graph.head, 0), np.append(graph.tail, 1))
    model = nefele.GTVRegressor(wrong, node="shop", alpha=0.5).fit(X, y)
    print("\nwith a wrong link between shop 00 and shop 01:")
    print(graph_diagnostics(wrong, model))


def picture() -> Any:
    """The learnt graph: shops by the kind that nobody told."""
    import matplotlib.pyplot as plt

    X, y, kind = make_shops()
    model = nefele.GTVRegressor(LossGraph(), node="shop", alpha=0.5, standardize=False).fit(X, y)
    graph, at = model.graph_, model.coef_
    figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    spread = at + 0.15 * np.random.default_rng(0).normal(size=at.shape)
    for i, j in zip(graph.head, graph.tail, strict=True):
        ax.plot(*spread[[i, j]].T, color="#cccccc", lw=0.8, zorder=1)
    for k, colour in enumerate(("#0072B2", "#D55E00", "#009E73")):
        ax.scatter(*spread[kind == k].T, color=colour, label=f"kind {k}", zorder=2)
        ax.scatter(*SLOPES[k], color="#222222", marker="x", s=60, zorder=3)
    ax.set(xlabel="effect of price (moved apart a little)", ylabel="effect of rain")
    ax.legend(frameon=False)
    return figure


if __name__ == "__main__":
    main()
