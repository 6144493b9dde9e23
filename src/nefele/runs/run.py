"""A whole run: read, work through the stages, write the folder and its report."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from nefele.runs.config import RunConfig
from nefele.runs.folder import DONE, RunFolder, check_writable, open_folder
from nefele.runs.inputs import read_inputs

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

    Returns
    -------
    folder, facts
        The facts are those of run.json.
    """
    assert config.out is not None
    check_writable(Path(config.out))
    start = time.perf_counter()
    inputs = read_inputs(config)
    reading = time.perf_counter() - start
    from nefele.runs.pipeline import Pipeline  # scikit-learn takes long to import

    pipeline = Pipeline(config, inputs)
    folder = open_folder(config, command, force=force, resume=resume, ours=ours)
    facts = folder.read_facts()
    if facts["status"] in DONE:
        return folder, facts
    return folder, _work(folder, pipeline, facts, reading, progress)


def _work(
    folder: RunFolder,
    pipeline: Any,
    facts: dict[str, Any],
    reading: float,
    progress: Progress,
) -> dict[str, Any]:
    from nefele.runs.results import write_results

    try:
        with progress(pipeline.n_solves) as tick:
            stages = pipeline.run(folder, tick)
        start = time.perf_counter()
        facts |= write_results(folder, pipeline.config, pipeline.inputs, stages)
        written = time.perf_counter()
        facts["status"] = "done" if facts["converged"] else "not converged"
        write_report_of(folder, facts)
    except (SystemExit, KeyboardInterrupt):
        folder.write_facts({**facts, "status": "interrupted"})
        raise
    timings = {"reading": reading, **facts["timings"], "writing": written - start}
    timings["report"] = time.perf_counter() - written
    facts["timings"] = {name: round(value, 3) for name, value in timings.items()}
    folder.write_facts(facts)
    folder.clear_stages()
    return facts


def write_report_of(folder: RunFolder, facts: dict[str, Any] | None = None) -> Path:
    """Write report.html from what the folder holds."""
    from nefele.report import write_report
    from nefele.runs.view import view_of

    view = view_of(folder, facts)
    folder.write("report.html", lambda part: write_report(view, part))
    return folder.file("report.html")
