"""`nefele demo`: something to look at first, from data that comes with nefele."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from nefele.cli._common import Json, Quiet, input_errors

DEMOS = ("incomes", "states", "sbm", "chain", "star")
_SPLITS = ("incomes", "states")  # demos that compare methods over several splits


def demo(
    name: Annotated[
        str, typer.Argument(metavar="[incomes|states|sbm|chain|star]", help="Which one.")
    ] = "incomes",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run.", show_default="nefele-demo-NAME")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show the report in the browser.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace another demo in the folder.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="incomes, states: number of splits into train and test years.",
            show_default="5",
        ),
    ] = None,
    lam: Annotated[
        float | None,
        typer.Option(help="states: strength of the coupling, > 0.", show_default="0.001"),
    ] = None,
    tol: Annotated[
        float | None,
        typer.Option(help="states: relative duality gap to reach, > 0.", show_default="1e-06"),
    ] = None,
    penalty: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="states: l2, l1 or squared (norm squared, not halved); may be repeated. The "
            "first one also gets the control with shuffled borders.",
            show_default="l2 l1 squared",
        ),
    ] = None,
) -> None:
    """Compare own data only, one model, and coupled models, on data that comes with nefele.

    incomes: 48 US states over 81 years, beside a mixed model; their borders matter. states: what
    the states produce, with fixed penalties. sbm, chain, star: small generated networks.
    """
    from nefele._checks import check_name
    from nefele.cli.demo import DemoFolder, DemoOptions, run_command, run_generated, run_incomes
    from nefele.runs.folder import check_writable
    from nefele.runs.names import check_file_name

    with input_errors():
        check_name(name, DEMOS, "demo")
        given = {"--seeds": seeds, "--lam": lam, "--tol": tol, "--penalty": penalty}
        _check_options(name, [key for key, value in given.items() if value is not None])
        options = DemoOptions.checked(
            penalty or ["l2", "l1", "squared"],
            5 if seeds is None else seeds,
            1e-3 if lam is None else lam,
            1e-6 if tol is None else tol,
        )
        folder = (out or Path(f"nefele-demo-{name}")).resolve()
        check_file_name(folder)
        check_writable(folder)
        place = DemoFolder(folder, shlex.join(["nefele", *sys.argv[1:]]), force)
        if name == "incomes":
            code = run_incomes(options.seeds, as_json=json, quiet=quiet, place=place)
        elif name == "states":
            code = run_command(options, as_json=json, quiet=quiet, place=place)
        else:
            code = run_generated(name, as_json=json, quiet=quiet, place=place)
    if open_:
        typer.launch(str(folder / "report.html"))
    raise typer.Exit(code)


def _check_options(name: str, given: list[str]) -> None:
    """The generated networks take no options of a comparison, the incomes only the splits."""
    for option in given:
        demos = _SPLITS if option == "--seeds" else ("states",)
        if name not in demos:
            raise ValueError(
                f"{option} is an option of nefele demo {' and '.join(demos)} only; got it with "
                f"{name!r}. Leave it out."
            )
