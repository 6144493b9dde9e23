"""From the files of a run to arrays: what is used, what is left out, and what must not be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import describe, distinct
from nefele._words import short
from nefele.encoding.parts import Part
from nefele.graph import Graph
from nefele.runs.checks import Findings, look, look_at_edges, nearly_distinct
from nefele.runs.columns import Uses, use_columns
from nefele.runs.config import LEARNT, RunConfig
from nefele.runs.edges import edge_graph
from nefele.runs.places import Places, nodes_at, read_places, without_place
from nefele.runs.sizes import print_nothing, size_note
from nefele.runs.tables import Table

_MANY = 10  # rows from which as many classes as rows are a mistake
_NO_CLASSES = "Almost every row has a text of its own, so these are no classes either."


@dataclass(frozen=True, eq=False)
class Inputs:
    """The rows of a run.

    Attributes
    ----------
    uses : Uses
        The columns that are features.
    y : array of shape (n_rows,)
        Numbers, or class labels as text.
    ids : array of shape (n_rows,)
        Node ids as text.
    times : array of shape (n_rows,), optional
    graph : Graph, optional
        None: learnt in each fit.
    places : dict, optional
        {node id: (first, second coordinate)}.
    geographic : bool
        Whether the coordinates are latitude and longitude.
    notes : tuple of str
        What a reader must know.
    """

    uses: Uses
    y: NDArray[Any]
    ids: NDArray[Any]
    times: NDArray[Any] | None
    graph: Graph | None
    places: dict[str, tuple[float, float]] | None
    geographic: bool
    notes: tuple[str, ...]

    def frame(self, node: str) -> Any:
        """Features and node ids as a table, the form that the estimators take."""
        return with_nodes(self.uses.frame, self.ids, node)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that are features."""
        return self.uses.names

    @cached_property
    def parts(self) -> list[Part]:
        """How each column becomes features of the models."""
        return self.uses.parts()

    @property
    def parameters(self) -> list[str]:
        """Names of the features of the models, in the order of the coefficients."""
        return [name for part in self.parts for name in part.features]

    def positions(self, nodes: NDArray[Any]) -> Array | None:
        """Where nodes lie as (x, y) or (longitude, latitude); None when not known of all."""
        places = self.places or {}
        if not places or not all(str(node) in places for node in nodes):
            return None
        points = np.array([places[str(node)] for node in nodes])
        return points[:, ::-1].copy() if self.geographic else points


def with_nodes(frame: Any, ids: NDArray[Any], node: str) -> Any:
    """A polars table of the features and the node ids."""
    import polars as pl

    return pl.DataFrame([*frame.get_columns(), pl.Series(node, ids.tolist(), dtype=pl.String)])


def feature_frame(X: Array, features: tuple[str, ...], ids: NDArray[Any], node: str) -> Any:
    """A polars table of numbers and the node ids."""
    import polars as pl

    columns = [pl.Series(name, X[:, j]) for j, name in enumerate(features)]
    return with_nodes(pl.DataFrame(columns), ids, node)


def read_inputs(config: RunConfig, tell: Callable[[str], object] = print_nothing) -> Inputs:
    """Read and check the files of a run; whatever would make the fit fail is a ValueError.

    `tell` is given what a user should know before the work begins.
    """
    rows = read_rows(config, tell)
    graph, more = _graph(config, rows.ids, rows.places, rows.geographic)
    _check_parts(config, len(distinct(rows.ids)) if graph is None else graph.n_nodes)
    more += without_place(graph, rows.places)
    if config.edge_file is not None:
        noticed = Findings()
        look_at_edges(Path(config.edge_file), rows.ids, noticed, config.drop_missing)
        more += [text for text in noticed.warnings if text not in more]
    return replace(rows, graph=graph, notes=(*rows.notes, *more, *few_rows(rows.ids)))


def _check_parts(config: RunConfig, n_nodes: int) -> None:
    if config.parts is not None and config.parts > n_nodes:
        raise ValueError(
            f"parts must be at most the number of nodes, {n_nodes}; got {config.parts}. A part "
            "needs a node."
        )


def read_rows(config: RunConfig, tell: Callable[[str], object] = print_nothing) -> Inputs:
    """Read and check the data file of a run; its graph is left open."""
    table = Table.read(Path(config.data))
    taken = (config.node, config.target, config.time, *(config.coords or ()))
    for name in taken[:3] if config.places else taken:
        if name is not None:
            table.check_column(name)
    uses = use_columns(table, taken, config.features)
    y, lost = _target(table, config)
    noticed = Findings()
    look(table, uses, config.node, config.target, noticed, config.task)
    notes = noticed.warnings
    gone = {config.target: lost, config.node: _absent(table, config.node)}
    if config.drop_missing:
        gone |= {name: uses.frame[name].is_null().to_numpy() for name in uses.names}
    if config.time is not None:
        gone[config.time] = _absent(table, config.time) | table.says_missing(config.time)
    keep, dropped = _complete(table, gone, config.drop_missing)
    notes += dropped
    if not keep.all():
        table, uses, y = table.take(keep), uses.take(keep), y[keep]
    if len(y) < 2:
        raise ValueError(f"{table.name} must have at least 2 complete rows; got {len(y)}.")
    if not uses.names:
        notes.append("There are no features: each model is a constant.")
    _check_classes(table, y, config)
    ids = table.ids(config.node)
    times = None if config.time is None else table.times(config.time)
    places, geographic = read_places(table, config, ids)
    found = Inputs(uses, y, ids, times, None, places, geographic, tuple(notes))
    large = size_note(found, config.task)
    if large:
        tell(large)
    return found


