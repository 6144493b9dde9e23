"""An estimator fitted step by step: what searches, runs and comparisons need of it.

`rows` -> `graph` -> `design` -> `path_points` or `fit`; `contest` judges it at held-out rows.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from nefele._checks import Array
from nefele.estimators._base import GTVBase
from nefele.estimators.design import Design, Rows
from nefele.estimators.reporting import Track, stacked
from nefele.estimators.scores import raw
from nefele.graph import Graph
from nefele.losses import Absolute, HuberLoss, Quantile
from nefele.paths.follow import whole_solve
from nefele.result import ConvergenceWarning, DataWarning, Result
from nefele.selection.clearest import cluster_table
from nefele.selection.folds import Contest, Fold, Told, quiet_path, run_contest
from nefele.selection.judge import Judge, Scorer

Index = NDArray[np.int64]


def take_rows(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    node_ids: Any = None,
    classes: Any = None,
) -> Rows:
    """Validated rows, without those of weight zero; the model learns its features and classes.

    A classifier may be given more `classes` than these rows have.
    """
    if classes is not None:
        model._classes = np.unique(classes)
    return model._take_rows(X, y, sample_weight, node_ids, reset=True)


def make_graph(model: GTVBase, rows: Rows) -> Graph:
    """The graph of the model, learnt from these rows where it has a builder."""
    return model._make_graph(rows)


def make_design(model: GTVBase, rows: Rows) -> Design:
    """The problem of these rows over the model's graph, and the way back to the units of X."""
    return model._make_design(rows, model._make_graph(rows))


def fit_design(model: GTVBase, rows: Rows, design: Design, w0: Any = None, u0: Any = None) -> Any:
    """The model fitted to a design, from w0 and u0."""
    return model._solve(rows, design, w0, u0)


def store(model: GTVBase, rows: Rows, design: Design, result: Result) -> Any:
    """The model with the fitted attributes of a solution that was found elsewhere."""
    return model._store(rows, design, result)


def parameters(model: GTVBase, design: Design) -> tuple[Array, Array]:
    """Parameters and duals of a fitted model as those of the design's problem."""
    return model._point(design), model._flow


def in_units(model: GTVBase, design: Design, w: Array) -> tuple[Array, Array]:
    """Coefficients and intercepts, as the fitted attributes have them, of parameters w."""
    coef, intercept = model._shaped(*design.to_units(w))
    n = design.graph.n_nodes
    return coef[:n], intercept[:n]


