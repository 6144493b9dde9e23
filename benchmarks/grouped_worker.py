"""One method on one dataset, in a process of its own: grouped_worker.py DATASET METHOD SEED ...

Prints one line of JSON for each seed: error, CPU seconds of the fit, and what went wrong.
`grouped.py` sets the number of threads.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from resource import RUSAGE_CHILDREN, getrusage

import grouped_ours
import grouped_peers
import numpy as np
import pandas as pd
from grouped_data import dataset
from grouped_sources import CLASSES, COUNTS, Dataset
from grouped_splits import error, split


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


def made(task: str, places: bool) -> Dataset:
    """A few made rows of a kind: 6 groups of 10 whose intercepts differ."""
    draw = np.random.default_rng(0)
    groups = np.repeat(np.arange(6), 10)
    table = pd.DataFrame(draw.normal(size=(60, 2)), columns=["x", "z"]).assign(group=groups)
    raw = 0.5 * table["x"] + draw.normal(size=6)[groups]
    if task == CLASSES:
        table["y"] = (raw + draw.logistic(size=60) > 0).astype(int)
    elif task == COUNTS:
        table["y"] = draw.poisson(np.exp(raw))
    else:
        table["y"] = raw + 0.3 * draw.normal(size=60)
    if places:
        table[["latitude", "longitude"]] = draw.uniform(40, 50, size=(6, 2))[groups]
    coords = ("latitude", "longitude") if places else None
    return Dataset("made", table, "y", "group", task, ("x", "z"), "x", "made", coords)


def main(name: str, called: str, *seeds: str) -> None:
    data, fit = dataset(name), method(called)
    # a first fit to rows of the same kind: what is compiled and imported then is not timed
    run(made(data.task, data.coords is not None), fit, 0)
    for seed in seeds:
        print(json.dumps(run(data, fit, int(seed))), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
