"""What a solve by parts costs by edge, and what that predicts for more edges.

    python benchmarks/engines_costs.py             # measure, predict 1e7 edges, check, a table
    python benchmarks/engines_costs.py --check 0   # without the check

Grids as in `engines.py ten_million`, written by parts and solved in one process by the programs of
all engines. Seconds are those of a core (CPU time), so that other work on the machine counts
little; messages come on top, as `engines.py overhead` measures them. Each run has a process of its
own.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from typing import NamedTuple

for _name in ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from engines import write_strip  # noqa: E402
from million import alone, peak_memory  # noqa: E402

from nefele.engines import PartsIndex, solve_parts, write_index  # noqa: E402
from nefele.engines.folder import FolderPart, Terms  # noqa: E402
from nefele.engines.running import run_job  # noqa: E402
from nefele.losses import as_loss  # noqa: E402
from nefele.penalties import as_penalty  # noqa: E402
from nefele.result import Status  # noqa: E402
from nefele.runtime.halves import halves, iteration  # noqa: E402
from nefele.runtime.job import Job  # noqa: E402
from nefele.runtime.plan import Ended, Plan  # noqa: E402
from nefele.solvers import PrimalDual  # noqa: E402
from nefele.solvers.base import settled  # noqa: E402
from nefele.solvers.steps import first_steps  # noqa: E402

PARTS, D, FEW, MANY = 4, 2, 10, 50
LATENCY = {"Ray": 2.5e-3, "MPI": 0.02e-3}  # seconds of an exchange, from engines.py overhead
ITERATIONS, SUMS = 150, 400  # of a solve to 1e-3 on instance e, sums and exchanges of its proofs


class Costs(NamedTuple):
    """Of a solve with so many edges: seconds to open, of an iteration, of a proof; GB."""

    edges: int
    opening: float
    iteration: float
    proof: float
    memory: float


class Iterations(Job):
    """So many iterations without a proof."""

    def program(self, part, number, watch):
        part.w = settled(part, part.w, part.graph.degree[part.own] == 0)
        steps = yield from first_steps(part, False, None)
        at = halves(part, steps.size, part.compiled)
        at.set_steps(steps.gamma, steps.tau, steps.sigma)
        for _ in range(self.plan.max_iter):
            yield from iteration(at, 1.9)
        return Ended(part.w, part.u, *[0.0] * 3, "none", 0.0, Status.FINISHED, 0, [])


def spent(call) -> float:
    """CPU seconds of a call."""
    started = time.process_time()
    call()
    return time.process_time() - started


def measured(nodes: int) -> Costs:
    """Costs of a grid, in CPU seconds of one core and GB of all parts together."""
    costs_of(22_500)  # loads the compiled code
    return costs_of(nodes)


def costs_of(nodes: int) -> Costs:
    side = round(nodes**0.5)
    folder = tempfile.mkdtemp(prefix="nefele-parts-", dir=os.environ.get("BENCH_FOLDER"))
    try:
        entries = [write_strip(folder, k, PARTS, side, side, D) for k in range(PARTS)]
        index = PartsIndex([f"x{j}" for j in range(D)], "y", "node", 1, entries)
        write_index(folder, index)
        terms = Terms(as_loss("squared"), as_penalty("l2"), 0.2, False)
        parts = [FolderPart(folder, k, index, terms, folder) for k in range(PARTS)]
        opening = spent(lambda: [part.open() for part in parts])
        links = {k: part.neighbours for k, part in enumerate(index.parts)}

        def iterate(count: int) -> None:
            job = Iterations(Plan(PrimalDual(polish=False), None, count), links)
            kept = [Kept(part.open()) for part in parts]
            times.append(spent(lambda: run_job("in_process", job, kept, None, None)))

        times: list[float] = []
        iterate(FEW)
        iterate(MANY)
        each = (times[1] - times[0]) / (MANY - FEW)
        options = {"lam": 0.2, "intercept": False, "engine": "in_process", "max_iter": FEW}
        whole = spent(lambda: solve_parts(folder, f"{folder}-fit", tol=None, **options))
        proof = whole - opening - times[0]
        return Costs(index.total("edges"), opening, each, proof, peak_memory())
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(f"{folder}-fit", ignore_errors=True)


class Kept(NamedTuple):
    """A part that is open already."""

    part: object

    def open(self):
        return self.part

    def opened(self):
        return self

    def close(self, part, ended):
        return ended


def line(points: list[Costs], name: str, edges: float) -> float:
    """A cost of so many edges: a straight line through the two measured ones."""
    (a, b), values = points, [getattr(point, name) for point in points]
    slope = (values[1] - values[0]) / (b.edges - a.edges)
    return max(values[0] + slope * (edges - a.edges), 0.0)


def table(points: list[Costs]) -> None:
    """Time and memory of a solve to 1e-3, by edges and cores."""
    print(
        "| edges | cores | GB in all | opening, s | an iteration, s | a solve by Ray, min | MPI |"
    )
    print("|---|---|---|---|---|---|---|")
    for edges, cores in ((1e7, 4), (1e8, 32), (1e9, 256)):
        names = ("opening", "iteration", "proof", "memory")
        opening, iteration, proof, memory = (line(points, name, edges) for name in names)
        minutes = []
        for latency in LATENCY.values():
            messages = latency * (ITERATIONS + SUMS * 2 * np.sqrt(cores))  # up a tree, and down
            work = (opening + ITERATIONS * iteration + proof) / cores
            minutes.append(f"{(work + messages) / 60:.2g}")
        print(
            f"| {edges:.0e} | {cores} | {memory:.3g} | {opening / cores:.2g} | "
            f"{iteration / cores:.2g} | {' | '.join(minutes)} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs=2, default=[250_000, 1_000_000])
    parser.add_argument("--check", type=int, default=2_500_000, help="nodes; 0: no check")
    given = parser.parse_args()
    points = []
    for nodes in given.nodes:
        points.append(alone(measured, nodes))
        print(points[-1], flush=True)
    if given.check:
        found = alone(measured, given.check)
        print(found)
        for name in Costs._fields[1:]:
            told, real = line(points, name, found.edges), getattr(found, name)
            print(f"  {name}: predicted {told:.3g}, measured {real:.3g}, ratio {told / real:.2f}")
    table(points)


if __name__ == "__main__":
    main()
