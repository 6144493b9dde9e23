"""The network of a table of rows and a table of edges, and the part of each node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele.engines.columns import Source
from nefele.engines.tables import Index
from nefele.graph import Graph
from nefele.runtime.cutting import owners
from nefele.solvers.primal_dual.fused import good_order


def network_of(
    rows: Source, pairs: Source, node: str, by: str | None, count: int
) -> tuple[Graph, Index, Index]:
    """The graph in an order with good locality, its components, and the part of each node."""
    ends, found = _edges(pairs)
    nodes = _nodes(rows, node, by)
    if not len(found):  # columns of no rows have any type
        found = found.with_columns(nodes["id"].head(0).alias(name) for name in ("end0", "end1"))
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


def _edges(pairs: Source) -> tuple[list[str], Any]:
    """Names of the columns with the ends, and the ends of all edges with their weights."""
    import polars as pl

    names = list(pairs.kinds)
    ends = ["source", "target"] if {"source", "target"} <= set(names) else names[:2]
    if len(ends) < 2:
        raise ValueError(f"edges must have two columns with the ends; it has {', '.join(names)}.")
    if not len(pairs.collect(pairs.scan.select(ends).head(1))):
        return ends, pl.DataFrame({"end0": [], "end1": []})
    wanted = [pairs.checked_ids(name).alias(f"end{k}") for k, name in enumerate(ends)]
    if "weight" not in names:
        return ends, pairs.collect(pairs.scan.select(wanted))
    if not pairs.kinds["weight"].is_numeric():
        raise ValueError(
            f"Column 'weight' of edges must hold numbers; it holds {pairs.kinds['weight']}."
        )
    weight = pl.col("weight").cast(pl.Float64)
    return ends, pairs.collect(pairs.scan.select(*wanted, weight))


def _nodes(rows: Source, node: str, by: str | None) -> Any:
    """The ids in the data, with the values of the column that keeps nodes together."""
    import polars as pl

    if not len(rows.collect(rows.scan.select(node).head(1))):
        raise ValueError("data must have rows; it has none.")
    known = [
        rows.checked_ids(node).alias("id"),
        *([pl.col(by).alias("by")] if by is not None else []),
    ]
    nodes = rows.collect(rows.scan.select(known).unique()).sort("id")
    if by is not None:
        _check_by(nodes, by)
    return nodes


def _check_by(nodes: Any, by: str) -> None:
    """Each node has one value of the column that keeps nodes together."""
    gap = nodes["by"].is_null()
    if nodes["by"].dtype.is_float():
        gap = gap | nodes["by"].is_nan()
    missing = nodes.filter(gap)
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
    part = even(np.bincount(number), count)
    place = graph.positions(nodes["id"].to_numpy())
    owner = np.zeros(graph.n_nodes, dtype=np.int64)
    owner[place] = part[number]
    return owner


def even(sizes: NDArray[np.int64], count: int) -> Index:
    """Groups of these sizes, in their order, in so many parts: about even, and none of them empty.

    Examples
    --------
    >>> even(np.array([2, 2, 2, 2]), 2).tolist(), even(np.array([6, 1, 1]), 3).tolist()
    ([0, 0, 1, 1], [0, 1, 2])
    """
    middle = np.cumsum(sizes) - 0.5 * sizes
    wished = (middle * count // sizes.sum()).astype(np.int64)
    part = np.zeros(len(sizes), dtype=np.int64)
    for k in range(1, len(sizes)):
        least = max(wished[k], part[k - 1], count - len(sizes) + k)  # one for each part to come
        part[k] = min(least, part[k - 1] + 1)
    return part
