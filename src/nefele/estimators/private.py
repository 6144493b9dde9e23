"""Fits with a guarantee: nodes release noisy numbers, and the fit is made of nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nefele._checks import Array, type_name
from nefele.estimators import design as designs
from nefele.estimators.design import Design, Rows
from nefele.estimators.nodes import row_places
from nefele.estimators.rehearsal import rehearse
from nefele.estimators.released import Index, Released, release_cells, times
from nefele.graph import Graph
from nefele.graph_learning.builders import SpatialKNN
from nefele.losses import Absolute, HuberLoss, Quantile, Squared
from nefele.paths.follow import whole_solve
from nefele.privacy import Privacy, Spent
from nefele.privacy.bounds import Box
from nefele.privacy.updates import Updates
from nefele.result import Result, Status


def check(model: Any, rows: Rows) -> str:
    """The mechanism of a private fit; ValueError when it would guarantee nothing."""
    privacy = model.privacy
    if not isinstance(privacy, Privacy):
        raise ValueError(f"privacy must be a nefele.privacy.Privacy; got {type_name(privacy)}.")
    if hasattr(model, "encoder_"):
        raise ValueError(
            "X must hold numbers only with privacy: categories, dates and fills of gaps would be "
            "learnt from the rows. Encode it beforehand."
        )
    if not (rows.sample_weight == 1.0).all():
        raise ValueError("sample_weight must be left out with privacy: bounds are for equal rows.")
    if model.features != "linear" and model.features != "auto":
        raise ValueError('features must be "linear" with privacy: curves need the rows themselves.')
    if privacy.refit and (model.scale is not None or model.hub):
        raise ValueError("refit=True must go without scale and hub.")
    return privacy.mechanism_for(model._core_loss())


def fit(model: Any, rows: Rows) -> Any:
    """Charge, release, and fit the model to what was released."""
    mechanism = check(model, rows)
    if mechanism == "statistics":
        whole = np.zeros(len(rows.y), dtype=np.int64)
        rehearse(model, rows, whole)
        found = released(model, rows, whole)
        shown = found.rows(np.ones(len(found.names), dtype=bool))
        model._solve(shown, model._make_design(shown, model._make_graph(shown)))
        if model.privacy.refit:
            _refit(model, rows, shown)
        return model
    return fit_updates(model, rows, [])


def _refit(model: Any, rows: Rows, shown: Rows) -> None:
    """Each node's model once more, with its own rows as they are; it stays there."""
    for name in np.unique(rows.node_ids).tolist():
        own = rows.take(np.flatnonzero(rows.node_ids == name))
        others = shown.take(np.flatnonzero(shown.node_ids != name))
        design = model._make_design(own.then(others), model.graph_)
        found = whole_solve(design.problem, model.solver, tol=model.tol, max_iter=model.max_iter)
        coef, intercept = model._shaped(*design.to_units(found.w))
        i = model.graph_.position(name)
        model.coef_[i], model.intercept_[i] = coef[i], intercept[i]
    # The certificate was that of the noisy problem.
    model.dual_gap_, model.status_, model._rows = np.inf, str(Status.UNCERTIFIED), None


def released(model: Any, rows: Rows, fold: Index) -> Released:
    """The moments of each node and fold, charged to the model's promise."""
    privacy: Privacy = model.privacy
    box = privacy.bounds.fixed(rows.X.shape[1], model._names())
    if isinstance(model.graph, Graph):
        row_places(model.graph, rows.node_ids)
    clipped = {
        name: box.unit(rows.X[rows.node_ids == name], rows.y[rows.node_ids == name])[2]
        for name in np.unique(rows.node_ids).tolist()
    }
    spent = _charge(model, "statistics", times(privacy, rows, fold), [])
    found = release_cells(privacy, box, rows, fold, spent.multiplier)
    _keep(model, spent, clipped)
    return found


def _charge(model: Any, mechanism: str, releases: int, outside: list[str]) -> Spent:
    spent = model.privacy.charge(mechanism, releases, outside, account_of(model))
    model.privacy_ = spent  # from here on it is spent, whatever comes
    return spent


def account_of(model: Any) -> dict[str, Any] | None:
    """The head of the account that earlier fits were charged to, if any were."""
    before = getattr(model, "privacy_", None)
    known = None if before is None else before.head
    return getattr(model, "_account", None) if known is None else known


def forget(model: Any) -> None:
    """For a fit without privacy: it promises nothing, and the account stays known."""
    known = account_of(model)
    if model.__dict__.pop("privacy_", None) is not None:
        model._account = known


