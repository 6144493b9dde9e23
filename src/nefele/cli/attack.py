"""`nefele attack`: what captured nodes could do to the others, and which defence holds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from nefele.cli import _options as options
from nefele.cli._common import Json, Quiet, input_errors, print_json, progress_for, say, teller
from nefele.cli._options import Flag, as_config, split_names

_WIDEST = 6  # of a number: nothing of it may be cut off


def attack(
    data: options.Data,
    node: options.Node,
    target: options.Target,
    features: options.Features = None,
    graph: Annotated[
        str | None, Flag(help="Edge file (source, target, perhaps weight), or learn.")
    ] = None,
    coords: options.Coords = None,
    captured: Annotated[
        str | None,
        Flag(metavar="IDS", help="Captured nodes, comma between them.", show_default="--worst"),
    ] = None,
    worst: Annotated[
        int | None,
        Flag(help="Capture so many nodes, those that would allow most.", show_default="1"),
    ] = None,
    attacks: Annotated[
        str | None, Flag(metavar="NAMES", help="Comma between them.", show_default="all")
    ] = None,
    defences: Annotated[
        str | None,
        Flag(
            metavar="NAMES",
            help="Of none (quadratic), l2, huber, clip, trimmed mean, median, geometric median, "
            "krum, centred clipping, fltrust, and for numbers huber loss and absolute loss; comma "
            "between them.",
            show_default="none, l2, huber, clip, median and the losses",
        ),
    ] = None,
    k: Annotated[int, Flag("--k", help="Neighbours of each node in a graph that is made.")] = 5,
    alpha: Annotated[
        float | None, Flag(help="Strength of the coupling.", show_default="by cross-validation")
    ] = None,
    task: options.Task = "regression",
    weighting: options.Weighting = "rows",
    seed: Annotated[int, Flag(help="For held-out rows, folds and attacks.")] = 0,
    folds: options.Folds = 5,
    n_alphas: Annotated[int, Flag(help="Strengths of the coupling tried.")] = 10,
    standardize: options.Standardize = True,
    l2: options.Ridge = None,
    drop_missing: options.DropMissing = False,
    allow_isolates: Annotated[
        bool, Flag("--allow-isolates", help="Let nodes have no edge in the file of --graph.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Attack the network of a data file, and say which defence holds.

    Exit code 0 when some defence held against all attacks, 1 when none did, 2 for bad input.
    """
    given = locals()
    from nefele.runs.attack_scene import attack_file

    with input_errors():
        if captured is not None and worst is not None:
            raise ValueError(
                "--captured and --worst must not go together: one names the captured nodes, the "
                "other has them chosen. Leave one out."
            )
        given["alpha"] = "auto" if alpha is None else alpha
        config = as_config(given, penalty="l2", out=None)
        facts = attack_file(
            config,
            split_names(captured, "--captured"),
            1 if worst is None else worst,
            split_names(attacks, "--attacks"),
            split_names(defences, "--defences"),
            progress_for(quiet or json),
            teller(quiet),
        )
    if json:
        print_json(facts)
    else:
        _show(facts, quiet)
    if not facts["holds"]:
        raise typer.Exit(1)


def _show(facts: dict[str, Any], quiet: bool) -> None:
    if not quiet:
        say(
            f"{facts['rows']} rows of {facts['nodes']} nodes with {facts['edges']} edges; errors "
            f"at {facts['held_out_rows']} held-out rows."
        )
        say(f"Captured ({facts['captured_by']}): {', '.join(facts['captured'])}.")
    _print_table(facts)
    for line in _sentences(facts) if not quiet else ():
        say(line)
    holds = ", ".join(facts["holds"])
    say(f"Held against all attacks: {holds}." if holds else "No defence held against all attacks.")


def _print_table(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    shields = list(dict.fromkeys(row["defence"] for row in facts["table"]))
    table = Table(title=f"Error of honest nodes ({facts['metric']}); * the attack succeeded")
    table.add_column("attack", no_wrap=True)
    for name in shields:
        table.add_column(name, justify="right", overflow="fold", min_width=_WIDEST)
    for attack in dict.fromkeys(row["attack"] for row in facts["table"]):
        rows = {row["defence"]: row for row in facts["table"] if row["attack"] == attack}
        table.add_row(attack, *(_cell(rows[name]) for name in shields))
    Console(highlight=False).print(table)


def _cell(row: dict[str, Any]) -> str:
    return _short(row["error"]) + ("*" if row["success"] > 0.5 else "")


def _short(error: float | None) -> str:
    """Three digits, or as many as leave room for the mark.

    Examples
    --------
    >>> [_short(error) for error in (2.4567, 0.01234, 0.0001234, 1234.5, 4.754e8, None)]
    ['2.46', '0.0123', '1e-04', '1234', '5e+08', '-']
    """
    if error is None:
        return "-"
    forms = [f"{error:.3g}", f"{error:.0f}" if error >= 1 else f"{error:.2g}", f"{error:.0e}"]
    return next((form for form in forms if len(form) <= _WIDEST), forms[-1])


def _sentences(facts: dict[str, Any]) -> list[str]:
    bound = facts["bound"]
    lines = [
        f"Under l2 the captured nodes can move all others together by {bound['total']:.4g} at "
        f"most. {bound['reason']}"
        if bound["total"] is not None
        else f"Under l2 no bound is proven. {bound['reason']}"
    ]
    used = [row["over_bound"] for row in facts["table"] if row["over_bound"] is not None]
    if used:
        lines.append(f"Of what is allowed the attacks used {max(used):.1%} at most.")
    if facts["suspects"]:
        lines.append(f"Suspicious before any attack: {', '.join(facts['suspects'])}.")
    lines.append(
        "An attack succeeds when the error more than doubles; a backdoor, when it wins more than "
        "half of the stamped rows."
    )
    return [*lines, *(f"Note: {note}" for note in facts["notes"])]
