"""A small network for tests of message passing."""

import numpy as np

from nefele import Graph, LocalData, Problem
from nefele.losses import Logistic


def network(seed=0, penalty="l2", lam=0.3, rows=5, empty=True, loss="squared", n=6):
    """A ring with a chord; one node has no rows."""
    rng = np.random.default_rng(seed)
    edges = [(i, (i + 1) % n) for i in range(n)] + [(0, n // 2)]
    graph = Graph.from_edges(edges, weight=rng.uniform(0.5, 1.5, n + 1))
    data = []
    for i in range(n):
        X = rng.standard_normal((rows, 2))
        y = X @ ([2.0, 2.0] if i < n // 2 else [-2.0, 2.0]) + 0.1 * rng.standard_normal(rows)
        if isinstance(loss, Logistic):
            y = np.where(y + rng.standard_normal(rows) > 0, 1.0, -1.0)
        data.append(None if empty and i == 1 else (X, y))
    return Problem(graph, LocalData.from_list(data, nodes=list(range(n))), loss, penalty, lam=lam)
