"""A solve of data that are written by parts: who works on a part reads it, nobody reads all."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._progress import check_verbose, progress
from nefele.data import LocalData
from nefele.engines.costs import Costs, costs_of, warn_unsaved
from nefele.engines.files import read_index, read_part
from nefele.engines.places import all_parts, as_folder, made_folder, new_folder, place, write_facts
from nefele.engines.result import advice_of
from nefele.engines.running import run_job
from nefele.engines.solving import check_engine, keep_in, make_plan
from nefele.engines.tables import PartsIndex, PartTable
from nefele.engines.terms import Terms, mark, terms_of
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.result import Record, Status
from nefele.runtime.job import Job
from nefele.runtime.part import Part
from nefele.runtime.plan import Ended
from nefele.solvers.loop import Callback
from nefele.solvers.loop.ending import warn_unreached
from nefele.solvers.loop.telling import telling
from nefele.solvers.primal_dual.fused import Fused

_RESULT = "result"


@dataclass(frozen=True)
class FolderPart:
    """A part that its worker reads from a folder, and whose result it writes into another."""

    folder: str
    number: int
    index: PartsIndex = field(repr=False)
    terms: Terms
    out: str

    def open(self) -> Part:
        table = read_part(self.folder, self.number, self.index)
        return part_of(table, self.number, self.index, self.terms)

    def opened(self) -> FolderPart:
        return self

    def close(self, part: Part, ended: Ended) -> Ended:
        """Write the own nodes' parameters; what goes back has none."""
        import polars as pl

        names = self.terms.names(self.index)
        found = {self.index.node: part.ids, **dict(zip(names, ended.w.T, strict=True))}
        pl.DataFrame(found).write_parquet(place(self.out, f"part-{self.number:05d}.parquet"))
        ended.w, ended.u = np.zeros((0, part.d)), np.zeros((0, part.d))
        return ended


def part_of(table: PartTable, number: int, index: PartsIndex, terms: Terms) -> Part:
    """A part from its own table: as if it were cut from the whole network, which nobody has."""
    graph = Graph(
        table.ids,
        np.searchsorted(table.position, table.head),
        np.searchsorted(table.position, table.tail),
        table.weight,
    )
    X = np.hstack([table.X, np.ones((len(table.y), 1))]) if terms.intercept else table.X
    ptr = np.concatenate([[0], np.cumsum(table.counts)])
    data = LocalData(X, table.y, ptr, table.ids, shrink=terms.shrink(X.shape[1]))
    problem = Problem(graph, data, terms.loss, terms.penalty, lam=terms.lam)
    own = np.flatnonzero(table.part == number)
    part = Part(number, problem, own, table.part, list(range(len(index.parts))))
    part.nodes, part.ends = table.position[own], np.stack([table.head, table.tail])
    part.edges = np.arange(graph.n_edges)
    part.ids = table.ids[own]
    part.whole, part.steady = len(index.parts) == 1, True
    part.coupled = index.total("edges") > 0
    part.parts, part.n_parts = table.component, index.components
    part.loss.sized(index.total("nodes"), index.total("rows"))
    part.compiled = Fused.fits(problem, index.total("edges"))
    part.uniform = len(weights(index)) == 1
    return part


def weights(index: PartsIndex) -> set[float]:
    """Least and largest weight of all edges."""
    ends = [value for part in index.parts for value in (part.lightest, part.heaviest)]
    return {value for value in ends if value == value}


