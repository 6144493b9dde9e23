"""Random problems for the theory's tests."""

import numpy as np

from nefele import Graph, LocalData, Problem


def connected_graph(rng, n, density, *, unit=False):
    """A random tree and further edges."""
    order = rng.permutation(n)
    pairs = {tuple(sorted((int(order[k]), int(order[rng.integers(k)])))) for k in range(1, n)}
    pairs |= {(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < density}
    pairs = np.array(sorted(pairs))
    weight = np.ones(len(pairs)) if unit else rng.uniform(0.3, 2.0, len(pairs))
    return Graph.from_edges(pairs, weight, np.arange(n))


def linear_data(rng, true, m, noise=0.3, missing=0.0):
    """Rows of a linear model per node; a share of the nodes has none, the first one has some."""
    parts = []
    for i, w in enumerate(true):
        X = rng.standard_normal((m, len(w)))
        y = X @ w + noise * rng.standard_normal(m)
        parts.append(None if i and rng.random() < missing else (X, y))
    return LocalData.from_list(parts)


def random_regression(seed, penalty, *, n=8, d=2, m=4, density=0.3, lam=1.0, missing=0.0):
    """Every node its own linear model, over a connected graph."""
    rng = np.random.default_rng(seed)
    graph = connected_graph(rng, n, density)
    data = linear_data(rng, rng.standard_normal((n, d)), m, missing=missing)
    return Problem(graph, data, "squared", penalty, lam=lam)


def planted(seed, penalty, *, bridge=0.01, noise=0.05, lam=0.3):
    """Two or three dense clusters with nearly equal models inside, joined by weak edges."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, int(rng.integers(2, 4)))
    label, d = np.repeat(np.arange(len(sizes)), sizes), int(rng.integers(1, 4))
    n = len(label)
    pairs, weight = [], []
    for i in range(n):
        for j in range(i + 1, n):
            same = label[i] == label[j]
            if rng.random() < (0.8 if same else 0.25):
                pairs.append((i, j))
                weight.append(rng.uniform(0.5, 2.0) * (1.0 if same else bridge))
    graph = Graph.from_edges(np.array(pairs).reshape(-1, 2), weight, np.arange(n))
    centres = 2 * rng.standard_normal((len(sizes), d))
    data = linear_data(rng, centres[label], d + 2, noise, missing=0.3)
    return Problem(graph, data, "squared", penalty, lam=lam), label
