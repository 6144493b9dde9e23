"""`nefele demo`: something to look at first, from data that comes with nefele."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nefele.cli._common import Json, Quiet, input_errors

DEMOS = ("states", "sbm", "chain", "star")


def demo(
    name: Annotated[
        str, typer.Argument(metavar="[states|sbm|chain|star]", help="Which one.")
    ] = "states",
    out: Annotated[
        Path | None, typer.Option(help="Folder of the run.", show_default="nefele-demo-NAME")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Show the report in the browser.")] = False,
    json: Json = False,
    quiet: Quiet = False,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="states: number of splits into train and test years.")
    ] = 5,
    lam: Annotated[float, typer.Option(help="states: strength of the coupling, > 0.")] = 1e-3,
    tol: Annotated[float, typer.Option(help="states: relative duality gap to reach, > 0.")] = 1e-6,
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

    states: 48 US states coupled over their borders. sbm, chain, star: small generated networks.
    """
    from nefele._checks import check_name
    from nefele.cli.demo import DemoOptions, run_command, run_generated
    from nefele.runs.folder import check_writable

    with input_errors():
        check_name(name, DEMOS, "demo")
        options = DemoOptions.checked(penalty or ["l2", "l1", "squared"], seeds, lam, tol)
        folder = (out or Path(f"nefele-demo-{name}")).resolve()
        check_writable(folder)
        if name == "states":
            code = run_command(options, as_json=json, quiet=quiet, out=folder)
        else:
            code = run_generated(name, as_json=json, quiet=quiet, out=folder)
    if open_:
        typer.launch(str(folder / "report.html"))
    raise typer.Exit(code)
