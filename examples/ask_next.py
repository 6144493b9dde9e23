"""Rows that arrive over time, and the question whom to ask next.

A network of four groups in which hardly anybody has data. Each day we may ask one more node, and
the fit is updated from where it was; suggested nodes are compared with random ones.
"""

from typing import Any

import numpy as np

from nefele import LocalData, Problem, Stream
from nefele.graphs import sbm
from nefele.theory import suggest_nodes

DAYS, LAM = 8, 0.03
rng = np.random.default_rng(2)
graph = sbm([30, 20, 30, 20], 0.4, 0.01, seed=2)
truth = rng.normal(size=(4, 2))[np.repeat(np.arange(4), [30, 20, 30, 20])]


def rows_of(node: int) -> tuple[np.ndarray, np.ndarray]:
    """What this node answers."""
    own = np.random.default_rng(node)
    X = own.normal(size=(10, 2))
    return X, X @ truth[node] + 0.2 * own.normal(size=10)


def follow(asked: list[int]) -> list[float]:
    """Errors of all nodes' models, day by day."""
    stream = Stream(graph, d=2, lam=LAM, tol=1e-4)
    errors = []
    for node in [0, *asked]:
        result = stream.partial_fit(*rows_of(node), np.full(10, node))
        errors.append(float(np.sqrt(((result.w - truth) ** 2).sum(axis=1)).mean()))
    return errors


first = LocalData.from_list([rows_of(0)] + [None] * (graph.n_nodes - 1))
found = suggest_nodes(Problem(graph, first, lam=LAM), DAYS)
chance = [follow(rng.permutation(np.arange(1, 100))[:DAYS].tolist()) for _ in range(5)]
print("days", *range(DAYS + 1), sep="      ")
print("suggested ", " ".join(f"{e:6.3f}" for e in follow(found.nodes)))
print("at random ", " ".join(f"{e:6.3f}" for e in np.mean(chance, axis=0)))
print(f"after {DAYS} days: suggested {follow(found.nodes)[-1]:.3f}")
print(f"after {DAYS} days: at random {np.mean(chance, axis=0)[-1]:.3f}")


def picture() -> Any:
    """Errors day by day: suggested nodes, and five random orders with their mean."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for order in chance:
        ax.plot(order, color="#D55E00", alpha=0.25, lw=0.8)
    ax.plot(np.mean(chance, axis=0), color="#D55E00", marker="s", label="at random, mean of five")
    ax.plot(follow(found.nodes), color="#0072B2", marker="o", label="suggested")
    ax.set(xlabel="days, one more node each", ylabel="mean error of all models", ylim=(0, None))
    ax.legend(frameon=False)
    return figure
