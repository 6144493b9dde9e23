"""Problems on trees, with nodes that have no data, and how the tests solve them."""

import warnings

import numpy as np

from nefele import DataWarning, Graph, Problem, solve
from nefele.solvers import Newton
from tests.problems import kind_of, random_data
from tests.systems.forests import random_forest


def name(thing):
    return type(thing).__name__ if not isinstance(thing, str) else thing


def wooded(loss="squared", penalty="l2", n=12, lam=0.2, seed=0, *, d=2, wide=False, shape="tree"):
    """Nodes without data, with one row, and with many, on a random tree."""
    rng = np.random.default_rng(seed)
    graph = random_forest(rng, n, shape)
    weight = 10 ** rng.uniform(-3, 3, graph.n_edges) if wide else np.ones(graph.n_edges)
    graph = Graph(graph.ids, graph.head, graph.tail, weight)
    counts = rng.choice([0, 1, 6, 8], n)
    counts[0] = 8
    data = random_data(rng, counts, d, kind_of(loss))
    return Problem(graph, data, loss=loss, penalty=penalty, lam=lam)


def quiet(problem, solver=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return solve(problem, solver or Newton(), **options)
