"""What it takes to factorise a graph's matrix, dense or sparse, guessed from its band."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nefele.graph import Graph

_known: WeakKeyDictionary[Graph, float] = WeakKeyDictionary()
_DENSE_SPEED, _SPARSE_SPEED = 2e10, 2e9  # operations per second


def dense_seconds(unknowns: int) -> float:
    """Of a Cholesky factorisation of a full matrix."""
    return unknowns**3 / 3 / _DENSE_SPEED


def sparse_seconds(graph: Graph, d: int = 1) -> float:
    """Of a factorisation that fills no more than a band, with blocks of d x d numbers.

    Examples
    --------
    >>> from nefele.graphs import chain, sbm
    >>> sparse_seconds(chain(1000)) < dense_seconds(1000) < sparse_seconds(sbm([1000], 0.1, 0.0))
    True
    """
    if graph not in _known:
        _known[graph] = _band(graph)
    return _known[graph] * d**3 / _SPARSE_SPEED


def _band(graph: Graph) -> float:
    """Sum of the squared widths of the matrix's band, in an order that makes it narrow."""
    n = graph.n_nodes
    order = reverse_cuthill_mckee(graph.adjacency, symmetric_mode=True)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    first = np.arange(n)
    low, high = np.sort(np.stack([place[graph.head], place[graph.tail]]), axis=0)
    np.minimum.at(first, high, low)
    width = np.arange(n) - first + 1.0
    return float(width @ width)
