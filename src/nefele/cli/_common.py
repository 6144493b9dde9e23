"""What the commands share: errors with their exit code, progress, and the table of a run."""

from __future__ import annotations

import json
import math
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from nefele._words import visible

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[
    bool, typer.Option("--quiet", help="Print the result only: no progress, no comments.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace another run in the folder.")]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")]


class Interrupted(SystemExit):
    """Ctrl-C, of which the user has been told already."""


def check_file(out: Path, suffixes: tuple[str, ...], option: str = "--out") -> None:
    """A ValueError when a file to write is a folder, or of another kind."""
    from nefele.runs.names import check_file_name

    check_file_name(out)
    if out.is_dir():
        raise ValueError(f"{option} must be a file; {str(out)!r} is a folder. Name a file in it.")
    if out.suffix.lower() not in suffixes:
        ends = " or ".join(suffixes)
        raise ValueError(f"{option} must end in {ends}; got {str(out)!r}. Rename it.")


def say(text: str, err: bool = False) -> None:
    """Print one line; names from users' files do not steer the terminal, prose wraps at words."""
    line = visible(text)
    if (sys.stderr if err else sys.stdout).isatty():
        line = wrapped(line, shutil.get_terminal_size().columns)
    typer.echo(line, err=err)


def wrapped(line: str, width: int) -> str:
    r"""Prose in lines of at most so many characters; tables and commands stay as they are.

    Examples
    --------
    >>> wrapped("Coupling helps: the error is smaller.", 20)
    'Coupling helps: the\nerror is smaller.'
    >>> wrapped("node   error of a wide table", 20)
    'node   error of a wide table'
    """
    aligned = "  " in line or line.startswith((" ", "nefele ", "Next: nefele"))
    if len(line) <= width or aligned or width < 20:
        return line
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False)


def memory_message(error: MemoryError) -> str:
    """Error text for too little memory, with what was asked for, if it is known.

    Examples
    --------
    >>> memory_message(MemoryError("Unable to allocate 9 TiB for an array"))
    'Error: There must be enough memory; unable to allocate 9 TiB for an array. Use fewer rows...
    """
    asked = str(error).strip().rstrip(".")
    asked = asked[:1].lower() + asked[1:] if asked else "the system has none left"
    return (
        f"Error: There must be enough memory; {asked}. Use fewer rows, features, nodes or alphas, "
        "or a machine with more memory."
    )


