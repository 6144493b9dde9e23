"""One method on one dataset, in a process of its own: grouped_worker.py DATASET METHOD SEED ...

Prints one line of JSON for each seed: error, CPU seconds of the fit, and what went wrong.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from resource import RUSAGE_CHILDREN, getrusage

for name in ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import grouped_ours  # noqa: E402
import grouped_peers  # noqa: E402
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from grouped_data import CLASSES, COUNTS, Dataset, dataset  # noqa: E402
from grouped_splits import Part, error, split  # noqa: E402


def method(name: str) -> Callable:
    """The method of a name."""
    return grouped_ours.default if name == grouped_ours.NAME else grouped_peers.METHODS[name][0]


def run(data: Dataset, fit: Callable, seed: int) -> dict:
    """Error and seconds on one split; an exception or a warning is recorded, not raised."""
    train, test = split(data, seed)
    out: dict = {"seed": seed, "error": None, "seconds": None, "failed": "", "warned": ""}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = cpu()
        try:
            predict = fit(train)
            out["seconds"] = cpu() - started
            predicted = np.asarray(predict(test), dtype=float)
        except Exception as problem:  # whatever a method raises is its result
            out["failed"] = f"{type(problem).__name__}: {problem}".splitlines()[0][:200]
        else:
            out["error"] = error(data.task, test.y, predicted)
            if not np.isfinite(out["error"]):
                out["failed"], out["error"] = "predictions are not finite", None
    out["warned"] = not_converged(caught)
    return out


def not_converged(caught: list) -> str:
    """The first warning that says so, in one line."""
    for warning in caught:
        text = str(warning.message)
        words = f"{warning.category.__name__} {text}".lower()
        if any(word in words for word in ("converge", "singular", "boundary")):
            return text.strip().splitlines()[0][:200]
    return ""


def cpu() -> float:
    """CPU seconds of this process and of the children that it waited for."""
    children = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def warm_up(data: Dataset, fit: Callable) -> None:
    """A fit to a few made rows of the same kind, so that what is compiled then is not timed."""
    draw = np.random.default_rng(0)
    n = 60
    groups = np.repeat(np.arange(6), n // 6)
    table = pd.DataFrame({"x": draw.normal(size=n), "z": draw.normal(size=n), "g": groups})
    rate = 0.5 * table["x"] + 0.3 * draw.normal(size=6)[groups]
    if data.task == CLASSES:
        table["y"] = (rate + draw.logistic(size=n) > 0).astype(int)
    elif data.task == COUNTS:
        table["y"] = draw.poisson(np.exp(rate))
    else:
        table["y"] = rate + draw.normal(size=n)
    coords = None
    if data.coords is not None:
        table[["lat", "lon"]] = draw.uniform(40, 50, size=(6, 2))[groups]
        coords = ("lat", "lon")
    made = Dataset("made", table, "y", "g", data.task, ("x", "z"), "x", "made up", coords)
    run(made, fit, 0)


def main(name: str, called: str, *seeds: str) -> None:
    data, fit = dataset(name), method(called)
    warm_up(data, fit)
    for seed in seeds:
        print(json.dumps(run(data, fit, int(seed))), flush=True)


__all__ = ["Part", "main", "run"]

if __name__ == "__main__":
    main(*sys.argv[1:])
