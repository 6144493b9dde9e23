"""The generated networks of NFL, Sec. VI-A to VI-C, drawn exactly as their reference values.

Every draw comes from one `default_rng(seed)`, in the order of the code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.problem import Problem

CENTRES = np.array([[2.0, 2.0], [-2.0, 2.0]])
P_IN = 0.5


def star(lam: float, penalty: Any, n: int = 50, seed: int = 0) -> Problem:
    """A centre and n - 1 leaves, all with true models of their own, no noise (Sec. VI-C).

    Examples
    --------
    >>> star(1.0, "l2").graph.n_edges
    49
    """
    rng = np.random.default_rng(seed)
    true, X = rng.standard_normal((n, 2)), rng.standard_normal((n, 5, 2))
    data = LocalData.from_list(list(zip(X, labels_of(X, true), strict=True)))
    graph = Graph.from_edges([(0, i) for i in range(1, n)])
    return Problem(graph, data, penalty=penalty, lam=lam)


def sbm(
    penalty: Any,
    lam: float = 0.01,
    p_out: float = 0.01,
    n_labelled: int = 120,
    seed: int = 0,
    n: int = 200,
    sigma: float = 0.0,
) -> tuple[Problem, Array]:
    """Two blocks of nodes with 5 rows and 2 features each, some without data (Sec. VI-A1).

    Examples
    --------
    >>> problem, true = sbm("l1")
    >>> problem.graph.n_edges, true.shape
    (5074, (200, 2))
    """
    rng = np.random.default_rng(seed)
    cluster = np.repeat([0, 1], n // 2)
    graph = block_graph(rng, cluster, p_out)
    true, X = CENTRES[cluster], rng.standard_normal((n, 5, 2))
    y = labels_of(X, true) + sigma * rng.standard_normal((n, 5))
    data = _some(X, y, rng.permutation(n)[:n_labelled])
    return Problem(graph, data, penalty=penalty, lam=lam), true


def wide(seed: int = 0, n: int = 100, m: int = 10, d: int = 100) -> tuple[Graph, Array, Array, Any]:
    """Two blocks with fewer rows than features (Sec. VI-A2, Table I).

    Gives the graph, the true models of shape (n, d), X of shape (n, m, d) and y of shape (n, m).

    Examples
    --------
    >>> graph, true, X, y = wide()
    >>> graph.n_edges, X.shape
    (1258, (100, 10, 100))
    """
    rng = np.random.default_rng(seed)
    cluster = np.repeat([0, 1], n // 2)
    graph = block_graph(rng, cluster, 0.01)
    true = rng.integers(0, 2, (2, d))[cluster].astype(float)
    X = rng.standard_normal((n, m, d))
    y = labels_of(X, true) + 1e-3 * rng.standard_normal((n, m))
    return graph, true, X, y


def table1(penalty: Any, lam: float, seed: int = 0, n: int = 100) -> tuple[Problem, Array]:
    """The problem of Table I as the paper states it: d = 100, 10 rows per node.

    Examples
    --------
    >>> table1("l2", 1e-3)[0].d
    100
    """
    graph, true, X, y = wide(seed, n)
    data = LocalData.from_list(list(zip(X, y, strict=True)))
    return Problem(graph, data, penalty=penalty, lam=lam), true


def chain(
    eps: float,
    seed: int,
    n: int = 200,
    penalty: Any = "l2",
    lam: float = 0.1,
    n_labelled: int = 120,
    sigma: float = 0.0,
) -> tuple[Problem, Array]:
    """Two halves of a chain, joined by an edge of weight eps (Sec. VI-B).

    Examples
    --------
    >>> problem, _ = chain(0.5, seed=0)
    >>> float(problem.graph.weight.min())
    0.5
    """
    rng = np.random.default_rng(seed)
    true, X = CENTRES[np.repeat([0, 1], n // 2)], rng.standard_normal((n, 5, 2))
    chosen = rng.permutation(n)[:n_labelled]
    y = labels_of(X, true) + sigma * rng.standard_normal((n, 5))
    weight = np.ones(n - 1)
    weight[n // 2 - 1] = eps
    graph = Graph.from_edges(np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), weight=weight)
    return Problem(graph, _some(X, y, chosen), penalty=penalty, lam=lam), true


def block_graph(rng: np.random.Generator, cluster: NDArray[np.int64], p_out: float) -> Graph:
    """A stochastic block model: edges with probability 1/2 inside a block, p_out across.

    Examples
    --------
    >>> block_graph(np.random.default_rng(0), np.array([0, 0, 1]), 0.0).n_nodes
    3
    """
    inside = cluster[:, None] == cluster[None, :]
    draws = rng.random(inside.shape) < np.where(inside, P_IN, p_out)
    return Graph.from_edges(np.argwhere(np.triu(draws, 1)), nodes=np.arange(len(cluster)))


def labels_of(X: Array, true: Array) -> Array:
    """x^T true_i for every row of every node, shape (n, m).

    Examples
    --------
    >>> labels_of(np.ones((1, 2, 3)), np.array([[1.0, 2.0, 3.0]]))
    array([[6., 6.]])
    """
    return np.einsum("nmd,nd->nm", X, true)


def _some(X: Array, y: Array, chosen: NDArray[np.int64]) -> LocalData:
    known = set(chosen.tolist())
    return LocalData.from_list([(X[i], y[i]) if i in known else None for i in range(len(X))])
