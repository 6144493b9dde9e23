"""What all experiments share: their description, the rows of their tables, exact solves."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning, Result, Status
from nefele.solvers import solve

Cell = dict[str, Any]

TOL = 1e-8
TIGHT = 1e-10  # an MSE of 1e-8 is fixed by a gap of this size, not by 1e-6
SAME = 0.05  # a printed number is met within this, relative


@dataclass(frozen=True)
class Inputs:
    """Where the data are that do not come with nefele.

    Attributes
    ----------
    weather : Path, optional
        FMIData.csv.
    mnist : Path, optional
        Folder with the four idx files of MNIST, gzipped or not.
    fetch : bool
        Whether MNIST may be fetched from openml.org.
    images : Path, optional
        Folder with MNIST, Fashion-MNIST and PFLlib's counts, for pfl.
    """

    weather: Path | None = None
    mnist: Path | None = None
    fetch: bool = False
    images: Path | None = None


@dataclass(frozen=True)
class Row:
    """One line of a table: what the paper prints, what nefele finds, and the verdict.

    Attributes
    ----------
    what, quantity : str
        The setting, and what is measured there.
    ours, deviation : float
        Mean and standard deviation over the seeds.
    seeds : int
        Number of seeds.
    printed : float, optional
        The number in the paper, or in the authors' notebook where `where` says so.
    where : str
        Where it is printed.
    gap : float, optional
        Largest certified relative gap of the solves behind it; None where there is none.
    expected : (float, float), optional
        Range in which our own reference value lies.
    converged : bool
        Whether every solve reached its tolerance, by its certified gap.
    stops : bool
        It stops after a fixed number of iterations, as printed: not to converge is no failure.
    because : str
        Why the printed number differs, or what there is to say if none is printed.
    same : float
        Relative distance up to which the printed number counts as met.
    minor : bool
        One point of a curve among many: in the files and the page, not in the terminal.

    Examples
    --------
    >>> Row("local", "error", 6.58, printed=6.59).verdict
    'same'
    >>> Row("l2", "error", 5.45, printed=5.16, because="it is not the optimum").verdict
    'differs, because it is not the optimum'
    >>> Row("l2", "error", 5.45, expected=(5.0, 5.1)).failed
    True
    """

    what: str
    quantity: str
    ours: float
    deviation: float | None = None
    seeds: int = 1
    printed: float | None = None
    where: str = ""
    gap: float | None = None
    expected: tuple[float, float] | None = None
    converged: bool = True
    stops: bool = False
    because: str = ""
    same: float = SAME
    minor: bool = False

    @property
    def _unsolved(self) -> bool:
        return not (self.converged or self.stops)

    @property
    def failed(self) -> bool:
        """Whether a solve did not converge or our own reference value is missed."""
        if self._unsolved:
            return True
        return self.expected is not None and not self.expected[0] <= self.ours <= self.expected[1]

    @property
    def verdict(self) -> str:
        """Whether it is the printed number, and why not."""
        if self._unsolved:
            return "not converged"
        if self.failed:
            return f"FAILS: our reference is {_span(self.expected)}"
        if self.printed is None:
            return self.because or ("our reference value" if self.expected else "")
        if abs(self.ours - self.printed) <= self.same * abs(self.printed):
            return "same"
        return f"differs, because {self.because}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for CSV and JSON, which know neither infinity nor NaN: None instead."""
        plain = {**asdict(self), "failed": self.failed, "verdict": self.verdict}
        plain["expected"] = None if self.expected is None else [_known(x) for x in self.expected]
        return {name: _known(value) for name, value in plain.items()}


@dataclass(frozen=True)
class Experiment:
    """A table or figure: its settings, how one is computed, its rows and its picture.

    Attributes
    ----------
    name, title, source : str
        Name on the command line, what it shows, and where it stands in the paper.
    cells : callable
        (quick, inputs) -> the settings, plain dicts; each is computed and stored on its own.
    compute : callable
        (setting, inputs) -> plain data that JSON can hold.
    rows : callable
        Finished cells, settings and results in one dict each -> rows of the table.
    draw : callable, optional
        (matplotlib Figure, finished cells) -> None.
    size : (float, float)
        Width and height of the figure in inches.
    needs : str
        "weather", "digits" or "images" when it reads data that do not come with nefele.
    notes : tuple of str, or callable
        What to know when reading it; a function of the finished cells where it depends on them.
    """

    name: str
    title: str
    source: str
    cells: Callable[[bool, Inputs], list[Cell]]
    compute: Callable[[Cell, Inputs], Cell]
    rows: Callable[[list[Cell]], list[Row]]
    draw: Callable[[Any, list[Cell]], None] | None = None
    size: tuple[float, float] = (9.0, 3.2)
    needs: str = ""
    notes: tuple[str, ...] | Callable[[list[Cell]], tuple[str, ...]] = field(default=())


