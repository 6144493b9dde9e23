"""Kinked losses and `linf` on 10,000 nodes against the squared loss, in one run.

    python benchmarks/kinks.py

A grid of 100 x 100 nodes, 2 parameters and 6 rows each, 16 squares with parameters of their own,
lam .2; each solved with "auto" to a certified gap of 1e-4. CPU seconds, one thread, the least of
four solves of fresh problems: the first compiles. Writes benchmarks/results/kinks.md.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from nefele import LocalData, Problem, solve
from nefele.graphs import grid
from nefele.solvers import as_solver

RESULTS = Path(__file__).parent / "results" / "kinks.md"
SIDE, D, ROWS, SQUARES, LAM, TOL = 100, 2, 6, 4, 0.2, 1e-4
REPEATS = 4
CASES = [
    ("squared", "l2"),
    ("squared", "linf"),
    ("absolute", "l2"),
    ("hinge", "l2"),
]


def main() -> None:
    """Solve all cases and write the table."""
    rng = np.random.default_rng(0)
    graph, n = grid(SIDE, SIDE), SIDE**2
    X = rng.normal(size=(ROWS * n, D))
    row, column = np.divmod(np.arange(n), SIDE)
    square = (row * SQUARES // SIDE) * SQUARES + column * SQUARES // SIDE
    true = 2 * rng.normal(size=(SQUARES**2, D))[square]
    clean = (X * np.repeat(true, ROWS, axis=0)).sum(axis=1)
    y = clean + 0.2 * rng.normal(size=len(clean))
    lines, unit = ["| loss, penalty | method | gap | s | of squared l2 |", "|---" * 5 + "|"], 0.0
    for loss, penalty in CASES:
        labels = np.sign(clean) if loss == "hinge" else y
        data = LocalData(X, labels, np.arange(0, ROWS * n + 1, ROWS))
        seconds = np.inf
        for _ in range(REPEATS):
            problem = Problem(graph, data, loss=loss, penalty=penalty, lam=LAM)
            started = time.process_time()
            result = solve(problem, tol=TOL)
            seconds = min(seconds, time.process_time() - started)
        unit = seconds if (loss, penalty) == CASES[0] else unit
        method = type(as_solver("auto", problem)).__name__
        cells = [f"{loss}, {penalty}", method, f"{result.gap:.1e}", f"{seconds:.2f}"]
        lines.append("| " + " | ".join([*cells, f"{seconds / unit:.1f}"]) + " |")
        print(lines[-1], flush=True)
    text = "# Kinks\n\n" + "\n".join(__doc__.splitlines()[4:7]) + "\n\n"
    RESULTS.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