def _keep(model: Any, spent: Spent, clipped: dict[Any, float]) -> None:
    model.privacy_, model._clipped = spent, clipped
    model.group_level_ = []  # whether a feature changes inside a node only the rows know


# -- updates ----------------------------------------------------------------------------------


def fit_updates(model: Any, rows: Rows, outside: list[str]) -> Any:
    """Noisy steps in a fixed number of rounds."""
    privacy: Privacy = model.privacy
    if model.scale is not None or model.hub or model.unseen == "pooled":
        raise ValueError(
            'scale, hub and unseen="pooled" must be left out with mechanism="updates": they need '
            'more than the updates tell. Use mechanism="statistics" for squared errors.'
        )
    graph = model._make_graph(rows)
    row_places(graph, rows.node_ids)
    outside = [*outside, *graph_outside(model, graph)]
    box = privacy.bounds.fixed(rows.X.shape[1], model._names())
    design, clipped = _bounded(model, rows, graph, box)
    radius = float(np.hypot(box.stretch, design.fit_intercept))
    problem = design.problem
    run = Updates(
        graph,
        model._core_loss(),
        problem.penalty,
        float(problem.lam) if design.coupled.any() else 0.0,
        int(privacy.rounds),
        privacy.multiplier(int(privacy.rounds)),
        radius,
        privacy.clip,
        privacy.unit,
        privacy.step,
    )
    run.check()
    spent = _charge(model, "updates", run.rounds, outside)
    assert problem.data is not None
    said = run.release(problem.data, privacy.source(0))
    model._store(rows, design, _result(design, run.settled(said), run.rounds))
    model._rows = None
    _keep(model, spent, clipped)
    return model


def graph_outside(model: Any, graph: Graph) -> list[str]:
    """What to say of a graph that was made of the rows; nothing of one that is public."""
    builder = model.graph
    learnt = (builder is None or hasattr(builder, "fit_graph")) and graph.n_edges > 0
    if isinstance(builder, SpatialKNN):  # by public places, or by columns of X
        places = getattr(model, "coords", None) if builder.coords is None else builder.coords
        learnt = learnt and isinstance(places, list | tuple | str)
    return ["the graph was learnt from raw rows"] if learnt else []


def _bounded(model: Any, rows: Rows, graph: Graph, box: Box) -> tuple[Design, dict[Any, float]]:
    """The problem of the bounded rows, scaled by the bounds."""
    loss, intercept = model._core_loss(), bool(model.fit_intercept)
    shiftable = isinstance(loss, Squared | HuberLoss | Absolute | Quantile)
    if not shiftable:
        box = replace(box, has_target=False)
    clipped, X, y = {}, np.empty_like(rows.X), rows.y.copy()
    for name in np.unique(rows.node_ids).tolist():
        own = rows.node_ids == name
        X[own], inner, clipped[name] = box.unit(rows.X[own], rows.y[own])
        y[own] = inner * box.half + box.middle if box.has_target else inner
    offset = box.middle if shiftable and intercept else 0.0
    d = X.shape[1]
    still = (np.zeros(d), np.ones(d))
    inside = replace(rows, X=box.stretch * X, y=y)
    data = designs.local_data(inside, graph.ids, *still, intercept, model.weighting, offset)
    coupled = designs.coupled_mask(
        model.couple, model.couple_intercept, model._names(), d, intercept
    )
    problem = designs.make_problem(
        graph, data, loss, model.penalty, float(model.alpha), coupled, model._n_outputs
    )
    shift = box.centre if intercept else np.zeros(d)
    if not intercept and box.centre.any():
        raise ValueError(
            "Ranges of features must be symmetric about 0 without an intercept. Use "
            "fit_intercept=True, or a bound of the norm."
        )
    return Design(
        problem, shift, box.width / box.stretch, coupled, model._n_outputs, offset
    ), clipped


def _result(design: Design, w: Array, rounds: int) -> Result:
    """Without a certificate: how far the noisy iterate is from the optimum only the rows know."""
    problem = design.problem
    none = np.zeros(problem.graph.n_nodes, dtype=bool)
    flow = np.zeros((problem.graph.n_edges, w.shape[1]))
    return Result(
        problem,
        w,
        flow,
        objective=np.nan,
        gap=np.inf,
        gap_abs=np.inf,
        certificate="none",
        leak=0.0,
        status=Status.UNCERTIFIED,
        n_iter=rounds,
        history=[],
        undetermined=problem.undetermined,
        unbounded=none,
    )
