"""Sums over all parts along a fixed tree: their last bits depend on nothing but the links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nefele._checks import Array


class Tree:
    """A spanning tree of the parts, breadth first from the first of them.

    The roots of other components hang on the first root: sums are over all parts, linked or not.

    Parameters
    ----------
    links : dict of part to its neighbours

    Attributes
    ----------
    parent : dict of part to part, None for the root
    children : dict of part to list of parts
        In the order of `links`.

    Examples
    --------
    >>> tree = Tree({"a": ["b"], "b": ["a", "c"], "c": ["b"], "alone": []})
    >>> tree.parent
    {'a': None, 'b': 'a', 'c': 'b', 'alone': 'a'}
    >>> tree.total({name: np.array([1.0]) for name in tree.parent}).tolist()
    [4.0]
    """

    def __init__(self, links: Mapping[Any, Iterable[Any]]) -> None:
        place = {name: i for i, name in enumerate(links)}
        near: dict[Any, set[Any]] = {name: set() for name in links}
        for a, others in links.items():
            for b in others:
                near[a].add(b)
                near[b].add(a)
        self.parent: dict[Any, Any] = {}
        first = next(iter(links))
        for root in links:
            if root in self.parent:
                continue
            self.parent[root] = None if root == first else first
            waiting = [root]
            for name in waiting:
                for other in sorted(near[name] - self.parent.keys(), key=place.__getitem__):
                    self.parent[other] = name
                    waiting.append(other)
        self.parent = {name: self.parent[name] for name in links}
        self.children: dict[Any, list[Any]] = {name: [] for name in links}
        for name, above in self.parent.items():
            if above is not None:
                self.children[above].append(name)
        self.root = first

    def total(self, values: Mapping[Any, Array], largest: bool = False) -> Array:
        """The sum of one array per part, or the largest of each entry, from the leaves up."""
        order = [self.root]
        for name in order:
            order.extend(self.children[name])
        found: dict[Any, Array] = {}
        for name in reversed(order):
            below = [found[child] for child in self.children[name]]
            found[name] = join(values[name], below, largest)
        return found[self.root]


def join(own: Array, below: list[Array], largest: bool) -> Array:
    """The value of a part and those of its children, in their order.

    Examples
    --------
    >>> join(np.array([1.0]), [np.array([2.0]), np.array([3.0])], largest=True).tolist()
    [3.0]
    """
    found = np.array(own, dtype=float)
    for value in below:
        found = np.maximum(found, value) if largest else found + value
    return found