@dataclass(frozen=True)
class PartsFit:
    """Where a solve of a folder of parts has ended; parameters are in files.

    Attributes
    ----------
    out : str
        Folder with one Parquet file per part: the id of each node and its parameters.
    objective, gap, gap_abs : float
    certificate : str
    status : Status
    n_iter : int
    history : list of Record
    costs : Costs

    Examples
    --------
    >>> costs = Costs("ray", [], seconds=4.0)
    >>> PartsFit("fit", 2.0, 1e-5, 2e-5, "dual", Status.OPTIMAL, 100, [], costs).converged
    True
    """

    out: str
    objective: float
    gap: float
    gap_abs: float
    certificate: str
    status: Status
    n_iter: int
    history: list[Record] = field(repr=False)
    costs: Costs = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether the certified gap is within the tolerance."""
        return self.status is Status.OPTIMAL

    @property
    def advice(self) -> str:
        """What the user may do."""
        return advice_of(self.status)

    def parameters(self) -> Any:
        """All parameters as one polars LazyFrame, which is read as far as it is needed."""
        import polars as pl

        return pl.scan_parquet(place(self.out, "part-*.parquet"))


def solve_parts(
    folder: Any,
    out: Any,
    *,
    lam: float,
    loss: Any = "squared",
    penalty: Any = "l2",
    intercept: bool = True,
    solver: Any = "auto",
    tol: float | None = 1e-4,
    max_iter: int | None = None,
    callback: Callback | None = None,
    engine: str = "ray",
    checkpoint: Any = None,
    every: int = 100,
    resume: Any = None,
    address: str | None = None,
    verbose: bool | int = False,
) -> PartsFit:
    """Solve the problem of a folder of parts; parameters are written, not returned.

    Features are taken as they are: scale those of unlike size before.

    Parameters
    ----------
    folder : str or Path
        Written by `partition`.
    out : str or Path
        New or empty folder for the parameters, which all workers can write; it may be one of an
        object store.
    lam : float
        Strength of the coupling, > 0.
    loss, penalty : str or object
        As for `nefele.Problem`, the same for all nodes and for all edges. The parameters of
        several classes are columns such as `size [0]`, `size [1]`.
    intercept : bool
        Whether each node has an intercept, too.
    solver, tol, max_iter, callback, engine, checkpoint, every, resume, address, verbose
        As for `nefele.solve`.

    Returns
    -------
    PartsFit

    Examples
    --------
    >>> import tempfile
    >>> import polars as pl
    >>> from nefele.engines import partition
    >>> with tempfile.TemporaryDirectory() as at:
    ...     rows = pl.DataFrame({"shop": [1, 2, 3, 4], "x": [1.0] * 4, "y": [1.0, 1, 3, 3]})
    ...     rows.write_parquet(f"{at}/rows.parquet")
    ...     pairs = pl.DataFrame({"source": [1, 2, 3], "target": [2, 3, 4]})
    ...     pairs.write_parquet(f"{at}/edges.parquet")
    ...     names = {"node": "shop", "target": "y"}
    ...     where = f"{at}/rows.parquet", f"{at}/edges.parquet"
    ...     index = partition(*where, parts=2, out=f"{at}/parts", **names)
    ...     options = {"lam": 0.5, "intercept": False, "engine": "in_process"}
    ...     fit = solve_parts(f"{at}/parts", f"{at}/fit", **options)
    ...     found = fit.parameters().sort("shop").collect()["x"].round(1).to_list()
    >>> fit.converged, found
    (True, [1.1, 1.1, 2.9, 2.9])
    """
    check_engine(engine, address)
    check_verbose(verbose)
    plan = make_plan(solver, tol, max_iter)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable; got {callback!r}.")
    where = as_folder(folder, "folder")
    index = read_index(where)
    terms = terms_of(loss, penalty, lam, intercept, index)
    to = new_folder(out, _RESULT)
    kept = keep_in(checkpoint, resume, every, plan, lambda: mark(index, terms))
    job = Job(plan, {k: part.neighbours for k, part in enumerate(index.parts)}, kept)
    numbers = range(len(index.parts))
    sources = [FolderPart(where, number, index, terms, to) for number in numbers]
    started = time.perf_counter()
    with made_folder(to), all_parts(to), progress(verbose) as line:
        watch = telling(callback, line, tol)
        done, lost = run_job(engine, job, sources, watch, address)
    costs = costs_of(engine, done, time.perf_counter() - started, lost)
    warn_unsaved(done)
    names = ("objective", "gap", "gap_abs", "certificate", "status", "n_iter", "history")
    facts: dict[str, Any] = {name: getattr(done[0].ended, name) for name in names}
    write_facts(to, _RESULT, _told(facts, terms.lam, costs))
    fit = PartsFit(to, **facts, costs=costs)
    warn_unreached(fit.status, fit.n_iter, fit.gap, tol, "relative gap", fit.advice)
    return fit


def _told(facts: dict[str, Any], lam: float, costs: Costs) -> dict[str, Any]:
    """What is written of the end; JSON knows no infinite numbers, so that they are null there."""
    rows = [[_finite(value) for value in record] for record in facts["history"]]
    told = {name: _finite(value) for name, value in facts.items()}
    return {**told, "history": rows, "lam": lam, "costs": str(costs)}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
