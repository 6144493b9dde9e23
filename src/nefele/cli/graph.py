"""`nefele graph`: compare graphs that the data allow for, and write the best as an edge file."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from nefele.cli import _options as options
from nefele.cli._common import (
    Json,
    Quiet,
    check_file,
    input_errors,
    print_json,
    progress_for,
    say,
    teller,
)
from nefele.cli._options import Flag, as_config, file_stem, split_names

if TYPE_CHECKING:
    from nefele.runs.config import RunConfig
    from nefele.runs.graphs import Compared

_EDGE_FILES = (".csv", ".parquet", ".pq")
_PICTURES = (".svg", ".png")
_CLIQUE = "one clique"
_SAME = 1e-6  # relative difference of errors that is none


def graph(
    data: options.Data,
    node: options.Node,
    target: options.Target,
    features: options.Features = None,
    graph: Annotated[
        str | None, Flag(help="Edge file (source, target, perhaps weight) to judge as well.")
    ] = None,
    coords: options.Coords = None,
    places: options.Places = None,
    try_: Annotated[
        str | None,
        Flag(
            "--try",
            metavar="NAMES",
            help="Graphs to judge, comma between them: nearest, delaunay (both need --coords), "
            "moments, wasserstein, losses, labels (of classes), covariances, gradients, pooling. "
            "--graph adds given.",
            show_default="all that can be made, but the last three",
        ),
    ] = None,
    k: Annotated[int, Flag("--k", help="Neighbours of each node.")] = 5,
    penalty: options.PenaltyName = "l2",
    time: Annotated[
        str | None, Flag(help="Column with the time: later rows are predicted from earlier ones.")
    ] = None,
    task: options.Task = "regression",
    weighting: options.Weighting = "rows",
    seed: Annotated[int, Flag(help="For the folds and the shuffled copies.")] = 0,
    folds: options.Folds = 5,
    n_alphas: Annotated[int, Flag(help="Strengths of the coupling tried with each graph.")] = 8,
    standardize: options.Standardize = True,
    l2: options.Ridge = None,
    tol: options.Tol = 1e-3,
    drop_missing: options.DropMissing = False,
    allow_isolates: Annotated[
        bool, Flag("--allow-isolates", help="Let nodes have no edge in the file of --graph.")
    ] = False,
    keep: Annotated[
        str | None,
        Flag(metavar="NAME", help="Write this graph, whether it helps or not."),
    ] = None,
    out: Annotated[
        Path | None,
        Flag(help="Edge file to write, CSV or Parquet.", show_default="nefele-graph-DATA.csv"),
    ] = None,
    picture: Annotated[
        Path | None, Flag(help="Draw the comparison: an SVG or PNG file; needs matplotlib.")
    ] = None,
    force: Annotated[bool, Flag("--force", help="Replace files that are there.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare graphs by what they are worth at held-out rows, and write the best as an edge file.

    Each graph is judged against no edges, against one clique, and against its own shuffled
    copies. When none helps, none is written.
    """
    given = locals()
    from nefele.runs.graphs import choose_kinds, compare_graphs

    with input_errors():
        config = as_config(given, out=None)
        wanted = None if try_ is None else split_names(try_, "--try")
        choose_kinds(config, wanted, keep)
        out = out or Path(f"nefele-graph-{file_stem(data)}.csv")
        _check_places(out, picture, (data, *([Path(graph)] if graph else [])), force)
        found = compare_graphs(config, wanted, keep, progress_for(quiet or json), teller(quiet))
        if picture is not None:
            _draw(found, picture)
        facts = {**found.facts, "picture": picture and str(picture)}
        facts |= _write(config, found, keep, out)
    _show(facts, out, as_json=json, quiet=quiet)


def _check_places(out: Path, picture: Path | None, inputs: tuple[Path, ...], force: bool) -> None:
    """A ValueError before any work when a file cannot be written or must not be replaced."""
    from nefele.runs.folder import check_writable

    places: dict[str, tuple[Path, tuple[str, ...]]] = {"--out": (out, _EDGE_FILES)}
    if picture is not None:
        from importlib.util import find_spec

        if find_spec("matplotlib") is None:
            raise ValueError('--picture needs matplotlib. Use pip install "nefele[plot]".')
        places["--picture"] = (picture, _PICTURES)
    for option, (path, suffixes) in places.items():
        try:
            check_file(path, suffixes)
            check_writable(path.parent)
        except ValueError as error:
            raise ValueError(str(error).replace("--out", option)) from None
        if path.resolve() in [file.resolve() for file in inputs]:
            raise ValueError(
                f"{option} must be another file than the data and the edges that are read; got "
                f"{str(path)!r}. Name another one."
            )
        if path.exists() and not force:
            raise ValueError(
                f"{str(path)!r} is there already. Name another file by {option}, or use --force to "
                "replace it."
            )


def _draw(found: Compared, picture: Path) -> None:
    from matplotlib.figure import Figure

    from nefele.runs.folder import RunFolder

    figure = Figure(figsize=(7.0, 1.5 + 0.4 * len(found.facts["graphs"])), layout="constrained")
    found.selector.plot(ax=figure.subplots())
    kind = picture.suffix.lower().lstrip(".")
    RunFolder(picture.parent).write(
        picture.name, lambda part: figure.savefig(part, format=kind, dpi=150)
    )


