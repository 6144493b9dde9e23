"""Whether the parts of a model that was read from a file fit together."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.encoding.encoder import TableEncoder
from nefele.estimators.design import Rows
from nefele.estimators.layout import Layout, with_centre
from nefele.graph import Graph
from nefele.graph_learning.coordinates import Coordinates
from nefele.mixed.smooth import Curve, Smooth
from nefele.privacy import Spent
from nefele.result import Record, Status, relative_gap

_SLACK = 1.01  # rounding of a gap that is computed again


def checked_coordinates(ids: Any, points: Any, metric: Any) -> Coordinates:
    """Coordinates from the parts of a file."""
    points = _numbers(points, (len(ids), points.shape[1]))
    _demand(isinstance(metric, str))
    return Coordinates(ids, points, metric)


def checked_rows(
    X: Any, y: Any, node_ids: Any, sample_weight: Any, gaps: Any = None, signals: Any = None
) -> Rows:
    """Rows from the parts of a file."""
    n = len(X)
    X, y = _numbers(X, (n, X.shape[1])), _numbers(y, (n,))
    _demand(len(node_ids) == n and bool((_numbers(sample_weight, (n,)) > 0).all()))
    if gaps is not None:
        _demand(isinstance(gaps, np.ndarray) and gaps.dtype == bool and gaps.shape == X.shape)
    if signals is not None:
        place, _, weight = _numbers(signals, (len(signals), 3)).T
        _demand(bool(((place >= 0) & (place < n) & (place % 1 == 0) & (weight >= 0)).all()))
    return Rows(X, y, node_ids, sample_weight, gaps, signals)


def checked_layout(**parts: Any) -> Layout:
    """A layout from the parts of a file."""
    smooth = parts.pop("smooth", None)
    layout = Layout(**parts, smooth=None if smooth is None else _checked_smooth(**smooth))
    d, p = len(layout.shift), len(layout.personal)
    _numbers(layout.shift, (d,))
    _demand(isinstance(layout.scale, np.ndarray) and layout.scale.shape == (d,))
    _demand(bool((layout.scale > 0).all()) and type(layout.fit_intercept) is bool)
    width = d + layout.fit_intercept
    _demand(layout.personal.dtype.kind == "i" and layout.personal.shape == (p,) and p > 0)
    _demand(int(layout.personal.min()) >= 0 and int(layout.personal.max()) < width)
    _demand(len(np.unique(layout.personal)) == p)
    _numbers(layout.F, (p, p))
    _demand(bool((np.linalg.svd(layout.F, compute_uv=False) > 0).all()))
    _numbers(layout.shared, (width,))
    _demand(_is_number(layout.hub) and 0 <= layout.hub <= 1)
    _demand(layout.smooth is None or layout.smooth.low.shape == (d,))
    if layout.ridge is not None:
        functions = 0 if layout.smooth is None else len(layout.smooth.groups)
        _numbers(layout.ridge, (width + functions,))
        _demand(bool((layout.ridge >= 0).all()))
    return layout


def _checked_smooth(low: Any, high: Any, weights: Any, curves: Any) -> Smooth:
    d = len(low)
    _demand(low.shape == high.shape == (d,) and bool((low <= high).all()))
    found = tuple(_checked_curve(d, **curve) for curve in curves)
    smooth = Smooth(low, high, found, weights)
    _numbers(weights, (len(smooth.groups),))
    return smooth


def _checked_curve(
    d: int, column: Any, knots: Any, turn: Any, line: Any, mean: Any, deviation: Any
) -> Curve:
    k = len(knots)
    _demand(_is_count(column) and column < d)
    _numbers(knots, (k,)), _numbers(turn, (k, k)), _numbers(line, (2, k))
    _demand(_is_number(mean) and _is_number(deviation) and deviation > 0)
    return Curve(column, knots, turn, line, mean, deviation)


def _check_layout(model: Any, layout: Any) -> None:
    _demand(isinstance(layout, Layout) and len(layout.shift) == model.n_features_in_)
    _demand(layout.fit_intercept == bool(model.fit_intercept) and hasattr(model, "_parameters"))
    _demand(hasattr(model, "centre_coef_") == (layout.hub > 0))


def _check_parameters(model: Any, w: Any) -> None:
    _demand(hasattr(model, "_layout") and isinstance(w, np.ndarray) and w.ndim == 2)
    _numbers(w, (_n_fitted(model), w.shape[1]))


def _n_fitted(model: Any) -> int:
    """Number of models: those of the nodes, and the centre's."""
    return int(model.graph_.n_nodes) + hasattr(model, "centre_coef_")


def check_restored(model: Any) -> None:
    """Raise ValueError unless every part is of its kind, in its domain, and fits the others.

    With the training rows the certified gap is computed again, and the larger one counts.
    """
    model._check_parameters()
    _demand(_is_number(model.tol) and 0 < model.tol < math.inf)
    found = vars(model)
    names = {n for n in found if n.endswith("_") or n.startswith("_")}
    _demand(names <= _CHECKS.keys() and names >= _NEEDED)
    _demand(isinstance(model.graph_, Graph) and _is_count(model.n_features_in_))
    if "classes_" in found:
        _check_classes(model.classes_)
    for name in names:
        _CHECKS[name](model, found[name])
    if found.get("_rows") is not None and "_flow" in found:
        model.dual_gap_ = max(model.dual_gap_, _gap_again(model))
        if Status(model.status_).reached and not model.dual_gap_ <= _SLACK * model.tol:
            model.status_ = str(Status.UNCERTIFIED)


def _gap_again(model: Any) -> float:
    design = model._make_design(model._rows, model.graph_)
    w, problem = model._point(design), design.problem
    certificate = problem.certificate(w, model._flow)
    return float(relative_gap(problem, certificate.objective, certificate.gap_abs))


