"""Networks with captured nodes that the tests of attacks and defences share."""

import numpy as np

from nefele import Graph, LocalData, Problem
from nefele.graphs import sbm

HELD = 1.0  # weight of a captured node


def small_problem(seed, penalty="l2"):
    """A random problem whose honest nodes have rows that span all directions, and its attackers."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6 or j == i - 1]
    graph = Graph.from_edges(pairs, rng.uniform(0.5, 2.0, len(pairs)), np.arange(n))
    rows = []
    for _ in range(n):
        X = rng.standard_normal((d + 2, d)) * rng.uniform(0.5, 2.0)
        rows.append((X, X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(d + 2)))
    lam = float(10 ** rng.uniform(-1.5, 0.3))
    attackers = sorted(rng.choice(n, int(rng.integers(1, 1 + n // 2)), replace=False).tolist())
    problem = Problem(graph, LocalData.from_list(rows), penalty=penalty, lam=lam)
    return problem, attackers


def held(problem, where):
    """The problem with the captured nodes held at points, by {node: point}."""
    data, d = problem.data, problem.d
    rows, weight = [], np.ones(data.n_nodes)
    for i in range(data.n_nodes):
        own = slice(data.ptr[i], data.ptr[i + 1])
        rows.append((data.X[own], data.y[own]))
        if i in where:
            rows[i], weight[i] = (np.eye(d), np.asarray(where[i], dtype=float)), HELD
    new = LocalData.from_list(rows)
    new = LocalData(new.X, new.y, new.ptr, node_weight=weight)
    return Problem(problem.graph, new, penalty=problem.penalty, lam=problem.lam)


def alone(problem, attackers):
    """The problem without the edges of the captured nodes."""
    graph = problem.graph
    kept = ~(np.isin(graph.head, attackers) | np.isin(graph.tail, attackers))
    smaller = Graph(graph.ids, graph.head[kept], graph.tail[kept], graph.weight[kept])
    return Problem(smaller, problem.data, penalty=problem.penalty, lam=problem.lam)


def blocks(seed, penalty="l2", lam=0.02, rows=20, d=2, noise=0.3):
    """Two clusters of 20 nodes with 4 captured ones each; problem, true parameters, captured."""
    rng = np.random.default_rng(seed)
    graph = sbm([20, 20], 0.5, 0.02, seed=seed)
    true = np.repeat([[2.0, 1.0], [-1.0, 2.0]], 20, axis=0)
    local = []
    for i in range(40):
        X = rng.standard_normal((rows, d))
        local.append((X, X @ true[i] + noise * rng.standard_normal(rows)))
    captured = [0, 1, 2, 3, 20, 21, 22, 23]
    problem = Problem(graph, LocalData.from_list(local), penalty=penalty, lam=lam)
    return problem, true, captured


def honest_error(w, true, captured):
    """Mean squared error of the parameters over the honest nodes."""
    honest = np.setdiff1d(np.arange(len(true)), captured)
    return float(((w[honest] - true[honest]) ** 2).sum(axis=1).mean())
