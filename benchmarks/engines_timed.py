"""What every worker of the benchmark of exchanges does."""

from __future__ import annotations

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
        rows = told = at.nodes(1.9)  # always as many bytes

        def iterate(heard):
            at.edges(1.9, heard.rows)
            return at.nodes(1.9)

        def spin(heard):
            until = time.perf_counter() + np.median(found["iteration"][1])
            while time.perf_counter() < until:
                pass
            return told

        def sweep(heard):
            np.add(memory, 1.0, out=memory)
            return told

        def nothing(heard):
            return told

        for _ in range(BLOCKS):
            for name, work in zip(KINDS, (iterate, spin, sweep, nothing), strict=True):
                *times, after = yield from _periods(rows, work)
                rows = after if work is iterate else rows
                for kept, new in zip(found[name], times, strict=True):
                    kept.extend(new)
        sent = sum(array.nbytes for array in rows.values())
        return {name: np.array(times) for name, times in found.items()}, sent


def _periods(rows, work):
    """Seconds from answer to answer, and of the work in them: all parts are in step then."""
    periods, busy, before = [], [], None
    for _ in range(EACH):
        told = time.perf_counter()
        heard = yield Exchange("parameters", rows)
        came = time.perf_counter()
        if before is not None:
            periods.append(came - before)
            busy.append(told - before)
        before = came
        rows = work(heard)
    return [periods, busy, rows]
