"""Linear scores of rows by the fitted models of their nodes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import describe, distinct
from nefele.estimators.design import Rows
from nefele.estimators.nodes import unseen_message
from nefele.graph_learning.coordinates import as_coordinates
from nefele.result import DataWarning

_FAR = 0.5  # of the range that a curve knows: tails of the training rows are not far


def raw(model: Any, X: Array, ids: Any) -> Array:
    """x^T w + b with the model of each row's node, for rows that are validated already."""
    place = np.zeros(len(X), dtype=np.int64) if ids is None else model.graph_.positions(ids)
    coef, intercept = model.coef_, model.intercept_
    if (place < 0).any():
        place, coef, intercept = _covered(model, ids, place)
    product = "rj,rj->r" if coef.ndim == 2 else "rj,rkj->rk"
    layout = getattr(model, "_layout", None)
    if layout is None or layout.smooth is None:
        return np.asarray(np.einsum(product, X, coef[place]) + intercept[place])
    straight = np.einsum(product, layout.clip(X), coef[place]) + intercept[place]
    return np.asarray(straight + curve_weights(model, place) * layout.smooth(X))


def _covered(model: Any, ids: Any, place: NDArray[np.int64]) -> tuple[Any, Array, Array]:
    """Models for rows of unknown nodes, by the rule `unseen`."""
    lost = place < 0
    if model.unseen in ("centre", "pooled"):
        if not hasattr(model, f"{model.unseen}_coef_"):
            needs = {
                "centre": "needs a centre: fit with hub > 0.",
                "pooled": "must be set before fit; fit again.",
            }
            raise ValueError(f'unseen="{model.unseen}" {needs[model.unseen]}')
        more = (getattr(model, f"{model.unseen}_{name}_") for name in ("coef", "intercept"))
        coef, intercept = (
            np.append(own, np.asarray(one)[None], axis=0)
            for own, one in zip((model.coef_, model.intercept_), more, strict=True)
        )
        return np.where(lost, len(model.coef_), place), coef, intercept
    if model.unseen == "nearest":
        where = as_coordinates(model.coords, model.node)
        place = place.copy()
        place[lost] = where.nearest(ids[lost], model.nodes_)
        if (place < 0).any():
            missing = describe(distinct(ids[place < 0]))
            raise ValueError(f"coords must have every unseen node; missing: {missing}.")
        return place, model.coef_, model.intercept_
    why = 'Use unseen="pooled", or "nearest" with coords, or add the nodes to the graph.'
    if hasattr(model, "centre_coef_"):
        why = 'Use unseen="centre" or "pooled", or "nearest" with coords.'
    raise ValueError(unseen_message(model.nodes_, ids[lost], why))


def curve_weights(model: Any, place: NDArray[np.int64]) -> Any:
    """Weight of the common curves in the model of each row; 1 where the target was shifted."""
    weight = getattr(model, "_curve_weight", None)
    return 1.0 if weight is None else weight[np.minimum(place, len(weight) - 1)]


def warn_outside(model: Any, X: Array) -> None:
    """Say so when features with a curve are far outside the values that the curve knows."""
    smooth = getattr(getattr(model, "_layout", None), "smooth", None)
    if smooth is None:
        return
    room = _FAR * (smooth.high - smooth.low)
    with np.errstate(invalid="ignore"):
        far = (smooth.low - room > X) | (smooth.high + room < X)
    columns = sorted({c.column for c in smooth.curves if far[:, c.column].any()})
    if columns:
        names = model._names()
        told = ", ".join(names[j] if names else f"x{j}" for j in columns)
        warnings.warn(
            f"{int(far[:, columns].any(axis=1).sum())} of {len(X)} rows are far outside the values "
            f"that the curves of {told} know, and count as the outermost of these: a trend does "
            'not go on there. Use features="linear" if it should.',
            DataWarning,
            stacklevel=4,
        )


def kept_rows(model: Any, what: str) -> Rows:
    """The rows that a model was fitted to; ValueError where it has none of its own."""
    if hasattr(model, "privacy_"):
        raise ValueError(
            f"{what} need rows as they are; a model fitted with privacy has noisy moments only, "
            "and what the noise does to it is not counted. Use nefele.privacy.price."
        )
    if getattr(model, "_rows", None) is None:
        raise ValueError(f"{what} need the training rows: save(path, rows=True).")
    rows: Rows = model._rows
    return rows


def refuse_signals(model: Any, what: str) -> None:
    """Raise ValueError for a fit that was kept near signals: they are no data to learn from."""
    rows = getattr(model, "_rows", None)
    if rows is not None and rows.signals is not None:
        raise ValueError(
            f"{what} must be of a fit without signals, which are no observations; this one has "
            f"{len(rows.signals)}. Fit without signal."
        )