@contextmanager
def input_errors() -> Iterator[None]:
    """Bad input, lost packages, or files that cannot be written: the fix, and exit code 2."""
    try:
        yield
    except ValueError as error:
        say(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    except ImportError as error:
        if "pip install" not in str(error):
            raise
        say(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    except OSError as error:
        where = f" {error.filename!r}" if error.filename else ""
        say(f"Error: {error.strerror or error}{where}. Check the disk.", err=True)
        raise typer.Exit(2) from None
    except RuntimeError as error:
        from nefele.runtime.job import WorkersLostError

        if not isinstance(error, WorkersLostError):
            raise
        say(f"Error: {error}", err=True)
        raise typer.Exit(2) from None


def print_json(value: Any) -> None:
    """Print plain data as JSON."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))  # ASCII: nothing in it steers


def teller(quiet: bool) -> Callable[[str], None]:
    """Prints what a user should know before the work begins, if there is to be any comment."""

    def tell(text: str) -> None:
        if not quiet:
            say(f"Note: {text}", err=True)

    return tell


def progress_for(quiet: bool) -> Callable[[int], Any]:
    """Progress on a terminal, none elsewhere; see `nefele.runs.run.execute`."""
    from nefele.runs.run import silent

    return silent if quiet or not sys.stderr.isatty() else _bar


@contextmanager
def _bar(total: int) -> Iterator[Callable[[str, float], object]]:
    """One bar over all solves, with the stage, the gap of the last solve and the time left."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[gap]}"),
        TextColumn("time left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading", total=total, gap="")

        def tick(name: str, gap: float) -> None:
            shown = "" if math.isnan(gap) else f"gap {gap:.1e}"
            progress.update(task, description=name, advance=1, gap=shown, refresh=True)

        yield tick


def finish_run(
    folder: Path, facts: dict[str, Any], *, as_json: bool, quiet: bool, already: bool = False
) -> int:
    """Print what a run found and return the exit code: 1 when the fit did not converge."""
    from nefele.runs.wording import gap_text

    report = folder / "report.html"
    if as_json:
        print_json({**facts, "folder": str(folder), "report": str(report)})
    else:
        if not quiet:
            for line in _headline(facts):
                say(line)
        print_scores(facts)
        if not quiet:
            for line in _sentences(facts):
                say(line)
            if already:
                say(f"This run was finished before ({facts['finished']}).")
            say(f"Report: {report}")
    if facts["converged"]:
        return 0
    gap = "none" if facts["gap"] is None else gap_text(facts["gap"])
    say(
        f"Warning: not trustworthy, the final fit is {facts['solver_status']} (certified gap "
        f"{gap}, wanted {facts['tol']:.1e}). {facts['advice']}",
        err=True,
    )
    return 1


def _headline(facts: dict[str, Any]) -> list[str]:
    from nefele.runs.wording import columns_used, describe_graph

    return [
        f"{facts['rows']} rows, {facts['held_out_rows']} of them held out within the nodes for "
        "this comparison.",
        *columns_used(facts),
        f"Graph: {describe_graph(facts['graph'])}.",
    ]


def print_scores(facts: dict[str, Any]) -> None:
    """The methods side by side."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from nefele.selection.verdict import COUPLED, OWN, POOLED

    summary = facts["summary"]
    title = f"Error over all held-out rows ({summary['metric']})"
    table = Table(title=Text(visible(title)))
    table.add_column("method", no_wrap=True)
    wrong = summary.get("wrong")
    heads = ["error", "vs own", *(["wrong"] if wrong else []), "nodes better", "worse"]
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    own = summary["scores"][OWN]
    counts = {
        OWN: ("-", "-"),
        POOLED: (summary["pooled_better"], summary["pooled_worse"]),
        COUPLED: (summary["nodes_better"], summary["nodes_worse"]),
    }
    for name, nodes in summary.get("rivals", {}).items():
        counts[name] = (nodes["nodes_better"], nodes["nodes_worse"])
    for name, error in summary["scores"].items():
        ratio = f"{error / own:.3f}" if own > 0 else "-"
        share = [f"{wrong[name]:.1%}"] if wrong else []
        table.add_row(name, f"{error:.5g}", ratio, *share, *map(str, counts[name]))
    Console(highlight=False).print(table)


def _drawn_to(coupling: str) -> str:
    """What a coupling by a centre means, for those who meet the word for the first time.

    Examples
    --------
    >>> _drawn_to("personal slopes by the centre")
    '; each model is drawn to a common one, the centre'
    """
    if "centre" not in coupling:
        return ""
    more = ", and to those of its neighbours" if "graph" in coupling else ""
    return f"; each model is drawn to a common one, the centre{more}"


def _sentences(facts: dict[str, Any]) -> list[str]:
    from nefele.runs.wording import gap_text

    summary = facts["summary"]
    n = summary["clusters"]
    by = f"alpha {summary['alpha']:.4g}: {n} cluster{'s' if n > 1 else ''}."
    if "penalty" in summary:  # not in runs of older versions
        by = f"Penalty {summary['penalty']}, {by}"
    if "coupling" in summary:
        by = f"Coupling: {summary['coupling']}{_drawn_to(summary['coupling'])}."
    lines = [
        summary["verdict"],
        f"{summary['nodes_better']} of {summary['nodes_judged']} nodes do better than with own "
        f"data only, {summary['nodes_worse']} do worse.",
        by,
    ]
    if facts["converged"]:
        far = gap_text(facts["gap"]).replace("< ", "less than ")
        lines[-1] += (
            f" The fit is certified: its objective is within {far} (relative) of the optimum."
        )
    return [*lines, *(f"Note: {note}" for note in facts["notes"])]
