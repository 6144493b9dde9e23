"""Nodes and edges where a part meets its neighbours, in arrays of their own.

They are few. Their nodes move first, so that what others must be told is on its way while the part
works on the rest; their edges move last, when the others have answered. Neither changes a bit: a
node moves by the same numbers wherever that is done, and what flows out of it is summed once more
in the order of a whole problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.runtime.part import Index, Part
from nefele.solvers.primal_dual.fused import Layout

Rows = dict[Any, Array]


class BorderLayout(Layout):
    """Edges between own nodes by owner, then those to the nodes that are only seen.

    Attributes
    ----------
    place : int array
        Row of each node of the part's graph.
    own : int array
        Rows of the own nodes.
    inside : int
        How many edges have both ends here. `ptr` and `tail` are theirs.
    border : Border
    """

    def __init__(self, part: Part) -> None:
        super().__init__(part.graph, part.order)
        n, m = part.graph.n_nodes, part.graph.n_edges
        self.place = np.arange(n)
        if part.order is not None:
            self.place[part.order] = np.arange(n)
        self.own: Index = self.place[part.own]
        mine = np.zeros(n, dtype=bool)
        mine[self.own] = True
        head = np.repeat(np.arange(n), np.diff(self.ptr))
        across = ~(mine[head] & mine[self.tail])
        self.inside = m - int(across.sum())
        order = np.argsort(across, kind="stable")
        self.border = Border(part, self, head, across, order)
        if self.inside < m:
            self.edges = order if self.edges is None else self.edges[order]
            self.sign = np.ones(m) if self.sign is None else self.sign[order]
            self.ptr = np.searchsorted(head[~across], np.arange(n + 1))
            self.tail = self.tail[~across]


class Border:
    """The nodes and edges of a part that meet others; see the module.

    Parameters
    ----------
    part : Part
    layout : BorderLayout
        Still with all edges by owner.
    head : int array
        Owner of each of them.
    across : bool array
        Whether they lead to another part.
    order : int array
        Where each edge of the final order stands among them.
    """

    def __init__(
        self, part: Part, layout: BorderLayout, head: Index, across: Any, order: Index
    ) -> None:
        ends = np.stack([head[across], layout.tail[across]])
        self.at = np.unique(ends)  # rows among those of the part
        n, d = len(self.at), part.d
        owner, tail = np.searchsorted(self.at, ends)
        self.ptr = np.searchsorted(owner, np.arange(n + 1))
        self.tail = tail.astype(np.int32)
        self.schedule = (max(n, 1), np.array([n]), np.array([0, 1]), np.array([0]))
        self.w, self.q, self.wbar = np.zeros((n, d)), np.zeros((n, d)), np.zeros((n, d))
        self.says = self._places(layout.own, part.says)
        self.hears = self._places(layout.place, part.hears)
        mine = self.at[np.isin(self.at, layout.own)]
        self.sums = _edges_of(mine, head, layout.tail, order)

    @property
    def size(self) -> int:
        """How many edges lead to other parts."""
        return len(self.tail)

    def _places(self, place: Index, nodes: dict[Any, Index]) -> dict[Any, Index]:
        return {name: np.searchsorted(self.at, place[i]) for name, i in nodes.items()}

    def set_proxes(self, A: Array, c: Array, tau: Array) -> None:
        """Take the proxes of these nodes from those of all."""
        self.proxes = A[self.at], c[self.at], tau[self.at]

    def begin(self, w: Array, q: Array) -> None:
        """Stand where all nodes stand."""
        self.w[:], self.q[:] = w[self.at], q[self.at]

    def told(self) -> Rows:
        """What each neighbouring part must be told: 2 w+ - w."""
        return {neighbour: self.wbar[at] for neighbour, at in self.says.items()}

    def hear(self, heard: Rows) -> None:
        """Take what they have told."""
        for neighbour, rows in heard.items():
            self.wbar[self.hears[neighbour]] = rows


def _edges_of(nodes: Index, head: Index, tail: Any, order: Index) -> tuple[Index, ...]:
    """The edges at each node, in the order in which an iteration adds their flows.

    Returns nodes, the first entry of each, that of its own edges (the others come first), and the
    edges by their final places.
    """
    final = np.empty_like(order)
    final[order] = np.arange(len(order))
    there = np.zeros(int(max(head.max(initial=0), tail.max(initial=0))) + 1, dtype=bool)
    there[nodes] = True
    into, out = np.flatnonzero(there[tail]), np.flatnonzero(there[head])
    at = np.concatenate([tail[into], head[out]])
    owned = np.repeat([False, True], [len(into), len(out)])
    edge = np.concatenate([into, out])
    sort = np.lexsort((edge, owned, at))
    at, owned, edge = at[sort], owned[sort], edge[sort]
    ptr = np.searchsorted(at, [*nodes, np.iinfo(np.int32).max])
    middle = np.searchsorted(2 * at.astype(np.int64) + owned, 2 * nodes + 1)
    return nodes, ptr, middle, final[edge]
