"""Solves by parts on Ray and by MPI: what messages cost, a million nodes, ten million nodes.

    python benchmarks/engines.py overhead            # P = 2 against an empty exchange, both engines
    python benchmarks/engines.py million --side 1000 # 4 parts to 1e-3, beside one process and Dask
    python benchmarks/engines.py ten_million         # generated and written by parts, 20 iterations

Ray and MPI run on this machine alone. Every figure is of one run; ratios are of the same run.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

import instances
import numpy as np
import psutil
from engines_timed import BLOCKS, EACH, KINDS, Timed

from nefele import solve
from nefele.engines import PartsIndex, PartTable, solve_parts, write_index, write_part
from nefele.engines.running import run_job
from nefele.runtime.cutting import cut
from nefele.runtime.job import Packed, links_of
from nefele.runtime.plan import Plan
from nefele.solvers import PrimalDual

STEPS = PrimalDual(polish=False)


# -- what an exchange costs -------------------------------------------------------------------


def overhead(side: int, engines: list[str]) -> None:
    """Seconds of an iteration beyond the work of the slower part, against an empty exchange."""
    made = cut(instances.e(side), 2)
    job = Timed(Plan(STEPS, None, 1), links_of(made))
    print(f"overhead, {side * side:,} nodes, 2 parts, {BLOCKS * EACH} iterations")
    for engine in engines:
        done, _ = run_job(engine, job, [Packed.of(part) for part in made], None, None)
        (times, sent), (others, _) = (one.ended for one in done)
        beyond = {
            name: periods - np.maximum(busy, others[name][1])
            for name, (periods, busy) in times.items()
        }
        busy = np.maximum(times["iteration"][1], others["iteration"][1])
        print(f"  {engine}: {sent:,} bytes each way; work {1e3 * np.median(busy):.2f} ms")
        for name, share in (("median", 0.5), ("best tenth", 0.1)):  # others may use the cores
            ours, spun, swept, empty = (1e3 * np.quantile(beyond[kind], share) for kind in KINDS)
            print(
                f"    {name}: beyond the work {ours:.3f} ms; exchange after as long a wait "
                f"{spun:.3f} ms, after a sweep of memory {swept:.3f} ms, empty {empty:.3f} ms; "
                f"ratios {ours / spun:.2f}, {ours / swept:.2f} and {ours / empty:.2f}",
                flush=True,
            )


# -- a million nodes --------------------------------------------------------------------------


class Memory:
    """Most memory that this process and all that it has started hold together, in GB."""

    def __enter__(self):
        self.most, self.over = 0.0, threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()

    def _watch(self):
        me = psutil.Process()
        while not self.over.wait(0.5):
            held = 0
            for process in [me, *me.children(recursive=True)]:
                try:
                    info = process.memory_info()
                    held += info.rss - info.shared  # what is shared is counted by none
                except psutil.Error:
                    continue
            self.most = max(self.most, held / 2**30)


def million(side: int, tol: float, engines: list[str], parts: int) -> None:
    """One problem to a certified gap: one process, Ray, MPI, and Dask's seconds an iteration."""
    problem = instances.e(side)
    print(f"{side * side:,} nodes, {problem.graph.n_edges:,} edges, certified to {tol:g}")
    ways = {
        "one process": {},
        "one process, nothing polished": {"solver": STEPS},
        **{engine: {"engine": engine, "parts": parts} for engine in engines if engine != "dask"},
    }
    for name, options in ways.items():
        started = time.perf_counter()
        with Memory() as memory:
            result = solve(problem, tol=tol, **options)
        print(
            f"  {name}: {time.perf_counter() - started:.1f} s, {result.n_iter} iterations, gap "
            f"{result.gap:.1e}, {result.status}, {memory.most:.1f} GB",
            flush=True,
        )
        if options.get("engine"):
            print(f"    {result.costs}")
            made = cut(problem, parts)
            job = Timed(Plan(STEPS, None, 1), links_of(made))
            done, _ = run_job(name, job, [Packed.of(part) for part in made], None, None)
            print(
                f"    {1e3 * np.median(done[0].ended[0]['iteration'][0]):.1f} ms an iteration",
                flush=True,
            )
    if "dask" in engines:
        from engines_dask import dask_iterations

        print(f"  Dask actors, rows by way of the client: {dask_iterations(problem, parts, 30)}")


