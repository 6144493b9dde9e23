"""Who talks to whom in a federation: along edges, and along the tree of sums."""

from __future__ import annotations

from dataclasses import dataclass

from nefele.runtime.tree import Tree
from nefele.sites.federation import Federation
from nefele.sites.peers import Links


@dataclass(frozen=True, eq=False)
class Network:
    """The members that take part, their links and the tree of their sums.

    Examples
    --------
    >>> from nefele.sites.example import coast
    >>> net = network(coast())
    >>> net.links["oulu"], net.tree.root
    (['kemi'], 'oulu')
    """

    federation: Federation
    members: list[str]
    links: dict[str, list[str]]
    tree: Tree
    n_components: int

    def borders(self, name: str) -> dict[str, tuple[int, int]]:
        """By neighbour: how many own nodes it sees, and how many edges there are between."""
        seen: dict[str, set[str]] = {other: set() for other in self.links[name]}
        edges = dict.fromkeys(self.links[name], 0)
        owner = self.federation.owner
        for edge in self.federation.edges:
            for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
                if owner[here] == name and owner[there] in seen:
                    seen[owner[there]].add(here)
                    edges[owner[there]] += 1
        return {other: (len(nodes), edges[other]) for other, nodes in seen.items()}

    def of(self, name: str) -> Links:
        """The links of one member, as its driver needs them."""
        rows = {other: self.borders(other)[name][0] for other in self.links[name]}
        return Links(name, [m.name for m in self.federation.members], rows, self.tree)


def network(federation: Federation, without: frozenset[str] = frozenset()) -> Network:
    """The network of all members but some; a ValueError when they do not hang together."""
    members = [m.name for m in federation.members if m.name not in without]
    near = {name: set(federation.neighbours(name)) for name in members}
    links = {name: [q for q in members if q in near[name]] for name in members}
    tree = Tree(links)
    lost = [
        name
        for name, above in tree.parent.items()
        if above is not None and above not in links[name]
    ]
    if lost:
        raise ValueError(
            "Members must be connected by edges, directly or through others, so that sums reach "
            f'all; "{lost[0]}" and "{tree.root}" are not. Add an edge between nodes of theirs.'
        )
    components = int(federation.graph().components.max()) + 1
    return Network(federation, members, links, tree, components)
