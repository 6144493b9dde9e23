"""Whose models are added up for whom under masks, and which graphs hide the single ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph

Index = NDArray[np.int64]

FEWEST = 3  # members in a sum
_ROUNDING = 1e-9


def check_crowd(owner: Mapping[str, str], edges: Iterable[tuple[str, str, float]]) -> None:
    """A ValueError unless what each member hears hides every other one among three or more.

    A member hears of each of its nodes the weighted sum over the neighbours of other members. Not
    only each of these sums must have three members; no combination of them may have fewer, or the
    member could take one sum from another.

    Parameters
    ----------
    owner : dict of node to member
    edges : iterable of (node, node, weight)
    """
    sums: dict[str, dict[str, dict[str, float]]] = {}  # by member: by own node: weights of others
    for source, target, weight in edges:
        for here, there in ((source, target), (target, source)):
            if owner[here] != owner[there]:
                sums.setdefault(owner[here], {}).setdefault(here, {})[there] = weight
    for member in [name for name in dict.fromkeys(owner.values()) if name in sums]:
        rows = sums[member]
        for node, row in rows.items():
            near = sorted({owner[there] for there in row})
            if len(near) < FEWEST:
                raise ValueError(
                    "masked = true needs three or more neighbouring members for each node at the "
                    f'border; "{node}" of "{member}" has {len(near)}: {", ".join(near)}. A sum '
                    "over fewer tells one of them the other's model. Add edges, or use masked = "
                    "false."
                )
        few = _revealed(rows, owner)
        if few:
            raise ValueError(
                "masked = true needs sums that cannot be taken from each other; those of the "
                f'nodes of "{member}" together reveal {" and ".join(few)}. Give these nodes the '
                "same neighbours with the same weights, or others, or use masked = false."
            )


def _revealed(rows: Mapping[str, Mapping[str, float]], owner: Mapping[str, str]) -> list[str]:
    """Members, fewer than three, of which some combination of sums is a sum; empty if none."""
    if len(rows) < 2:
        return []
    others = sorted({there for row in rows.values() for there in row})
    matrix = np.array([[row.get(there, 0.0) for there in others] for row in rows.values()])
    matrix /= matrix.sum(axis=1, keepdims=True)
    whose = np.array([owner[there] for there in others])
    rank = np.linalg.matrix_rank(matrix, tol=_ROUNDING)
    for few in combinations(sorted(set(whose.tolist())), FEWEST - 1):
        rest = matrix[:, ~np.isin(whose, few)]
        if np.linalg.matrix_rank(rest, tol=_ROUNDING) < rank:
            return list(few)
    return []


class Crowd:
    """What one member says under masks, and what it hears.

    Parameters
    ----------
    graph : Graph
        Of all nodes.
    owner : int array of shape (n_nodes,)
        Number of each node's member.
    names : list of str
        Of the members.
    me : str

    Attributes
    ----------
    faces, own : dicts of member to int array
        Nodes of a neighbouring member that see this one, and own nodes that see it.
    shares : dict of member to array of shape (n_faces, n_own)
        How much each own model counts in the weighted mean outside of each of these nodes.
    around : dict of node to list of str
        The members in the sum of each node at the border.
    outer : array of shape (n_own,)
        Sum of the weights of edges to other members.
    """

    def __init__(self, graph: Graph, owner: Index, names: list[str], me: str) -> None:
        self.me, self.names = me, names
        nodes = np.flatnonzero(owner == names.index(me))
        head, tail, weight = graph.head, graph.tail, graph.weight
        cut = owner[head] != owner[tail]
        here = np.concatenate([head[cut], tail[cut]])
        there = np.concatenate([tail[cut], head[cut]])
        size = np.concatenate([weight[cut], weight[cut]])
        outer: Array = np.bincount(here, size, graph.n_nodes).astype(float)
        self.outer = outer[nodes]
        self.around: dict[int, list[str]] = {
            i: sorted({names[k] for k in owner[there[here == i]].tolist()})
            for i in np.unique(here).tolist()
        }
        self.faces: dict[str, Index] = {}
        self.own: dict[str, Index] = {}
        self.shares: dict[str, Array] = {}
        mine = owner[there] == names.index(me)  # edges as their other ends see them
        for number in dict.fromkeys(owner[here[mine]].tolist()):
            at = mine & (owner[here] == number)
            faces = np.unique(here[at])
            share = np.zeros((len(faces), len(nodes)))
            place = np.searchsorted(faces, here[at]), np.searchsorted(nodes, there[at])
            np.add.at(share, place, size[at] / outer[here[at]])
            name = names[number]
            self.faces[name], self.shares[name] = faces, share
            self.own[name] = np.unique(there[at])
        self.nodes = nodes

    @property
    def partners(self) -> list[str]:
        """Members with whom some sum is shared: a secret is needed with each."""
        found = {q for faces in self.faces.values() for i in faces.tolist() for q in self.around[i]}
        return sorted(found - {self.me})
