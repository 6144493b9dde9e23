"""How sure the model of each node is: intervals by resampling the rows inside the nodes."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, check_count, check_number
from nefele.data import LocalData
from nefele.estimators._base import GTVBase
from nefele.estimators.design import Design
from nefele.estimators.fitting import in_units
from nefele.estimators.scores import kept_rows, raw, refuse_signals
from nefele.graph import Graph
from nefele.losses import Loss, Poisson
from nefele.paths.follow import whole_solve
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning

_LEAST_SHAPE = 0.5  # below it single rows get nearly all the weight of a node
_BATCH = 100_000  # parameters of all copies that are solved at once


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals for the coefficients of each node, and for predictions.

    Attributes
    ----------
    level : float
        Share of the resampled fits inside each interval.
    coef_low, coef_high : arrays of the shape of the model's coef_
    intercept_low, intercept_high : arrays of the shape of the model's intercept_
    coef_samples : array of shape (n_boot, *coef_.shape)
        Coefficients of each resampled fit.
    intercept_samples : array of shape (n_boot, *intercept_.shape)
    model : GTVRegressor, GTVClassifier or one of their CV forms
        The fitted model that they belong to.
    pooled_samples : pair of arrays, or None
        Coefficients and intercepts of the pooled model of each resample, first axis n_boot; only
        with `unseen="pooled"`, for ids that the graph does not know.
    centre_samples : pair of arrays, or None
        The same of the centre; only of models with one.

    Examples
    --------
    >>> import nefele
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat([0, 1, 2], 20), rng.normal(size=(60, 1))
    >>> y = 2.0 * X[:, 0] + rng.normal(size=60)
    >>> model = nefele.GTVRegressor(nefele.graphs.chain(3), alpha=0.1).fit(X, y, node_ids=ids)
    >>> found = bootstrap_intervals(model, n_boot=50)
    >>> low, high = found.predict(X[:5], node_ids=ids[:5])
    >>> found.coef_low.shape, low.shape, bool((low < high).all())
    ((3, 1), (5,), True)
    """

    level: float
    coef_low: Array = field(repr=False)
    coef_high: Array = field(repr=False)
    intercept_low: Array = field(repr=False)
    intercept_high: Array = field(repr=False)
    coef_samples: Array = field(repr=False)
    intercept_samples: Array = field(repr=False)
    model: Any = field(repr=False)
    pooled_samples: tuple[Array, Array] | None = field(default=None, repr=False)
    centre_samples: tuple[Array, Array] | None = field(default=None, repr=False)
    _curve_weights: Array | None = field(default=None, repr=False)

    def predict(self, X: Any, *, node_ids: Any = None) -> tuple[Array, Array]:
        """Lower and upper ends for the prediction of each row: of its mean, without its noise.

        Parameters
        ----------
        X : as in the model's predict
        node_ids : array of shape (n_rows,), optional

        Returns
        -------
        low, high : arrays of shape (n_rows,), or (n_rows, n_classes) for class probabilities
            Scores instead of probabilities when the loss is the hinge loss.
        """
        X, ids = self.model._rows_to_predict(X, node_ids)
        if ids is None:
            ids = np.repeat(self.model.nodes_[:1], len(X))
        one = copy.copy(self.model)
        found = []
        for k in range(len(self.coef_samples)):
            one.coef_, one.intercept_ = self.coef_samples[k], self.intercept_samples[k]
            if self.pooled_samples is not None:
                one.pooled_coef_, one.pooled_intercept_ = (s[k] for s in self.pooled_samples)
            if self.centre_samples is not None:
                one.centre_coef_, one.centre_intercept_ = (s[k] for s in self.centre_samples)
            if self._curve_weights is not None:
                one._curve_weight = self._curve_weights[k]
            found.append(_response(self.model, raw(one, X, ids)))
        low, high = _ends(np.stack(found), self.level)
        return low, high