def _demand(holds: bool) -> None:
    if not holds:
        raise ValueError("parts that do not fit together")


def _is_count(value: Any, low: int = 0) -> bool:
    return type(value) is int and value >= low


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and not math.isnan(value) and abs(value) < 2**1023


def _numbers(value: Any, shape: tuple[int, ...]) -> Array:
    _demand(isinstance(value, np.ndarray) and value.dtype == np.float64)
    _demand(value.shape == shape and bool(np.isfinite(value).all()))
    return np.asarray(value)


def _shape(model: Any) -> tuple[int, ...]:
    """Shape of the coefficients of one node."""
    outputs = model._n_outputs
    return (*((outputs,) if outputs > 1 else ()), model.n_features_in_)


def _check_classes(classes: NDArray[Any]) -> None:
    _demand(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) >= 2)
    _demand(len(np.unique(classes)) == len(classes))


def _check_names(model: Any, names: NDArray[Any]) -> None:
    _demand(isinstance(names, np.ndarray) and names.shape == (model.n_features_in_,))
    _demand(all(isinstance(name, str) for name in names.tolist()))


def _check_encoder(model: Any, encoder: Any) -> None:
    _demand(isinstance(encoder, TableEncoder) and encoder.node is None)
    names = encoder.get_feature_names_out().tolist()
    _demand(len(names) == model.n_features_in_)
    _demand(not names or getattr(model, "feature_names_in_", np.empty(0)).tolist() == names)


def _check_group_level(model: Any, found: Any) -> None:
    known = set(getattr(model, "feature_names_in_", range(model.n_features_in_)))
    _demand(isinstance(found, list) and all(type(name) in (str, int) for name in found))
    _demand(set(found) <= known)


def _check_clusters(model: Any, labels: NDArray[Any]) -> None:
    n = model.graph_.n_nodes
    _demand(isinstance(labels, np.ndarray) and labels.dtype.kind == "i" and labels.shape == (n,))
    _demand(int(labels.min()) >= 0 and int(labels.max()) < n)


def _check_history(model: Any, history: list[Record]) -> None:
    _demand(isinstance(history, list) and all(isinstance(r, Record) for r in history))
    _demand(all(_is_count(r.iteration) for r in history))
    _demand(all(type(x) in (int, float) for r in history for x in r))


def _check_candidates(model: Any, found: Any) -> None:
    _demand(isinstance(found, list) and bool(found) and hasattr(model, "coupling_"))
    for one in found:
        _demand(isinstance(one, dict) and one.keys() == {"coupling", "error", "aic"})
        _demand(isinstance(one["coupling"], str))
        _demand(type(one["error"]) in (int, float) and type(one["aic"]) in (int, float))


def _check_rows(model: Any, rows: Rows | None) -> None:
    if rows is not None:
        _demand(isinstance(rows, Rows) and rows.X.shape[1] == model.n_features_in_)
        _demand(bool((model.graph_.positions(rows.node_ids) >= 0).all()))


def _check_flow(model: Any, flow: Array) -> None:
    _demand(isinstance(flow, np.ndarray) and flow.ndim == 2)
    layout = getattr(model, "_layout", None)
    graph = model.graph_ if layout is None else with_centre(model.graph_, layout.hub)
    _numbers(flow, (graph.n_edges, flow.shape[1]))


_NEEDED = {"graph_", "nodes_", "coef_", "intercept_", "n_features_in_", "dual_gap_", "status_"}
_CHECKS: dict[str, Callable[[Any, Any], object]] = {
    "_flow": _check_flow,
    "_node_at": lambda model, at: _demand(
        at is None or (_is_count(at) and at <= model.n_features_in_)
    ),
    "_rows": _check_rows,
    "_curve_weight": lambda model, weight: _numbers(weight, (_n_fitted(model),)),
    "_layout": _check_layout,
    "_parameters": _check_parameters,
    "candidates_": _check_candidates,
    "centre_coef_": lambda model, coef: _numbers(coef, _shape(model)),
    "centre_intercept_": lambda model, b: _demand(
        bool(np.isfinite(np.asarray(b, dtype=np.float64)).all())
        and np.shape(b) == _shape(model)[:-1]
    ),
    "classes_": lambda model, classes: None,  # before the others, which count them
    "clusters_": _check_clusters,
    "coef_": lambda model, coef: _numbers(coef, (model.graph_.n_nodes, *_shape(model))),
    "coupling_": lambda model, words: _demand(
        isinstance(words, str) and hasattr(model, "candidates_")
    ),
    "dual_gap_": lambda model, gap: _demand(type(gap) in (int, float) and gap >= 0),
    "encoder_": _check_encoder,
    "feature_names_in_": _check_names,
    "graph_": lambda model, graph: None,
    "group_level_": _check_group_level,
    "history_": _check_history,
    "intercept_": lambda model, b: _numbers(b, (model.graph_.n_nodes, *_shape(model)[:-1])),
    "n_features_in_": lambda model, count: None,
    "n_iter_": lambda model, count: _demand(_is_count(count)),
    "nodes_": lambda model, nodes: _demand(np.array_equal(nodes, model.graph_.ids)),
    "pooled_coef_": lambda model, coef: _numbers(coef, _shape(model)),
    "pooled_intercept_": lambda model, b: _demand(
        bool(np.isfinite(np.asarray(b, dtype=np.float64)).all())
        and np.shape(b) == _shape(model)[:-1]
    ),
    "privacy_": lambda model, spent: _demand(isinstance(spent, Spent)),
    "status_": lambda model, status: _demand(status in [str(s) for s in Status]),
}
FITTED = frozenset(_CHECKS)
