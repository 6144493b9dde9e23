"""The default step scale of coupled networks on rows that it was not found with.

`gamma="auto"` was found on the 8 x 8 digits. Here networks with one hidden layer are fitted with
a tenth of it, with it and with ten times it, and with the papers' 1: the objective that all of them
minimise, over that of "auto", and the accuracy at held-out rows. On drawn tables of two kinds of
nodes, on other digits, and with `--data FILE` (fashion_mnist.npz) on few pictures of clothes at
each node. Run it by `python benchmarks/networks_gamma.py`.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch
from sklearn.datasets import load_digits, make_classification
from torch import nn

from nefele.graphs import knn
from nefele.networks import GTVNetClassifier

NODES, ROWS, HELD, SEEDS = 12, 30, 60, 2
ALPHAS = (0.01, 0.1, 1.0)
SCALES = (0.1, 1.0, 10.0)
METHODS = {"algorithm1": "l2", "implicit": "squared_l2"}


def drawn(seed: int):
    """A table of 54 columns and seven classes, as of forests; half of the nodes mix up two."""
    X, y = make_classification(
        *(NODES * (ROWS + HELD), 54),
        n_informative=12,
        n_classes=7,
        n_clusters_per_class=1,
        class_sep=2.0,
        random_state=seed,
    )
    half = np.repeat(np.arange(NODES) < NODES // 2, ROWS + HELD)
    return X, np.where(half & (y < 2), 1 - y, y)


def pictures(X: np.ndarray, y: np.ndarray, seed: int):
    """So many pictures for each node, in [0, 1]."""
    at = np.random.default_rng(seed).permutation(len(y))[: NODES * (ROWS + HELD)]
    X = X[at].reshape(len(at), -1).astype(np.float64)
    return X / X.max(), y[at].astype(int)


def net(n_features: int, n_outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, n_outputs))


def found(X, y, seed: int, method: str, alpha: float, gamma: float) -> tuple[float, float]:
    """The objective at the end, and the accuracy at the held-out rows of all nodes."""
    held = np.tile(np.arange(ROWS + HELD) >= ROWS, NODES)
    node = np.repeat(np.arange(NODES), ROWS + HELD)
    graph = knn(np.random.default_rng(seed).random((NODES, 2)), k=3)
    model = GTVNetClassifier(
        net,
        graph=graph,
        alpha=alpha,
        penalty=METHODS[method],
        method=method,
        gamma=gamma,
        rounds=60,
        batch_size=10,
        random_state=seed,
    ).fit(X[~held], y[~held], node_ids=node[~held])
    return model.objective_, model.score(X[held], y[held], node_ids=node[held])


def default(method: str, alpha: float) -> float:
    """What "auto" takes."""
    return 10.0 if method == "implicit" else float(np.clip(10 / np.sqrt(alpha), 1, 1000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="", help="fashion_mnist.npz")
    args = parser.parse_args()
    torch.set_num_threads(1)
    digits = load_digits()
    sets = {
        "drawn table": drawn,
        "digits": lambda seed: pictures(digits.data, digits.target, seed + 50),
    }
    if args.data:
        with np.load(args.data) as file:
            clothes = file["images"], file["labels"]
        sets["clothes"] = lambda seed: pictures(*clothes, seed)
    print("| rows | method | alpha | 1 | " + " | ".join(f"{s:g} x auto" for s in SCALES) + " |")
    print("|---" * (4 + len(SCALES)) + "|")
    for name, make in sets.items():
        for method in METHODS:
            for alpha in ALPHAS:
                auto = default(method, alpha)
                line = [
                    np.mean([found(*make(s), s, method, alpha, g) for s in range(SEEDS)], axis=0)
                    for g in (1.0, *(scale * auto for scale in SCALES))
                ]
                told = " | ".join(f"{one[0] / line[2][0]:.2f}, {one[1]:.3f}" for one in line)
                print(f"| {name} | {method} | {alpha:g} | {told} |", flush=True)


if __name__ == "__main__":
    main()
