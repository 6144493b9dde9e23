"""Where nodes lie: two columns of the rows, or of a file with a line for each node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._ids import IdIndex, describe, distinct
from nefele.graph import Graph
from nefele.runs.config import RunConfig
from nefele.runs.tables import Table

Places = dict[str, tuple[float, float]]


def read_places(table: Table, config: RunConfig, ids: NDArray[Any]) -> tuple[Places | None, bool]:
    """Coordinates of each node, and whether they are latitude and longitude.

    They are columns of the rows, or of the file `config.places`, which must know all nodes of the
    rows and may know more.
    """
    if config.coords is None:
        return None, False
    if config.places is None:
        return _of_nodes(table, config, ids)
    file = Table.read(Path(config.places))
    for name in (config.node, *config.coords):
        file.check_column(name)
    found, geographic = _of_nodes(file, config, file.ids(config.node))
    nodes = distinct(ids)
    lost = np.array([str(node) not in found for node in nodes])
    if lost.any():
        raise ValueError(
            f"{file.name} must have the place of every node of {table.name}; "
            f"{int(lost.sum())} of {len(nodes)} are not in it: {describe(nodes[lost])}. Add them."
        )
    return found, geographic


def nodes_at(places: Places, ids: NDArray[Any]) -> NDArray[Any]:
    """The nodes of the rows, then those that only have a place."""
    nodes = distinct(ids)
    known = {str(node) for node in nodes}
    more = [name for name in places if name not in known]
    return np.concatenate([nodes, np.array(more, dtype=nodes.dtype.type)]) if more else nodes


def without_place(graph: Graph | None, places: Places | None) -> list[str]:
    """A note about nodes of the graph that have no place: the network cannot be drawn as a map."""
    if graph is None or not places:
        return []
    lost = np.array([str(node) not in places for node in graph.ids])
    if not lost.any():
        return []
    return [
        f"{int(lost.sum())} of {graph.n_nodes} nodes have no place, such as "
        f"{describe(graph.ids[lost], 1)}: the report draws the network by forces. Give all places "
        "by --places."
    ]


def _of_nodes(table: Table, config: RunConfig, ids: NDArray[Any]) -> tuple[Places, bool]:
    assert config.coords is not None
    from nefele.graph_learning.coordinates import metric_of

    geographic = metric_of(list(config.coords)) == "haversine"
    points = np.column_stack([table.numbers(name) for name in config.coords])
    nodes = distinct(ids)
    first = np.unique(ids, return_index=True)[1]
    owner = IdIndex(nodes).positions(ids)
    for j, name in enumerate(config.coords):
        lost = np.isnan(points[:, j])
        moved = points[:, j] != points[first[owner], j]
        if lost.any() or moved.any():
            row = int((lost | moved).argmax())
            what = "is missing" if lost[row] else "differs from that of an earlier row of the node"
            raise ValueError(
                f"{table.name}: coordinates must be known and constant at each node; "
                f'"{name}" of node {str(ids[row])!r} {what}, at {table.line(row)}. Correct it.'
            )
    return {
        str(n): (float(a), float(b)) for n, (a, b) in zip(nodes, points[first], strict=True)
    }, geographic
