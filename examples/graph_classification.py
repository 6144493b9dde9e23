"""Classification on a graph: what customers of linked shops choose, from generated data.

Shops in two parts of a network have customers of different taste. Each shop has few customers,
some shops saw only one of the three products, two have no data at all: they take from their
neighbours what their own rows do not tell.

Run it: python examples/graph_classification.py
"""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from nefele import GTVClassifier
from nefele.losses import Logistic

N_SHOPS, N_ROWS = 30, 8
TASTE = {"tea": [[2.0, 0.0], [-2.0, 0.0]], "juice": [[0.0, 2.0], [0.0, -2.0]]}


def make_shops(n_rows: int, seed: int) -> pd.DataFrame:
    """Customers with age and budget (standardised), their shop, and what they buy."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(N_SHOPS), n_rows)
    side = (owner >= N_SHOPS // 2).astype(int)
    X = rng.normal(size=(len(owner), 2))
    scores = [(X * np.array(TASTE[p])[side]).sum(axis=1) for p in TASTE]
    scores = np.column_stack([*scores, np.zeros(len(owner))]) + rng.gumbel(size=(len(owner), 3))
    products = np.array([*TASTE, "water"])[scores.argmax(axis=1)]
    shops = [f"shop {i:02d}" for i in owner]
    return pd.DataFrame({"shop": shops, "age": X[:, 0], "budget": X[:, 1], "buys": products})


def main() -> None:
    half = N_SHOPS // 2
    graph = nx.disjoint_union(nx.cycle_graph(half), nx.cycle_graph(half))
    graph.add_edge(0, half)
    graph = nx.relabel_nodes(graph, {i: f"shop {i:02d}" for i in graph.nodes})
    train, test = make_shops(N_ROWS, seed=0), make_shops(100, seed=1)
    train = train[~train["shop"].isin(["shop 07", "shop 20"])]
    for alpha in (0.01, 0.3, 1e3):  # hardly coupled, coupled, one model
        model = GTVClassifier(graph, node="shop", alpha=alpha, loss=Logistic(l2=0.03))
        model.fit(train.drop(columns="buys"), train["buys"])
        score = model.score(test.drop(columns="buys"), test["buys"])
        groups = model.clusters_.max() + 1
        print(
            f"alpha {alpha:7.2f}: {score:.3f} of new customers right, {groups:2d} groups of shops"
        )


def picture() -> Any:
    """Share of new customers predicted right, by alpha."""
    import matplotlib.pyplot as plt

    half = N_SHOPS // 2
    rings = [(k * half + i, k * half + (i + 1) % half) for k in (0, 1) for i in range(half)]
    names = [f"shop {i:02d}" for i in range(N_SHOPS)]
    links = pd.DataFrame(
        [(names[i], names[j]) for i, j in [*rings, (0, half)]], columns=["source", "target"]
    )
    train, test = make_shops(N_ROWS, seed=0), make_shops(100, seed=1)
    alphas, scores = [0.01, 0.1, 0.3, 1.0, 10.0, 1e3], []
    for alpha in alphas:
        model = GTVClassifier(links, node="shop", alpha=alpha, loss=Logistic(l2=0.03))
        model.fit(train.drop(columns="buys"), train["buys"])
        scores.append(model.score(test.drop(columns="buys"), test["buys"]))
    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    ax.semilogx(alphas, scores, marker="o")
    ax.set(xlabel="alpha: each shop alone to the left, one model to the right", ylabel="right")
    return figure


if __name__ == "__main__":
    main()
