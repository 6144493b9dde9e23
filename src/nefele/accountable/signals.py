"""Fits whose predictions stay near what a user understands.

Explainable empirical risk minimisation adds to the risk how far predictions are from a summary of
each row that the user knows, the user signal: sum_r (y_r - h(x_r))^2 + strength sum_s (u_s -
h(x_s))^2. For the squared loss these are more rows with the signal as their label, so the fit is a
problem as any other, with its certificate.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from nefele._checks import Array, as_float_array, check_flag, check_number
from nefele.accountable.fitted import one_estimator
from nefele.estimators import GTVRegressor
from nefele.estimators.fitting import core_loss
from nefele.losses import Squared


@dataclass(frozen=True, eq=False)
class ExplainableFit:
    """A model that was kept near a user's signals.

    Attributes
    ----------
    model : GTVRegressor
        The fitted model, with its certificate `dual_gap_`. Its training rows are those given, then
        once more those with a signal, labelled by it.
    strength : float
    distance : float
        Root mean square of signal minus prediction, at the rows with a signal.
    free_distance : float
        The same of the model without signals.
    error, free_error : float
        Mean squared training error with and without signals.

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
    """Fit with a term that keeps predictions near the signals of a user.

    Parameters
    ----------
    model : GTVRegressor
        Not fitted, with the squared loss; it is left as it is.
    X, y, node_ids
        See `fit`.
    signal : array of shape (n_rows,)
        What the user would expect of a row, in the units of y; NaN for rows without a signal.
    strength : float
        How much a signal counts against a label; 0 is the plain fit.
    calibrate : bool
        Whether the signals are in units of their own: the line of least squares from them to the
        labels, at rows that have both, brings them to the units of y first.

    Returns
    -------
    ExplainableFit

    Notes
    -----
    With `weighting="rows"` alpha is divided by what the signals add to the mean weight of a node,
    so that labels and coupling keep their balance. With "nodes" the labels and signals of a node
    share its one weight. Scales of features are those of all rows, signals counted.

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
    if not isinstance(model, GTVRegressor) or not isinstance(core_loss(model), Squared):
        raise ValueError(
            "model must be a GTVRegressor with the squared loss; got "
            f"{type(model).__name__}(loss={getattr(model, 'loss', None)!r})."
        )
    signal = _checked(signal, len(np.asarray(y)))
    target = as_float_array(y, "y", 1)
    if check_flag(calibrate, "calibrate"):
        signal = _in_units(signal, target)
    free = clone(model).fit(X, y, node_ids=node_ids)
    on = np.flatnonzero(~np.isnan(signal))
    guided = clone(model)
    if strength and len(on):
        more = strength * len(on) / len(target)
        if guided.weighting == "rows":
            guided.set_params(alpha=float(guided.alpha) / (1 + more))
        weight = np.append(np.ones(len(target)), np.full(len(on), strength))
        ids = None if node_ids is None else np.concatenate([node_ids, np.asarray(node_ids)[on]])
        both = np.append(target, signal[on])
        guided.fit(_twice(X, on), both, weight, node_ids=ids)
    else:
        guided.fit(X, y, node_ids=node_ids)
    found = [one.predict(X, node_ids=node_ids) for one in (one_estimator(guided), free)]
    distance = [float(np.sqrt(((z - signal)[on] ** 2).mean())) for z in found]
    error = [float(((z - target) ** 2).mean()) for z in found]
    return ExplainableFit(guided, strength, *distance, *error)


def _checked(signal: Any, count: int) -> Array:
    """The signals as numbers, not a number where there is none."""
    values = as_float_array(signal, "signal", None)
    if values.shape != (count,):
        raise ValueError(
            f"signal must have one entry per row, shape ({count},); got {values.shape}. Use NaN "
            "for rows without a signal."
        )
    if np.isinf(values).any():
        raise ValueError("signal must be finite, or NaN for rows without one; it is infinite.")
    if np.isnan(values).all():
        raise ValueError("signal must have at least one row with a number; all are NaN.")
    return values


def _in_units(signal: Array, target: Array) -> Array:
    """The line of least squares from signals to labels, at the signals."""
    on = ~np.isnan(signal)
    away = signal - signal[on].mean()
    size = float((away[on] ** 2).sum())
    if not size > 0:
        raise ValueError("signal must vary to be calibrated; all its numbers are equal.")
    slope = float(away[on] @ target[on]) / size
    return np.asarray(target[on].mean() + slope * away)


def _twice(X: Any, on: Any) -> Any:
    """X and once more some of its rows, as a table of the same kind."""
    from sklearn.utils import _safe_indexing

    every = np.arange(X.shape[0] if hasattr(X, "shape") else len(X))
    return _safe_indexing(X if hasattr(X, "shape") else np.asarray(X), np.append(every, on))
