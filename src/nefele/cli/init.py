"""`nefele init`: a commented configuration to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nefele.cli._common import Json, Quiet, input_errors, print_json, say


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path(
        "nefele.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a commented configuration for nefele run."""
    from nefele.runs.config import template
    from nefele.runs.folder import RunFolder, check_writable

    with input_errors():
        if file.exists() and not force:
            raise ValueError(f"{str(file)!r} is there already. Name another, or use --force.")
        check_writable(file.parent)
        RunFolder(file.parent).write_text(file.name, template(file.name))
    if json:
        print_json({"file": str(file)})
    elif not quiet:
        say(f"Wrote {file}. Fill in data, node and target, then: nefele run {file}")
