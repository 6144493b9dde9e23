"""`nefele predict`: the model of a run, applied to new rows."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from nefele._words import visible
from nefele.cli._common import Json, Quiet, RunArgument, check_file, input_errors, print_json, say


def predict(
    run: RunArgument,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="CSV or Parquet file.")],
    out: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file to write.", show_default="CSV to the screen"),
    ] = None,
    unseen: Annotated[
        str, typer.Option(help="What to do with ids that have no model: raise, pooled or centre.")
    ] = "raise",
    column: Annotated[str, typer.Option(help="Name of the new column.")] = "prediction",
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Let --out replace the data, or a file of the run.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add a prediction to each row: by the model of its node.

    For classes there is also one column of probabilities per class.
    """
    from nefele.runs.folder import RunFolder, check_writable
    from nefele.runs.predicting import predict_table
    from nefele.runs.spreadsheets import write_csv

    with input_errors():
        if out is not None:
            check_file(out, (".csv", ".parquet", ".pq"))
            check_writable(out.parent)
            config = RunFolder(run).read_config()
            kept = [str(data), config.data, config.edge_file, config.places]
            if not force and out.resolve() in [Path(name).resolve() for name in kept if name]:
                raise ValueError(
                    f"--out must be another file than the data and those of the run; got "
                    f"{str(out)!r}. Name another one, or use --force to replace it."
                )
        found, notes = predict_table(RunFolder(run), data, unseen, column, drop_missing)
        if out is not None:
            parquet = out.suffix.lower() in (".parquet", ".pq")
            RunFolder(out.parent).write(
                out.name, found.write_parquet if parquet else partial(write_csv, found)
            )
        text = write_csv(found) if out is None and not json else None
    if json:
        values = {} if out is not None else {"predictions": found[column].to_list()}
        print_json({"rows": found.height, "file": out and str(out), "notes": notes, **values})
        return
    if out is None:
        _print_rows(text or "")
    elif not quiet:
        say(f"Wrote {found.height} predictions to {out}.")
    for note in notes if not quiet else ():
        say(f"Note: {note}", err=True)


def _print_rows(text: str) -> None:
    """CSV to the screen, without what would steer it, or as it is into a pipe or a file."""
    if sys.stdout.isatty():
        text = "".join(f"{visible(line)}\n" for line in text.removesuffix("\n").split("\n"))
    sys.stdout.write(text)
