"""One linear classifier per node, coupled over a graph (NFL, Eq. (16))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_consistent_length

from nefele._checks import Array
from nefele._ids import describe
from nefele.estimators._available import available_if
from nefele.estimators._base import GTVBase, as_loss
from nefele.estimators.rows_base import RowsClassifier
from nefele.losses import Hinge, Logistic, Loss, Multinomial, SquaredHinge

_LOSSES: dict[str, type[Loss]] = {
    "hinge": Hinge,
    "logistic": Logistic,
    "multinomial": Multinomial,
    "squared_hinge": SquaredHinge,
}


@dataclass(eq=False, repr=False, kw_only=True)
class GTVClassifier(RowsClassifier, GTVBase):
    """One linear classifier per node, the models of neighbours coupled over a graph.

    Logistic for two classes, multinomial for more. A node may have rows of one class only, or
    none: it takes from its neighbours what its own rows do not tell.

    Parameters
    ----------
    graph, node, alpha, penalty, fit_intercept, couple, couple_intercept, weighting, standardize, \
scale, hub, features, coords, unseen, explainable, solver, tol, max_iter, engine, verbose, \
privacy
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
pooled_intercept_, centre_coef_, centre_intercept_, n_features_in_, feature_names_in_, \
group_level_, encoder_, privacy_, clipped_share_
        See `GTVRegressor`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"shop": list("aaaabb"), "price": [1.0, 2.0, 3.0, 4.0, 1.0, 4.0]})
    >>> y = ["buys", "leaves", "buys", "leaves", "buys", "buys"]
    >>> links = pd.DataFrame({"source": ["a"], "target": ["b"]})
    >>> model = GTVClassifier(links, node="shop", alpha=0.1).fit(X, y)
    >>> model.classes_.tolist(), model.predict(X).tolist()
    (['buys', 'leaves'], ['buys', 'buys', 'leaves', 'leaves', 'buys', 'buys'])
    """

    loss: Any = "logistic"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not (
            self.loss in ("hinge", "squared_hinge") or isinstance(self.loss, Hinge | SquaredHinge)
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
        forget: float = 1.0,
    ) -> Self:
        """Fit again with new rows added, starting from the model so far.

        Parameters
        ----------
        classes : array of shape (n_classes,), optional
            All labels that will ever come, for the first call; default: those in y.
        forget : float in (0, 1]
            What is left of the weight of all earlier rows; those below 1e-6 are dropped.
        X, y, sample_weight, node_ids
            See `fit`.
        """
        first = not hasattr(self, "graph_")
        self._classes = np.unique(classes) if classes is not None and first else None
        self._keep_classes = not first
        try:
            self._partial_fit(X, y, sample_weight, node_ids, forget)
        finally:
            del self._classes, self._keep_classes
        return self

    def decision_function(self, X: Any, *, node_ids: Any = None) -> Array:
        """Scores of the rows: (n_rows,) for two classes (positive: the second), else per class.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        return self._raw(X, node_ids)

    @available_if(lambda self: _has_probabilities(self))
    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the classes by each row's own model, shape (n_rows, n_classes).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        z = self._raw(X, node_ids)
        if z.ndim == 2:
            return np.asarray(softmax(z, axis=1))
        return np.column_stack([expit(-z), expit(z)])

    @available_if(lambda self: _has_probabilities(self))
    def predict_log_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Logarithms of the probabilities, shape (n_rows, n_classes).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        return np.log(self.predict_proba(X, node_ids=node_ids))

    def predict(self, X: Any, *, node_ids: Any = None) -> NDArray[Any]:
        """The likeliest class of each row by its own model, shape (n_rows,).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
            Node of each row, when X has no node column.
        """
        z = self._raw(X, node_ids)
        best = z.argmax(axis=1) if z.ndim == 2 else (z > 0).astype(np.int64)
        return self.classes_[best]

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
        loss = as_loss(self.loss, _LOSSES)
        if not isinstance(loss, Logistic | Hinge | SquaredHinge | Multinomial):
            raise ValueError(
                f"{type(loss).__name__} is no loss for classes. Use Logistic, Hinge or "
                "Multinomial, or GTVRegressor."
            )
        if self._n_outputs == 1:
            return loss
        if isinstance(loss, Hinge | SquaredHinge):
            raise ValueError(
                "Only binary classification is supported. The hinge loss takes two classes; got "
                f'{len(self.classes_)} classes. Use loss="logistic".'
            )
        return Multinomial(n_classes=self._n_outputs, l2=loss.l2, l1=loss.l1)

    @property
    def _n_outputs(self) -> int:
        many = len(self.classes_) > 2
        multinomial = isinstance(as_loss(self.loss, _LOSSES), Multinomial)
        return len(self.classes_) if many or multinomial else 1


def _has_probabilities(model: GTVClassifier) -> bool:
    if isinstance(as_loss(model.loss, _LOSSES), Hinge | SquaredHinge):
        raise AttributeError('The hinge loss gives no probabilities. Use loss="logistic".')
    return True
