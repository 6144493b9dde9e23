"""scikit-learn estimators: one linear model per node, coupled over a graph (NFL, Eq. (16))."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_consistent_length

from nefele._checks import Array, check_name, type_name
from nefele._ids import describe
from nefele.estimators._base import GTVBase
from nefele.losses import (
    Absolute,
    Hinge,
    HuberLoss,
    Logistic,
    Loss,
    Multinomial,
    Poisson,
    Squared,
    Zero,
)

_REGRESSION: dict[str, type[Loss]] = {
    "absolute": Absolute,
    "huber": HuberLoss,
    "poisson": Poisson,
    "squared": Squared,
}
_CLASSIFICATION: dict[str, type[Loss]] = {
    "hinge": Hinge,
    "logistic": Logistic,
    "multinomial": Multinomial,
}


class GTVRegressor(RegressorMixin, GTVBase):
    """One regression model per node, the models of neighbours coupled over a graph.

    Minimises sum_i L_i(w_i) + alpha * sum_e A_e phi(w_head(e) - w_tail(e)) (NFL, Eq. (16)), where
    w_i holds the coefficients and the intercept of node i.

    Parameters
    ----------
    graph : Graph, object that `as_graph` takes, graph builder or None
        Which nodes are neighbours, by node id. A builder (`SpatialKNN`, `MomentsKNN`, or an
        estimator with `fit_graph`) learns the graph inside `fit`. None: `MomentsKNN()`, or a
        single node when there are no node ids.
    node : str, int or None
        Column of X with the node ids, by name or position; it is no feature. None: the ids come
        by `node_ids=`, or all rows belong to one pooled node.
    alpha : float
        Strength of the coupling, the core's lam: 0 fits each node by itself, a large value fits
        one model per connected component.
    penalty : str or Penalty
        phi: "l2", "l1", "linf", "squared_l2", "huber" or an object of `nefele.penalties`.
    loss : str or Loss
        "squared", "huber", "absolute", "poisson" (which predicts exp(x^T w + b)) or an object of
        `nefele.losses`, such as `Squared(l2=0.1)`.
    fit_intercept : bool
        Whether each model has an intercept.
    couple : list of str or int, optional
        Features whose coefficients the graph couples; default all. The others stay personal: a
        node without rows gets their mean over the nodes with rows of its component (of the graph,
        if the component has no rows), in the units of X.
    couple_intercept : bool
        Whether the graph couples the intercepts; otherwise they are personal in the same way.
    weighting : {"nodes", "rows"}
        "nodes": the mean loss of each node counts once. "rows": each row counts once, L_i is
        multiplied by m_i / mean(m), m_i being the node's number (or total weight) of rows; both
        agree when all nodes have equally many.
    standardize : bool
        Whether to solve with features of mean 0 and standard deviation 1 over all training rows,
        so that alpha treats them alike. Coefficients are reported for X as given.
    coords : dict or table, optional
        Coordinates by node id, for `unseen="nearest"` and `SpatialKNN`.
    unseen : {"raise", "pooled", "nearest"}
        What to predict for ids that the graph does not know: an error, the model fitted to all
        rows with the same weighting, or the model of the nearest node.
    solver, tol, max_iter
        See `nefele.solve`; tol is the certified relative gap.

    Attributes
    ----------
    nodes_ : array of shape (n_nodes,)
        Node ids, those of the graph without training rows included.
    coef_ : array of shape (n_nodes, d)
    intercept_ : array of shape (n_nodes,)
    clusters_ : int array of shape (n_nodes,)
        Groups of connected nodes whose coupled parameters are equal.
    graph_ : Graph
    dual_gap_ : float
        Certified relative gap.
    status_ : str
    n_iter_ : int
    history_ : list of Record
    pooled_coef_, pooled_intercept_ : array of shape (d,), float
        Only with `unseen="pooled"`.
    n_features_in_, feature_names_in_
        Without the node column: they go with the columns of `coef_`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"town": list("aabbcc"), "t": [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]})
    >>> y = [1.0, 3.0, 1.1, 3.1, 8.0, 4.0]
    >>> roads = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    >>> model = GTVRegressor(roads, node="town", alpha=0.3).fit(X, y)
    >>> model.coef_.ravel().round(2).tolist(), model.clusters_.tolist()
    ([1.7, 1.7, -3.39], [0, 0, 1])
    >>> model.predict(pd.DataFrame({"town": ["c", "a"], "t": [0.5, 0.5]})).round(1).tolist()
    [5.9, 2.1]
    """

    def __init__(
        self,
        graph: Any = None,
        *,
        node: Any = None,
        alpha: float = 1.0,
        penalty: Any = "l2",
        loss: Any = "squared",
        fit_intercept: bool = True,
        couple: Any = None,
        couple_intercept: bool = True,
        weighting: str = "nodes",
        standardize: bool = False,
        coords: Any = None,
        unseen: str = "raise",
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
    ) -> None:
        self.graph = graph
        self.node = node
        self.alpha = alpha
        self.penalty = penalty
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.couple = couple
        self.couple_intercept = couple_intercept
        self.weighting = weighting
        self.standardize = standardize
        self.coords = coords
        self.unseen = unseen
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None
    ) -> GTVRegressor:
        """Fit again with new rows added, starting from the model so far.

        The result is that of `fit` on all rows up to the tolerance; the estimator keeps the rows
        it has seen. The graph stays that of the first call.

        Parameters
        ----------
        X, y, sample_weight, node_ids
            See `fit`.
        """
        self._partial_fit(X, y, sample_weight, node_ids)
        return self

    def predict(self, X: Any, *, node_ids: Any = None) -> Array:
        """Predictions of each row's own model, shape (n_rows,).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
        """
        z = self._raw(X, node_ids)
        return np.exp(z) if isinstance(self._core_loss(), Poisson) else z

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> float:
        """Coefficient of determination R^2 of the predictions over all rows."""
        from sklearn.metrics import r2_score

        return float(r2_score(y, self.predict(X, node_ids=node_ids), sample_weight=sample_weight))

    def _check_target(self, y: Any, X: Array) -> Array:
        y = np.asarray(_check_y(y, y_numeric=True, estimator=self), dtype=np.float64)
        check_consistent_length(X, y)
        return y

    def _core_loss(self) -> Loss:
        loss = _as_loss(self.loss, _REGRESSION)
        if isinstance(loss, Logistic | Hinge | Multinomial):
            raise ValueError(f"{type(loss).__name__} is for classes. Use GTVClassifier.")
        return loss


class GTVClassifier(ClassifierMixin, GTVBase):
    """One linear classifier per node, the models of neighbours coupled over a graph.

    Logistic for two classes, multinomial for more. A node may have rows of one class only, or
    none: it takes from its neighbours what its own rows do not tell.

    Parameters
    ----------
    graph, node, alpha, penalty, fit_intercept, couple, couple_intercept, weighting, standardize, \
