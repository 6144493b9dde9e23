"""Random problems that tests share: nodes without data, few rows, wild weights."""

import numpy as np

from nefele import Graph, LocalData, Problem
from nefele.losses import Hinge, Logistic, Multinomial, Poisson, SquaredHinge

ROW_COUNTS = (0, 1, 2, 6, 8)


def labels(kind, z, rng, n_classes=3):
    """Labels of a kind for the linear predictions z: "real", "sign", "count" or "class"."""
    noisy = z + 0.8 * rng.standard_normal(len(z))
    if kind == "sign":
        return np.where(noisy > 0, 1.0, -1.0)
    if kind == "count":
        return rng.poisson(np.exp(np.clip(z, -3, 2))).astype(float)
    if kind == "class":
        return np.clip(np.floor(noisy + n_classes / 2), 0, n_classes - 1)
    return z + 0.3 * rng.standard_normal(len(z))


def kind_of(loss):
    """Which labels a loss takes."""
    if isinstance(loss, Logistic | Hinge | SquaredHinge):
        return "sign"
    if isinstance(loss, Poisson):
        return "count"
    return "class" if isinstance(loss, Multinomial) else "real"


def random_data(rng, counts, d, kind="real"):
    """Local datasets with these row counts; every node has its own true parameters."""
    parts = []
    for m in counts:
        X = rng.standard_normal((m, d))
        parts.append((X, labels(kind, X @ rng.standard_normal(d), rng)) if m else None)
    return LocalData.from_list(parts)


def random_graph(rng, n, *, wide=False, density=0.4):
    """A random graph, often disconnected; `wide` weights span six orders of magnitude."""
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < density]
    weight = 10 ** rng.uniform(-3, 3, len(pairs)) if wide else rng.uniform(0.5, 2, len(pairs))
    return Graph.from_edges(np.array(pairs, int).reshape(-1, 2), weight, np.arange(n))


def random_parts(seed, loss=None, *, d=None, wide=False):
    """Graph, data and lam of a random problem for this loss; at least one node has data."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 10))
    d = d or int(rng.integers(1, 4))
    graph = random_graph(rng, n, wide=wide)
    counts = rng.choice(ROW_COUNTS, n)
    counts[int(rng.integers(n))] = 6
    data = random_data(rng, counts, d, kind_of(loss))
    return graph, data, float(10 ** rng.uniform(-2, 1))


def random_problem(seed, loss="squared", penalty="l2", *, d=None, wide=False):
    """A random problem."""
    graph, data, lam = random_parts(seed, loss, d=d, wide=wide)
    return Problem(graph, data, loss=loss, penalty=penalty, lam=lam)


def chain_problem(n=4, lam=0.5, penalty="l2", loss="squared", seed=0, d=2):
    """A chain of nodes with six rows each: connected, every local fit unique."""
    rng = np.random.default_rng(seed)
    graph = Graph.from_edges([(i, i + 1) for i in range(n - 1)], nodes=np.arange(n))
    data = random_data(rng, [6] * n, d, kind_of(loss))
    return Problem(graph, data, loss=loss, penalty=penalty, lam=lam)
