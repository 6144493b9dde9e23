"""Files of parts: one Parquet file per part, and one that says what belongs together.

A part's file has a row for each own node and for each node of others that its edges reach: its
position in the network, the part that owns it, its component; for own nodes the values of their
rows as lists; and the edges of which it is the head. Whoever holds one part can write its file, so
that nobody ever holds all of them. Paths are those that polars understands.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nefele._ids import as_ids
from nefele.engines.checking import check_index, checked
from nefele.engines.places import place, stored_text
from nefele.engines.tables import Entry, Index, PartsIndex, PartTable

_FORMAT, _VERSION = "nefele parts", 1
INDEX = "index"  # file that makes the others one network
_FEATURE = "x:"
_NODES = {"position": np.int64, "part": np.int64, "component": np.int64}


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

    table, features = checked(table, number, features)
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
    shared = table.shared(number)
    return Entry(
        int(own.sum()),
        int(mine.sum()),
        len(table.y),
        list(shared),
        table.digest(),
        float(weights.min()),
        float(weights.max()),
        table.content(number),
        float(table.y.max()) if len(table.y) else float("nan"),
        list(shared.values()),
        int(table.component.max()) + 1,
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

    check_index(index)
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
        index = PartsIndex(**{name: facts[name] for name in names}, parts=parts)
    except (ValueError, KeyError, TypeError):
        raise _no_index(folder) from None
    try:
        check_index(index)
    except (TypeError, AttributeError, IndexError):
        raise _no_index(folder) from None
    return index


def _no_index(folder: str) -> ValueError:
    return ValueError(
        f"{folder!r} must be a folder written by nefele partition; {INDEX}.parquet is missing, "
        "damaged or of another version. Partition the data again."
    )


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
