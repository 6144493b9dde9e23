"""Boosted trees to compare with: one model that knows the node, and more trees at each node."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from nefele._checks import Array, as_float_array, check_name
from nefele._ids import as_ids, distinct
from nefele.agnostic.fedrelax import FedRelaxRegressor
from nefele.estimators.layout import with_centre
from nefele.graph import Graph
from nefele.graphs import as_graph
from nefele.mixed.coupling import mean_degree
from nefele.mixed.response import Classes, Numbers, Response
from nefele.selection import WithinNodeKFold

ONE, RELAXED = "boosting, one model", "boosting, FedRelax"
TASKS = ("regression", "classification")
MOST_NODES = 1000  # for FedRelax, whose time grows with them: a minute or two
_CATEGORIES = 255  # the most that the histogram form takes of a column
_SUPPORT = 20  # rows of a node from which its category counts for something
_LARGE = 20_000  # rows of a fit from which its own threads may pay off
_MANY = 1_000  # rows of a node from which the histogram form is the faster one
_STRENGTHS = (1.0, 10.0)  # weight of the neighbours' predictions against a node's own rows
_TREES, _ROUNDS, _SHARED, _FOLDS = 20, 3, 100, 5
_LARGEST_STEP = 4.0  # in log-odds, as LogitBoost has it
_DRAWN = 5.0  # rows of the mean of all that a node's mean is drawn by
N_FITS = len(_STRENGTHS) + 2


def boosting(
    graph: Any = None, *, task: str = "regression", random_state: Any = 0
) -> dict[str, Any]:
    """Boosted trees as methods for `nefele.baselines.compare`, or to fit by yourself.

    Parameters
    ----------
    graph : as in FedRelaxRegressor, optional
        Who is to predict alike. Default: all nodes, by a centre without rows.
    task : {"regression", "classification"}
    random_state : int

    Returns
    -------
    dict of str to estimator
        "boosting, one model": `NodeBoosting`, one model for all rows with the node as a category.
        "boosting, FedRelax": `RelaxedBoosting`, more trees at each node on top, coupled by their
        predictions. Both have fit(X, y, node_ids=...) and predict(X, node_ids=...), and for classes
        predict_proba.

    Examples
    --------
    >>> import numpy as np
    >>> from nefele import LocalData, graphs
    >>> from nefele.baselines import compare
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4, 30, 1))
    >>> data = LocalData.from_list([(x, np.sign(x[:, 0])) for x in X])
    >>> chain = graphs.chain(4)
    >>> found = compare({"gtv": lambda d, g: np.ones((4, 1)), **boosting(chain)}, data, chain,
    ...                 n_splits=1)
    >>> found["boosting, one model"].error < found["gtv"].error
    True
    """
    check_name(task, TASKS, "task")
    return {
        ONE: NodeBoosting(task, random_state=random_state),
        RELAXED: RelaxedBoosting(task, graph=graph, random_state=random_state),
    }


class _Boosting(BaseEstimator):
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


class NodeBoosting(_Boosting):
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any) -> NodeBoosting:
        """Fit to all rows; node_ids has the node of each."""
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
        """Predictions of the rows, shape (n_rows,); an unknown node is a missing value."""
        return np.asarray(self._asked("predict", X, node_ids))

    def predict_proba(self, X: Any, *, node_ids: Any) -> Array:
        """Probabilities of the classes, shape (n_rows, n_classes)."""
        return np.asarray(self._asked("predict_proba", X, node_ids))

    def scores(self, X: Any, *, node_ids: Any) -> Array:
        """Predictions, for two classes log-odds of the second, shape (n_rows,)."""
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


class RelaxedBoosting(_Boosting):
    """One model for all rows, and trees of each node's own on top, coupled by FedRelax.

    `NodeBoosting` comes first. What it leaves over at rows that it did not see is boosted at each
    node, for two classes in steps of LogitBoost (Friedman, Hastie and Tibshirani 2000), and
    neighbours are to make alike corrections on shared rows: see `FedRelaxRegressor`. The strength
    of the coupling is the better of two at rows held out within the nodes. The shared rows are 100
    of the training rows: this is for a comparison in one place, not for nodes that must keep their
    rows.

    Parameters
    ----------
    task : {"regression", "classification"}
        At most two classes.
    graph : as in FedRelaxRegressor, optional
        Default: all nodes are joined to a centre without rows.
    random_state : int

    Attributes
    ----------
    base_ : NodeBoosting
    model_ : FedRelaxRegressor
        The corrections.
    alpha_ : float
        Strength of their coupling.

    Examples
    --------
    >>> import numpy as np
    >>> X, ids = np.zeros((40, 1)), np.repeat(["a", "b"], 20)
    >>> model = RelaxedBoosting().fit(X, np.where(ids == "a", 1.0, 5.0), node_ids=ids)
    >>> low, high = model.predict([[0.0], [0.0]], node_ids=["a", "b"])
    >>> bool(low < 3 < high)
    True
    """

    def __init__(
        self, task: str = "regression", *, graph: Any = None, random_state: Any = 0
    ) -> None:
        self.task = task
        self.graph = graph
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        node_ids: Any,
        told: Callable[[], object] | None = None,
    ) -> RelaxedBoosting:
        """Choose a strength and fit; `told` is called after each of `N_FITS` steps."""
        X, y, ids = self._take(X, y, node_ids)
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
        say = (lambda: None) if told is None else told
        response = self._response()
        target = y if self.task == "regression" else np.where(y == self.classes_[1], 1.0, -1.0)
        folds = list(WithinNodeKFold(_FOLDS, shuffle=True, random_state=0).split(X, y, ids))
        scores = self._out_of_fold(X, y, weight, ids, folds)
        say()
        working, bend = response.linear(scores, target)
        left = working - scores
        if not response.direct:
            left = np.clip(left, -_LARGEST_STEP, _LARGEST_STEP)
        graph = self._network(ids)
        unit = 1.0 / (mean_degree(graph) or 1.0)

        def fitted(rows: Any, strength: float) -> Any:
            model = self._relaxation(graph, strength * unit, len(rows) / graph.n_nodes)
            model.fit(X[rows], left[rows], (weight * bend)[rows], node_ids=ids[rows])
            say()
            return model

        train, held = folds[0]
        errors = []
        for strength in _STRENGTHS:
            more = fitted(train, strength).predict(X[held], node_ids=ids[held])
            lost = response.errors(scores[held] + more, target[held])
            errors.append(float(np.average(lost, weights=weight[held])))
        best = _STRENGTHS[int(np.argmin(errors))]
        self.alpha_ = best * unit
        self.base_ = NodeBoosting(self.task, random_state=self.random_state)
        self.base_.fit(X, y, weight, node_ids=ids)
        self.model_ = fitted(np.arange(len(X)), best)
        return self

    def _response(self) -> Response:
        if self.task == "regression":
            return Numbers()
        if len(self.classes_) > 2:
            raise ValueError(
                "RelaxedBoosting takes at most two classes; got "
                f"{len(self.classes_)}. Use NodeBoosting."
            )
        return Classes()

    def _out_of_fold(self, X: Array, y: Any, weight: Array, ids: Any, folds: Any) -> Array:
        """Scores of every row by one model that did not see it."""
        scores = np.empty(len(X))
        for train, held in folds:
            base = NodeBoosting(self.task, random_state=self.random_state)
            base.fit(X[train], y[train], weight[train], node_ids=ids[train])
            scores[held] = base.scores(X[held], node_ids=ids[held])
        return scores

    def _network(self, ids: NDArray[Any]) -> Graph:
        """The graph, or all nodes joined to a centre."""
        if self.graph is not None:
            return as_graph(self.graph)
        return with_centre(Graph(distinct(ids), [], []), 1.0)

    def _relaxation(self, graph: Graph, alpha: float, rows: float) -> Any:
        own: Any = GradientBoostingRegressor(n_estimators=_TREES, max_depth=2, min_samples_leaf=5)
        if rows > _MANY:
            own = HistGradientBoostingRegressor(max_iter=_TREES)
        return FedRelaxRegressor(
            own,
            graph=graph,
            alpha=alpha,
            X_shared=_SHARED,
            rounds=_ROUNDS,
            tol=None,
            init="zero",
            random_state=self.random_state,
        )

    def scores(self, X: Any, *, node_ids: Any) -> Array:
        """Predictions of each row, for classes log-odds of the second; shape (n_rows,)."""
        check_is_fitted(self)
        more = self.model_.predict(as_float_array(X, "X", 2), node_ids=as_ids(node_ids))
        return np.asarray(self.base_.scores(X, node_ids=node_ids) + more)

    def predict(self, X: Any, *, node_ids: Any) -> NDArray[Any]:
        """Predictions of each row, shape (n_rows,)."""
        scores = self.scores(X, node_ids=node_ids)
        if self.task == "regression":
            return scores
        return np.asarray(self.classes_[(scores > 0).astype(np.int64)])

    def predict_proba(self, X: Any, *, node_ids: Any) -> Array:
        """Probabilities of the two classes, shape (n_rows, 2)."""
        scores = self.scores(X, node_ids=node_ids)
        return np.column_stack([expit(-scores), expit(scores)])


def _few_threads(n_rows: int) -> AbstractContextManager[Any]:
    """One OpenMP thread for small fits, which take many times as long with more."""
    if n_rows >= _LARGE:
        return nullcontext()
    return ThreadpoolController().limit(limits=1, user_api="openmp")
