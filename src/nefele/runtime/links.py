"""The directed links of a graph: two per edge, one for each direction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nefele.graph import Graph

Index = NDArray[np.int64]


class Links:
    """Who can tell whom. Link 2e leads to the head of edge e, link 2e + 1 to its tail.

    Attributes
    ----------
    senders, receivers : int arrays of shape (2 n_edges,)
        Positions of the nodes at the ends of each link.
    incoming, outgoing : lists of int arrays
        Links to and from each node.

    Examples
    --------
    >>> links = Links(Graph.from_edges([("a", "b"), ("b", "c")]))
    >>> links.senders.tolist(), links.receivers.tolist(), links.incoming[1].tolist()
    ([1, 0, 2, 1], [0, 1, 1, 2], [1, 2])
    """

    def __init__(self, graph: Graph) -> None:
        ends = np.stack([graph.head, graph.tail], axis=1).astype(np.int64)
        self.senders, self.receivers = ends[:, ::-1].ravel(), ends.ravel()
        self.incoming = grouped(self.receivers, graph.n_nodes)
        self.outgoing = grouped(self.senders, graph.n_nodes)


def grouped(labels: Index, n: int) -> list[Index]:
    """Positions of each of the labels 0, ..., n - 1, in order.

    Examples
    --------
    >>> [group.tolist() for group in grouped(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    order = np.argsort(labels, kind="stable")
    return np.split(order, np.cumsum(np.bincount(labels, minlength=n))[:-1])
