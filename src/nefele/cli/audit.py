"""`nefele audit`: what a run gives away, or gave away."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nefele.cli._common import Json, Quiet, RunArgument, input_errors, print_json, say, teller

if TYPE_CHECKING:
    from nefele.runs.auditing import Audit


def audit(
    run: RunArgument,
    models: Annotated[
        int, typer.Option(help="Models that membership inference fits; more is sharper.", min=8)
    ] = 16,
    seed: Annotated[int, typer.Option(help="Of the halves and permutations.", min=0)] = 0,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder to write pictures into (needs matplotlib).")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a run sends, what can be worked out from it, and what its model tells of its rows.

    RUN is the folder of nefele fit, of a site, or of a site's run.
    """
    from nefele.runs.folder import RunFolder, check_writable
    from nefele.sites.auditing import audit_site, is_site

    with input_errors():
        if pictures is not None:
            check_writable(pictures)
            _check_drawing()
        if is_site(run):
            found = audit_site(run)
        else:
            from nefele.runs.auditing import audit_run

            found = audit_run(RunFolder(run), models=models, seed=seed, tell=teller(quiet))
        drawn = [] if pictures is None else _draw(found, pictures)
    if json:
        print_json({**found.facts, "pictures": drawn})
        return
    for what, line in found.lines:
        say(f"{what}: {line}")
    if drawn and not quiet:
        say(f"Pictures: {', '.join(drawn)}")


def _check_drawing() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError(
            'Pictures need matplotlib: pip install "nefele[plot]", or leave out --pictures.'
        ) from None


def _draw(found: Audit, folder: Path) -> list[str]:
    """Write the pictures, and return their files."""
    from matplotlib.figure import Figure

    from nefele.runs.folder import RunFolder

    home, files = RunFolder(folder), []
    for number, one in enumerate(found.pictures.values()):
        figure = Figure(figsize=(6.0, 4.0), layout="constrained")
        one.plot(figure.add_subplot())
        name = f"audit-{number + 1}.svg"
        home.write(name, partial(figure.savefig, format="svg"))
        files.append(str(folder / name))
    return files
