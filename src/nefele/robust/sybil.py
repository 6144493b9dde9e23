"""An attack on the graph: nodes that are nobody, with edges to honest ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import check_count, check_number
from nefele._ids import as_ids
from nefele.graph import Graph
from nefele.robust.poisoning import captured


@dataclass(frozen=True, eq=False)
class Sybil:
    """False identities: `count` new nodes for each attacker, with edges to honest nodes.

    Each new node joins `degree` honest ones, drawn from the seed. They have no rows, unless the
    data name them too; as messages they say what their wrapper says.

    Parameters
    ----------
    nodes : sequence of node ids
        The attackers.
    count : int
    degree : int
    weight : float
        Of the new edges.
    seed : int

    Examples
    --------
    >>> from nefele.graphs import chain
    >>> new = Sybil([3], count=2, degree=1)(chain(4))
    >>> new.n_nodes, new.n_edges, new.ids[4:].tolist()
    (6, 5, [4, 5])
    """

    nodes: Any
    count: int = 2
    degree: int = 3
    weight: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not len(as_ids(self.nodes)):
            raise ValueError("nodes must name one attacker at least; got none.")
        for name in ("count", "degree"):
            check_count(getattr(self, name), name, low=1)
        check_number(self.weight, "weight", low=0.0, strict=True)
        check_count(self.seed, "seed")

    def __call__(self, graph: Graph) -> Graph:
        """The graph with the new nodes behind the others."""
        if not isinstance(graph, Graph):
            raise ValueError(f"graph must be a Graph; got {type(graph).__name__}.")
        bad = captured(graph.ids, self.nodes, "the graph")
        honest = np.setdiff1d(np.arange(graph.n_nodes), bad)
        if not len(honest):
            raise ValueError("Some node must be honest; all are attackers.")
        draw, new = np.random.default_rng(self.seed), len(bad) * self.count
        degree = min(self.degree, len(honest))
        joined = [draw.permutation(honest)[:degree] for _ in range(new)]
        tail = np.repeat(graph.n_nodes + np.arange(new), degree)
        head = np.concatenate([graph.head, *joined])
        weight = np.concatenate([graph.weight, np.full(new * degree, float(self.weight))])
        return Graph(self.ids(graph), head, np.concatenate([graph.tail, tail]), weight)

    def ids(self, graph: Graph) -> NDArray[Any]:
        """All ids: the graph's and those of the new nodes.

        Parameters
        ----------
        graph : Graph
        """
        new = len(captured(graph.ids, self.nodes, "the graph")) * self.count
        if graph.ids.dtype.kind in "iu":
            return np.concatenate([graph.ids, graph.ids.max() + 1 + np.arange(new)])
        known = set(graph.ids.tolist())
        free = (name for name in map("sybil-{}".format, count()) if name not in known)
        return as_ids([*graph.ids.tolist(), *islice(free, new)])
