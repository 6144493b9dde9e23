"""A whole run: read, work through the stages, write the folder and its report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nefele._threads import processor_seconds
from nefele.runs.config import RunConfig
from nefele.runs.folder import DONE, RESULTS, RunFolder, check_writable, file_hash
from nefele.runs.inputs import read_inputs
from nefele.runs.opening import input_files, opened
from nefele.runs.sizes import print_nothing

if TYPE_CHECKING:
    from nefele.report.view import View

Progress = Callable[[int], AbstractContextManager[Callable[[str, float], object]]]


def silent(total: int) -> AbstractContextManager[Callable[[str, float], object]]:
    """No progress."""
    return nullcontext(lambda name, gap: None)


def execute(
    config: RunConfig,
    command: str,
    *,
    force: bool = False,
    resume: bool = False,
    progress: Progress = silent,
    ours: Sequence[str] = (),
    tell: Callable[[str], object] = print_nothing,
) -> tuple[RunFolder, dict[str, Any]]:
    """Do a run, or go on with one, or take the results of one that is done.

    Parameters
    ----------
    config : RunConfig
        With full names of files and with `out`.
    command : str
        The command line, for the record.
    force : bool
        Replace another run in the folder.
    resume : bool
        There must be a run to go on with.
    progress : callable
        Given the number of solves, a context that yields tick(stage, gap).
    ours : sequence of str
        Files that may be in a new folder.
    tell : callable
        Given what a user should know before the work begins.

    Returns
    -------
    folder, facts
        The facts are those of run.json.
    """
    assert config.out is not None
    check_writable(Path(config.out))
    start, busy = time.perf_counter(), processor_seconds()
    with _warnings_as_notes() as notes:
        files = input_files(config)
        inputs = read_inputs(config, tell)
        reading = time.perf_counter() - start
        from nefele.runs.chosen import pipeline_of  # scikit-learn takes long to import

        pipeline = pipeline_of(config, inputs)
        with opened(config, command, force=force, resume=resume, ours=ours) as folder:
            facts = folder.read_facts()
            if facts["files"] != files:
                raise ValueError("The data or graph file changed while it was read. Try again.")
            if facts["status"] in DONE:
                restore(folder, facts)
                return folder, facts
            return _work(folder, pipeline, facts, (reading, busy), progress, notes)


@contextmanager
def _warnings_as_notes() -> Iterator[Callable[[], list[str]]]:
    """Keeps the warnings of Python and of libraries back; yields what gives their texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", kind)  # for programmers
        yield lambda: list(dict.fromkeys(" ".join(str(c.message).split()) for c in caught))


def _work(
    folder: RunFolder,
    pipeline: Any,
    facts: dict[str, Any],
    begun: tuple[float, float],
    progress: Progress,
    warned: Callable[[], list[str]],
) -> tuple[RunFolder, dict[str, Any]]:
    from nefele.runs.results import write_results

    reading, busy = begun
    before = float(facts.get("cpu_seconds", 0.0))  # of a run that was interrupted
    try:
        with progress(pipeline.n_solves) as tick:
            stages = pipeline.run(folder, tick)
        start = time.perf_counter()
        facts |= write_results(folder, pipeline.config, pipeline.inputs, stages)
        written = time.perf_counter()
        facts["notes"] += [note for note in warned() if note not in facts["notes"]]
        facts["cpu_seconds"] = _spent(before, busy)
        facts["status"] = "done" if facts["converged"] else "not converged"
        write_report_of(folder, facts)
    except (SystemExit, KeyboardInterrupt):
        facts["cpu_seconds"] = _spent(before, busy)
        folder.write_facts({**facts, "status": "interrupted"})
        raise
    except Exception as error:
        refused = isinstance(error, ValueError) and pipeline.config.epsilon is not None
        if not (refused and folder.abandon()):  # such as by the account
            folder.write_facts({**facts, "status": "failed"})
        raise
    timings = {"reading": reading, **facts["timings"], "writing": written - start}
    timings["report"] = time.perf_counter() - written
    facts["timings"] = {name: round(value, 3) for name, value in timings.items()}
    facts["results"] = {name: file_hash(folder.file(name)) for name in RESULTS}
    folder.write_facts(facts)
    folder.clear_stages()
    return folder.settle(), facts


def _spent(before: float, busy: float) -> float:
    """Processor seconds of a run: those before an interruption and those since."""
    return round(before + processor_seconds() - busy, 3)


def restore(folder: RunFolder, facts: dict[str, Any]) -> None:
    """Write the files of a finished run that are lost again; a ValueError for what cannot be."""
    from nefele.runs.results import write_tables

    folder.check_results(facts)
    folder.clear_stages()
    write_tables(folder, folder.load_path(), lost_only=True)
    if not folder.file("report.html").is_file():
        write_report_of(folder, facts)


def write_report_of(folder: RunFolder, facts: dict[str, Any] | None = None) -> View:
    """Write report.html from what the folder holds, and return what it shows."""
    from nefele.report import write_report
    from nefele.runs.view import view_of

    view = view_of(folder, facts)
    write_report(view, folder.file("report.html"))
    return view
