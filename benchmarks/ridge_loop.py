"""GTVRegressor on many nodes against one Ridge per node in a Python loop."""

from __future__ import annotations

import time

import numpy as np

import nefele

ROWS, D = 50, 10


def estimators(report, side=100) -> None:
    """side x side nodes with 50 rows of 10 features each; Ridge timed on some of them."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    n = side * side
    graph = nefele.graphs.grid(side, side)
    true = rng.standard_normal((4, D))[np.arange(n) * 4 // n]
    X = rng.standard_normal((n, ROWS, D))
    y = np.einsum("nrd,nd->nr", X, true) + 0.5 * rng.standard_normal((n, ROWS))
    ids = np.repeat(np.arange(n), ROWS)
    model = nefele.GTVRegressor(graph, alpha=0.1, tol=1e-4, weighting="nodes", standardize=False)
    started = time.process_time()
    model.fit(X.reshape(-1, D), y.ravel(), node_ids=ids)
    first = time.process_time() - started
    started = time.process_time()
    model.fit(X.reshape(-1, D), y.ravel(), node_ids=ids)
    seconds = time.process_time() - started
    some = min(n, 1000)
    started = time.process_time()
    for i in range(some):
        Ridge().fit(X[i], y[i])
    ridge = (time.process_time() - started) * n / some
    columns = ("nodes", "gap", "first fit, s", "fit, s", "Ridge per node, s", "in Ridge loops")
    report.table("GTVRegressor, 50 rows and 10 features per node, tol 1e-4", columns)
    gap = f"{model.dual_gap_:.1e}"
    numbers = (f"{t:.3g}" for t in (first, seconds, ridge, seconds / ridge))
    report.row(f"{n:,}", gap, *numbers)
