"""The rules of nefele.robust against those of byzfl 0.0.11, which has an environment of its own.

`make check-byzfl` installs it and runs this: random vectors, each rule on both sides, the largest
difference of each. byzfl's Krum looks at one neighbour more than the paper's, k - f - 1 in place of
k - f - 2 (Blanchard et al. 2017), so its f is compared with f - 1 here.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from nefele.robust import (
    centred_clipping,
    coordinate_median,
    geometric_median,
    krum,
    trimmed_mean,
)

HERE = Path(__file__).parent
USUAL = HERE.parent / ".bench" / "byzfl" / "bin" / "python"
TAU, STEPS = 0.7, 4  # as in peer_byzfl.py
ALLOWED = {"geometric": 1e-6}  # relative; Weiszfeld's iteration ends, the others are formulas
EXACT = 1e-12


def cases(n: int = 200, seed: int = 0) -> dict[str, np.ndarray]:
    """Vectors of several sizes, some of them far away, and how many of them are taken for bad.

    Of two entries at least: of an even count of numbers there are many geometric medians.
    """
    rng, found = np.random.default_rng(seed), {}
    for case in range(n):
        k, d = int(rng.integers(5, 20)), int(rng.integers(2, 30))
        bad = int(rng.integers(1, (k - 1) // 2))
        rows = rng.standard_normal((k, d))
        rows[: int(rng.integers(0, bad + 1))] += 10 ** rng.uniform(0, 6)
        found |= {f"rows-{case}": rows[rng.permutation(k)], f"bad-{case}": np.array(bad)}
    return found


def ours(given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the rules of nefele make of the cases."""
    found = {}
    for name, rows in given.items():
        kind, case = name.split("-")
        if kind != "rows":
            continue
        bad = int(given[f"bad-{case}"])
        found |= {
            f"trimmed-{case}": trimmed_mean(rows, bad),
            f"median-{case}": coordinate_median(rows),
            f"geometric-{case}": geometric_median(rows),
            f"krum-{case}": krum(rows, bad - 1),
            f"clipping-{case}": centred_clipping(rows, np.zeros(rows.shape[1]), TAU, STEPS),
        }
    return found


def differences(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, float]:
    """The largest difference of each rule, relative to the size of the result."""
    most: dict[str, float] = {}
    for name, value in one.items():
        rule = name.split("-")[0]
        size = max(float(np.abs(value).max()), 1.0)
        gap = float(np.abs(value - other[name]).max()) / size
        most[rule] = max(most.get(rule, 0.0), gap)
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, default=USUAL, help="interpreter that has byzfl")
    given = parser.parse_args()
    if not given.python.exists():
        sys.exit(f"byzfl must be installed; there is no {given.python}. Run: make check-byzfl")
    asked = cases()
    with TemporaryDirectory() as place:
        source, target = Path(place) / "in.npz", Path(place) / "out.npz"
        np.savez(source, **asked)
        call = [str(given.python), str(HERE / "peer_byzfl.py"), str(source), str(target)]
        subprocess.run(call, check=True)
        theirs = dict(np.load(target))
    found = differences(ours(asked), theirs)
    for rule, gap in found.items():
        print(f"{rule}: {gap:.2g}")
    wrong = [rule for rule, gap in found.items() if not gap <= ALLOWED.get(rule, EXACT)]
    if wrong:
        sys.exit(f"Not the same: {', '.join(wrong)}.")


if __name__ == "__main__":
    main()