def track_along(model: GTVBase, alphas: Array, chosen: int) -> Track:
    """The models along the alphas of a choice, of the rows that the model was fitted to."""
    _, design, _, _ = fitted_design(model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the choice has told of them
        points = list(path_points(model, design, alphas))
        clusters = clusters_along(model, design, points)
    coef = np.stack([stacked(*in_units(model, design, point.w)) for point in points])
    coef[chosen] = stacked(model.coef_, model.intercept_)
    return Track(alphas, chosen, coef, clusters, np.array([point.gap for point in points]))


def path_points(model: GTVBase, design: Design, alphas: Array) -> Iterator[Result]:
    """Solutions for descending alphas, each started at the one before."""
    return quiet_path(design.problem, alphas, bool(design.coupled.any()), _options(model))


def clusters_along(model: GTVBase, design: Design, points: list[Result]) -> NDArray[np.int64]:
    """Cluster of each node at each point of a path, shape (n_alphas, n_nodes)."""
    problem = design.problem
    parts = [design.coupled_part(point.w) for point in points]
    if problem.penalty.is_norm:
        (own,) = path_points(model, design, np.zeros(1))
        apart = design.coupled_part(own.w)
    else:  # nothing is fused, and own fits of few rows may be anywhere
        apart = max(parts, key=lambda part: float(np.ptp(part, axis=0).max(initial=0.0)))
    table = cluster_table(problem.graph, apart, parts, problem.loss.labelled)
    if not design.hub:
        return table
    return np.stack([np.unique(row[:-1], return_inverse=True)[1] for row in table])


def run_fold(
    template: GTVBase,
    rows: Rows,
    split: tuple[Index, Index],
    alphas: Array,
    scorer: Scorer | None = None,
    told: Told | None = None,
    table: Any = None,
) -> Fold:
    """Fit on the training rows of a split, for all alphas, and judge on the others.

    A scorer sees the held-out rows of `table`, X as the user gave it, or else their numbers.
    """
    return run_contest(_contest(template, rows, split, scorer, table), alphas, told)


def _contest(
    template: GTVBase, rows: Rows, split: tuple[Index, Index], scorer: Scorer | None, table: Any
) -> Contest:
    """The training rows of a split as a problem, and the held-out rows to judge its solutions."""
    model = copy.copy(template)
    train, places = rows.take(split[0]), split[1]
    held, train = rows.take(split[1]).filled_by(train), train.filled_by(train)
    design = make_design(model, train)
    graph, labelled = design.graph, design.problem.loss.labelled
    one_model = _one_model(model, design)
    model.graph_, model.nodes_ = graph, np.array(graph.ids)
    if design.layout is not None:
        model._layout = design.layout
    coef, intercept = model._shaped(*design.to_units(one_model, fill=False))
    model.pooled_coef_, model.pooled_intercept_ = coef[0], intercept[0]
    place, left_out = graph.positions(held.node_ids), 0
    if model.unseen == "raise":
        known = np.flatnonzero(place >= 0)
        left_out = len(place) - len(known)
        held, places, place = held.take(known), places[known], place[known]
    loss = model._core_loss()
    cost = loss.f if isinstance(loss, Absolute | HuberLoss | Quantile) else None
    own = (place >= 0) & labelled[place]
    judge = Judge(held.node_ids, held.sample_weight, own, scorer, cost)
    X = np.arange(len(held.y))[:, None] if table is None else _safe_indexing(table, places)
    y = labels_of(model, held.y)

    def score(w: Array, fill: bool) -> float:
        model.coef_, model.intercept_ = model._shaped(*design.to_units(w, fill=fill))
        if design.hub:
            model.centre_coef_, model.centre_intercept_ = model.coef_[-1], model.intercept_[-1]
        if design.carried:
            model._curve_weight = design.common_weights(w)
        z = raw(model, held.X, held.node_ids)  # once for all that the judge asks
        shown: Any = copy.copy(model)

        def predicted(given: Any, node_ids: Any = None) -> Array:
            return z if given is X else type(model)._raw(shown, given, node_ids)

        shown._raw = predicted
        return judge(shown, X, y)

    coupled, options = bool(design.coupled.any()), _options(model)
    return Contest(design.problem, coupled, options, one_model, judge, score, left_out)


def _options(model: GTVBase) -> dict[str, Any]:
    return {"solver": model.solver, "tol": model.tol, "max_iter": model.max_iter}


def labels_of(model: Any, y: Array) -> NDArray[Any]:
    """The target as the user gave it, from the numbers the core works with."""
    if not hasattr(model, "classes_"):
        return y
    code = (y > 0).astype(np.int64) if model._n_outputs == 1 else y.astype(np.int64)
    return np.asarray(model.classes_[code])


def _one_model(model: GTVBase, design: Design) -> Array:
    """Parameters of one model for all rows, with the same weighting, shape (1, d)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        return whole_solve(design.one_model(model._core_loss()), tol=model.tol).w


def fitted_design(model: GTVBase) -> tuple[Rows, Design, Array, Array]:
    """Training rows, design, parameters and duals of a fitted model, as the core has them."""
    rows = getattr(model, "_rows", None)
    if rows is None or not hasattr(model, "_flow"):
        raise ValueError(
            "The model must have its training rows; it was saved without them. Save it by "
            "model.save(path, rows=True), or fit it again."
        )
    design = model._make_design(rows, model.graph_)
    return rows, design, model._point(design), model._flow


def feature_names(model: GTVBase) -> list[str]:
    """Names of the columns of coef_; x0, x1, ... where X had none."""
    return model._names() or [f"x{j}" for j in range(model.coef_.shape[-1])]


def rows_to_predict(model: GTVBase, X: Any, node_ids: Any) -> tuple[Array, Any]:
    """Validated rows as numbers, and the ids of their nodes."""
    return model._rows_to_predict(X, node_ids)


def core_loss(model: GTVBase) -> Any:
    """The core's loss object of a model."""
    return model._core_loss()


def give_rows(model: GTVBase, rows: Rows) -> GTVBase:
    """Give a model that was saved without them the rows that it was fitted to."""
    model._rows = rows
    return model


def forget_rows(model: GTVBase) -> None:
    """Drop the training rows of a model whose problem is not the one that they would make."""
    del model._rows
