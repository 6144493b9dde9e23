"""A parameter of a graph builder by cross-validation inside the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

from nefele._checks import Array, check_count
from nefele.graph_learning.builders import TrainingRows


def choose_by_validation(
    builder: Any,
    rows: TrainingRows,
    name: str = "k",
    values: Sequence[Any] = (2, 4, 8),
    *,
    estimator: Any = None,
    cv: int = 3,
) -> tuple[Any, dict[Any, float]]:
    """The value of a builder's parameter whose graphs predict held-out rows best.

    Parameters
    ----------
    builder : graph builder
    rows : TrainingRows
    name : str
        Parameter of the builder.
    values : sequence
        Candidates; of equally good ones the first.
    estimator : GTVRegressorCV or GTVClassifierCV, optional
        Judges each candidate with the best strength of the coupling. Default: the squared loss,
        or the logistic loss when the targets are classes, six strengths.
    cv : int
        Folds inside each node, for the default estimator.

    Returns
    -------
    value, scores : the choice, and the mean score of each candidate

    Examples
    --------
    >>> from nefele.graph_learning import LossGraph
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1))
    >>> y = X * np.repeat([1.0, 1.0, 1.0, -1.0, -1.0, -1.0], 10)[:, None]
    >>> rows = TrainingRows(X, y + rng.normal(size=(60, 1)), np.repeat(range(6), 10), np.ones(60))
    >>> choose_by_validation(LossGraph(), rows, values=[2, 5])[0]
    2
    """
    if not len(values):
        raise ValueError("values must hold at least one candidate; got none.")
    check_count(cv, "cv", low=2)
    classes = rows.targets.shape[1] > 1
    if estimator is None:
        # an estimator is a layer above the graphs, and only who asks for "auto" needs one
        above: Any = import_module("nefele.estimators")
        kind = above.GTVClassifierCV if classes else above.GTVRegressorCV
        estimator = kind(penalty="l2", n_alphas=6, cv=cv, tol=1e-3)
    y = rows.targets.argmax(axis=1) if classes else rows.targets[:, 0]
    X: Any = rows.X
    if rows.feature_names is not None:  # a builder may ask for columns by name
        import polars as pl

        X = pl.DataFrame(rows.X, schema=rows.feature_names)
    scores: dict[Any, float] = {}
    for value in values:
        model = clone(estimator).set_params(
            graph=clone(builder).set_params(**{name: value}), node=None, coords=rows.coords
        )
        model.fit(X, y, rows.sample_weight, node_ids=rows.node_ids)
        scores[value] = model.best_score_
    best = max(scores.values())
    return next(value for value in values if scores[value] == best), scores


def auto_k(builder: Any, rows: TrainingRows, n_nodes: int) -> int:
    """The best of k = 2, 4, 8, ... below half of the nodes."""
    values = _degrees(n_nodes)
    return values[0] if len(values) == 1 else int(_best(builder, rows, "k", values))


def auto_threshold(builder: Any, rows: TrainingRows, name: str, discrepancy: Array) -> float:
    """The best of the thresholds that give mean degrees of 2, 4, 8, ... below half of the nodes."""
    n = len(discrepancy)
    length = np.sort(discrepancy[np.triu_indices(n, 1)])
    places = [min(round(degree * n / 2), len(length)) - 1 for degree in _degrees(n)]
    values = sorted({float(length[place]) for place in places if np.isfinite(length[place])})
    if not values:
        raise ValueError(f'{name}="auto" needs pairs of a finite discrepancy; got none.')
    return values[0] if len(values) == 1 else float(_best(builder, rows, name, values))


def _degrees(n_nodes: int) -> list[int]:
    most = max(2, min(16, n_nodes // 2))
    return [k for k in (2, 4, 8, 16) if k <= most and k < n_nodes] or [1]


def _best(builder: Any, rows: TrainingRows, name: str, values: list[Any]) -> Any:
    if not (np.unique(rows.node_ids, return_counts=True)[1] > 1).any():
        raise ValueError(
            f'{name}="auto" needs nodes with 2 rows or more, to hold some out; give {name}.'
        )
    return np.asarray(choose_by_validation(builder, rows, name, values)[0])