def bootstrap_intervals(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    node_ids: Any = None,
    n_boot: int = 100,
    level: float = 0.9,
    random_state: Any = 0,
    n_jobs: int | None = None,
    seed: Any = None,
) -> Intervals:
    """Intervals for the parameters of each node by the Bayesian bootstrap within nodes.

    Each resampled fit gives the rows of a node random weights (Rubin 1981), gamma distributed and
    independent, wider than exponential for small nodes, whose spread would be too small
    otherwise. It solves the same problem with the same graph and alpha, started at the fitted
    parameters. Unlike drawing rows with replacement this loses no row, so that nodes with few rows
    keep the rank they have. Many resampled fits are solved as one problem, side by side.

    The ends are quantiles of the resampled fits. They tell how much the fit depends on the rows,
    for this graph and alpha; they know neither the pull of the neighbours towards each other (the
    bias of a large alpha) nor that alpha, or the coupling itself with its common curves, was
    chosen. With fewer rows than about five per parameter
    they are too narrow; a node with a single row or none varies only with its neighbours.

    Parameters
    ----------
    model : GTVRegressor, GTVClassifier, GTVRegressorCV or GTVClassifierCV
        Fitted.
    X, y : as in fit, optional
        Rows to resample; default those of the fit.
    sample_weight, node_ids : as in fit
    n_boot : int
        Resampled fits.
    level : float
        Share of them inside each interval, between 0 and 1.
    random_state : int, numpy Generator, RandomState or None
        None: different draws each time.
    n_jobs : int, optional
        Batches to solve at the same time.
    seed : int or numpy Generator, optional
        Another name of `random_state`.

    Returns
    -------
    Intervals

    Examples
    --------
    >>> import nefele
    >>> ids, X = np.repeat([0, 1], 10), np.ones((20, 1))
    >>> y = np.repeat([1.0, 5.0], 10) + np.tile([-0.5, 0.5], 10)
    >>> model = nefele.GTVRegressor(nefele.graphs.chain(2), alpha=0.1, fit_intercept=False)
    >>> found = bootstrap_intervals(model.fit(X, y, node_ids=ids))
    >>> found.coef_low.shape, bool((found.coef_high - found.coef_low < 1.0).all())
    ((2, 1), True)
    """
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, GTVBase):
        raise ValueError(
            "model must be a fitted GTVRegressor, GTVClassifier or one of their CV forms; got "
            f"{type(model).__name__}."
        )
    check_is_fitted(model, "coef_")
    n_boot = check_count(n_boot, "n_boot", low=2)
    if not 0 < check_number(level, "level", low=0.0, strict=True) < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")
    design = _design_of(model, X, y, sample_weight, node_ids)
    start = model._point(design)
    rng = _generator(random_state if seed is None else seed)
    samples, common = _resample(model, design, start, n_boot, rng, n_jobs)
    fits = [in_units(model, design, np.ascontiguousarray(w)) for w in samples]
    coef, intercept = np.stack([c for c, _ in fits]), np.stack([b for _, b in fits])
    pooled = centre = curves = None
    if common is not None:
        pooled = model._shaped(*design.to_units(common, fill=False))
    if design.hub:
        centre = model._shaped(*design.to_units(samples[:, -1], fill=False))
    if design.carried:
        curves = np.stack([design.common_weights(np.ascontiguousarray(w)) for w in samples])
    ends = (*_ends(coef, level), *_ends(intercept, level))
    return Intervals(float(level), *ends, coef, intercept, model, pooled, centre, curves)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return np.random.default_rng(random_state)


def _design_of(model: Any, X: Any, y: Any, sample_weight: Any, node_ids: Any) -> Design:
    """The problem of the fit, or of other rows over the same graph."""
    if hasattr(model, "privacy_"):
        kept_rows(model, "Intervals")
    refuse_signals(model, "Intervals")
    if X is not None:
        if y is None:
            raise ValueError("y must come with X; got X alone.")
        rows = copy.copy(model)._take_rows(X, y, sample_weight, node_ids, reset=False)
    elif getattr(model, "_rows", None) is None:
        raise ValueError("The model was loaded without its rows. Pass X and y.")
    else:
        rows = model._rows
    return model._make_design(rows, model.graph_)


