"""`nefele explain`: why the model of a node says what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nefele.cli._common import Json, Quiet, RunArgument, input_errors, print_json, say

if TYPE_CHECKING:
    from nefele.runs.config import RunConfig


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
        _print_model(found, without, left)
        _print_sources(found, count, folder.read_config())
        if one is not None:
            _print_prediction(one, without, alone)
        _print_trust(found)
        if picture is not None and not quiet:
            say(f"Picture: {picture}")
    if not facts["converged"]:
        say("Not trustworthy: the final fit did not reach its tolerance.", err=True)
        raise typer.Exit(1)


def _print_model(found: Any, without: str | None, left: Any) -> None:
    lines = [(name, f"{value:.4g}") for name, value in zip(found.names, found.total, strict=True)]
    title = f"The model of {found.node}"
    if left is not None:
        lines = [
            (name, f"{old:>10}  {new:>10.4g}") for (name, old), new in zip(lines, left, strict=True)
        ]
        title += f", and what it would be without {without}"
    _table(title, lines, gap=False)


def _print_sources(found: Any, count: int, config: RunConfig) -> None:
    """Whose rows the model comes from, what acts on it directly, and what moves it most."""
    order = (-found.share).argsort(kind="stable")[:count]
    named = [(_itself(found, found.nodes[k]), f"{found.share[k]:.1%}") for k in order]
    others = int((found.share != 0).sum() - (found.share[order] != 0).sum())  # with rows
    if others:
        rest = 1.0 - found.ridge_share - found.share[order].sum()
        named.append((f"{others} others", f"{rest:.1%}"))
    if abs(found.ridge_share) >= 5e-4:
        named.append(("no rows: ridge terms, which draw to zero", f"{found.ridge_share:.1%}"))
    _table("Whose rows it comes from, over however many neighbours", named)
    _table("The same by groups of nodes that share one model", _groups(found, count))
    if found.own_share == found.own_share:  # not a number where parameters are held one by one
        same = len(found.members)
        own = "own rows" if same == 1 else f"rows of the {same} nodes with this model"
        near = zip(map(str, found.neighbours.tolist()), found.neighbour_share, strict=True)
        direct = [(own, found.own_share), *near][: count + 1]
        shares = [(name, f"{share:.1%}") for name, share in direct]
        _table("What acts on it directly: own rows, and neighbours' models as they are", shares)
    number = config.task == "regression"
    unit = f"in units of {config.target}" if number else "in units of scores"
    rows = _rows(found.row_frame(count), config.target)
    _table(f"Rows that move its predictions most, {unit}", rows)
    edges = found.edge_frame(count)
    ends = zip(edges["source"], edges["target"], edges["size"], strict=True)
    lines = [(f"{a} - {b}", f"{far:.4g}") for a, b, far in ends]
    _table("Edges without which its predictions would move most, in the same units", lines)


def _print_trust(found: Any) -> None:
    far = abs(found.remainder).max()
    say("")
    say(f"How far this holds. {found.how} The fitted model is within {far:.2g} of the optimum.")


def _itself(found: Any, node: Any) -> str:
    return f"{node} (itself)" if node == found.node else str(node)


def _groups(found: Any, count: int) -> list[tuple[str, str]]:
    """Shares of clusters, unless every node is one by itself."""
    from nefele.runs.explaining import groups_of

    groups = groups_of(found)
    if all(len(one["nodes"]) == 1 for one in groups):
        return []
    return [(_some(one["nodes"]), f"{one['share']:.1%}") for one in groups[:count]]


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (f", ... ({len(names)} nodes)" if len(names) > 4 else "")


def _rows(table: Any, target: str) -> list[tuple[str, str]]:
    columns = zip(table["row"], table["node"], table["target"], table["size"], strict=True)
    return [
        (f"row {row + 1} of {node}, {target} = {_value(y)}", f"{far:.4g}")
        for row, node, y, far in columns
    ]


def _value(y: Any) -> str:
    return y if isinstance(y, str) else f"{y:.4g}"


def _print_prediction(one: Any, without: str | None, alone: float | None) -> None:
    what = "The prediction" if one.label is None else f"The score of {one.label!r}"
    table = one.frame()
    columns = zip(table["feature"], table["value"], table["adds"], table["curve"], strict=True)
    lines = [("at the mean of the own rows", f"{one.base:.6g}")]
    lines += [(f"{name} = {x:.4g} adds", f"{adds + curve:.4g}") for name, x, adds, curve in columns]
    lines.append(("together", f"{one.value:.6g}"))
    if alone is not None:
        lines.append((f"without {without} it would be", f"{alone:.6g}"))
    _table(what, lines)
    near = one.similar()
    found = zip(near["row"], near["target"], near["distance"], strict=True)
    said = [(f"row {row + 1}, {_value(y)}", f"{far:.4g}") for row, y, far in found]
    _table("Own rows most like it, and how far from it", said)


def _table(title: str, lines: list[tuple[str, str]], gap: bool = True) -> None:
    """A heading, underlined, and lines of a name and a value; nothing without lines."""
    if not lines:
        return
    if gap:
        say("")
    say(title)
    say("-" * min(len(title), 72))
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        say(f"  {name:<{width}}  {value}")


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