@dataclass(frozen=True)
class Found:
    """A solve: its result, and what of it goes into a cell."""

    result: Result = field(repr=False)
    tol: float = TOL

    @property
    def w(self) -> Array:
        """Models, shape (n_nodes, d)."""
        return self.result.w

    def facts(self, **more: float) -> Cell:
        """Objective, certified gap and convergence as plain data, with further numbers."""
        return {
            "objective": float(self.result.objective),
            "gap": float(self.result.gap),
            "converged": bool(self.result.converged or self.result.gap <= self.tol),
            **{name: float(value) for name, value in more.items()},
        }


def exact(problem: Problem, tol: float = TOL) -> Found:
    """Solve to a certified gap.

    Examples
    --------
    >>> from nefele import Graph, LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> exact(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)).facts()["converged"]
    True
    """
    return Found(_solved(problem, tol=tol), tol)


def as_printed(problem: Problem, rounds: int) -> Found:
    """Algorithm 1 with the printed steps and number of iterations, converged or not.

    Examples
    --------
    >>> from nefele import Graph, LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> found = as_printed(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0), 100)
    >>> found.result.n_iter
    100
    """
    return Found(_solved(problem, solver="algorithm1", tol=None, max_iter=rounds))


def _solved(problem: Problem, **options: Any) -> Result:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the row says it
        warnings.simplefilter("ignore", DataWarning)
        result: Result = solve(problem, **options)
    if result.status is Status.INTERRUPTED:  # half a solve must not be stored
        raise KeyboardInterrupt
    return result


def mse(w: Array, true: Array) -> float:
    """Estimation error (1/n) sum_i ||w_i - true_i||^2 (NFL, Eq. (40)).

    Examples
    --------
    >>> mse(np.zeros((2, 2)), np.ones((2, 2)))
    2.0
    """
    return float(((w - true) ** 2).sum(axis=1).mean())


def near(value: float, rel: float) -> tuple[float, float]:
    """The range value * (1 -+ rel).

    Examples
    --------
    >>> near(10.0, 0.1)
    (9.0, 11.0)
    """
    return value - rel * abs(value), value + rel * abs(value)


def groups(cells: Iterable[Cell], *keys: str) -> dict[tuple[Any, ...], list[Cell]]:
    """The cells that agree in these settings, in the order they come.

    Examples
    --------
    >>> sorted(groups([{"a": 1, "seed": 0}, {"a": 1, "seed": 1}, {"a": 2, "seed": 0}], "a"))
    [(1,), (2,)]
    """
    found: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        found.setdefault(tuple(cell[key] for key in keys), []).append(cell)
    return found


def over_seeds(what: str, quantity: str, facts: Sequence[Cell], key: str, **more: Any) -> Row:
    """A row with mean and deviation of one number over the seeds, and their worst gap.

    Examples
    --------
    >>> facts = [{"mse": 1.0, "gap": 1e-9, "converged": True}, {"mse": 3.0}]
    >>> row = over_seeds("l1", "MSE (40)", facts, "mse")
    >>> row.ours, row.deviation, row.seeds, row.gap
    (2.0, 1.0, 2, 1e-09)
    """
    values = np.array([fact[key] for fact in facts], dtype=float)
    gaps = [fact["gap"] for fact in facts if fact.get("gap") is not None]
    return Row(
        what,
        quantity,
        float(values.mean()),
        float(values.std()) if len(values) > 1 else None,
        len(values),
        gap=max(gaps) if gaps else None,
        converged=all(fact.get("converged", True) for fact in facts),
        **more,
    )


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _span(expected: tuple[float, float] | None) -> str:
    assert expected is not None
    return f"{expected[0]:.6g} to {expected[1]:.6g}"
