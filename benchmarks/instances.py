"""The benchmark instances: network Lasso with squared loss unless said, unit weights.

X is standard normal, y = X true + noise * normal, rows only at a random share of the nodes.
Sizes are arguments, so that a small sibling can be solved first to load the compiled code.
"""

from __future__ import annotations

import numpy as np

from nefele import Graph, LocalData, Problem
from nefele.graphs import chain, grid, knn, sbm
from nefele.losses import Multinomial


def _problem(graph: Graph, true, rows, share, noise, lam, rng, **kind) -> Problem:
    n, d = true.shape
    counts = np.zeros(n, dtype=np.int64)
    counts[rng.permutation(n)[: round(share * n)]] = rows
    owner = np.repeat(np.arange(n), counts)
    X = rng.standard_normal((len(owner), d))
    y = np.einsum("rj,rj->r", X, true[owner]) + noise * rng.standard_normal(len(owner))
    data = LocalData(X, y, np.concatenate([[0], np.cumsum(counts)]))
    return Problem(graph, data, lam=lam, **kind)


def _squares(side_a: int, side_b: int, parts: int):
    place = np.arange(side_a * side_b)
    return parts * (parts * (place // side_b) // side_a) + parts * (place % side_b) // side_b


def a(penalty="l2"):
    """SBM 2 x 100, d = 2."""
    rng = np.random.default_rng(0)
    true = np.array([[2.0, 2.0], [-2.0, 2.0]])[np.repeat([0, 1], 100)]
    graph = sbm([100, 100], 0.5, 0.01, seed=0)
    return _problem(graph, true, 5, 0.6, 0.1, 0.01, rng, penalty=penalty)


def b():
    """SBM 2 x 50, d = 100, 10 rows per node."""
    rng = np.random.default_rng(0)
    true = rng.integers(0, 2, (2, 100)).astype(float)[np.repeat([0, 1], 50)]
    return _problem(sbm([50, 50], 0.5, 0.01, seed=0), true, 10, 1.0, 0.001, 0.01, rng)


def c(penalty="l2", lam=0.05, block=500):
    """SBM 4 x 500, d = 10."""
    rng = np.random.default_rng(0)
    true = 2 * rng.standard_normal((4, 10))[np.repeat(np.arange(4), block)]
    graph = sbm([block] * 4, 0.035, 0.0017, seed=0)
    return _problem(graph, true, 6, 0.8, 0.2, lam, rng, penalty=penalty)


def d(rows=141, columns=142):
    """Grid 141 x 142 with 8 neighbours, d = 10, 16 squares."""
    rng = np.random.default_rng(0)
    true = 2 * rng.standard_normal((16, 10))[_squares(rows, columns, 4)]
    return _problem(grid(rows, columns, neighbors=8), true, 6, 0.8, 0.2, 0.2, rng)


def e(side=1000, penalty="l2"):
    """Grid 1000 x 1000 with 8 neighbours, d = 5, 64 squares."""
    rng = np.random.default_rng(0)
    true = 2 * rng.standard_normal((64, 5))[_squares(side, side, 8)]
    return _problem(grid(side, side, neighbors=8), true, 6, 0.6, 0.2, 0.2, rng, penalty=penalty)


def f():
    """Chain of 10,000, d = 2, 10 pieces."""
    rng = np.random.default_rng(0)
    true = 2 * rng.standard_normal((10, 2))[np.repeat(np.arange(10), 1000)]
    return _problem(chain(10_000), true, 5, 0.6, 0.5, 1.0, rng)


def logistic(side=40):
    """Grid of side x side with 4 neighbours, d = 5, 10 rows per node, logistic loss."""
    rng = np.random.default_rng(0)
    n = side * side
    true = rng.standard_normal((4, 5))[_squares(side, side, 2)]
    X = rng.standard_normal((10 * n, 5))
    chance = 1 / (1 + np.exp(-np.einsum("rj,rj->r", X, np.repeat(true, 10, axis=0))))
    y = np.where(rng.random(10 * n) < chance, 1.0, -1.0)
    data = LocalData(X, y, np.arange(0, 10 * n + 1, 10))
    return Problem(grid(side, side), data, loss="logistic", lam=0.1)


def counts(side=30):
    """Grid of side x side with 4 neighbours, d = 3, 10 rows per node, Poisson loss."""
    rng = np.random.default_rng(0)
    n = side * side
    true = 0.5 * rng.standard_normal((4, 3))[_squares(side, side, 2)]
    X = rng.standard_normal((10 * n, 3))
    rate = np.exp(np.clip(np.einsum("rj,rj->r", X, np.repeat(true, 10, axis=0)), -3, 2))
    data = LocalData(X, rng.poisson(rate).astype(float), np.arange(0, 10 * n + 1, 10))
    return Problem(grid(side, side), data, loss="poisson", lam=0.1)


def classes(side=30):
    """Grid of side x side with 4 neighbours, 2 features, 3 classes, 10 rows per node."""
    rng = np.random.default_rng(0)
    n = side * side
    true = rng.standard_normal((4, 3, 2))[_squares(side, side, 2)]
    X = rng.standard_normal((10 * n, 2))
    score = np.einsum("rj,rcj->rc", X, np.repeat(true, 10, axis=0))
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1).astype(float)
    data = LocalData(X, y, np.arange(0, 10 * n + 1, 10))
    return Problem(grid(side, side), data, loss=Multinomial(3), lam=0.1)


def clustering(n=10_000):
    """Convex clustering of n points in the plane over their 5 nearest neighbours."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((n, 2)) * 0.4 + 3 * rng.standard_normal((10, 2))[np.arange(n) % 10]
    return Problem(knn(points, 5), _anchors(points, 1.0), lam=0.2)


def tv1(side=1000):
    """TV denoising of a side x side image, 4 neighbours, d = 1, L_i(w) = 1/2 (w - a_i)^2."""
    return Problem(grid(side, side), _anchors(image(side, 1), 0.5), lam=0.3)


def tv3(side=1000):
    """The same with d = 3 and the l2 norm of differences."""
    return Problem(grid(side, side), _anchors(image(side, 3), 0.5), lam=0.4)


def image(side: int, d: int):
    """64 squares with 20 discs over them, each of one colour, and noise: (side * side, d)."""
    rng = np.random.default_rng(0)
    true = rng.standard_normal((64, d))[_squares(side, side, 8)].reshape(side, side, d)
    down, right = np.mgrid[:side, :side] / side
    for x, y, size in rng.random((20, 3)):
        inside = (down - x) ** 2 + (right - y) ** 2 < (0.03 + 0.1 * size) ** 2
        true[inside] = rng.standard_normal(d)
    return (true + 0.2 * rng.standard_normal(true.shape)).reshape(side * side, d)


def _anchors(points, factor: float) -> LocalData:
    """Data whose squared loss is factor * ||w - a_i||^2: d rows per node, a mean over them."""
    n, d = points.shape
    root = np.sqrt(factor * d)
    return LocalData(
        np.tile(np.eye(d) * root, (n, 1)), (points * root).ravel(), np.arange(0, d * n + 1, d)
    )