coords, unseen, solver, tol, max_iter
        See `GTVRegressor`.
    loss : str or Loss
        "logistic" (multinomial when there are more than two classes), "hinge" (two classes, no
        probabilities) or an object such as `nefele.losses.Logistic(l2=0.01)`. Without l2 the
        coefficients of a component whose classes can be separated grow without bound, and a
        warning says so.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, of any type, sorted.
    coef_ : array of shape (n_nodes, d), or (n_nodes, n_classes, d) with more than two classes
    intercept_ : array of shape (n_nodes,) or (n_nodes, n_classes)
    nodes_, clusters_, graph_, dual_gap_, status_, n_iter_, history_, pooled_coef_, \
pooled_intercept_, n_features_in_, feature_names_in_
        See `GTVRegressor`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"shop": list("aaaabb"), "price": [1.0, 2.0, 3.0, 4.0, 1.0, 4.0]})
    >>> y = ["buys", "leaves", "buys", "leaves", "buys", "buys"]
    >>> links = pd.DataFrame({"source": ["a"], "target": ["b"]})
    >>> model = GTVClassifier(links, node="shop", alpha=0.3).fit(X, y)
    >>> model.classes_.tolist(), model.predict(X).tolist()
    (['buys', 'leaves'], ['buys', 'buys', 'buys', 'leaves', 'buys', 'buys'])
    """

    def __init__(
        self,
        graph: Any = None,
        *,
        node: Any = None,
        alpha: float = 1.0,
        penalty: Any = "l2",
        loss: Any = "logistic",
        fit_intercept: bool = True,
        couple: Any = None,
        couple_intercept: bool = True,
        weighting: str = "nodes",
        standardize: bool = False,
        coords: Any = None,
        unseen: str = "raise",
        solver: Any = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
    ) -> None:
        self.graph = graph
        self.node = node
        self.alpha = alpha
        self.penalty = penalty
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.couple = couple
        self.couple_intercept = couple_intercept
        self.weighting = weighting
        self.standardize = standardize
        self.coords = coords
        self.unseen = unseen
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not (
            self.loss == "hinge" or isinstance(self.loss, Hinge)
        )
        return tags

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        node_ids: Any = None,
    ) -> GTVClassifier:
        """Fit again with new rows added, starting from the model so far.

        Parameters
        ----------
        classes : array of shape (n_classes,), optional
            All labels that will ever come, for the first call; default: those in y.
        X, y, sample_weight, node_ids
            See `fit`.
        """
        first = not hasattr(self, "graph_")
        self._classes = np.unique(classes) if classes is not None and first else None
        self._keep_classes = not first
        try:
            self._partial_fit(X, y, sample_weight, node_ids)
        finally:
            del self._classes, self._keep_classes
        return self

    def decision_function(self, X: Any, *, node_ids: Any = None) -> Array:
        """Scores of the rows: (n_rows,) for two classes (positive: the second), else per class."""
        return self._raw(X, node_ids)

    @available_if(lambda self: _has_probabilities(self))
    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the classes by each row's own model, shape (n_rows, n_classes)."""
        z = self._raw(X, node_ids)
        if z.ndim == 2:
            return np.asarray(softmax(z, axis=1))
        return np.column_stack([expit(-z), expit(z)])

    @available_if(lambda self: _has_probabilities(self))
    def predict_log_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Logarithms of the probabilities, shape (n_rows, n_classes)."""
        return np.log(self.predict_proba(X, node_ids=node_ids))

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """The likeliest class of each row by its own model, shape (n_rows,)."""
        z = self._raw(X, node_ids)
        best = z.argmax(axis=1) if z.ndim == 2 else (z > 0).astype(np.int64)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> float:
        """Share of rows whose class is predicted."""
        from sklearn.metrics import accuracy_score

        found = self.predict(X, node_ids=node_ids)
        return float(accuracy_score(y, found, sample_weight=sample_weight))

    def _check_target(self, y: Any, X: Array) -> Array:
        y = column_or_1d(_check_y(y, y_numeric=False, estimator=self), warn=True)
        check_consistent_length(X, y)
        if y.dtype.kind == "O" and len({type(label) for label in y.tolist()}) > 1:
            kinds = sorted({type(label).__name__ for label in y.tolist()})
            raise ValueError(
                f"The labels in y must be of one type; got {', '.join(kinds)}. Drop missing ones, "
                "or convert: y.astype(str)."
            )
        check_classification_targets(y)
        if not getattr(self, "_keep_classes", False):
            given = getattr(self, "_classes", None)
            self.classes_ = np.unique(y) if given is None else given
        code = np.searchsorted(self.classes_, y).clip(0, len(self.classes_) - 1)
        strange = self.classes_[code] != y
        if strange.any():
            raise ValueError(
                f"y must have the classes {describe(self.classes_)}; got also "
                f"{describe(np.unique(y[strange]))}. Name all classes in the first partial_fit."
            )
        if len(self.classes_) < 2:
            raise ValueError(
                "GTVClassifier needs at least 2 classes in y over all nodes; got one class: "
                f"{describe(self.classes_)}. A single node may well have only one."
            )
        return 2.0 * code - 1.0 if self._n_outputs == 1 else code.astype(np.float64)

    def _targets(self, y: Array) -> Array:
        code = (y > 0).astype(np.int64) if self._n_outputs == 1 else y.astype(np.int64)
        return np.eye(len(self.classes_))[code]

    def _core_loss(self) -> Loss:
        loss = _as_loss(self.loss, _CLASSIFICATION)
        if not isinstance(loss, Logistic | Hinge | Multinomial):
            raise ValueError(
                f"{type(loss).__name__} is no loss for classes. Use Logistic, Hinge or "
                "Multinomial, or GTVRegressor."
            )
        if self._n_outputs == 1:
            return loss
        if isinstance(loss, Hinge):
            raise ValueError(
                "Only binary classification is supported. The hinge loss takes two classes; got "
                f'{len(self.classes_)} classes. Use loss="logistic".'
            )
        return Multinomial(n_classes=self._n_outputs, l2=loss.l2, l1=loss.l1)

    @property
    def _n_outputs(self) -> int:
        many = len(self.classes_) > 2
        multinomial = isinstance(_as_loss(self.loss, _CLASSIFICATION), Multinomial)
        return len(self.classes_) if many or multinomial else 1


def _has_probabilities(model: GTVClassifier) -> bool:
    if isinstance(_as_loss(model.loss, _CLASSIFICATION), Hinge):
        raise AttributeError('The hinge loss gives no probabilities. Use loss="logistic".')
    return True


def _as_loss(loss: Any, names: dict[str, type[Loss]]) -> Loss:
    if isinstance(loss, str):
        return names[check_name(loss, names, "loss")]()
    if isinstance(loss, type):
        raise ValueError(f"loss must be an object; got a class. Use {loss.__name__}().")
    if not isinstance(loss, Loss) or isinstance(loss, Zero):
        raise ValueError(
            f"loss must be one of {', '.join(names)} or a Loss object; got {type_name(loss)}."
        )
    return loss
