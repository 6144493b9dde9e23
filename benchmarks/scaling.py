"""How time and memory grow: 10k, 100k, 1M nodes on a grid, d = 5, squared loss, l2.

Run by `make bench-scaling`; writes benchmarks/results/scaling.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np

SIDES = (100, 316, 1000)
D, ROWS = 5, 3


def instance(side: int):
    """A grid of 4 neighbours; every node has ROWS rows from one of 64 squares' models."""
    from nefele import LocalData, Problem
    from nefele.graphs import grid

    rng = np.random.default_rng(0)
    n = side * side
    place = np.arange(n)
    square = 8 * (8 * (place // side) // side) + 8 * (place % side) // side
    true = 2 * rng.standard_normal((64, D))[square]
    X = rng.standard_normal((n * ROWS, D))
    y = np.einsum("rj,rj->r", X, np.repeat(true, ROWS, axis=0))
    y += 0.2 * rng.standard_normal(n * ROWS)
    data = LocalData(X, y, np.arange(0, n * ROWS + 1, ROWS))
    return Problem(grid(side, side), data, penalty="l2", lam=0.2)


def measure(side: int, iterations: int, queue: multiprocessing.Queue) -> None:
    from nefele.solvers import PrimalDual

    started = time.perf_counter()
    problem = instance(side)
    solver = PrimalDual()
    n, E = problem.graph.n_nodes, problem.graph.n_edges
    state = solver.init(problem, np.zeros((n, D)), np.zeros((E, D)))
    solver.step(problem, state)
    ready = time.perf_counter()
    for _ in range(iterations):
        solver.step(problem, state)
    each = (time.perf_counter() - ready) / iterations
    certificate = time.perf_counter()
    problem.certificate(state.extra["w1"], state.extra["u1"])
    certificate = time.perf_counter() - certificate
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    queue.put((n, E, ready - started, each, certificate, peak))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    rows = []
    for side in SIDES:
        queue = context.Queue()
        worker = context.Process(target=measure, args=(side, 2_000_000 // side**2 + 5, queue))
        worker.start()
        rows.append(queue.get())
        worker.join()
        print(
            "nodes {}  edges {}  set-up {:.2f} s  iteration {:.5f} s  certificate {:.2f} s  "
            "peak {:.2f} GB".format(*rows[-1]),
            flush=True,
        )
    sizes, times = np.array([r[0] for r in rows]), np.array([r[3] for r in rows])
    exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    lines = [
        "| nodes | edges | set-up, s | iteration, ms | certificate, s | peak memory, GB |",
        "|---|---|---|---|---|---|",
        *(
            f"| {n:,} | {e:,} | {a:.2f} | {1e3 * t:.3g} | {c:.2f} | {m:.2f} |"
            for n, e, a, t, c, m in rows
        ),
        "",
        f"Exponent of the time per iteration: {exponent:.3f}.",
    ]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "scaling.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(lines[-1])


if __name__ == "__main__":
    main()
