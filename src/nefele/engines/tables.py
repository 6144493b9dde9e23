"""Files of parts: one Parquet file per part, and one that says what belongs together.

A part's file has a row for each own node and for each node of others that its edges reach: its
position in the network, the part that owns it, its component; for own nodes the values of their
rows as lists; and the edges of which it is the head. Whoever holds one part can write its file, so
that nobody ever holds all of them. Paths are those that polars understands.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import as_ids
from nefele.engines.places import place, stored_text

_FORMAT, _VERSION = "nefele parts", 1
INDEX = "index"  # file that makes the others one network
_FEATURE = "x:"
_NODES = {"position": np.int64, "part": np.int64, "component": np.int64}

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


def part_file(folder: str, number: int) -> str:
    """Where a part's file is."""
    return place(folder, f"part-{number:05d}.parquet")


def write_part(folder: str, number: int, table: PartTable, features: Sequence[str]) -> Entry:
    """Write the file of one part; returns what the index must know of it.

    Parameters
    ----------
    folder : str
        New or empty, the same for all parts.
    number : int
        Which part it is, from 0.
    table : PartTable
        Its nodes, rows and edges.
    features : sequence of str
        Names of the columns of the rows.

    Examples
    --------
    >>> import tempfile
    >>> one, two = np.ones(1), np.array([0, 1])
    >>> tables = [
    ...     PartTable(two, two, 0 * two, two, counts, np.ones((1, 1)), one, two[:1], two[1:], one)
    ...     for counts in (np.array([1, 0]), np.array([0, 1]))
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     entries = [write_part(folder, k, table, ["x"]) for k, table in enumerate(tables)]
    ...     write_index(folder, PartsIndex(["x"], "y", "node", 1, entries))
    ...     read_index(folder).total("edges")
    1
    """
    import polars as pl

    own = table.part == number
    at = np.repeat(np.arange(len(table.position)), table.counts)
    rows = pl.DataFrame({"at": at, "y": table.y})
    names = [_FEATURE + name for name in features]
    rows = rows.with_columns(pl.Series(name, table.X[:, j]) for j, name in enumerate(names))
    head = np.searchsorted(table.position, table.head)
    edges = pl.DataFrame({"at": head, "tail": table.tail, "weight": table.weight})
    nodes = pl.DataFrame({name: getattr(table, name) for name in _NODES})
    nodes = nodes.with_columns(pl.Series("id", table.ids), pl.Series("at", np.arange(len(own))))
    for lists in (rows, edges):
        lists = lists.group_by("at", maintain_order=True).agg(pl.all())
        nodes = nodes.join(lists, on="at", how="left").sort("at")
    nodes.drop("at").write_parquet(part_file(folder, number))
    mine = np.isin(table.head, table.position[own])
    weights = table.weight if len(table.weight) else np.array([np.nan])
    return Entry(
        int(own.sum()),
        int(mine.sum()),
        len(table.y),
        sorted(set(table.part[~own].tolist())),
        table.digest(),
        float(weights.min()),
        float(weights.max()),
        table.content(number),
    )


def write_index(folder: str, index: PartsIndex) -> None:
    """Write what makes the files of all parts one network: the last thing to do.

    Parameters
    ----------
    folder : str
        Where the files of the parts are.
    index : PartsIndex
        What they have in common, and an entry for each part.

    Examples
    --------
    >>> import tempfile
    >>> entries = [Entry(10, 20, 60, [], "0" * 64, 1.0, 1.0)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_index(folder, PartsIndex(["x"], "y", "node", 1, entries))
    ...     read_index(folder).features
    ['x']
    """
    import polars as pl

    facts = {
        "format": _FORMAT,
        "version": _VERSION,
        "features": list(index.features),
        "target": index.target,
        "node": index.node,
        "components": index.components,
        "parts": [vars(part) for part in index.parts],
    }
    pl.DataFrame({INDEX: [json.dumps(facts)]}).write_parquet(place(folder, f"{INDEX}.parquet"))


def read_index(folder: Any) -> PartsIndex:
    """What `write_index` has written; a ValueError where it is not there."""
    if not isinstance(folder, str) or not folder:
        raise ValueError(f"folder must be the path of a folder of parts; got {folder!r}.")
    try:
        facts = json.loads(stored_text(folder, INDEX) or "")
        if facts["format"] != _FORMAT or facts["version"] != _VERSION:
            raise ValueError("another format")
        names = ("features", "target", "node", "components")
        parts = [Entry(**part) for part in facts["parts"]]
        return PartsIndex(**{name: facts[name] for name in names}, parts=parts)
    except (ValueError, KeyError, TypeError):
        raise ValueError(
            f"{folder!r} must be a folder written by nefele partition; {INDEX}.parquet is missing, "
            "damaged or of another version. Partition the data again."
        ) from None


def read_part(folder: str, number: int, index: PartsIndex) -> PartTable:
    """One part, as it was written; a ValueError where its file is missing or another."""
    import polars as pl

    path = part_file(folder, number)
    try:
        table = _table(pl.read_parquet(path), index.features)
    except (OSError, pl.exceptions.PolarsError, ValueError, KeyError) as error:
        raise ValueError(
            f"Part {number} must be a file written by nefele partition; {path!r} is missing or "
            f"damaged ({type(error).__name__}). Partition the data again."
        ) from None
    if table.digest() != index.parts[number].sha256:
        raise ValueError(
            f"{path!r} must be as it was written; it has changed since, or is of another "
            "partition. Partition the data again."
        )
    return table


def _table(frame: Any, features: list[str]) -> PartTable:
    import polars as pl

    nodes = {name: frame[name].to_numpy().astype(kind) for name, kind in _NODES.items()}

    def flat(name: str) -> Any:
        column = frame[name].drop_nulls()
        return column.explode().to_numpy() if len(column) else np.zeros(0)

    def lengths(name: str) -> Index:
        return frame[name].list.len().fill_null(0).to_numpy().astype(np.int64)

    ids = frame["id"].to_numpy() if frame["id"].dtype != pl.String else frame["id"].to_list()
    X = [flat(_FEATURE + name) for name in features]
    return PartTable(
        **nodes,
        ids=as_ids(ids),
        counts=lengths("y"),
        X=np.ascontiguousarray(np.stack(X, axis=1), dtype=float),
        y=np.asarray(flat("y"), dtype=float),
        head=np.repeat(nodes["position"], lengths("tail")),
        tail=np.asarray(flat("tail"), dtype=np.int64),
        weight=np.asarray(flat("weight"), dtype=float),
    )
