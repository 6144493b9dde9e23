"""What is in a data file and an edge file, and what would make a fit fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._ids import IdIndex, as_ids, describe, distinct
from nefele.graph_learning.coordinates import is_coordinate
from nefele.runs.columns import Uses, used_column
from nefele.runs.config import check_features
from nefele.runs.edges import idle_note, mismatch, plain_id, read_edges
from nefele.runs.tables import Table

_FEW = 4  # rows below which a quarter of them is none


@dataclass
class Findings:
    """What was found: facts, warnings, and errors that would make a fit fail."""

    facts: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def examine(data: Path, node: str, target: str | None, graph: Path | None) -> Findings:
    """Look at the files of a fit; a wrong column name or an unreadable file is a ValueError."""
    table = Table.read(data)
    for name in (node, target):
        if name is not None:
            table.check_column(name)
    found = Findings()
    found.facts |= {"file": table.name, "rows": table.frame.height, "columns": table.columns}
    uses = _collected(table, (node, target), found)
    if target is not None:
        _check_target(table, target, found)
    ids = look(table, uses, node, target, found)
    if graph is not None:
        look_at_edges(graph, ids, found)
    return found


def look(
    table: Table,
    uses: Uses,
    node: str,
    target: str | None,
    found: Findings,
    task: str | None = None,
) -> NDArray[Any]:
    """What is noticed about the rows of a fit, known or not yet fitted; returns their ids."""
    _say_columns(table, uses, target, found, task)
    ids = _ids(table, node, len(uses.names), found)
    _fixed(table, node, uses, found)
    copies = table.frame.height - table.frame.n_unique()
    found.facts["duplicate_rows"] = copies
    if copies:
        found.warnings.append(f"{copies} rows are exact copies of earlier rows.")
    return ids


def _collected(table: Table, taken: tuple[str | None, ...], found: Findings) -> Uses:
    """The features of the table; what is wrong with a column is an error of the findings."""
    import polars as pl

    columns, left_out = {}, {}
    for name in table.columns:
        if name in taken:
            continue
        try:
            column = used_column(table, name)
        except ValueError as error:
            found.errors.append(str(error))
            continue
        if isinstance(column, str):
            left_out[name] = column
        else:
            columns[name] = column
    try:
        check_features(columns)
    except ValueError as error:
        found.errors.append(str(error))
    return Uses(pl.DataFrame(columns), left_out)


def _check_target(table: Table, target: str, found: Findings) -> None:
    numbers, odd = table.parsed(target)
    if odd.any() and not _is_text(table, target):
        found.errors.append(table.odd_message(target, odd))
    elif odd.any() and nearly_distinct(table.text(target)):
        found.errors.append(
            f'The target "{target}" is not numeric, and almost every row has a text of its own, so '
            "these are no classes either. Name another --target."
        )
    else:
        huge = table.huge_message(target, numbers.to_numpy())
        found.errors += [huge] if huge else []
    gone = _gaps(table, target)
    if gone:
        found.errors.append(
            f"Missing values in the target: {target} ({gone}). Use fit --drop-missing, or fill "
            "them in."
        )


def _say_columns(
    table: Table, uses: Uses, target: str | None, found: Findings, task: str | None
) -> None:
    """What is noticed about the columns, in words."""
    gaps = {name: int(uses.frame[name].null_count()) for name in uses.names}
    missing = {name: count for name, count in gaps.items() if count}
    constant = [name for name in uses.names if uses.frame[name].drop_nulls().n_unique() == 1]
    lost = {} if target is None else {target: _gaps(table, target)}
    found.facts |= {
        "features": list(uses.names),
        "how": {part.name: part.how() for part in uses.parts()},
        "left_out": uses.left_out,
        "missing": {**missing, **{name: count for name, count in lost.items() if count}},
        "not_numeric": [name for name in uses.names if not _is_numeric(uses.frame[name])],
        "constant": constant,
    }
    if missing:
        counts = ", ".join(f"{name} ({n})" for name, n in missing.items())
        found.warnings.append(
            f"Missing values: {counts}. A fit fills numbers in by their median, with a column that "
            "says where, and takes missing text for a level; --drop-missing leaves the rows out."
        )
    if target is not None and task != "classification" and _is_text(table, target):
        found.warnings.append(
            f'The target "{target}" is not numeric: use fit --task classification.'
        )
    if uses.left_out:
        named = ", ".join(
            f"{name or 'one without a name'} ({why})" for name, why in uses.left_out.items()
        )
        found.warnings.append(
            f"Columns that are no features: {named}. --features keeps those it names."
        )
    if constant:
        found.warnings.append(f"Columns with one value only: {', '.join(constant)}.")


def _gaps(table: Table, name: str) -> int:
    numbers, odd = table.parsed(name)
    return int((numbers.is_null() & ~odd).sum())


def _is_numeric(column: Any) -> bool:
    import polars as pl

    return bool(column.dtype.is_numeric() or column.dtype == pl.Boolean)


def _is_text(table: Table, name: str) -> bool:
    """Whether most values are no numbers, nor numbers with decimal commas: perhaps classes."""
    numbers, odd = table.parsed(name)
    n_odd, n_numbers = int(odd.sum()), len(numbers) - numbers.null_count()
    return n_odd > 0 and 2 * n_odd >= n_numbers + n_odd and not table.has_commas(name, odd)


def nearly_distinct(text: Any) -> bool:
    """Whether a column of text has almost as many different values as rows: no classes."""
    known = text.drop_nulls()
    return len(known) > 2 and known.n_unique() >= 0.9 * len(known)


def _ids(table: Table, node: str, n_features: int, found: Findings) -> NDArray[Any]:
    """The ids of the rows, and what is noticed about them."""
    column = table.labels(node)
    if column.null_count():
        row = int(column.is_null().arg_true()[0])
        found.errors.append(
            f'The node id is missing in {column.null_count()} row(s) of column "{node}", the first '
            f"at {table.line(row)}. Use fit --drop-missing, or fill it in."
        )
    ids = column.drop_nulls().to_numpy().astype(str)
    if not len(ids):
        return ids
    nodes, count = np.unique(ids, return_counts=True)
    short = count < max(_FEW, n_features + 1)
    few = nodes[short]
    found.facts |= {
        "nodes": len(nodes),
        "rows_per_node": {
            "least": int(count.min()),
            "median": float(np.median(count)),
            "most": int(count.max()),
        },
        "few_rows": dict(zip(few.tolist(), count[short].tolist(), strict=True)),
    }
    if len(few):
        named = ", ".join(f"{n!r} ({c})" for n, c in list(found.facts["few_rows"].items())[:10])
        more = f", ... ({len(few)} in all)" if len(few) > 10 else ""
        found.warnings.append(
            f"{len(few)} of {len(nodes)} nodes have fewer rows than parameters or than {_FEW}; "
            f"alone they have no useful model: {named}{more}."
        )
    if count.max() < 2:
        found.errors.append("Every node has a single row: nothing can be held out.")
    _alike(nodes, found)
    return ids


def _fixed(table: Table, node: str, uses: Uses, found: Findings) -> None:
    """Features that never change inside a node: no node can learn from them alone."""
    import polars as pl

    if not uses.names or found.facts.get("rows_per_node", {"most": 0})["most"] < 2:
        return
    # by number: polars has patterns for names, and none for an empty one
    columns = {f"{at}": uses.frame[name] for at, name in enumerate(uses.names)}
    frame = pl.DataFrame({"node": table.frame[node], **columns})
    spread = frame.group_by("node").agg(pl.all().drop_nulls().n_unique())
    most = spread.select(pl.col(list(columns)).max()).row(0)
    constant = set(found.facts["constant"])
    pairs = zip(uses.names, most, strict=True)
    fixed = [name for name, count in pairs if count == 1 and name not in constant]
    found.facts["constant_at_each_node"] = fixed
    places = [name for name in fixed if is_coordinate(name)]
    if places:
        found.warnings.append(
            f"Coordinates are used as features: {', '.join(places)}. Name them by fit --coords to "
            "join near nodes, or leave them out by --features."
        )
    rest = [name for name in fixed if name not in places]
    if rest:
        found.warnings.append(
            f"Columns with one value at each node: {', '.join(rest)}. They are features of the "
            "nodes, which no node can learn from its own rows. If they are coordinates, name them "
            "by fit --coords; --features leaves them out."
        )


def _alike(nodes: NDArray[Any], found: Findings) -> None:
    """Ids that look like one id written in two ways."""
    seen: dict[str, str] = {}
    pairs = []
    for key in nodes.tolist():
        first = seen.setdefault(plain_id(key), key)
        if first != key:
            pairs.append((first, key))
    found.facts["similar_ids"] = pairs
    if pairs:
        some = ", ".join(f"{a!r} and {b!r}" for a, b in pairs[:5])
        found.warnings.append(
            f"{len(pairs)} pairs of ids differ only in capitals or zeros and count as different "
            f"nodes: {some}."
        )


def look_at_edges(
    path: Path, ids: NDArray[Any], found: Findings, drop_missing: bool = False
) -> None:
    """The graph: ids on both sides, nodes without an edge, connected parts."""
    from nefele.graph import Graph

    edges, notes = read_edges(path, drop_missing)
    found.warnings += notes
    ends = as_ids(edges["source"]), as_ids(edges["target"])
    known, given = distinct(*ends), distinct(ids)
    lost = given[IdIndex(known).positions(given) < 0]
    idle = known[IdIndex(given).positions(known) < 0] if len(given) else known
    nodes = distinct(known, given)
    head, tail = (IdIndex(nodes).positions(end) for end in ends)
    graph = Graph(nodes, head, tail, edges["weight"].to_numpy())
    parts = np.bincount(graph.components)
    alone = graph.ids[graph.degree == 0]
    found.facts["graph"] = {
        "file": path.name,
        "nodes": len(known),
        "edges": graph.n_edges,
        "components": int((parts > 1).sum()),
        "isolates": alone.tolist(),
        "only_in_data": lost.tolist(),
        "only_in_graph": idle.tolist(),
    }
    if len(lost):
        found.errors.append(mismatch(path.name, given, known, lost, idle))
    elif len(idle):
        found.warnings.append(idle_note(path.name, known, idle))
    elif len(alone):  # only edges of weight zero
        found.warnings.append(f"{len(alone)} nodes have no edge: {describe(alone)}.")
    if (parts > 1).sum() > 1:
        sizes = ", ".join(map(str, sorted(parts[parts > 1].tolist(), reverse=True)[:5]))
        found.warnings.append(
            f"The graph has {int((parts > 1).sum())} separate parts (nodes: {sizes}); nothing is "
            "shared between them."
        )
