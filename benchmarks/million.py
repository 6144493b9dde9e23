"""One million nodes: certified solves in units of one compiled iteration, bandwidth, memory.

Each measurement runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import multiprocessing
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from queue import Empty

import instances
import numpy as np
from measure import fused_iteration, ours, shares, triad

from nefele import solve


def alone(work, *args):
    """The result of a function in a fresh process."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    worker = context.Process(target=_answer, args=(queue, work, args))
    worker.start()
    while worker.is_alive():
        with suppress(Empty):
            found = queue.get(timeout=1)
            worker.join()
            return found
    raise RuntimeError(f"{work.__name__}{args} ended without a result")


def _answer(queue, work, args) -> None:
    import warnings

    warnings.simplefilter("ignore")
    queue.put(work(*args))


def certified(side: int, penalty: str, tol: float) -> dict:
    """A solve of e, and the time of one compiled iteration of e with the l2 penalty."""
    solve(instances.e(80, penalty), tol=tol)
    with shares() as spent:
        seconds, result = ours(lambda: touched(instances.e(side, penalty)), tol)
    peak = peak_memory()
    unit = fused_iteration(instances.e(side))[0]
    return dict(
        seconds=seconds,
        gap=result.gap,
        converged=result.converged,
        n_iter=result.n_iter,
        unit=unit,
        peak=peak,
        spent=spent,
    )


def touched(problem):
    """The problem, after another process has touched and freed 4 GB of memory.

    A virtual machine fetches memory that it has not used for a while from its host: seconds per
    GB, which are no part of a solve.
    """
    subprocess.run([sys.executable, "-c", "import numpy; numpy.ones(2**29)"], check=True)
    return problem


def peak_memory() -> float:
    """Most GB that this process has held, its imports and the raw data included.

    From Linux's own count where there is one: getrusage also counts what the parent held.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024**2
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2


def iteration(side: int) -> tuple[int, float, int]:
    """Nodes, seconds and bytes of one compiled iteration on e."""
    seconds, moved = fused_iteration(instances.e(side))
    return side * side, seconds, moved


def million(report, side=1000) -> None:
    columns = ("instance", "gap", "s", "iterations", "one compiled iteration, ms")
    columns += ("in compiled iterations", "certificates", "reduced solves", "peak memory, GB")
    report.table(f"e with {side} x {side} nodes", columns)
    for name, penalty, tol, key in (
        ("e, squared_l2, 1e-8", "squared_l2", 1e-8, "quadratic"),
        ("e, l2, 1e-3", "l2", 1e-3, "e 1e-3"),
        ("e, l2, 1e-4", "l2", 1e-4, "e 1e-4"),
    ):
        found = alone(certified, side, penalty, tol)
        seconds, spent = found["seconds"], found["spent"]
        report.row(
            name,
            f"{found['gap']:.1e}",
            f"{seconds:.3g}",
            found["n_iter"],
            f"{1e3 * found['unit']:.3g}",
            f"{seconds / found['unit']:.0f}",
            f"{100 * spent['certificate'] / seconds:.0f}%",
            f"{100 * spent['reduced solves'] / seconds:.0f}%",
            f"{found['peak']:.2f}",
        )
        report.figure(key, seconds / found["unit"] if found["converged"] else np.inf)
        report.figure("memory", max(found["peak"], report.figures.get("memory", 0.0)))
        if key == "e 1e-4" and found["converged"]:
            report.solved[side * side] = seconds


def growth(report, sides=(100, 316, 1000)) -> None:
    """How the compiled iteration grows, and its bandwidth beside the triad's."""
    columns = ("nodes", "iteration, ms", "moved, GB", "GB/s", "triad, GB/s", "% of triad")
    report.table("The compiled iteration on e", columns)
    nodes, times = [], []
    for side in sides:
        before = triad()
        n, seconds, moved = alone(iteration, side)
        bus = max(before, triad())
        nodes.append(n)
        times.append(seconds)
        speed = moved / seconds
        report.row(
            f"{n:,}",
            f"{1e3 * seconds:.3g}",
            f"{moved / 1e9:.3g}",
            f"{speed / 1e9:.1f}",
            f"{bus / 1e9:.1f}",
            f"{100 * speed / bus:.0f}",
        )
    if n >= 10**6:
        report.figure("kernel", 100 * speed / bus)
    exponent = float(np.polyfit(np.log(nodes), np.log(times), 1)[0])
    report.note(f"The time of an iteration grows with exponent {exponent:.3f}.")
    if n >= 10**6:
        report.figure("exponent", exponent)