def _resample(
    model: GTVBase,
    design: Design,
    start: Array,
    n_boot: int,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> tuple[Array, Array | None]:
    """Parameters of each resampled fit, shape (n_boot, n_nodes, d), and of the pooled ones.

    The latter have shape (n_boot, d); None when no prediction needs them.
    """
    data = design.problem.data
    assert data is not None
    shape = _shape(data)
    at_once = max(1, min(n_boot, _BATCH // max(start.size, 1)))
    weights = [
        rng.standard_gamma(shape, size=(min(at_once, n_boot - first), data.n_rows))
        for first in range(0, n_boot, at_once)
    ]
    flow = (
        model._flow if model._flow.shape == (design.problem.graph.n_edges, start.shape[1]) else None
    )
    pool = model.unseen == "pooled"
    batches = Parallel(n_jobs=n_jobs)(
        delayed(_solve_batch)(
            design.problem, model._core_loss(), weight, start, flow, float(model.tol), pool
        )
        for weight in weights
    )
    missed = sum(not converged for _, _, converged in batches)
    if missed:
        warnings.warn(
            f"{missed} of {len(batches)} batches of resampled fits did not reach tol "
            f"{model.tol:.1e}. Increase tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
    common = np.concatenate([w for _, w, _ in batches]) if pool else None
    return np.concatenate([w for w, _, _ in batches]), common


def _shape(data: LocalData) -> Array:
    """Shape of each row's gamma weight, such that the spread of a node's fit is about unbiased.

    Exponential weights, shape 1, make a mean of m rows vary by (m - 1) / (m + 1) of what it should,
    and d fitted parameters hide d / m of the noise.
    """
    rows = np.maximum(data.counts, 1)[data.row_node]
    return np.maximum((rows - data.d - 1.0) / rows, _LEAST_SHAPE)


def _solve_batch(
    problem: Problem,
    loss: Loss,
    draws: Array,
    start: Array,
    flow: Array | None,
    tol: float,
    pool: bool,
) -> tuple[Array, Array, bool]:
    """Solve copies of the problem, side by side, each with its own row weights.

    With `pool` also one model for all rows of each copy, shape (n_copies, d), otherwise empty.
    """
    graph, data, count = problem.graph, problem.data, len(draws)
    assert data is not None
    n = graph.n_nodes
    shift = n * np.arange(count)[:, None]
    copies = Graph(
        np.arange(count * n),
        (graph.head + shift).ravel(),
        (graph.tail + shift).ravel(),
        np.tile(graph.weight, count),
    )
    base = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
    factor = getattr(data, "node_weight", None)
    rows = LocalData(
        np.tile(data.X, (count, 1)),
        np.tile(data.y, count),
        np.concatenate([[0], (data.ptr[1:] + data.n_rows * np.arange(count)[:, None]).ravel()]),
        sample_weight=(base * draws).ravel(),
        node_weight=None if factor is None else np.tile(factor, count),
        shrink=data.shrink,
    )
    whole = Problem(copies, rows, loss=loss, penalty=problem.penalty, lam=problem.lam)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # said by the fit of the model
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = whole_solve(
            whole,
            tol=tol,
            w0=np.tile(start, (count, 1)),
            u0=None if flow is None or not whole.coupled else np.tile(flow, (count, 1)),
        )
        common, converged = np.empty((0, start.shape[1])), result.converged
        if pool:
            ends = data.n_rows * np.arange(count + 1)
            merged = LocalData(
                rows.X, rows.y, ends, sample_weight=rows.row_weight, shrink=rows.shrink
            )
            alone = Graph(np.arange(count), [], [])
            found = whole_solve(Problem(alone, merged, loss=loss, lam=0.0), tol=tol)
            common, converged = found.w, converged and found.converged
    return result.w.reshape(count, n, -1), common, converged


def _response(model: Any, z: Array) -> Array:
    """What `predict` or `predict_proba` make of the linear scores."""
    if not hasattr(model, "classes_"):
        return np.exp(z) if isinstance(model._core_loss(), Poisson) else z
    if not hasattr(model, "predict_proba"):
        return z
    if z.ndim == 2:
        return np.asarray(softmax(z, axis=1))
    return np.column_stack([expit(-z), expit(z)])


def _ends(samples: Array, level: float) -> tuple[Array, Array]:
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high
