"""`nefele report` and `nefele path`: what a run folder holds, shown again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nefele.cli._common import Json, Quiet, RunArgument, check_file, input_errors, print_json, say

if TYPE_CHECKING:
    from nefele.runs.folder import RunFolder


def report(
    run: RunArgument,
    open_: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write report.html of a run again."""
    from nefele._files import only_writer
    from nefele.runs.folder import RunFolder, check_writable
    from nefele.runs.run import write_report_of

    with input_errors():
        folder = RunFolder(run)
        folder.finished_facts()
        check_writable(run)
        with only_writer(run):
            view, file = write_report_of(folder), folder.file("report.html")
    if json:
        print_json({"report": str(file), "pictures": [one.title for one in view.pictures]})
    elif not quiet:
        for note in view.notes:
            say(f"Note: {note}")
        say(f"Report: {file}")
    if open_:
        typer.launch(str(file.resolve()))


def path(
    run: RunArgument,
    out: Annotated[Path | None, typer.Option(help="Write a CSV file instead.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Print the path of a run: alphas, clusters, cross-validated error, certified gap."""
    from nefele.runs.folder import RunFolder, check_writable
    from nefele.runs.spreadsheets import write_csv

    with input_errors():
        if out is not None:
            check_file(out, (".csv",))
        table = path_table(RunFolder(run))
        if out is not None:
            check_writable(out.parent)
            RunFolder(out.parent).write(out.name, partial(write_csv, table))
    if json:
        print_json(table.to_dicts())
    elif out is None:
        _print_path(table)
    elif not quiet:
        say(f"Wrote {out}.")


def path_table(folder: RunFolder) -> Any:
    """One row per alpha, as a polars table."""
    import numpy as np
    import polars as pl

    facts = folder.finished_facts()
    folder.check_results(facts)
    found = folder.load_path()
    folder.check_steady(facts)
    place = np.arange(len(found["alphas"]))
    marks = {name: place == int(found[name]) for name in ("chosen", "clearest")}
    return pl.DataFrame(
        {
            "alpha": found["alphas"],
            "clusters": found["clusters"].max(axis=1) + 1,
            "cv_error": found["cv_error"],
            "cv_se": found["cv_se"],
            "gap": np.where(np.isfinite(found["gaps"]), found["gaps"], np.nan),
            **marks,
        }
    ).fill_nan(None)


def _print_path(table: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    from nefele.runs.wording import gap_text

    shown = Table(title="Path over all rows")
    for name in ("alpha", "clusters", "cv error", "se", "certified gap", ""):
        shown.add_column(name, justify="left" if not name else "right", no_wrap=True)
    for row in table.iter_rows(named=True):
        marks = [name for name in ("chosen", "clearest") if row[name]]
        error, spread = (
            "-" if row[name] is None else text.format(row[name])
            for name, text in (("cv_error", "{:.5g}"), ("cv_se", "{:.2g}"))
        )
        gap = "-" if row["gap"] is None else gap_text(row["gap"])
        shown.add_row(
            f"{row['alpha']:.4g}", str(row["clusters"]), error, spread, gap, ", ".join(marks)
        )
    Console(highlight=False).print(shown)
