"""Members that stay away: their nodes leave, or stay as their neighbours last heard of them.

With the policy "freeze" every present neighbour keeps, for each node of an absent member that it
sees, a node of its own that is held at the last parameters heard, by a loss so steep that nothing
moves it. What is certified is the problem with these models fixed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from nefele._checks import Array
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses import Squared
from nefele.losses.mixed import BoundMixed
from nefele.runtime.part import Part
from nefele.sites.federation import Federation

_STEEP = 1e6  # curvature of what holds a node, in units of the steepest loss here


def held_name(node: str, member: str) -> str:
    """The name of an absent node at the member that holds it.

    Examples
    --------
    >>> held_name("inari", "kemi")
    'inari, as kemi last heard'
    """
    return f"{node}, as {member} last heard"


def present(
    federation: Federation, gone: Iterable[str], freeze: bool
) -> tuple[Graph, dict[str, str]]:
    """The graph of those who are there, and the member of each of its nodes.

    Examples
    --------
    >>> from nefele.sites.example import coast
    >>> graph, owner = present(coast(), ["inari"], freeze=True)
    >>> graph.ids.tolist()
    ['oulu-1', 'oulu-2', 'kemi', 'inari, as kemi last heard']
    >>> present(coast(), ["inari"], freeze=False)[0].n_nodes
    3
    """
    away, whole = set(gone), federation.owner
    owner = {node: name for node, name in whole.items() if name not in away}
    pairs, weight = [], []
    for edge in federation.edges:
        ends = [edge.source, edge.target]
        for k, member in enumerate((whole[edge.target], whole[edge.source])):
            if ends[k] not in owner and member not in away and freeze:
                held = held_name(ends[k], member)
                owner[held], ends[k] = member, held
        if ends[0] in owner and ends[1] in owner:
            pairs.append((ends[0], ends[1]))
            weight.append(edge.weight)
    return Graph.from_edges(pairs, weight or None, nodes=list(owner)), owner


def heard_nodes(federation: Federation, member: str, absent: str) -> list[str]:
    """Nodes of an absent member that another one sees, in the order of their rows in messages."""
    owner = federation.owner
    seen = {
        there
        for edge in federation.edges
        for here, there in ((edge.source, edge.target), (edge.target, edge.source))
        if owner[here] == member and owner[there] == absent
    }
    return [node for node in owner if node in seen]


def hold(part: Part, nodes: list[str], values: Mapping[str, Array]) -> None:
    """Give the held nodes of a part the loss that keeps them where they are."""
    at = [k for k, node in enumerate(nodes) if node in values]
    if not at:
        return
    rest = np.array([k for k in range(len(nodes)) if k not in at], dtype=np.int64)
    steep = np.sqrt(_STEEP * max(float(part.loss.curvature().max(initial=0.0)), 1.0))
    rows = [(steep * np.eye(part.d), steep * np.asarray(values[nodes[k]], dtype=float)) for k in at]
    held = Squared().bind(LocalData.from_list(rows))
    parts = [(rest, part.loss.restrict(rest))] if len(rest) else []
    part.loss = BoundMixed(len(nodes), [*parts, (np.array(at, dtype=np.int64), held)])
