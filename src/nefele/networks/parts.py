"""A part of a network of networks: some nodes, the edges at them, and who hears of whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele.graph import Graph
from nefele.networks.features import Index
from nefele.runtime.part import sight


@dataclass(frozen=True, eq=False)
class NetPart:
    """What one part sees; see `nefele.runtime.Part`.

    Attributes
    ----------
    graph : Graph
        Own nodes and those seen, with the edges at own nodes, in the order of the whole graph.
    nodes : int array
        Positions of the own nodes in the whole graph: the keys of their batches.
    own : int array
        Their positions in `graph`.
    says, hears : dicts of neighbour to int array
        Own nodes that a neighbouring part sees, and nodes of it that are seen here.
    """

    graph: Graph
    nodes: Index
    own: Index
    says: dict[Any, Index]
    hears: dict[Any, Index]

    @classmethod
    def of(cls, whole: Graph, nodes: Index, owner: Index, names: list[Any]) -> NetPart:
        """The part of a graph that has some nodes, ascending; owner has the part of each node.

        Examples
        --------
        >>> from nefele.graphs import chain
        >>> part = NetPart.of(chain(3), np.array([0]), np.array([0, 1, 1]), ["a", "b"])
        >>> part.graph.n_nodes, part.says, part.hears
        (2, {'b': array([0])}, {'b': array([1])})
        """
        mine = np.zeros(whole.n_nodes, dtype=bool)
        mine[nodes] = True
        edges = np.flatnonzero(mine[whole.head] | mine[whole.tail])
        head, tail = whole.head[edges], whole.tail[edges]
        local = np.union1d(nodes, np.concatenate([head, tail]))
        graph = Graph(
            whole.ids[local],
            np.searchsorted(local, head),
            np.searchsorted(local, tail),
            whole.weight[edges],
        )
        own = np.searchsorted(local, nodes)
        return cls(graph, nodes, own, *sight(whole, mine, local, own, owner, names))
