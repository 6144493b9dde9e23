"""Builders that start from another graph: a given one, or a builder's."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from nefele._checks import type_name
from nefele._ids import distinct
from nefele.graph import Graph
from nefele.graph_learning.builders import TrainingRows
from nefele.graphs import as_graph


def base_graph(graph: Any, rows: TrainingRows, default: Any, who: str) -> Graph:
    """The graph to start from, with all nodes that have rows."""
    if isinstance(graph, type):
        raise ValueError(f"graph must be an object; use {graph.__name__}().")
    chosen = default if graph is None else graph
    if hasattr(chosen, "fit_graph"):
        found = clone(chosen).fit_graph(rows)
    elif isinstance(chosen, str | int | float):
        raise ValueError(f"{who} needs a graph or a graph builder; got {type_name(chosen)}.")
    else:
        found = as_graph(chosen)
    here = distinct(rows.node_ids[rows.sample_weight > 0])
    new = here[found.positions(here) < 0]
    if not len(new):
        return found
    ids = found.ids if found.ids.dtype.kind == new.dtype.kind else found.ids.astype(object)
    ids = np.concatenate([ids, new if ids.dtype != object else new.astype(object)])
    return Graph(ids, found.head, found.tail, found.weight)
