"""A small network for examples: six stations that all know each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nefele.data import LocalData
from nefele.graph import Graph
from nefele.problem import Problem


def stations(
    shifted: Sequence[int] = (), penalty: Any = "l2", lam: float = 0.1, seed: int = 0
) -> Problem:
    """Six nodes with 20 rows of one linear model; the labels of some are moved by 5.

    Examples
    --------
    >>> stations().graph
    Graph(n_nodes=6, n_edges=15)
    """
    draw = np.random.default_rng(seed)
    rows = []
    for i in range(6):
        X = np.column_stack([np.ones(20), draw.standard_normal(20)])
        y = X @ [1.0, 2.0] + 0.3 * draw.standard_normal(20) + 5.0 * (i in shifted)
        rows.append((X, y))
    graph = Graph.from_edges([(i, j) for i in range(6) for j in range(i)])
    return Problem(graph, LocalData.from_list(rows), penalty=penalty, lam=lam)
