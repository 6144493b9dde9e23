"""Small problems that the robustness tests bend and break."""

import numpy as np

from nefele import Graph, LocalData, Problem
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Multinomial, Poisson, Squared

LOSSES = [Squared(), HuberLoss(), Absolute(), Logistic(), Hinge(), Poisson(), Multinomial(3)]
PENALTIES = ["l1", "l2", "linf", "squared_l2", "huber"]


def path(n):
    return Graph.from_edges([(i, i + 1) for i in range(n - 1)], nodes=range(n))


def lonely():
    """A graph of one node."""
    return Graph([0], [], [])


def labels(loss, z, rng):
    """Labels of the kind the loss asks for, noisy, from linear predictions z."""
    if isinstance(loss, Logistic | Hinge):
        return np.where(z + rng.logistic(size=len(z)) > 0, 1.0, -1.0)
    if isinstance(loss, Poisson):
        return rng.poisson(np.exp(np.clip(z, -2.0, 2.0))).astype(float)
    if isinstance(loss, Multinomial):
        return rng.integers(0, 3, len(z)).astype(float)
    return z + 0.5 * rng.standard_normal(len(z))


def table(loss=None, n=4, m=20, d=2, seed=0):
    """Datasets (X_i, y_i) of two clusters; no class is separable."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        X = rng.standard_normal((m, d))
        w = np.full(d, 1.0 if i < n // 2 else -1.0)
        out.append((X, labels(loss or Squared(), X @ w, rng)))
    return out


def data(loss=None, **options):
    return LocalData.from_list(table(loss, **options))


def large():
    """Large enough for the compiled iteration."""
    rng = np.random.default_rng(0)
    edges = [(i, i + 1) for i in range(699)]
    rows = [(rng.standard_normal((5, 3)), rng.standard_normal(5)) for _ in range(700)]
    return Problem(Graph.from_edges(edges), LocalData.from_list(rows), lam=0.3)
