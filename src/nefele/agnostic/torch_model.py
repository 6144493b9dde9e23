"""Networks of torch as scikit-learn estimators, local models of FedRelax among others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from nefele._checks import Array
from nefele._torch.base import to_numpy
from nefele.agnostic._torch_estimator import TorchBase


class TorchRegressor(RegressorMixin, TorchBase):
    """A network of torch as a scikit-learn regressor.

    Minimises sum_r s_r loss(h(x_r), y_r) / sum_r s_r + weight_decay / 2 ||w||^2 over the
    parameters w of the network, s_r the row weights.

    Parameters
    ----------
    module : Module, callable or None
        The network: a function of n_features (and n_outputs, if it has such a parameter) that
        makes a `torch.nn.Module`, or a module, of which a copy with its parameters is trained.
        None: one hidden layer of 32 tanh units. Its output has shape (n_rows, 1) or (n_rows,).
    loss : {"squared", "absolute"} or callable
        Loss of each row; a callable gets predictions and targets, both of shape (n_rows,), and
        gives as many losses.
    optimizer : {"adam", "sgd", "lbfgs"} or callable
        A callable gets the parameters and lr=, and gives an optimiser of torch. "lbfgs" does up
        to 20 iterations in each epoch, on all rows; lr=1 suits it.
    lr : float
        Learning rate.
    epochs : int
        Passes over the rows in each fit.
    batch_size : int or None
        Rows of a step; None: all.
    early_stop : int or None
        Stop when the objective has not fallen by 0.01% for so many epochs.
    weight_decay : float
    warm_start : bool
        Whether `fit` goes on from the parameters of the last one. FedRelax then trains on from
        round to round; otherwise it trains anew in each.
    dtype : {"float32", "float64"}
    n_threads : int or None
        Threads of torch in fit and predict; None: as many as torch is set to. One by default:
        networks of many nodes are small, and their threads would wait for each other.
    random_state : int, RandomState or None
        Of the initial parameters, batches and dropout. The global generator is left as it was.

    Attributes
    ----------
    module_ : Module
    loss_curve_ : list of float
        Objective of each epoch of the last fit.
    n_iter_ : int
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> def net(n_features):
    ...     return nn.Sequential(nn.Linear(n_features, 16), nn.Tanh(), nn.Linear(16, 1))
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = TorchRegressor(net, lr=0.05, random_state=0).fit(X, np.abs(X[:, 0]))
    >>> model.score(X, np.abs(X[:, 0])) > 0.95
    True
    """

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> TorchRegressor:
        """As `fit`, from the present parameters if there are some.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        """
        self._fit(X, y, sample_weight, hasattr(self, "module_"))
        return self

    def predict(self, X: Any) -> Array:
        """Predictions, shape (n_rows,).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        """
        return to_numpy(self._forward(X))

    def _check(
        self, X: Any, y: Any, going_on: bool, classes: NDArray[Any] | None, at_least: int
    ) -> tuple[Array, NDArray[Any]]:
        X, y = validate_data(
            self,
            X,
            y,
            reset=not going_on,
            dtype=np.float64,
            y_numeric=True,
            ensure_min_samples=at_least,
        )
        return X, np.asarray(y, dtype=np.float64)


@dataclass(eq=False, repr=False, kw_only=True)
class TorchClassifier(ClassifierMixin, TorchBase):
    """A network of torch as a scikit-learn classifier.

    The outputs of the network are logits, one per class; for two classes one of the second class
    is enough.

    Parameters
    ----------
    module : Module, callable or None
        See `TorchRegressor`; a factory is told the number of classes as n_outputs.
    loss : "cross_entropy" or callable
        A callable gets logits of shape (n_rows, n_classes) and class numbers of shape (n_rows,).
    optimizer, lr, epochs, batch_size, early_stop, weight_decay, warm_start, dtype, n_threads, \
random_state
        See `TorchRegressor`. With warm_start the classes must stay the same.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    module_, loss_curve_, n_iter_, n_features_in_, feature_names_in_
        See `TorchRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) < 0.5, "in", "out")
    >>> model = TorchClassifier(lr=0.05, random_state=0).fit(X, y)
    >>> model.predict([[0.0], [0.9]]).tolist(), model.predict_proba(X).shape
    (['in', 'out'], (40, 2))
    """

    _labels = True

    loss: Any = "cross_entropy"

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> TorchClassifier:
        """As `fit`, from the present parameters if there are some.

        The first call fixes the classes: those of y, or those given.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        y : array of shape (n_rows,)
        classes : array of shape (n_classes,), optional
            All classes, sorted or not.
        sample_weight : array of shape (n_rows,), optional
            Row weights >= 0.
        """
        going_on = hasattr(self, "module_")
        known = None if classes is None else np.unique(classes)
        if going_on and known is not None and not np.array_equal(known, self.classes_):
            raise ValueError(
                f"classes must be those of the first call, {self.classes_.tolist()}; got "
                f"{known.tolist()}. Use fit to begin anew."
            )
        self._fit(X, y, sample_weight, going_on, self.classes_ if going_on else known)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probabilities of the classes, shape (n_rows, n_classes).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        """
        return to_numpy(self._shared(self._forward(X)))

    def predict(self, X: Any) -> Any:
        """The most likely class of each row, shape (n_rows,).

        Parameters
        ----------
        X : array of shape (n_rows, d)
        """
        best = self._forward(X).argmax(dim=1).numpy()
        return self.classes_[best]

    def _check(
        self, X: Any, y: Any, going_on: bool, classes: NDArray[Any] | None, at_least: int
    ) -> tuple[Array, NDArray[Any]]:
        X, y = validate_data(
            self, X, y, reset=not going_on, dtype=np.float64, ensure_min_samples=at_least
        )
        if len(y):
            check_classification_targets(y)
        before = self.classes_ if going_on else None
        found = np.unique(y) if classes is None else np.asarray(classes)
        if before is not None:
            if not np.isin(found, before).all():
                raise ValueError(
                    f"y must keep to the classes of the first fit, {before.tolist()}; got "
                    f"{found.tolist()}. Use warm_start=False to begin anew."
                )
            found = before
        if len(found) < 2:
            raise ValueError(
                f"There must be two classes at least; got one class, {found.tolist()}."
            )
        if not np.isin(y, found).all():
            raise ValueError(f"y must have the classes {found.tolist()} only.")
        self.classes_ = found
        return X, np.searchsorted(found, y).astype(np.int64)
