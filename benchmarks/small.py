"""Small problems: what a solve takes beside its arithmetic.

    python benchmarks/small.py [--nodes 10 30 100 300]

A problem is solved alone, and as two and as four copies of itself that nothing joins: these take
the same steps, so that only arithmetic grows. What each copy takes more, from two to four, is taken
off the time of one: the rest is overhead. Nodes with 3 parameters and 5 rows on a grid, lam .1, to
a certified gap of 1e-6, "auto". CPU milliseconds, one thread, the least of nine solves of fresh
problems. Writes benchmarks/results/small.md.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from nefele import Graph, LocalData, Problem, Result, solve
from nefele.graphs import grid
from nefele.solvers import as_solver

RESULTS = Path(__file__).parent / "results" / "small.md"
LOSSES = ("squared", "logistic", "poisson", "huber", "absolute", "hinge")
PENALTIES = ("l2", "l1", "squared_l2", "linf")
COPIES, REPEATS = (1, 2, 4), 9
D, ROWS, LAM, TOL = 3, 5, 0.1, 1e-6
ASKED = 5.0


def posed(nodes: int, loss: str, penalty: str, copies: int) -> Problem:
    """So many copies of one problem, with an edge inside each only."""
    rng = np.random.default_rng(0)
    side = int(np.sqrt(nodes))
    graph = grid(side, nodes // side)
    n = graph.n_nodes
    true = np.where(np.arange(n)[:, None] < n // 2, 1.0, -1.0) * rng.normal(size=D)
    X = rng.normal(size=(ROWS * n, D))
    mean = (X * np.repeat(true, ROWS, axis=0)).sum(axis=1)
    y = {
        "logistic": lambda: np.where(rng.random(len(mean)) < 1 / (1 + np.exp(-mean)), 1.0, -1.0),
        "hinge": lambda: np.sign(mean + rng.normal(size=len(mean))),
        "poisson": lambda: rng.poisson(np.exp(np.clip(mean, -3, 3))).astype(float),
    }.get(loss, lambda: mean + 0.3 * rng.normal(size=len(mean)))()
    shift = n * np.repeat(np.arange(copies), graph.n_edges)
    ends = (np.tile(end, copies) + shift for end in (graph.head, graph.tail))
    many = Graph(np.arange(copies * n), *ends)
    ptr = np.arange(0, copies * n * ROWS + 1, ROWS)
    data = LocalData(np.tile(X, (copies, 1)), np.tile(y, copies), ptr)
    return Problem(many, data, loss=loss, penalty=penalty, lam=LAM)


def timed(nodes: int, loss: str, penalty: str, copies: int) -> tuple[float, Result]:
    """CPU milliseconds of a fresh solve, the least of some, and its result."""
    best = np.inf
    for _ in range(REPEATS):
        problem = posed(nodes, loss, penalty, copies)
        started = time.process_time()
        result = solve(problem, tol=TOL)
        best = min(best, 1e3 * (time.process_time() - started))
    return best, result


def row(nodes: int, loss: str, penalty: str) -> tuple[str, float]:
    """One line of the table, and the overhead."""
    runs = [timed(nodes, loss, penalty, copies) for copies in COPIES]
    times = [ms for ms, _ in runs]
    steps = [result.n_iter for _, result in runs]
    each = (times[2] - times[1]) / 2
    overhead = times[0] - max(each, 0.0)
    result = runs[0][1]
    method = type(as_solver("auto", result.problem)).__name__
    cells = [f"{nodes}", f"{loss}, {penalty}", method, "/".join(map(str, steps))]
    cells += [f"{times[0]:.1f}", f"{each:.1f}", f"{overhead:.1f}", f"{result.gap:.0e}"]
    return "| " + " | ".join(cells) + " |", overhead


def main() -> None:
    """Solve all cases and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 30, 100, 300])
    parser.add_argument("--losses", nargs="+", default=LOSSES)
    parser.add_argument("--penalties", nargs="+", default=PENALTIES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    head = "nodes | loss, penalty | method | steps of 1/2/4 copies | one, ms | each more, ms"
    lines = [f"| {head} | overhead, ms | gap |", "|---" * 8 + "|"]
    found = []
    for nodes in given.nodes:
        for loss in given.losses:
            for penalty in given.penalties:
                text, overhead = row(nodes, loss, penalty)
                lines.append(text)
                found.append(overhead)
                print(text, flush=True)
    below = sum(one <= ASKED for one in found)
    note = f"{below} of {len(found)} need at most {ASKED:g} ms beside their arithmetic; "
    note += f"median {np.median(found):.1f}, most {max(found):.1f}."
    print(note)
    text = "# Small problems\n\n" + "\n".join(__doc__.splitlines()[4:9]) + f"\n\n{note}\n\n"
    RESULTS.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
