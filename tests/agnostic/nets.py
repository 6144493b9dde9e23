"""Small networks of torch, and data for them."""

import numpy as np
from torch import nn

from nefele import Graph

EXACT = {"dtype": "float64", "random_state": 0}
N_NODES = 8


def small(n_features, n_outputs=1):
    return nn.Sequential(nn.Linear(n_features, 8), nn.Tanh(), nn.Linear(8, n_outputs))


def line(n_features, n_outputs=1):
    return nn.Linear(n_features, n_outputs)


def two_clusters(seed, classes):
    """Two cliques with unlike targets, a weak edge between them; few rows, and many to test."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat([0, 1], N_NODES // 2)
    links = np.triu(cluster[:, None] == cluster, 1)
    links[3, 4] = True
    head, tail = np.nonzero(links)
    graph = Graph(np.arange(N_NODES), head, tail, np.where(cluster[head] == cluster[tail], 1, 0.1))

    def draw(count):
        node = np.repeat(np.arange(N_NODES), count)
        X = rng.uniform(-2, 2, (len(node), 2))
        one, two = 2 * X[:, 0] + np.abs(X[:, 1]), -2 * X[:, 0] + X[:, 1]
        y = np.where(cluster[node] == 0, one, two) + 0.5 * rng.standard_normal(len(node))
        return X, (y > 0).astype(int) if classes else y, node

    return graph, draw(10), draw(100)