# -- ten million nodes ------------------------------------------------------------------------


def write_strip(folder: str, number: int, parts: int, rows: int, columns: int, d: int) -> object:
    """One strip of a grid with 8 neighbours, made and written without the others."""
    first, last = (rows * k // parts for k in (number, number + 1))
    low, high = max(first - 1, 0), min(last + 1, rows)  # a row of cells of each neighbour
    position = np.arange(low * columns, high * columns)
    row, column = position // columns, position % columns
    ends = []
    for down, right in ((0, 1), (1, -1), (1, 0), (1, 1)):
        there = (row + down < high) & (column + right >= 0) & (column + right < columns)
        head = position[there]
        ends.append(np.stack([head, head + down * columns + right]))
    head, tail = np.concatenate(ends, axis=1)
    near = [(first <= e // columns) & (e // columns < last) for e in (head, tail)]
    order = np.flatnonzero(near[0] | near[1])
    order = order[np.lexsort((tail[order], head[order]))]
    part = np.full(len(position), number)
    part[row < first], part[row >= last] = number - 1, number + 1
    rng = np.random.default_rng(number)
    own = part == number
    counts = np.where(own & (rng.random(len(own)) < 0.6), 4, 0)
    truth = 2 * np.random.default_rng(-1 % 2**32).standard_normal((64, d))
    square = 8 * (8 * row // rows) + 8 * column // columns
    X = rng.standard_normal((counts.sum(), d))
    y = np.einsum("ij,ij->i", X, truth[np.repeat(square, counts)])
    y += 0.2 * rng.standard_normal(len(y))
    table = PartTable(
        position, part, np.zeros(len(position), dtype=int), position, counts, X, y,
        head[order], tail[order], np.ones(len(order)),
    )  # fmt: skip
    return write_part(folder, number, table, [f"x{j}" for j in range(d)])


def ten_million(nodes: int, parts: int, d: int, engine: str, n_iter: int) -> None:
    """A grid that nobody ever holds as a whole: made, written, read and solved by parts."""
    side = round(nodes**0.5)
    folder = tempfile.mkdtemp(prefix="nefele-parts-", dir=os.environ.get("BENCH_FOLDER"))
    try:
        started = time.perf_counter()
        entries = [write_strip(folder, k, parts, side, side, d) for k in range(parts)]
        write_index(folder, PartsIndex([f"x{j}" for j in range(d)], "y", "node", 1, entries))
        size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**30
        print(
            f"{side * side:,} nodes, {sum(e.edges for e in entries):,} edges, d = {d}, {parts} "
            f"parts: written in {time.perf_counter() - started:.0f} s, {size:.1f} GB",
            flush=True,
        )
        started = time.perf_counter()
        with Memory() as memory:
            fit = solve_parts(
                folder, f"{folder}-fit", lam=0.2, intercept=False, engine=engine, tol=None,
                max_iter=n_iter,
            )  # fmt: skip
        print(
            f"  {engine}: {n_iter} iterations and a certificate in "
            f"{time.perf_counter() - started:.0f} s, gap {fit.gap:.1e}, at most "
            f"{memory.most:.1f} GB in all processes\n    {fit.costs}"
        )
        for number, part in enumerate(fit.costs.parts):
            shown = {k: round(v, 1) for k, v in dataclasses.asdict(part).items()}
            print(f"    part {number}: {shown}")
    finally:
        shutil.rmtree(folder)
        shutil.rmtree(f"{folder}-fit", ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["overhead", "million", "ten_million"])
    parser.add_argument("--side", type=int, default=None, help="of the grid")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--engines", nargs="*", default=["ray", "mpi", "dask"])
    parser.add_argument("--nodes", type=int, default=10_000_000)
    parser.add_argument("--d", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=20)
    given = parser.parse_args()
    here = str(Path(__file__).parent)  # workers must find what is timed
    os.environ["PYTHONPATH"] = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    if given.what == "overhead":
        overhead(given.side or 316, [name for name in given.engines if name != "dask"])
    elif given.what == "million":
        million(given.side or 1000, given.tol, given.engines, given.parts)
    else:
        ten_million(given.nodes, given.parts, given.d, given.engines[0], given.iterations)


if __name__ == "__main__":
    main()
