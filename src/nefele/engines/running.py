"""A job on an engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from nefele.program import Exchange, Program
from nefele.result import Record
from nefele.runtime.drivers.in_process import InProcess
from nefele.runtime.drivers.line import Costs
from nefele.runtime.job import Done, Job

T = TypeVar("T")
Watch = Callable[[Record], Any]

_RESTARTS = 20  # workers that may be lost in one solve


def _in_process(job: Job, sources: list[Any], watch: Watch | None) -> tuple[list[Done], int]:
    parts = []
    for k, source in enumerate(sources):
        parts.append(source.open())
        sources[k] = source.opened()
    watches: list[Watch] = [lambda record: None for _ in parts]
    watches[0] = watch or watches[0]
    programs = {
        part.name: job.program(part, part.name, told)
        for part, told in zip(parts, watches, strict=True)
    }
    costs = {part.name: Costs() for part in parts}
    timed = {name: _timed(program, costs[name]) for name, program in programs.items()}
    ended = InProcess(job.links, timed, finite=False).run()
    return [
        Done(
            source.close(part, ended[part.name]),
            costs[part.name],
            len(part.nodes),
            part.graph.n_edges,
            part.graph.n_nodes - len(part.nodes),
        )
        for source, part in zip(sources, parts, strict=True)
    ], 0


def _timed(program: Program[T], costs: Costs) -> Program[T]:
    """The program, with the seconds of its own work and what it sends counted."""
    answer: Any = None
    while True:
        started = time.perf_counter()
        try:
            request = program.send(answer)
        except StopIteration as end:
            return end.value
        finally:
            costs.compute += time.perf_counter() - started
        if isinstance(request, Exchange):
            costs.exchanges += 1
            costs.messages += len(request.arrays)
            costs.bytes += sum(rows.nbytes for rows in request.arrays.values())
        answer = yield request


def run_job(
    engine: str, job: Job, sources: list[Any], watch: Watch | None, address: str | None
) -> tuple[list[Done], int]:
    """What the parts give back, and how many workers were lost; the list of sources is used up."""
    if engine == "in_process":
        _begin(job)
        return _in_process(job, sources, watch)
    if engine == "mpi":
        from nefele.runtime.drivers.mpi_ranks import run_ranks

        _begin(job)  # processes of a scheduler do so before they hear of each other
        return run_ranks(job, sources, watch, _RESTARTS)
    from nefele.runtime.drivers.ray_actors import Actors
    from nefele.runtime.drivers.ray_cluster import Connected

    with Connected(address, job.parts):
        _begin(job)
        actors = Actors(job, sources, _RESTARTS, watch)
        return actors.run(), actors.lost


def _begin(job: Job) -> None:
    if job.kept is not None:
        job.kept.begin()


ENGINES = ("in_process", "ray", "mpi")
