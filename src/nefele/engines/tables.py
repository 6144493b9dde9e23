"""What one part consists of, and what the index of all parts has of it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array

Index = NDArray[np.int64]


@dataclass
class PartTable:
    """What one part consists of.

    Attributes
    ----------
    position, part, component : int arrays of shape (n_nodes,)
        Of own nodes and of those seen, positions ascending: place in the network, number of the
        owner, component.
    ids : array of shape (n_nodes,)
        Whole numbers or text.
    counts : int array of shape (n_nodes,)
        Rows of each node; 0 for nodes of others.
    X, y : arrays of shapes (n_rows, n_features) and (n_rows,)
        In the order of the nodes.
    head, tail : int arrays of shape (n_edges,)
        Positions of the ends of each edge at own nodes, head < tail, ascending.
    weight : array of shape (n_edges,)

    Examples
    --------
    >>> one = np.ones(1)
    >>> table = PartTable(  # node 0 of part 0, joined to node 1 of part 1
    ...     position=np.array([0, 1]), part=np.array([0, 1]), component=np.zeros(2, dtype=int),
    ...     ids=np.array(["a", "b"]), counts=np.array([1, 0]), X=np.ones((1, 1)), y=one,
    ...     head=np.array([0]), tail=np.array([1]), weight=one,
    ... )
    >>> len(table.digest())
    64
    """

    position: Index
    part: Index
    component: Index
    ids: NDArray[Any] = field(repr=False)
    counts: Index = field(repr=False)
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    head: Index = field(repr=False)
    tail: Index = field(repr=False)
    weight: Array = field(repr=False)

    def digest(self) -> str:
        """A hash of all of it, whatever the file looks like."""
        found = hashlib.sha256()
        for name in ("position", "part", "component", "counts", "X", "y", "head", "tail", "weight"):
            array = np.ascontiguousarray(getattr(self, name))
            found.update(repr((name, array.dtype.str, array.shape)).encode())
            found.update(array.reshape(-1).view(np.uint8).data)
        found.update("\n".join(map(str, self.ids.tolist())).encode())
        return found.hexdigest()

    def content(self, number: int) -> int:
        """Hashes of own rows and of edges with own heads, added up: all cuts have one total.

        Parameters
        ----------
        number : int
            Which part it is.
        """
        first = np.cumsum(self.counts) - self.counts
        of, turn = (np.repeat(x, self.counts) for x in (self.position, first))
        mine = np.isin(self.head, self.position[self.part == number])
        rows = _hashes([of, np.arange(len(of)) - turn, self.y, *self.X.T])
        edges = _hashes([self.head[mine], self.tail[mine], self.weight[mine]])
        return (int(np.add.reduce(rows)) + int(np.add.reduce(edges))) % 2**64

    def shared(self, number: int) -> dict[int, int]:
        """Hashes of the edges to each neighbouring part, added up: both parts have the same.

        Parameters
        ----------
        number : int
            Which part it is.
        """
        ends = [np.searchsorted(self.position, end) for end in (self.head, self.tail)]
        of = np.stack([self.part[end] for end in ends])
        across = (of != number).any(axis=0)
        columns = [self.head, self.tail, self.weight, *of, *(self.component[end] for end in ends)]
        sums = _hashes([column[across] for column in columns])
        other = of[:, across].sum(axis=0) - number
        return {
            int(q): int(np.add.reduce(sums[other == q])) % 2**64 for q in np.unique(other).tolist()
        }


def _hashes(columns: list[NDArray[Any]]) -> NDArray[np.uint64]:
    """A number for each row of these columns, by the steps of SplitMix64."""
    found = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        found ^= np.ascontiguousarray(column).view(np.uint64)
        found += np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
        found ^= found >> np.uint64(31)
    return found


@dataclass(frozen=True)
class Entry:
    """A part as the index has it.

    Attributes
    ----------
    nodes, edges, rows : int
        Own nodes; edges whose heads are own; rows.
    neighbours : list of int
    sha256 : str
    lightest, heaviest : float
        Least and largest weight of an edge; nan without edges.
    content : int
        Its share of a sum that tells these data from others, however they are cut.
    top : float
        Largest value of the target; nan without rows.
    shared : list of int
        A hash of the edges to each neighbour, which has the same.
    components : int
        One more than the largest component of a node here.

    Examples
    --------
    >>> Entry(10, 20, 60, [1], "0" * 64, 1.0, 1.0).neighbours
    [1]
    """

    nodes: int
    edges: int
    rows: int
    neighbours: list[int]
    sha256: str
    lightest: float
    heaviest: float
    content: int = 0
    top: float = float("nan")
    shared: list[int] = field(default_factory=list)
    components: int = 0


@dataclass(frozen=True)
class PartsIndex:
    """What the parts of a folder are together.

    Attributes
    ----------
    features : list of str
    target, node : str
        Names of columns.
    components : int
    parts : list of Entry

    Examples
    --------
    >>> entries = [Entry(10, 20, 60, [1], "0" * 64, 1.0, 1.0)] * 2
    >>> PartsIndex(["x"], "y", "node", 1, entries).total("rows")
    120
    """

    features: list[str]
    target: str
    node: str
    components: int
    parts: list[Entry] = field(repr=False)

    def total(self, name: str) -> int:
        """A sum over all parts, such as of "nodes".

        Parameters
        ----------
        name : str
            An attribute of its parts.
        """
        return int(sum(getattr(part, name) for part in self.parts))
