"""Boosted trees to compare with: one model that knows the node, and more trees at each node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
)
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, as_float_array, check_name
from nefele._ids import as_ids, distinct
from nefele.agnostic.fedrelax import FedRelaxRegressor
from nefele.agnostic.node_boosting import TASKS, BoostingBase, NodeBoosting
from nefele.estimators.layout import with_centre
from nefele.graph import Graph
from nefele.graphs import as_graph
from nefele.mixed.coupling import mean_degree
from nefele.mixed.response import Classes, Numbers, Response
from nefele.selection import WithinNodeKFold

ONE, RELAXED = "boosting, one model", "boosting, FedRelax"
MOST_NODES = 1000  # for FedRelax, whose time grows with them: a minute or two
_MANY = 1_000  # rows of a node from which the histogram form is the faster one
_STRENGTHS = (1.0, 10.0)  # weight of the neighbours' predictions against a node's own rows
_TREES, _ROUNDS, _SHARED, _FOLDS = 20, 3, 100, 5
_LARGEST_STEP = 4.0  # in log-odds, as LogitBoost has it
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


class RelaxedBoosting(BoostingBase):
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
    ) -> Self:
        """Choose a strength and fit; `told` is called after each of `N_FITS` steps.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        y : array of shape (n_rows,)
            Numbers, or classes.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        node_ids : array of shape (n_rows,)
            Node of each row.
        told : callable, optional
            Called without arguments.
        """
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

        def fitted(rows: Any, alpha: float) -> Any:
            model = self._relaxation(graph, alpha, len(rows) / graph.n_nodes)
            model.fit(X[rows], left[rows], (weight * bend)[rows], node_ids=ids[rows])
            say()
            return model

        def error(alpha: float) -> float:
            train, held = folds[0]
            more = fitted(train, alpha).predict(X[held], node_ids=ids[held])
            lost = response.errors(scores[held] + more, target[held])
            return float(np.average(lost, weights=weight[held]))

        self.alpha_ = min((s / (mean_degree(graph) or 1.0) for s in _STRENGTHS), key=error)
        self.base_ = self._base().fit(X, y, weight, node_ids=ids)
        self.model_ = fitted(np.arange(len(X)), self.alpha_)
        return self

    def _base(self) -> NodeBoosting:
        return NodeBoosting(self.task, random_state=self.random_state)

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
            base = self._base().fit(X[train], y[train], weight[train], node_ids=ids[train])
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
        """Predictions of each row, for classes log-odds of the second; shape (n_rows,).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        node_ids : array of shape (n_rows,)
            Node of each row.
        """
        check_is_fitted(self)
        more = self.model_.predict(as_float_array(X, "X", 2), node_ids=as_ids(node_ids))
        return np.asarray(self.base_.scores(X, node_ids=node_ids) + more)

    def predict(self, X: Any, *, node_ids: Any) -> NDArray[Any]:
        """Predictions of each row, shape (n_rows,).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        node_ids : array of shape (n_rows,)
            Node of each row.
        """
        scores = self.scores(X, node_ids=node_ids)
        if self.task == "regression":
            return scores
        return np.asarray(self.classes_[(scores > 0).astype(np.int64)])

    def predict_proba(self, X: Any, *, node_ids: Any) -> Array:
        """Probabilities of the two classes, shape (n_rows, 2).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        node_ids : array of shape (n_rows,)
            Node of each row.
        """
        scores = self.scores(X, node_ids=node_ids)
        return np.column_stack([expit(-scores), expit(scores)])