def _write(config: RunConfig, found: Compared, keep: str | None, out: Path) -> dict[str, Any]:
    """Write the graph that was asked for or that helps most; what was written, and what is next."""
    from nefele.runs.config import LEARN, LEARNT
    from nefele.runs.edges import write_edges

    name = keep or found.facts["best"]
    if name is None:
        return {"written": None, "next": None}
    graph = found.graph_of(name)
    if not graph.n_edges:
        raise ValueError(f'The graph "{name}" must have an edge to be written; it has none.')
    write_edges(graph, out)
    isolates = name not in LEARNT and bool((graph.degree == 0).any())
    written = {"graph": name, "file": str(out), "nodes": graph.n_nodes, "edges": graph.n_edges}
    written["learnt"] = name in LEARNT
    source = f"{LEARN}:{name}" if name in LEARNT else str(out)
    return {"written": written, "next": _next(config, source, isolates)}


def _next(config: RunConfig, graph: str, isolates: bool) -> str:
    """The `nefele fit` with the same options; over a graph that helps it chooses the coupling."""
    words = ["nefele", "fit", config.data, "--node", config.node, "--target", config.target]
    lists = {"--features": config.features, "--coords": config.coords}
    for option, names in lists.items():
        words += [] if names is None else [option, ",".join(names)]
    usual = {
        "places": None,
        "penalty": "l2",
        "time": None,
        "task": "regression",
        "weighting": "rows",
        "l2": None,
    }
    for name, default in {**usual, "k": 5}.items():
        value = getattr(config, name)
        words += [] if value == default else [f"--{name}", str(value)]
    words += [] if config.standardize else ["--no-standardize"]
    words += ["--drop-missing"] if config.drop_missing else []
    words += ["--allow-isolates"] if isolates else []
    return shlex.join([*words, "--graph", graph])


def _show(facts: dict[str, Any], out: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        print_json(facts)
        return
    if not quiet:
        way = f"forward in {facts['time']}, " if facts["time"] else ""
        say(
            f"{facts['rows']} rows of {facts['nodes']} nodes, held out within the nodes, {way}in "
            f"{facts['folds']} folds; each graph is learnt without the held-out rows."
        )
    _print_table(facts)
    written = facts["written"]
    for line in [facts["verdict"], *_wrote(written)] if quiet else _sentences(facts, out):
        say(line)


def _print_table(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Error over all held-out rows ({facts['metric']})")
    table.add_column("graph", no_wrap=True)
    for name in ("edges", "error", "gain", "over shuffled", "helps"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in facts["graphs"]:
        gain = _with_error(row["gain"], row["gain_se"])
        if row["graph"] == facts["reference"]:
            gain = "-"
        table.add_row(
            row["graph"],
            str(row["edges"]),
            f"{row['error']:.5g}",
            gain,
            _with_error(row["over_shuffled"], row["over_shuffled_se"]),
            "-" if row["reference"] else "yes" if row["helps"] else "no",
        )
    Console(highlight=False).print(table)


def _with_error(value: float | None, error: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2g}" if error is None else f"{value:.2g} ± {error:.1g}"


def _sentences(facts: dict[str, Any], out: Path) -> Iterator[str]:
    """What the table means, what was left out, what was written, what to do next."""
    tried = sum(not row["reference"] for row in facts["graphs"])
    yield (
        f'Gain: over "{facts["reference"]}", the better reference, ± its standard error (of '
        "those over the nodes and over the folds the larger one)."
    )
    yield facts["coupling"]
    yield facts["verdict"]
    for why in dict.fromkeys(facts["left_out"].values()):
        names = [name for name, text in facts["left_out"].items() if text == why]
        yield f"Left out: {', '.join(names)}: {why}"
    for note in facts["notes"]:
        yield f"Note: {note}"
    if facts["rows_not_judged"]:
        lost = f"{facts['rows_not_judged']} held-out rows are not judged"
        yield f"Note: {lost}: their node has no other rows in the fold."
    if facts["picture"]:
        yield f"Picture: {facts['picture']}"
    written = facts["written"]
    if written is None:
        yield from _nothing_written(facts, out)
        return
    yield from _wrote(written)
    if written["learnt"]:
        yield (
            "Note: these edges have seen all rows, also those that a later fit holds out; its "
            "errors would look better than they are. The command below learns the same graph "
            "without the held-out rows, as the table above did"
            + (f" (but for being the best of {tried} graphs)." if tried > 1 else ".")
        )
    yield f"Next: {facts['next']}"


def _wrote(written: dict[str, Any] | None) -> Iterator[str]:
    if written is not None:
        learnt = ", learnt from all rows," if written["learnt"] else ""
        edges = f'{written["edges"]} edge{"s" * (written["edges"] != 1)} of "{written["graph"]}"'
        yield f"Wrote {edges}{learnt} to {written['file']}."


def _nothing_written(facts: dict[str, Any], out: Path) -> Iterator[str]:
    rows = {row["graph"]: row["error"] for row in facts["graphs"]}
    best = next(row["graph"] for row in facts["graphs"] if not row["reference"])
    left = f" {out}, which was there before, is left as it was." if out.exists() else ""
    yield f"No edges were written.{left} --keep {best} writes that graph anyway."
    if facts["reference"] == _CLIQUE and rows[_CLIQUE] < (1 - _SAME) * rows[best]:
        yield (
            "Joining everyone to everyone does better than any of these graphs: that is what "
            f'--keep "{_CLIQUE}" writes.'
        )
