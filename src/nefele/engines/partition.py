"""A table and its edges written by parts: rows are streamed, one part is held at a time.

What is held of the whole is the network: the ids of the nodes and the ends of the edges.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count
from nefele._files import only_writer
from nefele.engines.columns import Source, check_columns
from nefele.engines.files import INDEX, write_index, write_part
from nefele.engines.network import network_of
from nefele.engines.places import all_parts, is_stored, made_folder, new_folder
from nefele.engines.tables import Entry, Index, PartsIndex, PartTable
from nefele.graph import Graph

Say = Callable[[str], Any]


def partition(
    data: Any,
    edges: Any,
    *,
    parts: int,
    out: Any,
    node: str,
    target: str,
    features: list[str] | None = None,
    by: str | None = None,
    say: Say = lambda text: None,
) -> PartsIndex:
    """Write a table of rows and a table of edges as one Parquet file per part.

    Parameters
    ----------
    data : str or Path
        Parquet or CSV file, or a path that polars understands, such as one of an object store.
    edges : str or Path
        The same, with the ends in the first two columns, or in `source` and `target`, and perhaps
        a column `weight`.
    parts : int
        Number of parts.
    out : str or Path
        New or empty folder for them, which may be one of an object store.
    node, target : str
        Columns of the data with the ids of the nodes, and with what is to be explained.
    features : list of str, optional
        Columns with features, all of them numbers; default: all others.
    by : str, optional
        Column of the data with what keeps nodes together, such as a region: nodes with equal
        values go to the same part. Default: METIS, for few edges between the parts.
    say : callable, optional
        Is told of the progress.

    Returns
    -------
    PartsIndex

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = pl.DataFrame({"shop": [1, 1, 2, 3], "x": [1.0, 2, 3, 4], "y": [1.0, 3, 2, 5]})
    ...     rows.write_parquet(f"{folder}/rows.parquet")
    ...     pairs = pl.DataFrame({"source": [1, 2], "target": [2, 3]})
    ...     pairs.write_parquet(f"{folder}/edges.parquet")
    ...     index = partition(
    ...         f"{folder}/rows.parquet", f"{folder}/edges.parquet", parts=2,
    ...         out=f"{folder}/parts", node="shop", target="y",
    ...     )
    >>> index.features, index.total("nodes"), index.total("rows")
    (['x'], 3, 4)
    """
    count = check_count(parts, "parts", low=1)
    rows, pairs = Source(data, "data"), Source(edges, "edges")
    features = check_columns(rows, node, target, features, by)
    folder = new_folder(out, INDEX)
    network, component, owner = network_of(rows, pairs, node, by, count)
    say(f"{network.n_nodes:,} nodes, {network.n_edges:,} edges, {int(owner.max()) + 1} parts")
    entries: list[Entry] = []
    bare = 0
    alone = nullcontext() if is_stored(folder) else only_writer(Path(folder))
    with made_folder(folder), alone, all_parts(folder):
        for number in range(int(owner.max()) + 1):
            nodes = np.flatnonzero(owner == number)
            here = _rows_of(rows, network.ids[nodes], node, target, features)
            table = _part_table(network, component, owner, number, nodes, here)
            entries.append(write_part(folder, number, table, features))
            bare += int((table.counts[table.part == number] == 0).sum())
            say(f"part {number}: {entries[-1].nodes:,} nodes, {entries[-1].rows:,} rows")
        index = PartsIndex(features, target, node, int(component.max()) + 1, entries)
        write_index(folder, index)
    if bare:
        say(f"{bare:,} nodes have edges and no rows: their models come from their neighbours")
    return index


def _rows_of(rows: Source, ids: NDArray[Any], node: str, target: str, features: list[str]) -> Any:
    """The rows of some nodes, in the order of these nodes and of the file."""
    import polars as pl

    places = pl.LazyFrame({"id": ids, "at": np.arange(len(ids))})
    columns = [pl.col(name).cast(pl.Float64).alias(f"x{j}") for j, name in enumerate(features)]
    wanted = [rows.ids(node).alias("id"), pl.col(target).cast(pl.Float64).alias("y"), *columns]
    found = rows.scan.select(wanted).with_row_index("row")
    picked = rows.collect(found.join(places, on="id", how="inner")).sort("at", "row")
    gaps = [name for name in ("y", *(f"x{j}" for j in range(len(features)))) if _gap(picked[name])]
    if gaps:
        name = target if gaps[0] == "y" else features[int(gaps[0][1:])]
        row = picked.filter(~pl.col(gaps[0]).is_finite().fill_null(False))
        raise ValueError(
            f"Column {name!r} must hold finite numbers; row {row['row'][0]} of node "
            f"{row['id'][0]!r} does not. Drop such rows, or fill them."
        )
    return picked


def _gap(column: Any) -> bool:
    return bool(column.null_count() or not column.is_finite().all())


def _part_table(
    graph: Graph, component: Index, owner: Index, number: int, nodes: Index, rows: Any
) -> PartTable:
    """All that a part's file holds."""
    mine = owner == number
    on = np.flatnonzero(mine[graph.head] | mine[graph.tail])
    head, tail = graph.head[on], graph.tail[on]
    position = np.union1d(nodes, np.concatenate([head, tail]))
    counts = np.zeros(len(position), dtype=np.int64)
    there = np.bincount(rows["at"].to_numpy(), minlength=len(nodes))
    counts[np.searchsorted(position, nodes)] = there
    names = [name for name in rows.columns if name.startswith("x")]
    X: Array = rows.select(names).to_numpy().astype(float)
    return PartTable(
        position=position,
        part=owner[position],
        component=component[position],
        ids=graph.ids[position],
        counts=counts,
        X=np.ascontiguousarray(X),
        y=rows["y"].to_numpy().astype(float),
        head=head,
        tail=tail,
        weight=graph.weight[on],
    )
