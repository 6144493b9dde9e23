"""What every worker of the benchmark of exchanges does."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from nefele.program import Exchange
from nefele.runtime.halves import halves
from nefele.runtime.job import Job
from nefele.solvers.base import settled
from nefele.solvers.steps import first_steps

BLOCKS, EACH = 8, 40  # of each kind in turn
KINDS = ("iteration", "spin", "sweep", "empty")
_SWEPT = 2_500_000  # numbers, 20 MB: what an iteration leaves of the caches


class Timed(Job):
    """Blocks of iterations and of three kinds of exchanges without them, in turn.

    "spin" waits on the clock for as long as this part's iterations take, so that both parts come to
    the exchange as they do in an iteration; "sweep" goes over memory; "empty" does nothing.
    """

    def program(self, part, number, watch):
        part.w = settled(part, part.w, part.graph.degree[part.own] == 0)
        steps = yield from first_steps(part, False, None)
        at = halves(part, steps.size, part.compiled)
        at.set_steps(steps.gamma, steps.tau, steps.sigma)
        memory = np.zeros(_SWEPT)
        found = {name: ([], []) for name in KINDS}
        ask = next(at.step(1.9))
        rows = {neighbour: array.copy() for neighbour, array in ask.arrays.items()}

        def spin():
            until = time.perf_counter() + np.median(found["iteration"][1])
            while time.perf_counter() < until:
                pass

        def sweep():
            np.add(memory, 1.0, out=memory)

        ways = (lambda: at.step(1.9), *(_bare(rows, work) for work in (spin, sweep, int)))
        for _ in range(BLOCKS):
            for name, way in zip(KINDS, ways, strict=True):
                times = yield from _periods(way)
                for kept, new in zip(found[name], times, strict=True):
                    kept.extend(new)
        sent = sum(array.nbytes for array in rows.values())
        return {name: np.array(times) for name, times in found.items()}, sent


def _bare(rows, work):
    """An exchange of as many bytes after some work, again and again."""

    def step():
        work()
        yield Exchange("parameters", rows)

    return step


def _periods(way):
    """Seconds from answer to answer, and of the work in them: all parts are in step then."""
    periods, busy, before = [], [], None
    for _ in range(EACH):
        program = way()
        ask, meanwhile = _timed(next(program))
        told = time.perf_counter()
        heard = yield ask
        came = time.perf_counter()
        if before is not None:
            periods.append(came - before)
            busy.append(told - before + sum(meanwhile))
        before = came
        try:
            program.send(heard)
        except StopIteration:
            continue
    return periods, busy


def _timed(ask):
    """The same request, and a list that will hold the seconds of the work that goes with it."""
    seconds = []

    def work():
        started = time.perf_counter()
        ask.meanwhile()
        seconds.append(time.perf_counter() - started)

    done = ask if ask.meanwhile is None else dataclasses.replace(ask, meanwhile=work)
    return done, seconds
