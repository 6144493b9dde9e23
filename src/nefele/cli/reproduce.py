"""`nefele reproduce`: the tables and figures of the papers, next to the printed numbers."""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nefele.cli._common import Json, Quiet, input_errors, print_json, progress_for, say

if TYPE_CHECKING:
    from nefele.experiments import Inputs, Reproduced, Store

_OUT = Path("nefele-reproduce")
_WIDE = 140  # columns of a terminal that shows the verdicts beside the numbers


def reproduce(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help='A table or figure, "all", or "list".')
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds and settings.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            help="FMIData.csv, or a folder with it, with MNIST, or with the images of pfl."
        ),
    ] = None,
    fetch: Annotated[
        bool, typer.Option("--fetch", help="Fetch MNIST from openml.org for table2.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder of tables, figures and results.")] = _OUT,
    jobs: Annotated[
        int | None, typer.Option(help="Processes; default one per core.", min=1)
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compute a table or figure of the papers again, and say why its numbers differ.

    Finished settings are kept in the folder, so that a run that was stopped goes on where it was.
    Exit code 1 when a number misses our own reference value or a fit did not converge; a printed
    number that differs for a known reason is no failure.
    """
    from nefele.experiments import Store, run

    with input_errors():
        if name == "list":
            _show_list(json)
            return
        inputs = _inputs(name, data, fetch)
        names, left_out = _chosen(name, inputs)
        comments = _comments(names, inputs, quick)
        store = Store(out)
        failures: dict[str, Exception] = {}
        found = run(
            names,
            inputs,
            store,
            quick=quick,
            jobs=jobs or os.cpu_count() or 2,
            progress=progress_for(quiet or json),
            failures=failures,
        )
        left_out |= {each: f"{each} broke off: {error}" for each, error in failures.items()}
        page = _write(found, store, left_out, quick, whole=name == "all")
    for text in comments:
        say(f"Note: {text}", err=True)
    _show(found, left_out, page, as_json=json, quiet=quiet, quick=quick)
    _raise(failures)
    failed = [f"{one.experiment.name}: {row.what}" for one in found for row in one.failed]
    for text in failed:
        say(f"Warning: not reproduced, {text}", err=True)
    if failed:
        raise typer.Exit(1)


def _comments(names: list[str], inputs: Inputs, quick: bool) -> list[str]:
    """Check the data of all experiments before any work; what there is to say about them."""
    from nefele.experiments import load
    from nefele.experiments.runner import check_data
    from nefele.experiments.weather import other_file

    chosen = [load(name) for name in names]
    for one in chosen:
        check_data(one, inputs, quick)
    if inputs.weather is None or not any(one.needs == "weather" for one in chosen):
        return []
    text = other_file(inputs.weather)
    return [text] if text else []


def _raise(failures: dict[str, Exception]) -> None:
    """The first error of experiments that broke off, once the others are written."""
    with input_errors():
        for error in failures.values():
            raise error


def _show_list(as_json: bool) -> None:
    from nefele.experiments import NAMES, load

    about = [load(name) for name in NAMES]
    if as_json:
        print_json([{"name": e.name, "title": e.title, "source": e.source} for e in about])
        return
    for one in about:
        say(f"{one.name:10} {one.source}: {one.title}")


def _inputs(name: str, data: Path | None, fetch: bool) -> Inputs:
    """The data that --data names, or those found in the usual places."""
    from nefele._checks import check_name
    from nefele.experiments import NAMES, Inputs, load
    from nefele.experiments.digits import find_mnist
    from nefele.experiments.pfl_data import find_images
    from nefele.experiments.weather import find_weather

    check_name(name, [*NAMES, "all", "list"], "NAME")
    needs = "" if name == "all" else load(name).needs
    wanted = name == "all" or needs == "weather"
    if data is None:
        images = find_images() if needs == "images" else None
        return Inputs(find_weather() if wanted else None, None, fetch, images)
    if needs == "images":
        return Inputs(images=_images(data))
    if data.is_file():
        return Inputs(data, None, fetch)
    if not data.is_dir():
        raise ValueError(f"No file or folder {str(data)!r}. --data is FMIData.csv, or a folder.")
    inside = data / "FMIData.csv"
    weather, mnist = inside if inside.is_file() else None, find_mnist(data)
    if weather is None and mnist is None:
        raise ValueError(
            f"{str(data)!r} must have FMIData.csv, or train-images-idx3-ubyte and "
            "train-labels-idx1-ubyte of MNIST (.gz or not); it has neither."
        )
    if weather is None and wanted:
        weather = find_weather()
    return Inputs(weather, mnist, fetch)


def _images(folder: Path) -> Path:
    """The folder, which must have all images of pfl."""
    from nefele.experiments.pfl_data import WHERE, missing_images

    if lost := missing_images(folder):
        raise ValueError(f"pfl needs {WHERE}; {str(folder)!r} lacks {', '.join(lost)}.")
    return folder


def _chosen(name: str, inputs: Inputs) -> tuple[list[str], dict[str, str]]:
    """The experiments to run; of all of them, those whose data are missing are left out."""
    from nefele.experiments import NAMES, load
    from nefele.experiments.runner import missing_data

    if name != "all":
        return [name], {}
    missing = {each: missing_data(load(each), inputs) for each in NAMES}
    return [n for n in NAMES if not missing[n]], {n: text for n, text in missing.items() if text}


def _write(
    found: list[Reproduced], store: Store, left_out: dict[str, str], quick: bool, whole: bool
) -> Path | None:
    """CSV and figure of each experiment; the page of all of them. Returns the page."""
    from nefele.experiments import page
    from nefele.experiments.figures import has_matplotlib, svg
    from nefele.experiments.tables import as_csv

    pictures = {}
    for one in found:
        name = one.experiment.name
        one.files.append(store.write(f"{name}.csv", as_csv(one.rows, quick)))
        if has_matplotlib() and one.experiment.draw is not None:
            pictures[name] = svg(one.experiment, one.cells, quick)
            one.files.append(store.write(f"{name}.svg", pictures[name]))
    if not whole:
        return None
    return store.write("index.html", page.page(found, pictures, left_out, version("nefele"), quick))


def _show(
    found: list[Reproduced],
    left_out: dict[str, str],
    page: Path | None,
    *,
    as_json: bool,
    quiet: bool,
    quick: bool,
) -> None:
    from nefele.experiments.figures import has_matplotlib

    if as_json:
        print_json(_as_dict(found, left_out, page))
        return
    from rich.console import Console
    from rich.markup import escape

    from nefele.experiments.tables import as_table, verdicts

    console = Console(highlight=False)
    narrow = console.width < _WIDE
    for one in found:
        about = one.experiment
        kind = ", quick run" if quick else ""
        title = f"{about.name}{kind}: {about.title} ({about.source})"
        console.print(as_table(title, one.rows, narrow))
        if narrow:
            for text in verdicts(one.rows):
                console.print(f"- {escape(text)}")
        if not quiet:
            for note in one.notes:
                console.print(escape(note))
            say(f"Written: {', '.join(str(file) for file in one.files)}")
            say("")
    if quiet:
        if left_out:
            first = next(iter(left_out.values()))
            say(f"Left out: {', '.join(left_out)}. {first}", err=True)
        return
    for text in left_out.values():
        say(f"Left out: {text}")
    if not has_matplotlib():
        say('No figures: pip install "nefele[plot]".')
    if page is not None:
        say(f"Page: {page}")


def _as_dict(
    found: list[Reproduced], left_out: dict[str, str], page: Path | None
) -> dict[str, Any]:
    return {
        "experiments": [
            {
                "name": one.experiment.name,
                "title": one.experiment.title,
                "source": one.experiment.source,
                "notes": list(one.notes),
                "failed": len(one.failed),
                "files": [str(file) for file in one.files],
                "rows": [row.as_dict() for row in one.rows],
            }
            for one in found
        ],
        "left_out": left_out,
        "page": None if page is None else str(page),
    }
