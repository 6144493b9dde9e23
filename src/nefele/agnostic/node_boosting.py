"""One model of boosted trees for all rows, which knows the node of each."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from nefele._checks import Array, as_float_array, check_name
from nefele._ids import as_ids

TASKS = ("regression", "classification")
_CATEGORIES = 255  # the most that the histogram form takes of a column
_SUPPORT = 20  # rows of a node from which its category counts for something
_LARGE = 20_000  # rows of a fit from which its own threads may pay off
_FOLDS = 5
_DRAWN = 5.0  # rows of the mean of all that a node's mean is drawn by


class BoostingBase(BaseEstimator):
    """What both forms share: rows as arrays, predictions of a fitted model."""

    task: str

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _take(self, X: Any, y: Any, node_ids: Any) -> tuple[Array, NDArray[Any], NDArray[Any]]:
        check_name(self.task, TASKS, "task")
        X, ids, y = as_float_array(X, "X", 2), as_ids(node_ids), np.asarray(y)
        if not len(X) == len(y) == len(ids):
            raise ValueError(
                "X, y and node_ids must have one entry per row; got "
                f"{len(X)}, {len(y)} and {len(ids)}."
            )
        if self.task == "classification":
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError(f"y must have two classes or more; got {len(self.classes_)}.")
        return X, y, ids


class NodeBoosting(BoostingBase):
    """One histogram boosting for all rows, with the node as a category.

    It takes at most 255 categories, and passes over those of fewer than ten rows. So with more
    nodes, or with fewer than 20 rows at half of them, nodes are numbers: the mean target of the
    node (the shares of the classes), drawn to that of all rows, for a training row from others.

    Parameters
    ----------
    task : {"regression", "classification"}
    random_state : int

    Examples
    --------
    >>> import numpy as np
    >>> X, ids = np.zeros((60, 1)), np.repeat(["a", "b"], 30)
    >>> model = NodeBoosting().fit(X, np.where(ids == "a", 1.0, 5.0), node_ids=ids)
    >>> model.predict([[0.0], [0.0]], node_ids=["a", "b"]).round(1).tolist()
    [1.0, 5.0]
    """

    def __init__(self, task: str = "regression", *, random_state: Any = 0) -> None:
        self.task = task
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any) -> Self:
        """Fit to all rows; node_ids has the node of each.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        y : array of shape (n_rows,)
            Numbers, or classes.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        node_ids : array of shape (n_rows,)
            Node of each row.
        """
        X, y, ids = self._take(X, y, node_ids)
        column = ids.astype(str)[:, None]
        counts = np.unique(column, return_counts=True)[1]
        few = len(counts) <= _CATEGORIES and float(np.median(counts)) >= _SUPPORT
        if few:
            unknown = {"handle_unknown": "use_encoded_value", "unknown_value": np.nan}
            self.encoder_: Any = OrdinalEncoder(**unknown).fit(column)
            nodes = self.encoder_.transform(column)
        else:
            targets = y[:, None] if self.task == "regression" else y[:, None] == self.classes_
            self.encoder_ = _NodeMeans(self.random_state)
            nodes = self.encoder_.fit_transform(column[:, 0], targets.astype(float))
        form: Any = HistGradientBoostingRegressor
        if self.task == "classification":
            form = HistGradientBoostingClassifier
        category = [X.shape[1]] if few else None
        model = form(categorical_features=category, random_state=self.random_state)
        with _few_threads(len(X)):
            self.model_ = model.fit(np.hstack([X, nodes]), y, sample_weight=sample_weight)
        return self

    def predict(self, X: Any, *, node_ids: Any) -> NDArray[Any]:
        """Predictions of the rows, shape (n_rows,); an unknown node is a missing value.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        node_ids : array of shape (n_rows,)
            Node of each row.
        """
        return np.asarray(self._asked("predict", X, node_ids))

    def predict_proba(self, X: Any, *, node_ids: Any) -> Array:
        """Probabilities of the classes, shape (n_rows, n_classes).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        node_ids : array of shape (n_rows,)
            Node of each row.
        """
        return np.asarray(self._asked("predict_proba", X, node_ids))

    def scores(self, X: Any, *, node_ids: Any) -> Array:
        """Predictions, for two classes log-odds of the second, shape (n_rows,).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        node_ids : array of shape (n_rows,)
            Node of each row.
        """
        what = "predict" if self.task == "regression" else "decision_function"
        return np.asarray(self._asked(what, X, node_ids))

    def _asked(self, what: str, X: Any, node_ids: Any) -> Any:
        check_is_fitted(self)
        X, ids = as_float_array(X, "X", 2), as_ids(node_ids)
        nodes = self.encoder_.transform(ids.astype(str)[:, None])
        with _few_threads(len(X)):
            return getattr(self.model_, what)(np.hstack([X, nodes]))


class _NodeMeans:
    """Mean targets of the nodes in place of their ids; of a training row without its own fold."""

    def __init__(self, random_state: Any) -> None:
        self.random_state = random_state

    def fit_transform(self, ids: NDArray[Any], targets: Array) -> Array:
        """Means of the training rows, shape of targets (n_rows, k)."""
        self.ids, owner = np.unique(ids, return_inverse=True)
        fold = np.random.default_rng(self.random_state).permutation(len(ids)) % _FOLDS
        out = np.empty_like(targets)
        for k in range(_FOLDS):
            out[fold == k] = self._means(owner[fold != k], targets[fold != k])[owner[fold == k]]
        self.whole, self.means = targets.mean(axis=0), self._means(owner, targets)
        return out

    def _means(self, owner: NDArray[np.int64], targets: Array) -> Array:
        count = np.bincount(owner, minlength=len(self.ids))[:, None]
        sums = np.stack([np.bincount(owner, t, len(self.ids)) for t in targets.T], axis=1)
        return np.asarray((sums + _DRAWN * targets.mean(axis=0)) / (count + _DRAWN))

    def transform(self, column: NDArray[Any]) -> Array:
        """Means of the nodes of other rows; that of all rows for an unknown node."""
        place = np.minimum(np.searchsorted(self.ids, column[:, 0]), len(self.ids) - 1)
        known = self.ids[place] == column[:, 0]
        return np.where(known[:, None], self.means[place], self.whole)


def _few_threads(n_rows: int) -> AbstractContextManager[Any]:
    """One OpenMP thread for small fits, which take many times as long with more."""
    if n_rows >= _LARGE:
        return nullcontext()
    return ThreadpoolController().limit(limits=1, user_api="openmp")
