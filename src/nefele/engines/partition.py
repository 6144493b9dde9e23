"""A table and its edges written by parts: rows are streamed, one part is held at a time.

What is held of the whole is the network: the ids of the nodes and the ends of the edges.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count
from nefele._files import only_writer
from nefele.engines.files import INDEX, write_index, write_part
from nefele.engines.places import all_parts, is_stored, made_folder, new_folder
from nefele.engines.tables import Entry, Index, PartsIndex, PartTable
from nefele.graph import Graph
from nefele.runtime.cutting import owners
from nefele.solvers.primal_dual.fused import good_order

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
    rows, pairs = _scan(data, "data"), _scan(edges, "edges")
    features = _columns(rows, node, target, features, by)
    folder = new_folder(out, INDEX)
    network, component, owner = _network(rows, pairs, node, by, count)
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


def _scan(path: Any, name: str) -> Any:
    """A table that is read only as far as it is needed."""
    import polars as pl

    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise ValueError(f"{name} must be the path of a Parquet or CSV file; got {path!r}.")
    text = os.fspath(path)
    if "://" not in text and not Path(text).is_file():
        raise ValueError(f"{name} must be a file; there is no file {text!r}.")
    scan = pl.scan_csv if text.endswith((".csv", ".csv.gz")) else pl.scan_parquet
    try:
        found = scan(text)
        found.collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        why = str(error).splitlines()[0]
        raise ValueError(f"{name} must be a Parquet or CSV file; {text!r} is none: {why}") from None
    return found


def _columns(
    rows: Any, node: str, target: str, features: list[str] | None, by: str | None
) -> list[str]:
    """The features, after a look whether all columns are there and are numbers."""
    schema = rows.collect_schema()
    if features is None:
        features = [name for name in schema if name not in (node, target, by)]
    for name in [node, target, *features, *([by] if by is not None else [])]:
        if name not in schema:
            raise ValueError(f"data must have a column {name!r}; it has {', '.join(schema)}.")
    if not features:
        raise ValueError("data must have a column with a feature; it has none besides the others.")
    used = [node, target, *features]
    twice = next((name for name in used if used.count(name) > 1), None)
    if twice is not None:
        raise ValueError(
            f"Node, target and features must be different columns; {twice!r} is named twice."
        )
    for name in [target, *features]:
        if not schema[name].is_numeric():
            raise ValueError(
                f"Column {name!r} must hold numbers; it holds {schema[name]}. Encode it, or name "
                "the features that are meant."
            )
    return list(features)


def _network(
    rows: Any, pairs: Any, node: str, by: str | None, count: int
) -> tuple[Graph, Index, Index]:
    """The graph in an order with good locality, its components, and the part of each node."""
    import polars as pl

    names = pairs.collect_schema().names()
    ends = ["source", "target"] if {"source", "target"} <= set(names) else names[:2]
    if len(ends) < 2:
        raise ValueError(f"edges must have two columns with the ends; it has {', '.join(names)}.")
    wanted = [_id(pairs, name).alias(f"end{k}") for k, name in enumerate(ends)]
    found = _stream(pairs.select(*wanted, *(["weight"] if "weight" in names else [])))
    known = [_id(rows, node).alias("id"), *([pl.col(by).alias("by")] if by is not None else [])]
    nodes = _stream(rows.select(known).unique()).sort("id")
    if not len(nodes):
        raise ValueError("data must have rows; it has none.")
    _check_by(nodes, by)
    kinds = [found["end0"].dtype, found["end1"].dtype, nodes["id"].dtype]
    if len(set(kinds)) > 1:
        raise ValueError(
            "The two ends of an edge and the ids in the data must be of the same type; got "
            f"{ends[0]} ({kinds[0]}), {ends[1]} ({kinds[1]}) and {node} ({kinds[2]}). "
            "Write them as numbers everywhere, or as text everywhere."
        )
    ids = np.unique(np.concatenate([found["end0"], found["end1"], nodes["id"]]))
    pair = np.stack([found["end0"].to_numpy(), found["end1"].to_numpy()], axis=1)
    weight = found["weight"].to_numpy() if "weight" in found.columns else None
    graph = Graph.from_edges(pair, weight, nodes=ids)
    order = good_order(graph)
    if order is not None:
        graph = Graph.from_edges(pair, weight, nodes=graph.ids[order])
    owner = owners(graph, count) if by is None else owners(graph, _by(graph, nodes, by, count))
    return graph, np.asarray(graph.components), owner


def _id(table: Any, name: str) -> Any:
    """A column of ids; whole numbers are alike, however many bytes a file has for them."""
    import polars as pl

    kind = table.collect_schema()[name]
    short = kind.is_integer() and kind != pl.UInt64
    return pl.col(name).cast(pl.Int64) if short else pl.col(name)


def _check_by(nodes: Any, by: str | None) -> None:
    """Each node has one value of the column that keeps nodes together."""
    if by is None:
        return
    missing = nodes.filter(nodes["by"].is_null())
    if len(missing):
        raise ValueError(f"Column {by!r} must have a value; node {missing['id'][0]!r} has none.")
    twice = nodes.filter(nodes["id"].is_duplicated())
    if len(twice):
        values = twice.filter(twice["id"] == twice["id"][0])["by"].to_list()[:2]
        raise ValueError(
            f"Column {by!r} must have one value for each node; node {twice['id'][0]!r} has "
            f"several, such as {' and '.join(map(repr, values))}."
        )


def _by(graph: Graph, nodes: Any, by: str, count: int) -> Index:
    """The part of each node by the values of a column: about equal numbers of nodes in each."""
    values = nodes["by"].to_numpy()
    kinds, number = np.unique(values, return_inverse=True)
    if len(kinds) < count:
        raise ValueError(
            f"parts must be at most the number of different values of {by!r}, {len(kinds)}; got "
            f"{count}."
        )
    sizes = np.bincount(number)
    middle = np.cumsum(sizes) - 0.5 * sizes
    part = (middle * count // len(values)).astype(np.int64)
    place = graph.positions(nodes["id"].to_numpy())
    owner = np.zeros(graph.n_nodes, dtype=np.int64)
    owner[place] = part[number]
    return owner


def _stream(lazy: Any) -> Any:
    """Collect with the engine that holds little at a time."""
    try:
        return lazy.collect(engine="streaming")
    except TypeError:  # polars before 1.23
        return lazy.collect(streaming=True)


def _rows_of(rows: Any, ids: NDArray[Any], node: str, target: str, features: list[str]) -> Any:
    """The rows of some nodes, in the order of these nodes and of the file."""
    import polars as pl

    places = pl.LazyFrame({"id": ids, "at": np.arange(len(ids))})
    columns = [pl.col(name).cast(pl.Float64).alias(f"x{j}") for j, name in enumerate(features)]
    wanted = [_id(rows, node).alias("id"), pl.col(target).cast(pl.Float64).alias("y"), *columns]
    found = rows.select(wanted).with_row_index("row")
    picked = _stream(found.join(places, on="id", how="inner")).sort("at", "row")
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
