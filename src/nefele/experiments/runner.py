"""The one loop over all settings of all experiments: in parallel, resumable, deterministic."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from nefele._checks import check_count, check_name
from nefele.experiments.base import Cell, Experiment, Inputs, Row
from nefele.experiments.digits import check_enough, load_digits
from nefele.experiments.store import Store, cell_file, inputs_key, plain
from nefele.experiments.weather import WHERE, load_weather

NAMES = (
    "fig2",
    "fig3",
    "table1",
    "fig4",
    "fig5",
    "fig7",
    "table2",
    "table3",
    "fig8",
    "fig9",
    "agnostic1",
    "flavours",
    "pfl",
)
Tick = Callable[[str, float], object]
Done = tuple[str, float, Exception | None]  # name, largest gap, what broke it off


@dataclass(frozen=True)
class Reproduced:
    """An experiment that was run.

    Attributes
    ----------
    experiment : Experiment
    cells : list of dict
        Each setting with what it gave.
    rows : list of Row
    files : list of Path
        Table and figure, once written.
    """

    experiment: Experiment
    cells: list[Cell] = field(repr=False)
    rows: list[Row] = field(repr=False)
    files: list[Path] = field(default_factory=list)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know when reading it."""
        notes = self.experiment.notes
        return notes(self.cells) if callable(notes) else notes

    @property
    def failed(self) -> list[Row]:
        """Rows that did not converge or miss our own reference value."""
        return [row for row in self.rows if row.failed]


def load(name: str) -> Experiment:
    """The experiment of this name.

    Examples
    --------
    >>> load("fig7").source
    'NFL, Sec. VI-C, Fig. 7'
    """
    module = import_module(f"nefele.experiments.{check_name(name, NAMES, 'name')}")
    found: Experiment = module.EXPERIMENT
    return found


def missing_data(experiment: Experiment, inputs: Inputs) -> str:
    """What is missing to run it, and where it is; empty when nothing is.

    Examples
    --------
    >>> missing_data(load("table3"), Inputs())[:33]
    'table3 needs FMIData.csv (Finnish'
    """
    if experiment.needs != "weather" or inputs.weather is not None:
        return ""
    return (
        f"{experiment.name} needs FMIData.csv (Finnish Meteorological Institute, open data). Get "
        f"it from {WHERE} and pass --data FMIData.csv, or set NEFELE_FMI_DATA to its path."
    )


def run(
    names: Sequence[str],
    inputs: Inputs,
    store: Store,
    *,
    quick: bool = False,
    jobs: int = 2,
    progress: Callable[[int], Any] | None = None,
    failures: dict[str, Exception] | None = None,
) -> list[Reproduced]:
    """Compute every setting that is not in the store, and make the rows of the tables.

    Parameters
    ----------
    names : sequence of str
    inputs : Inputs
    store : Store
    quick : bool
        Fewer seeds and settings.
    jobs : int
        Processes.
    progress : callable, optional
        Called with the number of settings; a context manager that gives tick(name, gap).
    failures : dict, optional
        Takes the error of each experiment that breaks off, so that the others go on; without it
        the error is raised. Data files are checked, and their errors raised, before any work.

    Returns
    -------
    list of Reproduced

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = run(["fig7"], Inputs(), Store(Path(folder, "out")), quick=True, jobs=1)
    >>> found[0].failed
    []
    """
    jobs = check_count(jobs, "jobs", low=1)
    chosen = [load(name) for name in names]
    for experiment in chosen:
        check_data(experiment, inputs, quick)
    keys = {e.name: inputs_key(e.needs, inputs) for e in chosen}
    todo: list[tuple[str, Cell, str]] = []
    done: dict[str, list[tuple[Cell, str]]] = {}
    for experiment in chosen:
        for setting in experiment.cells(quick, inputs):
            file = cell_file(experiment.name, setting, keys[experiment.name])
            done.setdefault(experiment.name, []).append((setting, file))
            if store.kept(file) is None:
                todo.append((experiment.name, setting, file))
    broken: dict[str, Exception] = {} if failures is None else failures
    with (progress or _silent)(len(todo)) as tick:
        for name, gap, error in _compute_all(todo, inputs, store, jobs):
            if error is not None:
                broken.setdefault(name, error)
                if failures is None:
                    raise error
            tick(name, gap)
    found = []
    for experiment in (e for e in chosen if e.name not in broken):
        cells = [{**setting, **(store.kept(file) or {})} for setting, file in done[experiment.name]]
        found.append(Reproduced(experiment, cells, experiment.rows(cells)))
    return found


def check_data(experiment: Experiment, inputs: Inputs, quick: bool = False) -> None:
    """A ValueError when the data it needs are missing, damaged or too few.

    Examples
    --------
    >>> check_data(load("table2"), Inputs())
    """
    if text := missing_data(experiment, inputs):
        raise ValueError(text)
    if experiment.needs == "weather" and inputs.weather is not None:
        load_weather(inputs.weather)
    if experiment.needs == "digits":
        _, y, _ = load_digits(inputs)
        for setting in experiment.cells(quick, inputs):
            check_enough(y, setting["train"] + setting["held"])


def _compute_all(
    todo: list[tuple[str, Cell, str]], inputs: Inputs, store: Store, jobs: int
) -> Iterator[Done]:
    """Each setting as it is done; the workers store it themselves, so that none is lost."""
    if jobs == 1 or len(todo) < 2:
        for item in todo:
            yield _compute(*item, inputs, store)
        return
    from joblib import Parallel, delayed

    work = (delayed(_compute)(*item, inputs, store, alone=False) for item in todo)
    yield from Parallel(n_jobs=jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")(work)


def _compute(
    name: str, setting: Cell, file: str, inputs: Inputs, store: Store, alone: bool = True
) -> Done:
    from threadpoolctl import threadpool_limits

    if not alone:  # Ctrl-C is for the main process, which ends the workers
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with threadpool_limits(limits=1):  # sums in the same order, whatever the number of jobs
            values = plain(load(name).compute(setting, inputs))
        store.keep(file, values)
    except Exception as error:  # of this experiment; the others go on
        return name, 0.0, error
    return name, max(_gaps(values), default=0.0), None


def _gaps(values: Any) -> Iterable[float]:
    if isinstance(values, dict):
        for key, value in values.items():
            if key == "gap" and value is not None:
                yield float(value)
            else:
                yield from _gaps(value)


@contextmanager
def _silent(total: int) -> Iterator[Tick]:
    yield lambda name, gap: None
