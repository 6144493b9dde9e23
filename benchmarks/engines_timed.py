"""What every worker of the benchmark of exchanges does."""

from __future__ import annotations

import time

import numpy as np

from nefele.program import Exchange
from nefele.runtime.halves import halves
from nefele.runtime.job import Job
from nefele.solvers.base import settled
from nefele.solvers.steps import first_steps

BLOCKS, EACH = 8, 40  # iterations and empty exchanges in turn


class Timed(Job):
    """Blocks of iterations, and of exchanges of the same rows without any work, in turn."""

    def program(self, part, number, watch):
        part.w = settled(part, part.w, part.graph.degree[part.own] == 0)
        steps = yield from first_steps(part, False, None)
        at = halves(part, steps.size, part.compiled)
        at.set_steps(steps.gamma, steps.tau, steps.sigma)
        periods, work, empty = [], [], []
        for _ in range(BLOCKS):
            rows, before = at.nodes(1.9), None
            for _ in range(EACH):
                told = time.perf_counter()
                heard = yield Exchange("parameters", rows)
                came = time.perf_counter()
                if before is not None:  # since the rows of the last iteration came: all in step
                    periods.append(came - before)
                    work.append(told - before)
                before = came
                at.edges(1.9, heard.rows)
                rows = at.nodes(1.9)
            yield Exchange("parameters", rows)
            for _ in range(EACH):
                began = time.perf_counter()
                yield Exchange("parameters", rows)
                empty.append(time.perf_counter() - began)
        sent = sum(told.nbytes for told in rows.values())
        return np.array(periods), np.array(work), np.array(empty), sent
