"""FedRelax over any models: neighbours agree on the predictions of a shared set (AGN)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression

from nefele._checks import Array
from nefele.agnostic._base import FedRelaxBase
from nefele.agnostic._models import predictions
from nefele.estimators.design import Rows
from nefele.estimators.rows_base import RowsClassifier, RowsRegressor


class FedRelaxRegressor(RowsRegressor, FedRelaxBase):
    """One regression model of any kind per node; neighbours are to predict alike.

    Approaches sum_i L_i(h_i) + alpha * sum_e A_e d(h_i, h_j) (AGN, Eq. (8)), with the discrepancy
    d(h, h') = (1/m') sum_r (h(x_r) - h'(x_r))^2 over the rows x_r of a shared, unlabelled set. In
    each round every node gets its neighbours' predictions on these rows and fits its model to its
    own rows, of weight 1, and to the shared rows labelled by the weighted mean of these
    predictions, of weight m_i alpha d_i / m' (m_i own rows, d_i the weighted degree). Nothing but
    predictions leaves a node. For linear models this solves the core's problem with
    `Quadratic(X_shared^T X_shared / m')`, a column of ones for the intercept, and lam = 2 alpha.

    Parameters
    ----------
    estimator : estimator, dict, callable or None
        The local model: one for all nodes, {node id: estimator} (the key None for the others),
        or a function of the node id. Anything with `fit` and `predict`; copies are fitted. A model
        whose `fit` takes no sample_weight (such as k-NN) gets rows drawn by weight. None:
        LinearRegression().
    graph, node
        See `GTVRegressor`.
    alpha : float
        Strength of the coupling; 0 is exactly `estimator.fit` on the rows of each node.
    X_shared : array of shape (m', d), table, str or int
        The shared set, known to all nodes, without the node column. Best is an unlabelled set
        that is public anyway. "gaussian": drawn from a normal distribution with the mean and
        covariance of all training rows, and reveals these. "uniform": drawn over the range of
        each feature, and reveals the extremes, each of them the value of a single row. A number:
        so many training rows drawn at random, which all nodes then see.
    n_shared : int
        Rows that "gaussian" and "uniform" draw.
    rounds : int
        Largest number of rounds.
    tol : float or None
        Stop when no node's predictions on the shared set change by more than this, root mean
        square in units of the target's standard deviation. None: do all rounds.
    schedule : {"jacobi", "gauss-seidel", "random"}
        All nodes at once; one colour of a greedy colouring after the other; or one by one in a
        new random order each round. The latter two use the newest predictions.
    discrepancy : {"squared", "absolute", "huber"}, ("huber", delta) or callable
        d: (h - h')^2; 2 |h - h'|; or (h - h')^2 / delta up to delta (1), then 2 |h - h'| - delta.
        The last two are squares reweighted in each round, for models that fit squared errors.
        "absolute" is "huber" with delta 1% of the target's standard deviation: the rounds of the
        plain one may stop short of the minimum. A callable gets two tensors of predictions on the
        shared rows and gives one number per row; only for torch models (`TorchRegressor`).
    init : {"local", "zero"}
        Start from local fits, or from models that predict 0, as in AGN, Algorithm 2.
    random_state : int, RandomState or None
        Of the shared set, drawn rows and random orders, and of local models that leave their own
        random_state open.
    n_jobs : int or None
        Fits in parallel, see joblib.
    faults : nefele.runtime.Faults or None
        Lost and late messages, nodes that sit out; a node goes on with what it last heard.
    noise : float
        Standard deviation of noise on the predictions that a node sends (Algorithm 5 of the lecture
        notes on federated learning, for predictions). All rounds are done, whatever `tol`. This is
        no guarantee of privacy, and `summary()` says so.
    privacy : nefele.privacy.Privacy or None
        A guarantee for what the nodes say: clipped mean predictions of models of disjoint shards
        of their rows, with noise. It needs a public X_shared and schedule="jacobi"; all rounds are
        done, whatever `tol`. The models in `estimators_` are fitted to raw rows: they stay at
        their nodes, and the guarantee does not cover them.
    verbose : bool or int
        Whether to show progress in one line, as `nefele.solve` does.

    Attributes
    ----------
    nodes_ : array of shape (n_nodes,)
        Node ids, those of the graph without training rows included.
    estimators_ : dict
        The fitted model of each node id.
    graph_ : Graph
    X_shared_ : array of shape (m', d)
    rounds_ : int
    converged_ : bool
    history_ : list of nefele.runtime.Round
        Change of predictions and objective after each round.
    ledger_ : nefele.runtime.Ledger
        What was sent, and what was lost or late.
    n_features_in_, feature_names_in_
        Without the node column.
    privacy_ : nefele.privacy.Spent
        What the fit cost; only with `privacy`.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> X = pd.DataFrame({"town": list("aaabbb"), "t": [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]})
    >>> y = [1.0, 2.0, 3.0, 1.2, 2.2, 3.2]
    >>> roads = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    >>> trees = {"a": DecisionTreeRegressor(random_state=0), None: LinearRegression()}
    >>> model = FedRelaxRegressor(trees, graph=roads, node="town", random_state=0).fit(X, y)
    >>> type(model.estimators_["a"]).__name__, type(model.estimators_["c"]).__name__
    ('DecisionTreeRegressor', 'LinearRegression')
    >>> model.predict(pd.DataFrame({"town": ["c"], "t": [1.0]})).round(1).tolist()
    [2.2]
    """

    _discrepancies = ("squared", "absolute", "huber")

    def predict(self, X: Any, *, node_ids: Any = None) -> Array:
        """Predictions of each row's own model, shape (n_rows,).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
        """
        parts = [
            (own, predictions(model, rows, None)) for own, model, rows in self._by_node(X, node_ids)
        ]
        return _gathered(parts)

    def _default(self) -> Any:
        return LinearRegression()

    def _spread(self, rows: Rows) -> float:
        return float(np.std(rows.y)) or 1.0


@dataclass(eq=False, repr=False, kw_only=True)
class FedRelaxClassifier(RowsClassifier, FedRelaxBase):
    """One classifier of any kind per node; neighbours are to give alike probabilities.

    As `FedRelaxRegressor`, with class probabilities in place of predictions and the cross-entropy
    as discrepancy: the neighbours' mean probabilities are soft labels of the shared rows, which
    enter the fit as one weighted row per class. The cross-entropy is not symmetric, so the rounds
    descend on no common objective; `history_` reports the symmetric sum. A node may have rows of
    one class only, or none. Classes it has not seen have probability 0 until neighbours bring
    them; a model that refuses a single class is a constant until then.

    Parameters
    ----------
    estimator : estimator, dict, callable or None
        See `FedRelaxRegressor`; None: LogisticRegression(). A classifier without `predict_proba`
        is taken to be sure of what it predicts.
    discrepancy : {"cross-entropy"} or callable
        A callable gets two tensors of probabilities; only for `TorchClassifier`.
    graph, node, alpha, X_shared, n_shared, rounds, tol, schedule, init, random_state, n_jobs, \
faults, noise, privacy, verbose
        See `FedRelaxRegressor`. tol is in units of probability; init="zero" means that all
        classes are equally likely.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, of any type, sorted.
    nodes_, estimators_, graph_, X_shared_, rounds_, converged_, history_, ledger_, \
n_features_in_, feature_names_in_
        See `FedRelaxRegressor`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"shop": list("aaaabb"), "price": [1.0, 2.0, 3.0, 4.0, 1.0, 1.5]})
    >>> y = ["buys", "buys", "leaves", "leaves", "buys", "buys"]
    >>> links = pd.DataFrame({"source": ["a"], "target": ["b"]})
    >>> model = FedRelaxClassifier(graph=links, node="shop", random_state=0).fit(X, y)
    >>> model.predict(pd.DataFrame({"shop": ["b", "b"], "price": [1.0, 6.0]})).tolist()
    ['buys', 'leaves']
    """

    _discrepancies = ("cross-entropy",)

    discrepancy: Any = "cross-entropy"

    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the classes by each row's own model, shape (n_rows, n_classes).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        parts = [
            (own, predictions(model, rows, self.classes_))
            for own, model, rows in self._by_node(X, node_ids)
        ]
        return _gathered(parts)

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """The class of each row that its own model predicts, shape (n_rows,).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        return _gathered(
            [
                (own, np.asarray(model.predict(rows)))
                for own, model, rows in self._by_node(X, node_ids)
            ]
        )

    def _default(self) -> Any:
        return LogisticRegression()

    def _spread(self, rows: Rows) -> float:
        return 1.0

    def _classes_or_none(self) -> NDArray[Any] | None:
        return np.asarray(self.classes_)

    def _labels(self, y: Array) -> NDArray[Any]:
        return np.asarray(self.classes_[y.astype(np.int64)])


def _gathered(parts: list[tuple[NDArray[np.int64], Any]]) -> Any:
    """The answers of the nodes in the order of the rows."""
    rows = np.concatenate([own for own, _ in parts])
    answers = np.concatenate([answer for _, answer in parts])
    out = np.empty_like(answers)
    out[rows] = answers
    return out
