"""Convex clustering of half moons, against CCMM where that is installed, in one run.

    python benchmarks/clustering.py [--ccmm PYTHON] [--sizes 1000 5000 20000] [--lams 0.1 1 100]

Both sides get the same graph, 9 neighbours per point. CCMM says nothing about how far it is from
the optimum; how far its objective is above the lower bound that nefele proves is in the table, and
nefele is also run to that accuracy, certified. CPU seconds of the solve alone, one thread, the
best of three; PYTHON is an interpreter that has ccmmpy. Writes benchmarks/results/clustering.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from sklearn.datasets import make_moons

from nefele import ConvexClustering, Graph, Problem, Result, solve
from nefele.estimators.point_graph import neighbour_graph
from nefele.losses.quadratic import BoundQuadratic

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "clustering.md"
REPEATS, LARGE = 3, 50_000
TOL, LOOSEST = 1e-6, 1e-4


def posed(points: np.ndarray, graph: Graph) -> Problem:
    """The problem that ConvexClustering poses, lam 1."""
    a = points - points.mean(axis=0)
    H = np.broadcast_to(2.0 * np.eye(a.shape[1]), (len(a), *2 * a.shape[1:])).copy()
    return Problem(graph, None, BoundQuadratic(H, 2 * a, (a * a).sum(axis=1)), lam=1.0)


def timed(problem: Problem, tol: float) -> tuple[float, Result]:
    """CPU seconds, the least of some, and the result."""
    best = np.inf
    for _ in range(REPEATS if problem.graph.n_nodes < LARGE else 1):
        started = time.process_time()
        result = solve(problem, tol=tol)
        best = min(best, time.process_time() - started)
    return best, result


def fitted(points: np.ndarray, lam: float) -> float:
    """CPU seconds of a fit of the estimator, its graph included, the least of some."""
    best = np.inf
    for _ in range(REPEATS if len(points) < LARGE else 1):
        started = time.process_time()
        ConvexClustering(lam, n_neighbors=9).fit(points)
        best = min(best, time.process_time() - started)
    return best


def peer(python: str, points: np.ndarray, graph: Graph, lams: list[float]) -> dict:
    """Centroids and seconds of CCMM."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.npz"), Path(folder, "out.npz")
        np.savez(
            source,
            points=points,
            head=graph.head,
            tail=graph.tail,
            weight=graph.weight,
            lams=lams,
        )
        runs = []
        for _ in range(REPEATS):
            subprocess.run([python, HERE / "peer_ccmm.py", source, target], check=True)
            runs.append(dict(np.load(target)))
        return {"w": runs[0]["w"], "seconds": np.min([run["seconds"] for run in runs], axis=0)}


def rows_of(n: int, lams: list[float], python: str | None) -> list[str]:
    """The table's rows for one number of points."""
    points = make_moons(n, noise=0.05, random_state=0)[0]
    graph = neighbour_graph(points, 9, "exp", None)
    problem, rows = posed(points, graph), []
    other = peer(python, points, graph, lams) if python else None
    solve(problem, tol=LOOSEST)  # compiles
    for k, lam in enumerate(lams):
        whole = problem.with_lam(lam)
        seconds, result = timed(whole, TOL)
        cells = [f"{n:,}", f"{lam:g}", f"{len(np.unique(result.clusters()))}"]
        cells += [f"{seconds:.3f}", f"{result.gap:.1e}", f"{fitted(points, lam):.3f}"]
        if other is None:
            cells += ["-"] * 4
        else:
            theirs = float(other["seconds"][k])
            above = whole.objective(other["w"][k] - points.mean(axis=0)) / (
                result.objective - result.gap_abs
            )
            same, _ = timed(whole, max(above - 1, TOL))
            cells += [f"{theirs:.3f}", f"{above - 1:.1e}", f"{same:.3f}", f"{same / theirs:.1f}"]
        rows.append("| " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Run all sizes and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ccmm", metavar="PYTHON", help="interpreter that has ccmmpy")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 5000, 20_000])
    parser.add_argument("--lams", type=float, nargs="+", default=[0.1, 1.0, 100.0])
    given = parser.parse_args()
    head = "points | lam | clusters | nefele 1e-6, s | gap | fit, s | CCMM, s | above the bound"
    head = f"| {head} | nefele as accurate, s | ratio |"
    lines = [head, "|---" * 10 + "|"]
    for n in given.sizes:
        lines += rows_of(n, given.lams, given.ccmm if n < LARGE else None)
    text = "# Convex clustering\n\n" + "\n".join(__doc__.splitlines()[4:9]) + "\n\n"
    RESULTS.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
