"""A fit near what a user understands, beside the same fit without signals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from nefele._checks import Array, as_float_array, check_flag, check_number
from nefele.estimators import GTVClassifier, GTVRegressor


@dataclass(frozen=True, eq=False)
class ExplainableFit:
    """A model that was kept near a user's signals, and what that cost.

    Attributes
    ----------
    model : GTVRegressor or GTVClassifier
        The fitted model, with its certificate `dual_gap_`.
    strength : float
    distance : float
        Root mean square of signal minus prediction (of classes: of probabilities), at the rows
        with a signal.
    free_distance : float
        The same of the model without signals.
    error, free_error : float
        Mean squared training error (of classes: share of wrong predictions), with and without
        signals.

    Examples
    --------
    >>> import nefele
    >>> X, y = np.empty((4, 0)), [0.0, 0.0, 4.0, 4.0]
    >>> model = nefele.GTVRegressor(alpha=0.0)
    >>> signal = [2.0, 2.0, np.nan, np.nan]
    >>> found = nefele.accountable.fit_explainable(model, X, y, signal, node_ids=[0, 0, 1, 1])
    >>> found.model.intercept_.round(6).tolist(), round(found.distance, 6), found.free_distance
    ([1.0, 4.0], 1.0, 2.0)
    """

    model: Any = field(repr=False)
    strength: float
    distance: float
    free_distance: float
    error: float
    free_error: float


def fit_explainable(
    model: Any,
    X: Any,
    y: Any,
    signal: Any,
    *,
    strength: float = 1.0,
    calibrate: bool = False,
    node_ids: Any = None,
) -> ExplainableFit:
    """Fit with and without a term that keeps predictions near the signals of a user.

    The first is `model.set_params(explainable=strength).fit(X, y, signal=signal)`; its formula
    is that of `nefele.estimators.signals`.

    Parameters
    ----------
    model : GTVRegressor or GTVClassifier
        Not fitted; it is left as it is.
    X, y, node_ids
        See `fit`.
    signal : array of shape (n_rows,) or, for more than two classes, (n_rows, n_classes)
        What the user would expect of a row: in the units of y, or as probabilities of classes
        (for two classes that of the second); NaN for rows without a signal.
    strength : float
        How much a signal counts against a label; 0 is the plain fit.
    calibrate : bool
        For numbers whose signals are in units of their own: the line of least squares from them
        to the labels, at rows that have both, brings them to the units of y first.

    Returns
    -------
    ExplainableFit

    Examples
    --------
    >>> import nefele
    >>> X, y = np.empty((2, 0)), [0.0, 0.0]
    >>> found = nefele.accountable.fit_explainable(
    ...     nefele.GTVRegressor(alpha=0.0), X, y, [3.0, 3.0], strength=2.0, node_ids=["a", "a"])
    >>> found.model.intercept_.round(6).tolist()
    [2.0]
    """
    strength = check_number(strength, "strength", low=0.0)
    if not isinstance(model, GTVRegressor | GTVClassifier):
        raise ValueError(
            f"model must be a GTVRegressor or GTVClassifier; got {type(model).__name__}."
        )
    if y is None:
        raise ValueError("y must have one label per row; got None.")
    classes = isinstance(model, GTVClassifier)
    signal = as_float_array(signal, "signal", None)
    if check_flag(calibrate, "calibrate"):
        if classes or signal.shape != (len(np.asarray(y)),):
            raise ValueError("calibrate must be for a regression, with one signal per row.")
        signal = _in_units(signal, as_float_array(y, "y", 1))
    guided = clone(model).set_params(explainable=strength or 1.0)
    guided.fit(X, y, node_ids=node_ids, signal=signal)
    free = clone(model).fit(X, y, node_ids=node_ids)
    if not strength:
        guided = clone(model).set_params(explainable=0.0).fit(X, y, node_ids=node_ids)
    measured = [_measured(one, X, y, signal, node_ids, classes) for one in (guided, free)]
    (distance, error), (free_distance, free_error) = measured
    return ExplainableFit(guided, strength, distance, free_distance, error, free_error)


def _measured(
    model: Any, X: Any, y: Any, signal: Array, node_ids: Any, classes: bool
) -> tuple[float, float]:
    """Distance from the signals and training error of a model."""
    predicted = np.asarray(model.predict(X, node_ids=node_ids))
    if not classes:
        away, error = predicted - signal, (predicted - np.asarray(y, dtype=float)) ** 2
    else:
        share = model.predict_proba(X, node_ids=node_ids)
        away = share - signal if signal.ndim == 2 else share[:, 1] - signal
        error = predicted != np.asarray(y)
    return float(np.sqrt(np.nanmean(away**2))), float(np.mean(error))


def _in_units(signal: Array, target: Array) -> Array:
    """The line of least squares from signals to labels, at the signals."""
    on = ~np.isnan(signal)
    away = signal - signal[on].mean()
    size = float((away[on] ** 2).sum())
    if not size > 0:
        raise ValueError("signal must vary to be calibrated; all its numbers are equal.")
    slope = float(away[on] @ target[on]) / size
    return np.asarray(target[on].mean() + slope * away)
