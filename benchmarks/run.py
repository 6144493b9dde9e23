"""nefele against its peers: ratios measured in one run, one thread, matched on the gap reached.

`make bench` runs everything, `make bench-quick` a subset in about a minute. Writes
benchmarks/results/bench.md and bench.png.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[name] = "1"

import instances  # noqa: E402
import numpy as np  # noqa: E402
import peers  # noqa: E402

from nefele import solve  # noqa: E402
from nefele.solvers import PrimalDual  # noqa: E402
from nefele.solvers.fused import Fused  # noqa: E402


def timed(problem, tol, solver="auto", repeats=3, **options):
    """Least seconds over repeats, and the result."""
    seconds, result = np.inf, None
    for _ in range(repeats):
        started = time.perf_counter()
        result = solve(problem, solver, tol=tol, **options)
        seconds = min(seconds, time.perf_counter() - started)
    return seconds, result


def gap_of(problem, w, best):
    """True relative error of a peer's point, against the best certified lower bound."""
    lower = best.objective - best.gap_abs
    return (problem.objective(w) - lower) / abs(best.objective)


def against_cone(name, problem, tol, solver, **options):
    ours, result = timed(problem, tol)
    exact = solve(problem, tol=1e-9)
    w, seconds = peers.cone(problem, solver, **options)
    return (name, f"CVXPY + {solver}", result.gap, ours, gap_of(problem, w, exact), seconds)


def against_notebook(name, problem, tol):
    """Seconds per step of the node-by-node code times the steps that the same method needs."""
    ours, result = timed(problem, tol)
    printed = solve(problem, PrimalDual.as_printed(), tol=tol, max_iter=200_000)
    each = peers.NodeByNode(problem).seconds_per_step()
    return (name, "node by node", result.gap, ours, printed.gap, each * printed.n_iter)


def against_printed(name, problem, tol):
    ours, result = timed(problem, tol, repeats=1)
    seconds, printed = timed(problem, tol, PrimalDual.as_printed(), repeats=1, max_iter=20_000)
    return (name, "Algorithm 1, same kernels", result.gap, ours, printed.gap, seconds)


def fused_iteration(problem, iterations=10):
    """Seconds of one compiled iteration."""
    solver = PrimalDual()
    graph, d = problem.graph, problem.d
    assert Fused.fits(problem)
    state = solver.init(problem, np.zeros((graph.n_nodes, d)), np.zeros((graph.n_edges, d)))
    solver.step(problem, state)
    started = time.perf_counter()
    for _ in range(iterations):
        solver.step(problem, state)
    return (time.perf_counter() - started) / iterations


def triad(n=30_000_000):
    """Bytes per second of a[i] = b[i] + s c[i]."""
    import numba

    @numba.njit
    def loop(a, b, c):
        for i in range(len(a)):
            a[i] = b[i] + 3.0 * c[i]

    a, b, c = np.zeros(n), np.ones(n), np.ones(n)
    loop(a, b, c)
    best = np.inf
    for _ in range(3):
        started = time.perf_counter()
        loop(a, b, c)
        best = min(best, time.perf_counter() - started)
    return 24 * n / best


def kernel_traffic(problem):
    """Least bytes that a compiled iteration moves: every array once, written ones twice."""
    n, E, d = problem.graph.n_nodes, problem.graph.n_edges, problem.d
    nodes = 8 * n * (d * d + d + 1 + 2 * d + 2 * d + d)  # A, c, tau, w, q, wbar
    edges = E * (16 * d + 4 + 16) + 8 * n * (d + 2 * d)  # u, tail, scale, flow; wbar, q
    return nodes + edges


QUICK = {
    "a vs node by node": lambda: against_notebook("a, 1e-6", instances.a(), 1e-6),
    "a vs Clarabel": lambda: against_cone("a, 1e-6", instances.a(), 1e-6, "CLARABEL"),
    "a vs SCS": lambda: against_cone("a, 1e-6", instances.a(), 1e-6, "SCS", eps=1e-7),
    "f vs Clarabel": lambda: against_cone("f, 1e-6", instances.f(), 1e-6, "CLARABEL"),
}
FULL = {
    "b vs node by node": lambda: against_notebook("b, 1e-6", instances.b(), 1e-6),
    "b vs Clarabel": lambda: against_cone("b, 1e-6", instances.b(), 1e-6, "CLARABEL"),
    "c vs SCS": lambda: against_cone("c, 1e-4", instances.c(), 1e-4, "SCS", eps=1e-4),
    "d vs Algorithm 1": lambda: against_printed("d, 1e-6", instances.d(), 1e-6),
}


def large(lines):
    """Certified solves in units of one compiled iteration."""
    for name, problem, tols in (
        ("e, l2", instances.e(), (1e-3, 1e-4)),
        ("e, squared_l2", instances.e(penalty="squared_l2"), (1e-8,)),
    ):
        unit = fused_iteration(problem)
        for tol in tols:
            seconds, result = timed(problem, tol, repeats=1)
            lines.append(
                f"| {name}, {tol:g} | {result.gap:.1e} | {seconds:.1f} | {seconds / unit:.0f} |"
            )
            print(lines[-1], flush=True)
    problem = instances.e()
    speed, bus = kernel_traffic(problem) / fused_iteration(problem), triad()
    lines.append("")
    lines.append(
        f"Compiled iteration on e: {speed / 1e9:.1f} GB/s of {bus / 1e9:.1f} GB/s triad "
        f"({100 * speed / bus:.0f}%)."
    )
    print(lines[-1], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    solve(instances.a(), tol=1e-6)  # compile
    lines = [
        "| instance | peer | nefele: gap | s | peer: error | s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for _, run in {**QUICK, **({} if args.quick else FULL)}.items():
        name, peer, gap, ours, error, theirs = run()
        lines.append(
            f"| {name} | {peer} | {gap:.1e} | {ours:.3g} | {error:.1e} | {theirs:.3g} "
            f"| {theirs / ours:.0f} |"
        )
        print(lines[-1], flush=True)
    if not args.quick:
        lines += ["", "| instance | gap | s | compiled iterations |", "|---|---|---|---|"]
        large(lines)
    args.out.mkdir(parents=True, exist_ok=True)
    target = args.out / ("quick.md" if args.quick else "bench.md")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