def _check_classes(table: Table, y: NDArray[Any], config: RunConfig) -> None:
    """A classification needs classes, at least two, and rows that share them."""
    if config.task != "classification":
        return
    classes = np.unique(y)
    where = f'{table.name}: the target "{config.target}" must have'
    if len(classes) < 2:
        raise ValueError(
            f"{where} at least 2 classes; every row has {str(classes[0])!r}. Name another "
            "--target, or add rows of another class."
        )
    if len(y) >= _MANY and len(classes) >= 0.9 * len(y):
        raise ValueError(
            f"{where} classes that rows share; got {len(classes)} different values in {len(y)} "
            "rows. Name another --target, or use --task regression for numbers."
        )


def _target(table: Table, config: RunConfig) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """The target, and where it is missing."""
    if config.task == "classification":
        column = table.labels(config.target)
        return column.fill_null("").to_numpy().astype(str), column.is_null().to_numpy()
    _, odd = table.parsed(config.target)
    if 2 * odd.sum() > len(odd) and not table.has_commas(config.target, odd):
        row = int(odd.arg_true()[0])
        raise ValueError(
            f'{table.name}: the target "{config.target}" must hold numbers for a regression; got '
            f"{short(str(table.frame[config.target][row]))} at {table.line(row)}. "
            + (
                f"{_NO_CLASSES} Name another --target."
                if nearly_distinct(table.text(config.target))
                else "Use --task classification for classes."
            )
        )
    y = table.numbers(config.target)
    return y, np.isnan(y)


def _absent(table: Table, name: str | None) -> NDArray[np.bool_]:
    if name is None:
        return np.zeros(table.frame.height, dtype=bool)
    return np.asarray(table.text(name).is_null().to_numpy())


def _complete(
    table: Table, gone: dict[str, NDArray[np.bool_]], drop: bool
) -> tuple[NDArray[np.bool_], list[str]]:
    """Which rows have all values; an error where some are missing, unless they may be dropped."""
    bad = np.logical_or.reduce(list(gone.values()))
    if not bad.any():
        return ~bad, []
    counts = ", ".join(f"{name} ({int(m.sum())})" for name, m in gone.items() if m.any())
    if not drop:
        raise ValueError(
            f"{table.name} must not have missing values in the columns used; got {counts}, in "
            f"{int(bad.sum())} of {len(bad)} rows, the first at {table.line(int(bad.argmax()))}. "
            "Use --drop-missing to leave these rows out, or fill the values in."
        )
    return ~bad, [f"{int(bad.sum())} of {len(bad)} rows are left out for missing values: {counts}."]


def _graph(
    config: RunConfig,
    ids: NDArray[Any],
    places: Places | None,
    geographic: bool,
) -> tuple[Graph | None, list[str]]:
    if config.edge_file is not None:
        return edge_graph(Path(config.edge_file), ids, config.allow_isolates, config.drop_missing)
    others = len(distinct(ids)) - 1
    if not others:
        return (None if config.learns else Graph(distinct(ids), [], [])), [
            "There is one node only: nothing can be coupled, and all models are the same."
        ]
    if config.bare:
        return Graph(distinct(ids), [], []), []
    if config.learns:
        asked = "" if config.graph else " (no --graph and no --coords was given)"
        return None, [
            f"The graph was learnt from the data{asked}: each node is joined to the "
            f"{_number(min(config.k, others), 'node')} {LEARNT[config.learner]}. It says nothing "
            "about causes."
        ]
    from nefele.graphs import knn

    assert places is not None
    nodes = nodes_at(places, ids)
    points = np.array([places[str(node)] for node in nodes])
    metric = "haversine" if geographic else "euclidean"
    return knn(points, min(config.k, len(nodes) - 1), nodes=nodes, metric=metric), []


def _number(count: int, one: str) -> str:
    return f"{count} {one}{'s' if count != 1 else ''}"


def few_rows(ids: NDArray[Any]) -> list[str]:
    """A note about nodes with a single row."""
    nodes, count = np.unique(ids, return_counts=True)
    single = nodes[count == 1]
    if not len(single):
        return []
    return [
        f"{len(single)} of {len(nodes)} nodes have a single row, which cannot be held out: "
        f"{describe(single)}."
    ]
