"""What it takes to factorise a graph's matrix, dense or sparse, guessed from its band."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nefele._checks import Array
from nefele.graph import Graph

_known: WeakKeyDictionary[Graph, tuple[float, float]] = WeakKeyDictionary()
_DENSE_SPEED, _SPARSE_SPEED = 2e10, 2e9  # operations per second
_PER_NODE = 2.5e-6  # seconds for each node of a sparse factorisation, whatever its fill


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
    return _moments(graph)[0] * d**3 / _SPARSE_SPEED


def dissected_seconds(graph: Graph) -> float:
    """Of a sparse factorisation in a good order: the widest front is about one level across.

    Examples
    --------
    >>> from nefele.graphs import grid, sbm
    >>> dissected_seconds(grid(100, 100)) < 1 < dissected_seconds(sbm([4000], 0.01, 0.0))
    True
    """
    return _PER_NODE * graph.n_nodes + 4 * _moments(graph)[1] / _SPARSE_SPEED


def _moments(graph: Graph) -> tuple[float, float]:
    """Sum of squares and mean of cubes of the band's widths, known from the first time on."""
    if graph not in _known:
        width = _widths(graph)
        _known[graph] = float(width @ width), float((width**3).mean())
    return _known[graph]


def _widths(graph: Graph) -> Array:
    """Width of the band at each node, in an order that makes it narrow."""
    n = graph.n_nodes
    order = reverse_cuthill_mckee(graph.adjacency, symmetric_mode=True)
    place = np.empty(n, dtype=np.int64)
    place[order] = np.arange(n)
    first = np.arange(n)
    low, high = np.sort(np.stack([place[graph.head], place[graph.tail]]), axis=0)
    np.minimum.at(first, high, low)
    return np.asarray(np.arange(n) - first + 1.0)
