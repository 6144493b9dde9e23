"""Who a site talks to, and what ends that: members that stay away, links that are broken."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nefele.runtime.tree import Tree


class AbsentError(RuntimeError):
    """Some members have been away for longer than agreed."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"away for too long: {', '.join(names)}")
        self.names = names


def epoch_of(gone: Sequence[str]) -> int:
    """A number that tells apart who has left, 0 for nobody.

    Examples
    --------
    >>> epoch_of([]), epoch_of(["a", "b"]) == epoch_of(["b", "a"])
    (0, True)
    """
    return zlib.crc32("\0".join(sorted(gone)).encode()) if gone else 0


class BrokenLinkError(RuntimeError):
    """A neighbour sends what cannot be used, again and again."""


@dataclass(frozen=True, eq=False)
class Links:
    """Who a site talks to: neighbours that exchange rows, and its place in the tree of sums.

    Attributes
    ----------
    me : str
    members : list of str
        All of the federation, in the agreed order.
    rows : dict of neighbour to int
        How many rows each message of it has.
    tree : Tree
    """

    me: str
    members: list[str]
    rows: Mapping[str, int]
    tree: Tree

    @property
    def peers(self) -> list[str]:
        """All sites that this one talks to, in the agreed order."""
        above = self.tree.parent[self.me]
        near = {*self.rows, *self.tree.children[self.me], *([above] if above else [])}
        return [name for name in self.members if name in near]
