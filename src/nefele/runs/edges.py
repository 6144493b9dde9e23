"""The graph of a run from an edge file, and a graph as an edge file."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import IdIndex, as_ids, describe, distinct
from nefele.graph import Graph
from nefele.runs.folder import RunFolder
from nefele.runs.spreadsheets import write_csv
from nefele.runs.tables import Table

_NAMES = ("source", "target", "weight")


def read_edges(path: Path, drop_missing: bool = False) -> tuple[Any, list[str]]:
    """The edges of a file as a table (source, target, weight), and what was noticed.

    An edge without an end or a weight is an error, or left out with `drop_missing`. An edge that
    stands there twice with one weight, as in files that list both directions, is kept once; with
    two weights it is an error.
    """
    import polars as pl

    table = Table.read(path)
    _check_columns(table)
    table, notes = _complete_edges(table) if drop_missing else (table, [])
    if "penalty" in table.columns:
        notes.append(
            f'The column "penalty" of {table.name} is not used: a run has one penalty for all '
            "edges. In Python nefele.penalties.edge_penalties takes it."
        )
    ends = [pl.Series(name, table.ids(name)) for name in _NAMES[:2]]
    frame = pl.DataFrame(ends).with_row_index("row")
    frame = frame.with_columns(pl.Series("weight", _weights(table)))
    loops = (frame["source"] == frame["target"]).arg_true()
    if len(loops):
        raise ValueError(
            f"{table.name}: an edge must join two nodes; {frame['source'][int(loops[0])]!r} is "
            f"joined to itself at {table.line(int(loops[0]))}, {len(loops)} such in all. Drop it."
        )
    frame = frame.with_columns(
        pl.min_horizontal("source", "target").alias("low"),
        pl.max_horizontal("source", "target").alias("high"),
    )
    pair = pl.struct("low", "high")
    first = frame.filter(pair.is_first_distinct())
    if len(first) < len(frame):
        unlike = frame.filter(pl.col("weight") != pl.col("weight").first().over("low", "high"))
        if len(unlike):
            again = unlike.row(0, named=True)
            raise ValueError(
                f"{table.name}: an edge must have one weight; {again['source']!r} - "
                f"{again['target']!r} is there again with another one at "
                f"{table.line(again['row'])}. "
                "Keep one of them."
            )
        notes.append(f"{len(frame) - len(first)} edges of {table.name} are given twice; used once.")
    return first.select("source", "target", "weight"), notes


def _complete_edges(table: Table) -> tuple[Table, list[str]]:
    """Without the edges that lack an end or a weight, and a note about them."""
    lost = [table.text(name).is_null().to_numpy() for name in _NAMES[:2]]
    if "weight" in table.columns:
        weight, odd = table.parsed("weight")
        lost.append((weight.is_null() & ~odd).to_numpy())
    bad = np.logical_or.reduce(lost)
    if not bad.any():
        return table, []
    if bad.all():
        raise ValueError(f"{table.name} must have an edge with both ends; it has none.")
    return table.take(~bad), [
        f"{int(bad.sum())} of {len(bad)} edges of {table.name} are left out: an end or the weight "
        f"is missing, the first at {table.line(int(bad.argmax()))}."
    ]


def _weights(table: Table) -> Array:
    """Weights of the edges, 1 without such a column."""
    if "weight" not in table.columns:
        return np.ones(table.frame.height)
    weight = table.numbers("weight")
    if np.isnan(weight).any():
        row = int(np.isnan(weight).argmax())
        raise ValueError(
            f"{table.name}: the weight must not be missing; it is at {table.line(row)}. Drop the "
            "edge, use --drop-missing, or leave out the column."
        )
    if (weight < 0).any():
        row = int((weight < 0).argmax())
        raise ValueError(
            f"{table.name}: the weight must be >= 0; got {weight[row]:g} at {table.line(row)}. "
            "Drop the edge or use its absolute value."
        )
    return weight


def _check_columns(table: Table) -> None:
    from nefele.graphs.convert import columns_message

    found = table.columns
    if {"source", "target"} <= set(found):
        return  # other columns than the weight are of no concern
    text = columns_message(found, list(_NAMES), list(_NAMES[:2]))
    raise ValueError(f"{table.name}: {text}")


def edge_graph(
    path: Path, ids: NDArray[Any], allow_isolates: bool, drop_missing: bool = False
) -> tuple[Graph, list[str]]:
    """The graph of an edge file, for rows with these ids, and what was noticed."""
    edges, notes = read_edges(path, drop_missing)
    ends = as_ids(edges["source"]), as_ids(edges["target"])
    known, given = distinct(*ends), distinct(ids)
    lost = given[IdIndex(known).positions(given) < 0]
    idle = known[IdIndex(given).positions(known) < 0]
    if len(lost) and not allow_isolates:
        raise ValueError(mismatch(path.name, given, known, lost, idle))
    if len(lost):
        notes.append(
            f"{len(lost)} of {len(given)} nodes have no edge in {path.name} and are fitted by "
            f"their own rows alone: {describe(lost)}."
        )
    if len(idle):
        notes.append(idle_note(path.name, known, idle))
    nodes = distinct(known, given)
    index = IdIndex(nodes)
    head, tail = (index.positions(end) for end in ends)
    return Graph(nodes, head, tail, edges["weight"].to_numpy()), notes


def idle_note(name: str, known: NDArray[Any], idle: NDArray[Any]) -> str:
    """What becomes of nodes of an edge file that have no rows."""
    return (
        f"{len(idle)} of {len(known)} nodes of {name} have no rows and get their model from the "
        f"nodes that they are coupled to: {describe(idle)}."
    )


def mismatch(
    name: str, given: NDArray[Any], known: NDArray[Any], lost: NDArray[Any], idle: NDArray[Any]
) -> str:
    """Error text for ids of the data that the edges lack, counted on both sides."""
    text = (
        f"Every node of the data must be in {name}; {len(lost)} of {len(given)} are not: "
        f"{describe(lost)}. On the other side, {len(idle)} of {len(known)} ids of {name} have no "
        f"rows{': ' + describe(idle) if len(idle) else ''}."
    )
    alike = _looks_alike(lost, idle)
    if alike:
        return f"{text} Ids match as text, and {alike}: write them alike."
    return f"{text} Add edges, drop these rows, or use --allow-isolates to fit them alone."


def plain_id(key: Any) -> str:
    """An id without capitals and leading zeros: what two spellings of one id have in common.

    Examples
    --------
    >>> plain_id("007") == plain_id("7"), plain_id("Oulu") == plain_id("OULU")
    (True, True)
    """
    return str(key).strip().lower().removesuffix(".0").lstrip("0") or "0"


def _looks_alike(lost: NDArray[Any], idle: NDArray[Any]) -> str:
    """A pair that differs only by zeros or capitals."""
    seen = {plain_id(key): str(key) for key in idle.tolist()}
    for key in lost.tolist():
        if plain_id(key) in seen:
            return f"{key!r} is not {seen[plain_id(key)]!r}"
    return ""


def write_edges(graph: Graph, out: Path) -> None:
    """Write an edge file (source, target, weight), as a whole or not at all."""
    import polars as pl

    ids = graph.ids.astype(str)
    ends = {"source": ids[graph.head], "target": ids[graph.tail]}
    table = pl.DataFrame(
        {
            **{name: pl.Series(end.tolist(), dtype=pl.String) for name, end in ends.items()},
            "weight": np.array(graph.weight),
        }
    )
    packed = out.suffix.lower() in (".parquet", ".pq")
    fill = table.write_parquet if packed else partial(write_csv, table)
    RunFolder(out.parent).write(out.name, fill)
