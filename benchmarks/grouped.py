"""Real grouped data: nefele's default beside mixed models, per-group loops and boosting.

`make bench-grouped` writes benchmarks/results/grouped.md and grouped.json, and says which claims
hold. What the peers gave is kept in .bench/grouped/cache: only nefele runs again.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import grouped_data
import grouped_ours
import grouped_peers
from grouped_sources import Dataset, Missing
from grouped_table import Table
from report import processor

HERE = Path(__file__).parent
CACHE = HERE.parent / ".bench" / "grouped" / "cache"
SEEDS = (0, 1, 2)
LIMIT = 1800.0  # seconds of the clock for a method on a dataset, all splits
PACKAGES = ("numpy", "scipy", "scikit-learn", "statsmodels", "scikit-lego", "mgwr")
ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)

Runner = Callable[[Dataset, str, tuple[int, ...]], list[dict]]


def measure(
    datasets: Iterable[Dataset],
    methods: Iterable[str],
    seeds: tuple[int, ...],
    run: Runner,
    keep: Callable[[Table], None] = lambda table: None,
    short: bool = False,
) -> Table:
    """Every method that suits, on every dataset, said line by line; `keep` after each dataset.

    `short` leaves out those that take minutes.
    """
    table = Table(methods)
    for data in datasets:
        table.begin(data)
        for method in table.order:
            if short and grouped_peers.takes_minutes(method, data):
                continue
            if method == grouped_ours.NAME or grouped_peers.suits(method, data):
                table.add(data.name, method, run(data, method, seeds))
                print(table.progress(data.name, method), flush=True)
        keep(table)
    return table


def in_a_process(data: Dataset, method: str, seeds: tuple[int, ...]) -> list[dict]:
    """What the worker prints; without an answer for a seed, a failure."""
    command = [sys.executable, str(HERE / "grouped_worker.py"), data.name, method]
    command += [str(seed) for seed in seeds]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
            env=os.environ | ONE_THREAD,
        )
        printed, why = done.stdout, (done.stderr.strip().splitlines() or ["ended"])[-1]
    except subprocess.TimeoutExpired as late:
        printed = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        why = f"no end within {LIMIT:.0f} s"
    found = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    known = {record["seed"] for record in found}
    lost = {"error": None, "seconds": None, "failed": why[:200], "warned": ""}
    return found + [{"seed": seed, **lost} for seed in seeds if seed not in known]


def cached(run: Runner, folder: Path, fresh: bool = False) -> Runner:
    """The same, but what a peer gave on the same data before is read from a file."""

    def with_cache(data: Dataset, method: str, seeds: tuple[int, ...]) -> list[dict]:
        if method == grouped_ours.NAME:
            return run(data, method, seeds)
        path = folder / f"{data.name}.{method.replace(' ', '_')}.{fingerprint(data)}.json"
        known = []
        if path.exists() and not fresh:
            known = json.loads(path.read_text(encoding="utf-8"))
        missing = tuple(s for s in seeds if s not in {record["seed"] for record in known})
        if missing:
            known += run(data, method, missing)
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(known), encoding="utf-8")
        return [record for record in known if record["seed"] in seeds]

    return with_cache


def fingerprint(data: Dataset) -> str:
    """Changes with the rows and columns used."""
    used = [*data.columns, data.target, data.group, *(data.coords or ())]
    said = f"{used} {data.slope} {data.task} {data.table[used].to_csv(index=False)}"
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def available(names: Iterable[str]) -> Iterable[Dataset]:
    """The datasets that are there; says which are not."""
    for name in names:
        try:
            yield grouped_data.dataset(name)
        except Missing as why:
            print(f"left out: {why}", flush=True)


def heading(seeds: tuple[int, ...]) -> str:
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in PACKAGES)
    return (
        f"Measured on {time.strftime('%Y-%m-%d')}: {processor()}, one thread; Python "
        f"{platform.python_version()}, {versions}; splits {', '.join(map(str, seeds))}."
    )


def main() -> None:
    every = [*grouped_peers.METHODS, grouped_ours.NAME]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small datasets, one split")
    parser.add_argument("--only", nargs="+", choices=list(grouped_data.LOADERS), metavar="NAME")
    parser.add_argument("--methods", nargs="+", choices=every, default=every, metavar="METHOD")
    parser.add_argument("--seeds", nargs="+", type=int, help="splits; default 0 1 2")
    parser.add_argument("--short", action="store_true", help="without peers that take minutes")
    parser.add_argument("--fresh", action="store_true", help="measure the peers again")
    parser.add_argument("--out", type=Path, help="file without ending; default in results/")
    args = parser.parse_args()
    names = args.only or (grouped_data.QUICK if args.quick else list(grouped_data.LOADERS))
    seeds = tuple(args.seeds or (SEEDS[:1] if args.quick else SEEDS))
    whole = not (args.quick or args.only or args.seeds or args.short or args.methods != every)
    target = args.out or (HERE / "results" / "grouped" if whole else CACHE.parent / "part")
    run, head = cached(in_a_process, CACHE, args.fresh), heading(seeds)
    # a run that is cut short leaves what it has measured
    table = measure(
        available(names), args.methods, seeds, run, lambda t: t.write(target, head), args.short
    )
    print("\n" + table.markdown(head))


if __name__ == "__main__":
    main()
