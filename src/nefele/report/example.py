"""A view small enough to read, for examples."""

from __future__ import annotations

import numpy as np

from nefele.report.view import Step, View


def small_view() -> View:
    """Two nodes joined by an edge, at two alphas.

    Examples
    --------
    >>> small_view().alphas.tolist()
    [1.0, 0.1]
    """
    return View(
        title="Two nodes",
        task="regression",
        target="y",
        metric="mean squared error",
        command="nefele fit rows.csv --graph edges.csv",
        created="2026-01-01T00:00:00",
        version="0.1.0",
        facts=[("Data", "rows.csv")],
        verdict="Coupling helps.",
        notes=[],
        scores=[("own data only", 0.5), ("one model", 0.4), ("nefele", 0.3)],
        nodes=["a", "b"],
        parameters=["slope"],
        rows=np.array([3, 4]),
        edges=np.array([[0, 1]]),
        weights=np.ones(1),
        alphas=np.array([1.0, 0.1]),
        coef=np.array([[[1.0], [1.0]], [[0.8], [1.2]]]),
        clusters=np.array([[0, 0], [0, 1]]),
        gaps=np.array([1e-6, 1e-6]),
        cv_error=np.array([0.4, 0.3]),
        cv_se=np.array([0.02, 0.02]),
        chosen=1,
        best=1,
        clearest=0,
        own_error=np.array([0.6, 0.4]),
        pooled_error=np.array([0.4, 0.4]),
        node_error=np.array([[0.4, 0.4], [0.25, 0.35]]),
        tol=1e-4,
        history=[Step(10, 2.0, 1e-2, 0.1), Step(20, 1.9, 1e-6, 0.2)],
    )
