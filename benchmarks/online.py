"""Time of an update of a stream against a fit from scratch, in one run and with one thread.

    python benchmarks/online.py

Both sides solve the same certified problem to the same gap: the update from its last state and,
for the squared loss, from second moments; the other from zero, from all rows so far with their
faded weights, with the solver that "auto" takes. CPU seconds, medians over the updates after the
first five. Writes benchmarks/results/online.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from nefele import LocalData, Problem, Stream, solve
from nefele.graphs import chain, grid
from nefele.losses import Logistic, Squared

RESULTS = Path(__file__).parent / "results" / "online.md"
UPDATES, FIRST, ROWS, TOL = 20, 5, 40, 1e-6
SCENES = [
    ("grid 20 x 20", grid(20, 20), Squared(), "l2"),
    ("grid 50 x 50", grid(50, 50), Squared(), "l2"),
    ("grid 50 x 50", grid(50, 50), Squared(), "l1"),
    ("grid 50 x 50", grid(50, 50), Squared(), "squared_l2"),
    ("chain 1000", chain(1000), Squared(), "l2"),
    ("grid 20 x 20", grid(20, 20), Logistic(l2=0.01), "l2"),
    ("chain 1000", chain(1000), Logistic(l2=0.01), "l2"),
]


def clock(work) -> tuple[float, object]:
    """CPU seconds of a call, and what it gave."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def measure(graph, loss, penalty, d: int = 3) -> dict[str, float]:
    """Medians over the updates; every update brings rows to a twentieth of the nodes."""
    rng, n = np.random.default_rng(0), graph.n_nodes
    half = np.arange(n) < n / 2
    stream = Stream(graph, d, loss, penalty, lam=0.05, forget=0.98, tol=TOL)
    seen, update, fresh, worst = [], [], [], 0.0
    for k in range(UPDATES):
        node = np.repeat(np.arange(n), ROWS) if k == 0 else rng.integers(0, n, max(n // 20, 1))
        X = rng.normal(size=(len(node), d))
        truth = np.where(half[node, None], [1.0, -1.0, 0.0], [-1.0, 0.0, 1.0 + 0.02 * k])
        y = (X * truth).sum(axis=1) + 0.3 * rng.normal(size=len(node))
        y = np.where(y > 0, 1.0, -1.0) if isinstance(loss, Logistic) else y
        seconds, result = clock(lambda X=X, y=y, node=node: stream.partial_fit(X, y, node))
        seen.append((X, y, node))
        again, cold = clock(lambda: solve(_fresh(stream, seen), tol=TOL))
        assert result.converged
        assert cold.converged
        assert abs(cold.objective - result.objective) <= cold.gap_abs + result.gap_abs + 1e-9
        worst = max(worst, result.gap)
        if k >= FIRST:
            update.append(seconds)
            fresh.append(again)
    return {
        "update": 1e3 * float(np.median(update)),
        "slowest": 1e3 * max(update),
        "fresh": 1e3 * float(np.median(fresh)),
        "gap": worst,
    }


def _fresh(stream: Stream, seen: list) -> Problem:
    """The stream's problem from all rows so far."""
    X, y, node = (np.concatenate([part[j] for part in seen]) for j in range(3))
    age = np.repeat(np.arange(len(seen))[::-1], [len(part[1]) for part in seen])
    weight = stream.forget**age
    data = LocalData.from_long(X, y, node, stream.graph.ids, sample_weight=weight)
    return Problem(stream.graph, data, loss=stream.loss, penalty=stream.penalty, lam=stream.lam)


def main() -> None:
    """Measure all scenes and write the table."""
    lines = [
        "# Updates of a stream",
        "",
        "`python benchmarks/online.py`: CPU milliseconds, one thread; 3 parameters per node, "
        f"{ROWS} rows per node at first, each update brings rows to a twentieth of the nodes; gap "
        f"{TOL:g} certified by both sides. Nearly all of an update is one certificate.",
        "",
        "| Network | loss, penalty | update, median | slowest | from scratch | ratio | worst gap |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, graph, loss, penalty in SCENES:
        measure(chain(30), loss, penalty)  # compiled code is loaded before anything is timed
        found = measure(graph, loss, penalty)
        ratio = found["fresh"] / found["update"]
        lines.append(
            f"| {name} | {type(loss).__name__}, {penalty} | {found['update']:.1f} | "
            f"{found['slowest']:.1f} | {found['fresh']:.1f} | {ratio:.1f} | {found['gap']:.1e} |"
        )
        print(lines[-1], flush=True)
    RESULTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
