"""Two clusters of towns whose models differ, for the private fits."""

import numpy as np

from nefele import Graph


def two_clusters(rows, nodes=20, d=5, seed=0):
    """X, y, node ids and a graph with two edges between the clusters."""
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, d))
    models = np.where(np.arange(nodes)[:, None] < nodes // 2, first, second)
    models /= np.linalg.norm(models, axis=1, keepdims=True)
    ids = np.repeat(np.arange(nodes), rows)
    X = np.clip(rng.normal(size=(nodes * rows, d)), -2, 2)
    y = (X * models[ids]).sum(axis=1) + 0.5 * rng.normal(size=nodes * rows)
    half = nodes // 2
    inside = [(i, j) for i in range(nodes) for j in range(i) if (i < half) == (j < half)]
    kept = [(i, j) for i, j in inside if i - j == 1 or rng.random() < 0.5]
    return X, y, ids, Graph.from_edges([*kept, (0, nodes - 1), (1, nodes - 2)])
