"""`nefele check`: what is in the files, and what would make a fit fail."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nefele.cli._common import Json, Quiet, input_errors, print_json, say
from nefele.cli._options import Data, Node


def check(
    data: Data,
    node: Node,
    target: Annotated[str | None, typer.Option(help="Column to predict.")] = None,
    graph: Annotated[
        Path | None, typer.Option(help="Edge file (source, target, perhaps weight).")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Look at the data before a fit: rows per node, missing values, ids that do not match.

    Exit code 2 when a fit would fail, 0 otherwise, with or without warnings.
    """
    from nefele.runs.checks import examine

    with input_errors():
        found = examine(data, node, target, graph)
    if json:
        print_json({**found.facts, "warnings": found.warnings, "errors": found.errors})
    else:
        for line in _lines(found.facts) if not quiet else ():
            say(line)
        for text in found.warnings:
            say(f"Warning: {text}")
    for text in found.errors:
        say(f"Error: {text}", err=True)
    if found.errors:
        raise typer.Exit(2)
    if not json and not quiet:
        say("A fit can be made of this.")


def _lines(facts: dict[str, Any]) -> list[str]:
    rows = facts.get("rows_per_node", {"least": 0, "median": 0, "most": 0})
    lines = [
        f"{facts['file']}: {facts['rows']} rows, {len(facts['columns'])} columns",
        f"nodes: {facts.get('nodes', 0)}, rows per node {rows['least']} to {rows['most']}, median "
        f"{rows['median']:g}",
        f"features: {', '.join(facts['features']) or 'none'}",
    ]
    lines += [f"  {name}: {how}" for name, how in facts["how"].items() if how != "numbers"]
    missing = ", ".join(f"{name} {n}" for name, n in facts["missing"].items())
    lines.append(f"missing values: {missing or 'none'}; copied rows: {facts['duplicate_rows']}")
    if "graph" in facts:
        graph = facts["graph"]
        lines.append(
            f"{graph['file']}: {graph['nodes']} nodes, {graph['edges']} edges, "
            f"{graph['components']} connected part(s), {len(graph['isolates'])} node(s) without "
            f"an edge; {len(graph['only_in_data'])} id(s) only in the data, "
            f"{len(graph['only_in_graph'])} only in the graph"
        )
    return lines
