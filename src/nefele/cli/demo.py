"""`nefele demo`: run the comparison and show it, as a table or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from nefele.cli import _demo_data
from nefele.cli._common import finish_run, print_json, progress_for, say
from nefele.cli._demo_fits import OWN, DemoOptions, fit_demo
from nefele.cli._demo_incomes import (
    METHODS,
    MIXED,
    IncomesScore,
    fit_incomes,
    incomes_as_dict,
    incomes_conclusions,
    score_incomes,
)
from nefele.cli._demo_incomes import find as find_method
from nefele.cli._demo_scores import (
    Score,
    as_dict,
    conclusions,
    find,
    score_fits,
    span,
    states_worse,
)
from nefele.datasets import load_incomes, load_states
from nefele.runs.folder import RunFolder
from nefele.runs.run import execute
from nefele.runs.wording import gap_text

_INCOMES_LEGEND = (
    "income per head against the mean of all states, 1929-2009: a curve for each state\n"
    "36 states: error of those with 6 years to learn from, at the other 75\n"
    "12 states: error of those without any data, at all 81 years\n"
    "vs mixed: ratio to the mixed model: random slopes by REML, as of lmer or MixedLM"
)
_LEGEND = (
    "test MSE: 11 years per state, trained on the other 6 (predicting the mean: 1)\n"
    "vs own: ratio to own data only\n"
    "certified gap: relative distance to the optimum, at most, worst split\n"
    "models: distinct ones among the states\n"
    "worse: states that do worse than with own data only, in a split"
)
_BAR_WIDTH = 40
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def run_command(
    options: DemoOptions, *, as_json: bool, quiet: bool, place: DemoFolder | None = None
) -> int:
    """Run the demo, print it, and return the exit code: 1 when some fit did not converge.

    With `place`, a run on the same data is written there, with its report.

    Examples
    --------
    >>> options = DemoOptions.checked(["squared"], seeds=1, lam=1e-3, tol=1e-6)
    >>> run_command(options, as_json=False, quiet=True)
    Test error of 48 US states...
    0
    """
    out = None
    if place is not None:
        out = place.path
        place.check("states")
    console = Console(highlight=False)
    show = console.is_terminal and not as_json and not quiet
    with _progress(console, options.seeds * len(options.methods()), show) as tick:
        fits = fit_demo(load_states(), options, tick)
    scores = score_fits(fits)
    failed = [fit for fit in fits if fit.problem]
    written = None if place is None else write_run("states", place, quiet=quiet or as_json)
    if as_json:
        paths = {} if out is None else {"folder": str(out), "report": str(out / "report.html")}
        print_json({**as_dict(scores, options, failed), **paths})
    else:
        console.print(_table(scores, options))
        if not quiet:
            bars = _bars({score.method.label: score.mse for score in scores}, console)
            console.print(_LEGEND, bars, sep="\n")
            console.print(_list(conclusions(scores, options, failed)))
            if written is not None:
                _tell_of_report(*written, "all 17 years of each state")
    for fit in failed:
        say(f"Warning: {fit.method.label}, seed {fit.seed}: {fit.problem}", err=True)
    return 1 if failed else 0


def run_incomes(seeds: int, *, as_json: bool, quiet: bool, place: DemoFolder) -> int:
    """Run the demo on incomes, print it, and return the exit code: 1 when a fit did not converge.

    A run on 8 years of each state is written to `place`, with its report.
    """
    place.check("incomes")
    console = Console(highlight=False)
    show = console.is_terminal and not as_json and not quiet
    with _progress(console, seeds * len(METHODS), show) as tick:
        fits = fit_incomes(load_incomes(), seeds, tick)
    scores = score_incomes(fits)
    failed = [fit for fit in fits if fit.problem]
    written = write_run("incomes", place, quiet=quiet or as_json)
    if as_json:
        paths = {"folder": str(place.path), "report": str(place.path / "report.html")}
        print_json({**incomes_as_dict(scores, failed), **paths})
    else:
        console.print(_incomes_table(scores))
        if not quiet:
            bars = _bars({score.method: float(score.seen.mean()) for score in scores}, console)
            console.print(_INCOMES_LEGEND, bars, sep="\n")
            console.print(_list(incomes_conclusions(scores, failed)))
            _tell_of_report(*written, "8 years of 36 states")
    for fit in failed:
        say(f"Warning: {fit.method}, seed {fit.seed}: {fit.problem}", err=True)
    return 1 if failed else 0


def _tell_of_report(folder: RunFolder, facts: dict[str, Any], rows: str) -> None:
    """Where the report is, and that its rows and so its numbers are not those of the table."""
    verdict = str(facts["summary"]["verdict"]).partition(";")[0].rstrip(".")
    say(f"Report: {folder.path / 'report.html'}")
    say(
        f"The report is of one run on {rows}, a quarter of them held out, so its numbers are not "
        f"those of the table. It says: {verdict}."
    )


def run_generated(name: str, *, as_json: bool, quiet: bool, place: DemoFolder) -> int:
    """Run a demo on generated data, print it, and return the exit code."""
    place.check(name)
    folder, facts = write_run(name, place, quiet=quiet or as_json)
    return finish_run(folder.path, facts, as_json=as_json, quiet=quiet)


@dataclass(frozen=True)
class DemoFolder:
    """Where the run of a demo goes, by which command, and whether another demo may be replaced."""

    path: Path
    command: str
    force: bool = False

    def check(self, name: str) -> None:
        """A ValueError when the folder holds something else, or another demo without `force`."""
        if not self.path.exists() or not any(self.path.iterdir()):
            return
        try:
            command = str(RunFolder(self.path).read_facts()["command"])
        except ValueError:
            command = ""
        if not command.startswith("nefele demo"):
            raise ValueError(
                f"--out must be a new or empty folder, or that of a demo; {str(self.path)!r} holds "
                "something else. Name another folder."
            )
        if not self.force and not _demo_data.is_written(name, self.path):
            raise ValueError(
                f"{str(self.path)!r} holds another demo ({command}). Name another folder by --out, "
                "or use --force to replace it."
            )


def write_run(name: str, place: DemoFolder, *, quiet: bool) -> tuple[RunFolder, dict[str, Any]]:
    """The run of a demo: taken up if it is there, made anew if it is of another version."""
    config = _demo_data.write_demo(name, place.path)
    options: Any = {"progress": progress_for(quiet), "ours": _demo_data.FILES}
    try:
        return execute(config, place.command, force=place.force, **options)
    except ValueError:  # the same demo of another version
        return execute(config, place.command, force=True, **options)


@contextmanager
def _progress(console: Console, total: int, show: bool) -> Iterator[Callable[[str], object]]:
    """One bar over all fits that names the current one; gone when done."""
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not show) as progress:
        task = progress.add_task("", total=total)
        done = iter(range(total))

        def tick(text: str) -> None:
            progress.update(task, description=text, completed=next(done), refresh=True)

        yield tick


def _incomes_table(scores: Sequence[IncomesScore]) -> Table:
    n = len(scores[0].seen)
    table = Table(title=f"Test error of 48 US states ({n} split{'s' if n > 1 else ''})")
    table.add_column("method", no_wrap=True)
    for name in ("36 states", "vs mixed", "12 states", "certified gap"):
        table.add_column(name, justify="right", no_wrap=True)
    mixed = find_method(scores, MIXED)
    for score in scores:
        without = score.without.mean()
        table.add_row(
            score.method,
            f"{score.seen.mean():.5f}",
            f"{score.seen.mean() / mixed.seen.mean():.2f}",
            "-" if without != without else f"{without:.4f}",
            "exact" if score.gap is None else gap_text(score.gap),
        )
    return table


def _table(scores: Sequence[Score], options: DemoOptions) -> Table:
    splits = "1 split" if options.seeds == 1 else f"{options.seeds} splits"
    table = Table(title=f"Test error of 48 US states ({splits}, lam = {options.lam:g})")
    table.add_column("method", no_wrap=True)
    for name in ("test MSE", "vs own", "certified gap", "models", "worse"):
        table.add_column(name, justify="right", no_wrap=True)
    own = find(scores, OWN)
    for score in scores:
        table.add_row(
            score.method.label,
            f"{score.mse:.5f}",
            f"{score.mse / own.mse:.3f}",
            "exact" if score.gap is None else gap_text(score.gap),
            span(score.n_models),
            "-" if score is own else span(states_worse(score, own)),
        )
    return table


def _list(sentences: Sequence[str]) -> Table:
    grid = Table.grid(padding=(0, 1))
    for sentence in sentences:
        grid.add_row("-", sentence)
    return grid


def _bars(errors: dict[str, float], console: Console) -> str:
    blocks = console.encoding.lower().startswith("utf")
    longest, room = max(errors.values()), max(map(len, errors))
    lines = []
    for label, error in errors.items():
        cells, part = divmod(round(8 * _BAR_WIDTH * error / longest), 8)
        bar = "█" * cells + _EIGHTHS[part] if blocks else "#" * max(cells, 1)
        lines.append(f"{label:>{room}} {bar} {error:.5f}")
    return "\n" + "\n".join(lines) + "\n"
