"""nefele against its peers: ratios measured in one run, one thread each, matched on the error.

`make bench` runs all sections, `make bench-quick` a subset in about a minute. Writes
benchmarks/results/bench.md and bench.svg, or quick.md.
"""

from __future__ import annotations

import argparse
import os
import traceback
import warnings
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import cones_and_loops  # noqa: E402
import denoising  # noqa: E402
import instances  # noqa: E402
import million  # noqa: E402
import ridge_loop  # noqa: E402
import sizes  # noqa: E402
from report import Report  # noqa: E402

from nefele import solve  # noqa: E402

SECTIONS = {
    "instances": cones_and_loops.all_instances,
    "lam": cones_and_loops.along_lam,
    "logistic": cones_and_loops.logistic,
    "estimators": ridge_loop.estimators,
    "denoising": denoising.denoising,
    "million": million.million,
    "growth": million.growth,
    "sizes": sizes.sizes,
}
QUICK = {
    "instances": cones_and_loops.few,
    "logistic": lambda report: cones_and_loops.logistic(report, full=False),
    "denoising": lambda report: denoising.denoising(report, side=64, limit=5.0, methods=1),
    "growth": lambda report: million.growth(report, sides=(100, 200)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, help="run these sections only")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sections = QUICK if args.quick else SECTIONS
    parts = [part for part in args.only or sections if part in sections]
    kind = "quick" if args.quick else "_".join(args.only) if args.only else "bench"
    report = Report(args.out / f"{kind}.md")
    report.say("Loading compiled code, on first use compiling it.")
    solve(instances.a(), tol=1e-6)
    failed = []
    for part in parts:
        try:
            sections[part](report)
        except Exception:  # the other sections go on
            traceback.print_exc()
            report.note(f"The section {part} ended with an error.")
            failed.append(part)
        report.write()
    report.say(f"\nWritten to {report.target}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
