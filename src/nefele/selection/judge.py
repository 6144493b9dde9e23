"""What a prediction of held-out rows is worth: a score, and the mean error of each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import IdIndex, distinct

Scorer = Callable[..., float]

_ROUNDING = 1e-12  # residual, relative to the largest target, that is none
_CERTAIN = 1e-6  # mean log loss of a node that is none: all probabilities are 1


class Judge:
    """Scores models at the held-out rows of one split, and keeps each node's error.

    The error of a row is its squared error or what `cost` says, for a classifier minus the log of
    the probability of the right class, and 1 for a wrong class where there are no probabilities.
    Without a scorer the score is minus the weighted mean error (the share of right classes in the
    last case). A scorer need not be a mean over rows, so that with one there are no errors of
    nodes.

    Parameters
    ----------
    node_ids : array of shape (n_rows,)
        Node of each held-out row.
    weight : array of shape (n_rows,)
        Row weights > 0.
    with_rows : bool array of shape (n_rows,)
        Whether the node of the row has training rows.
    scorer : callable, optional
        `scorer(model, X, y)`, greater is better; with `sample_weight=` where rows have weights.
    cost : callable, optional
        `cost(z, y)`, what predictions z of numbers y cost, by their difference only.

    Attributes
    ----------
    nodes : array of shape (n_nodes,)
        Distinct ids of the held-out rows.
    count : array of shape (n_nodes,)
        Weight of their held-out rows.
    errors : list of arrays of shape (n_nodes,)
        Mean errors, in the order of the calls.
    wrong : list of float
        Shares of wrong classes, in the order of the calls; empty for a regression.
    """

    def __init__(
        self,
        node_ids: NDArray[Any],
        weight: Array,
        with_rows: NDArray[np.bool_],
        scorer: Scorer | None = None,
        cost: Callable[[Array, Array], Array] | None = None,
    ) -> None:
        self.nodes = distinct(node_ids)
        self._owner = IdIndex(self.nodes).positions(node_ids)
        self._weight, self._scorer, self._cost = weight, scorer, cost
        self.count = np.bincount(self._owner, weight, len(self.nodes)).astype(np.float64)
        self.with_rows = np.bincount(self._owner, with_rows, len(self.nodes)) > 0
        self.n_rows, self.n_own = len(node_ids), int(with_rows.sum())
        self._floor = 0.0
        self.errors: list[Array] = []
        self.wrong: list[float] = []

    def __call__(self, model: Any, X: Any, y: NDArray[Any]) -> float:
        weight = None if (self._weight == 1.0).all() else self._weight
        if self._scorer is not None:
            extra = {} if weight is None else {"sample_weight": weight}
            return float(self._scorer(model, X, y, **extra))
        error = self._row_errors(model, X, y)
        sums = np.bincount(self._owner, error * self._weight, len(self.nodes))
        self.errors.append(np.where(sums <= self._floor * self.count, 0.0, sums / self.count))
        if hasattr(model, "classes_") and not hasattr(model, "predict_proba"):
            return float(np.average(error == 0, weights=weight))
        return -float(np.average(error, weights=weight))

    def _row_errors(self, model: Any, X: Any, y: NDArray[Any]) -> Array:
        if not hasattr(model, "classes_"):
            away = np.abs(model.predict(X) - y)
            away[away <= _ROUNDING * np.abs(y).max(initial=0.0)] = 0.0
            if self._cost is not None:
                return self._cost(away, np.zeros_like(away))
            return np.asarray(away**2)
        if not hasattr(model, "predict_proba"):
            wrong = model.predict(X) != y
            self.wrong.append(float(wrong.mean()))
            return np.asarray(wrong, dtype=np.float64)
        # unlike the log loss of scikit-learn it needs no row of each class
        place = np.searchsorted(model.classes_, y)
        shares = model.predict_proba(X)
        self.wrong.append(float((shares.argmax(axis=1) != place).mean()))
        right = shares[np.arange(len(y)), place]
        self._floor = _CERTAIN
        return np.asarray(-np.log(np.maximum(right, np.finfo(np.float64).eps)))
