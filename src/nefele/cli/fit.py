"""`nefele fit`, `nefele run` and `nefele init`: a run from options, or from a file."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nefele.cli import _options as options
from nefele.cli._common import (
    Force,
    Interrupted,
    Json,
    Quiet,
    finish_run,
    input_errors,
    print_json,
    progress_for,
    say,
    teller,
)
from nefele.cli._options import Flag, as_config, file_stem

if TYPE_CHECKING:
    from nefele.runs.config import RunConfig


def fit(
    data: options.Data,
    node: options.Node,
    target: options.Target,
    features: options.Features = None,
    graph: Annotated[
        str | None,
        Flag(
            help="Edge file (source, target, perhaps weight), or learn, or learn:NAME with a NAME "
            "of nefele graph, such as learn:losses."
        ),
    ] = None,
    coords: options.Coords = None,
    places: options.Places = None,
    k: Annotated[int, Flag("--k", help="Neighbours of each node, for --coords and learn.")] = 5,
    penalty: Annotated[
        str, Flag(help=options.PENALTIES, show_default="auto; l2 with a number as --alpha")
    ] = "",
    alpha: Annotated[str, Flag(help="Strength of the coupling, or auto.")] = "auto",
    time: Annotated[
        str | None, Flag(help="Column with the time: the latest rows are held out.")
    ] = None,
    task: options.Task = "regression",
    weighting: options.Weighting = "rows",
    seed: Annotated[int, Flag(help="For the choice of held-out rows and of folds.")] = 0,
    folds: options.Folds = 5,
    n_alphas: Annotated[int, Flag(help="Number of alphas tried.")] = 30,
    standardize: options.Standardize = True,
    l2: options.Ridge = None,
    tol: options.Tol = 1e-4,
    drop_missing: options.DropMissing = False,
    allow_isolates: Annotated[
        bool, Flag("--allow-isolates", help="Fit nodes without an edge by their own rows.")
    ] = False,
    compare: Annotated[
        str | None, Flag(help="boosting: boosted trees too, at the same held-out rows.")
    ] = None,
    out: Annotated[
        Path | None, Flag(help="Folder of the run.", show_default="nefele-run-DATA")
    ] = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = 1e-6,
    unit: options.Unit = "record",
    bounds: options.BoundsFile = None,
    budget: options.BudgetFile = None,
    total_epsilon: options.TotalEpsilon = None,
    price: options.ShowPrice = False,
    engine: options.Engine = None,
    parts: options.Parts = None,
    address: options.Address = None,
    resume: Annotated[bool, Flag("--resume", help="There must be a run to go on with.")] = False,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose the coupling, compare with own data and with one model, fit, and write a run folder.

    About a quarter of the rows of each node is held out for the comparison. The same --out goes
    on with a run that was stopped.
    """
    given = locals()
    with input_errors():
        folder = str(out or f"nefele-run-{file_stem(data)}")
        more = {"alpha": _alpha(alpha), "out": folder, "bounds": options.read_bounds(bounds)}
        config = as_config(given, **more).absolute(Path.cwd())
    raise typer.Exit(perform(config, force=force, resume=resume, as_json=json, quiet=quiet))


def run(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="TOML file, or the folder of a run.")
    ],
    out: Annotated[Path | None, Flag(help="Folder of the run; goes before that of CONFIG.")] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Do what a configuration says, or go on with a run that was stopped.

    A configuration is written by nefele init; every run folder has one, config.toml.
    """
    with input_errors():
        found = _configured(config, out)
    raise typer.Exit(perform(found, force=force, resume=False, as_json=json, quiet=quiet))


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path(
        "nefele.toml"
    ),
    force: Annotated[bool, Flag("--force", help="Replace a file that is there.")] = False,
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


def perform(config: RunConfig, *, force: bool, resume: bool, as_json: bool, quiet: bool) -> int:
    """Execute a run and print it; after Ctrl-C say how to go on."""
    from nefele.runs.names import as_text
    from nefele.runs.run import execute

    command = as_text(shlex.join(["nefele", *sys.argv[1:]]))
    steps: list[str] = []
    try:
        with input_errors():
            folder, facts = execute(
                config,
                command,
                force=force,
                resume=resume,
                progress=_watched(progress_for(quiet or as_json), steps),
                tell=teller(quiet),
            )
    except (SystemExit, KeyboardInterrupt) as stop:
        if steps and getattr(stop, "code", 130) == 130:
            again = command if force else shlex.join(["nefele", "run", str(config.out)])
            say(f"Interrupted; finished stages are kept. Go on with: {again}", err=True)
            raise Interrupted(130) from None
        raise
    return finish_run(folder.path, facts, as_json=as_json, quiet=quiet, already=not steps)


def _watched(progress: Any, steps: list[str]) -> Any:
    """The same progress, noting that work has begun."""

    def begun(total: int) -> Any:
        steps.append("begun")
        return progress(total)

    return begun


def _configured(path: Path, out: Path | None) -> RunConfig:
    """The configuration of a file or of a run folder, with the folder that its run goes to."""
    from nefele.runs.config import read_config
    from nefele.runs.folder import RunFolder

    if path.is_dir():
        RunFolder(path).read_facts()
        config, path = RunFolder(path).read_config(), path / "config.toml"
    else:
        config = read_config(path)
    if out is not None:
        return replace(config, out=str(out.resolve()))
    if config.out is not None:
        return config
    beside = path.resolve().parent
    if (beside / "run.json").is_file():  # the configuration of a run folder
        return replace(config, out=str(beside))
    return replace(config, out=str(beside / f"nefele-run-{file_stem(Path(config.data))}"))


def _alpha(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
