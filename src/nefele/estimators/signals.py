"""What a user would expect of some training rows: the signals of an explainable fit.

Explainable empirical risk minimisation (Zhang, Karjauv and Jung: Explainable Empirical Risk
Minimization) adds to the risk how far predictions are from a summary of a row that its user knows.
Here the distance is the loss itself, with the signal u in place of the label,

    L_i(w) = (1/m_i) [sum_r f(x_r^T w, y_r) + strength * sum_s f(x_s^T w, u_s)],

the second sum over the rows with a signal: (u - h(x))^2 for squared errors, the cross-entropy of
the user's and the model's probabilities for classes. These are more rows of the same loss, so the
problem, its solvers and its certificate are those of any other fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array
from nefele.losses import Hinge, Loss, Poisson, SquaredHinge

_SUM = 1e-6  # of probabilities, by which they may miss 1


def as_signals(signal: Any, n_rows: int, strength: float, loss: Loss, classes: Any) -> Array:
    """Signals as rows beside the labels: (place, target, weight), shape (k, 3).

    Parameters
    ----------
    signal : array of shape (n_rows,) or, for more than two classes, (n_rows, n_classes)
        NaN for rows without a signal.
    n_rows : int
    strength : float
    loss : Loss
    classes : array or None
        Labels of the classes, for a classifier.

    Examples
    --------
    >>> from nefele.losses import Logistic, Squared
    >>> as_signals([np.nan, 3.0], 2, 0.5, Squared(), None).tolist()
    [[1.0, 3.0, 0.5]]
    >>> as_signals([0.8, np.nan], 2, 1.0, Logistic(), ["no", "yes"]).round(3).tolist()
    [[0.0, -1.0, 0.2], [0.0, 1.0, 0.8]]
    """
    if isinstance(loss, Hinge | SquaredHinge):
        raise ValueError("signal must go with probabilities; the hinge loss has none.")
    many = classes is not None and len(classes) > 2
    values = _checked(signal, (n_rows, len(classes)) if many else (n_rows,))
    places = np.flatnonzero(~np.isnan(values.reshape(n_rows, -1)).any(axis=1))
    if classes is None:
        if isinstance(loss, Poisson) and (values[places] < 0).any():
            raise ValueError("signal must be >= 0 for counts; it is below.")
        found = np.column_stack([places, values[places], np.full(len(places), strength)])
        return np.asarray(found, dtype=float)
    share = values[places] if many else np.column_stack([1 - values[places], values[places]])
    _check_probabilities(share)
    code = np.arange(share.shape[1], dtype=float) if many else np.array([-1.0, 1.0])
    found = np.column_stack(
        [
            np.repeat(places, len(code)),
            np.tile(code, len(places)),
            strength * share.ravel(),
        ]
    )
    return np.asarray(found[found[:, 2] > 0], dtype=float)


def told_signals(
    signal: Any, y: Array, sample_weight: Any, strength: float, loss: Loss, classes: Any
) -> Array:
    """The same for rows of which those of weight zero are not there; y is of those that are."""
    if sample_weight is None:
        return as_signals(signal, len(y), strength, loss, classes)
    on = np.asarray(sample_weight) > 0
    return taken(as_signals(signal, len(on), strength, loss, classes), np.flatnonzero(on), len(on))


def _checked(signal: Any, shape: tuple[int, ...]) -> Array:
    """The signals as numbers, not a number where there is none."""
    values = as_float_array(signal, "signal", None)
    if values.shape != shape:
        raise ValueError(
            f"signal must have one entry per row, shape {shape}; got {values.shape}. Use NaN for "
            "rows without a signal."
        )
    if np.isinf(values).any():
        raise ValueError("signal must be finite, or NaN for rows without one; it is infinite.")
    if np.isnan(values).all():
        raise ValueError("signal must have at least one row with a number; all are NaN.")
    return values


def _check_probabilities(share: Array) -> None:
    wrong = (share < 0) | (share > 1)
    if wrong.any():
        told = share[:, -1][wrong[:, -1]] if wrong[:, -1].any() else share[wrong]
        raise ValueError(
            "signal must hold probabilities of classes, from 0 to 1 (for two classes that of the "
            f"second); got {float(told[0]):g}."
        )
    missed = np.abs(share.sum(axis=1) - 1) > _SUM
    if missed.any():
        raise ValueError(
            f"signal must sum to 1 over the classes; got {float(share[missed][0].sum()):g}."
        )


def taken(signals: Array, index: Any, n_rows: int) -> Array:
    """The signals of some of the rows, which may be named more than once.

    Examples
    --------
    >>> taken(np.array([[1.0, 5.0, 1.0]]), np.array([1, 0, 1]), 2)[:, :2].tolist()
    [[0.0, 5.0], [2.0, 5.0]]
    """
    index = np.arange(n_rows)[index]
    order = np.argsort(signals[:, 0], kind="stable")
    place = signals[order, 0]
    first, last = (np.searchsorted(place, index, side) for side in ("left", "right"))
    count = last - first
    new = np.repeat(np.arange(len(index)), count)
    within = np.arange(len(new)) - np.repeat(np.cumsum(count) - count, count)
    found = signals[order[first[new] + within]] if len(new) else np.zeros((0, 3))
    return np.column_stack([new, found[:, 1:]])
