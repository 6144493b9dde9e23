"""`nefele explain`: why the model of a node says what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nefele.cli._common import Json, Quiet, RunArgument, input_errors, print_json, say


def explain(
    run: RunArgument,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Whose model.")],
    at: Annotated[
        str | None, typer.Option(help="A row to explain: feature=value,feature=value,...")
    ] = None,
    without: Annotated[
        str | None, typer.Option(help="Another node: what would be if it were not there.")
    ] = None,
    count: Annotated[int, typer.Option(help="Nodes, rows and edges to list.", min=1)] = 5,
    picture: Annotated[
        Path | None, typer.Option(help="Draw it into a .svg or .png file (needs matplotlib).")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """What a node's model is made of: own rows, neighbours, clusters, all other nodes.

    The data file must be there as the run read it. Ends with exit code 1 when the fit of the run
    did not reach its tolerance.
    """
    from nefele.runs.explaining import explain_run, one_row, plain, plain_prediction
    from nefele.runs.folder import RunFolder, check_not_ours
    from nefele.sites.trust import site_facts

    with input_errors():
        if picture is not None:
            _check_picture(picture)
            check_not_ours(run, picture, "--picture")
        if site_facts(run) is not None:
            raise ValueError(
                f"RUN must be a run of nefele fit; {str(run)!r} is one of a site, and the rows of "
                "its neighbours are elsewhere."
            )
        folder = RunFolder(run)
        found, facts = explain_run(folder, node)
        one = None
        if at is not None:
            one = found.prediction(one_row(found, at, folder.read_config().node, facts["features"]))
        left = None if without is None else found.without(without)
        told = one is not None and without is not None
        alone = one.without(without) if told and one is not None else None
        if picture is not None:
            _draw(found, one, picture)
    if json:
        more: dict[str, Any] = {"run": str(run), "trustworthy": facts["converged"]}
        if one is not None:
            more["prediction"] = plain_prediction(one) | {"without": alone}
        if left is not None:
            more["without"] = {"node": without, "model": left.tolist()}
        print_json({**plain(found, count), **more, "picture": picture and str(picture)})
    else:
        _print(found, count)
        if one is not None:
            _print_prediction(one, without, alone)
        if left is not None:
            _models(found.names, left, f"the model without {without}")
        if picture is not None and not quiet:
            say(f"Picture: {picture}")
    if not facts["converged"]:
        say("Not trustworthy: the final fit did not reach its tolerance.", err=True)
        raise typer.Exit(1)


def _print(found: Any, count: int) -> None:
    say(found.how)
    _models(found.names, found.total, f"the model of {found.node}")
    say(f"at most {abs(found.remainder).max():.2g} from the optimum, of which the rest tells")
    order = (-found.share).argsort(kind="stable")[:count]
    _table("share of the rows of", [(str(found.nodes[k]), found.share[k]) for k in order])
    count_of = len(found.members)
    own = "own rows" if count_of == 1 else f"rows of the {count_of} nodes with this model"
    near = [(own, found.own_share)]
    near += list(zip(map(str, found.neighbours.tolist()), found.neighbour_share, strict=True))
    if found.own_share == found.own_share:  # not a number where parameters are held one by one
        _table("direct share of", near[: count + 1])
    _table("share of the rows of each group with one model", _groups(found, count))
    _table("rows that matter most", _rows(found.row_frame(count)))
    edges = found.edge_frame(count)
    ends = zip(edges["source"], edges["target"], edges["size"], strict=True)
    _table("edges that matter most", [(f"{a} - {b}", size) for a, b, size in ends])


def _groups(found: Any, count: int) -> list[tuple[str, float]]:
    """Shares of clusters, unless every node is one by itself."""
    from nefele.runs.explaining import groups_of

    groups = groups_of(found)
    if all(len(one["nodes"]) == 1 for one in groups):
        return []
    return [(_some(one["nodes"]), one["share"]) for one in groups[:count]]


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f", ... ({len(names)} nodes)" if len(names) > 4 else "")


def _rows(table: Any) -> list[tuple[str, float]]:
    columns = zip(table["row"], table["node"], table["target"], table["size"], strict=True)
    return [(f"row {row + 1} of {node}, {_value(y)}", size) for row, node, y, size in columns]


def _value(y: Any) -> str:
    return y if isinstance(y, str) else f"{y:.4g}"


def _print_prediction(one: Any, without: str | None, alone: float | None) -> None:
    what = "prediction" if one.label is None else f"score of {one.label!r}"
    say(f"{what} {one.value:.6g}, of it {one.base:.6g} at the mean of the own rows")
    table = one.frame()
    columns = zip(table["feature"], table["value"], table["adds"], table["curve"], strict=True)
    _table("added by", [(f"{name} = {x:.4g}", adds + curve) for name, x, adds, curve in columns])
    if alone is not None:
        say(f"without {without} it would be {alone:.6g}")
    near = one.similar()
    lines = zip(near["row"], near["target"], near["distance"], strict=True)
    said = [(f"row {row + 1}, {_value(y)}", far) for row, y, far in lines]
    _table("own rows most like it, and how far from it", said)


def _models(names: list[str], values: Any, title: str) -> None:
    _table(title, list(zip(names, values, strict=True)))


def _table(title: str, lines: list[tuple[str, float]]) -> None:
    if not lines:
        return
    say(f"{title}:")
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        say(f"  {name:<{width}}  {value:.4g}")


def _check_picture(path: Path) -> None:
    from nefele.cli._common import check_file
    from nefele.runs.folder import check_writable

    check_file(path, (".svg", ".png"), "--picture")
    check_writable(path.parent)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError(
            'Pictures need matplotlib: pip install "nefele[plot]", or leave out --picture.'
        ) from None


def _draw(found: Any, one: Any, path: Path) -> None:
    """The shares, and what the features add to the prediction."""
    from functools import partial

    from matplotlib.figure import Figure

    from nefele.runs.folder import RunFolder

    figure = Figure(figsize=(10.0, 4.0 if one is None else 8.0), layout="constrained")
    axes = figure.subplots(1 if one is None else 2, 2, squeeze=False)
    found.plot(axes[0])
    if one is not None:
        axes[1, 1].remove()
        one.plot(axes[1, 0])
    file_type = path.suffix.lower().removeprefix(".")
    RunFolder(path.parent).write(path.name, partial(figure.savefig, format=file_type))
