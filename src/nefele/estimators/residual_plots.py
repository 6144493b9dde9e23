"""Pictures of what a fit leaves over: residuals and the deviations of the nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import chi2, norm
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, check_name, type_name
from nefele._draw.drawing import BLUE, DASHED, ORANGE, axes, new_axes, shorten
from nefele.estimators.scores import kept_rows, raw
from nefele.losses import Hinge, Logistic, Poisson, SquaredHinge

KINDS = ("all", "fitted", "normal", "effects", "nodes")
_MOST_POINTS = 5_000
_NAMED = 3  # nodes far out that are named
_SURE = 0.99  # share of the nodes inside the band when the noise is everywhere the same


def plot_residuals(
    model: Any, kind: str = "all", ax: Any = None, *, coefficient: str | None = None
) -> Any:
    """Pictures to judge a fit by: what it leaves over, and how the nodes deviate.

    Residuals are the target less the prediction at the training rows; for two classes and for
    counts divided by their standard deviation (Pearson's).

    Parameters
    ----------
    model : GTVRegressor, GTVClassifier or a CV form
        Fitted, with its training rows; at most two classes.
    kind : {"all", "fitted", "normal", "effects", "nodes"}
        "fitted": residuals against predictions, which should show no pattern. "normal": their
        quantiles against those of the normal distribution, on a line if they are normal.
        "effects": the same for the deviations of the nodes' coefficients from the centre's, or
        from their mean where there is no centre. "nodes": root mean square of the residuals of
        each node against its number of rows; 99 of 100 nodes are between the dashed lines if the
        noise is normal and the same for all, but for nodes of few rows, whose models follow them.
        "all": all four.
    ax : matplotlib Axes, or for "all" a sequence of four, optional
        Default: new ones.
    coefficient : str, optional
        Of "effects": a feature, or "intercept" (at the mean of the features). Default: the
        intercept, or the first feature whose coefficient differs between nodes.

    Returns
    -------
    matplotlib Axes, or for "all" an array of four

    Notes
    -----
    More than 5,000 points are thinned at random, always in the same way.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> import nefele
    >>> rng = np.random.default_rng(0)
    >>> ids, X = np.repeat(np.arange(20), 10), rng.normal(size=(200, 1))
    >>> y = X[:, 0] + rng.normal(size=20)[ids] + rng.normal(size=200)
    >>> model = nefele.GTVRegressorCV().fit(X, y, node_ids=ids)
    >>> nefele.plot_residuals(model, "effects").get_ylabel()
    'deviation of intercept'
    >>> nefele.plot_residuals(model).shape
    (4,)
    """
    check_name(kind, KINDS, "kind of picture")
    found = _left_over(model, coefficient)
    if kind != "all":
        ax = axes(ax)
        _DRAWN[kind](ax, found)
        return ax
    four = _four(ax)
    for one, draw in zip(four, _DRAWN.values(), strict=True):
        draw(one, found)
    return four


@dataclass(frozen=True, eq=False)
class _LeftOver:
    """Residuals of the rows, and deviations of one coefficient over the nodes."""

    fitted: Array
    residuals: Array
    owner: NDArray[np.int64]
    nodes: NDArray[Any]
    name: str
    deviations: Array
    pearson: bool

    @property
    def label(self) -> str:
        return "Pearson residual" if self.pearson else "residual"


def _left_over(model: Any, coefficient: str | None) -> _LeftOver:
    model = getattr(model, "best_estimator_", model)
    check_is_fitted(model, "coef_")
    if not hasattr(model, "_core_loss"):
        raise ValueError(f"model must be a fitted GTV estimator; got {type_name(model)}.")
    rows, loss = kept_rows(model, "Residuals"), model._core_loss()
    if model._n_outputs > 1 or isinstance(loss, Hinge | SquaredHinge):
        raise ValueError(
            "Residuals need numbers, counts, or two classes with the logistic loss; got "
            f"{type_name(loss)}."
        )
    fitted, y = raw(model, rows.X, rows.node_ids), rows.y
    spread = np.ones(len(y))
    if isinstance(loss, Logistic):
        fitted, y = expit(fitted), (y + 1) / 2
        spread = np.sqrt(np.maximum(fitted * (1 - fitted), 1e-12))
    elif isinstance(loss, Poisson):
        fitted = np.exp(fitted)
        spread = np.sqrt(np.maximum(fitted, 1e-12))
    owner = np.asarray(model.graph_.positions(rows.node_ids))
    name, deviations = _deviations(model, rows.X.mean(axis=0), coefficient)
    pearson = isinstance(loss, Logistic | Poisson)
    residuals = np.asarray(y - fitted) / spread
    return _LeftOver(fitted, residuals, owner, model.nodes_, name, deviations, pearson)


def _deviations(model: Any, mean: Array, coefficient: str | None) -> tuple[str, Array]:
    """Name of a coefficient, and how far each node's is from the centre's, or from their mean."""
    d = model.coef_.shape[1]
    names = [*(model._names() or [f"x{j}" for j in range(d)]), "intercept"]
    whole = np.column_stack([model.coef_, model.intercept_ + model.coef_ @ mean])
    if hasattr(model, "centre_coef_"):
        centre = np.append(model.centre_coef_, model.centre_intercept_ + model.centre_coef_ @ mean)
    else:
        centre = whole.mean(axis=0)
    away = whole - centre
    differs = np.abs(away).max(axis=0, initial=0.0) > 1e-9 * np.maximum(np.abs(centre), 1e-12)
    if coefficient is not None:
        place = names.index(check_name(coefficient, names, "coefficient"))
        if not differs[place]:
            raise ValueError(f"The coefficient {coefficient!r} is common to all nodes.")
    else:
        place = d if differs[d] or not differs.any() else int(differs.argmax())
    return names[place], away[:, place]


def _four(ax: Any) -> Any:
    if ax is None:
        return new_axes(2, 2, layout="constrained", figsize=(9.0, 7.0)).ravel()
    found = np.asarray(ax, dtype=object).ravel()
    if len(found) != 4:
        raise ValueError(f'ax must be four Axes for kind="all"; got {len(found)}.')
    return np.array([axes(one) for one in found], dtype=object)


def _thin(n: int) -> NDArray[np.int64]:
    if n <= _MOST_POINTS:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, _MOST_POINTS, replace=False))


def _points(ax: Any, x: Array, y: Array) -> None:
    size = float(np.clip(4000 / max(len(x), 1), 4, 25))
    ax.scatter(x, y, s=size, color=BLUE, alpha=0.6, linewidths=0)


def _fitted(ax: Any, found: _LeftOver) -> None:
    keep = _thin(len(found.fitted))
    _points(ax, found.fitted[keep], found.residuals[keep])
    ax.axhline(0.0, **DASHED)
    ax.set_xlabel("prediction")
    ax.set_ylabel(found.label)


def _normal(ax: Any, found: _LeftOver) -> None:
    _quantiles(ax, found.residuals, found.label)


def _effects(ax: Any, found: _LeftOver) -> None:
    _quantiles(ax, found.deviations, f"deviation of {found.name}")


def _quantiles(ax: Any, values: Array, label: str) -> None:
    """Sorted values against normal quantiles, and the line of their own mean and deviation."""
    ordered = np.sort(values)
    n = len(ordered)
    expected = norm.ppf((np.arange(1, n + 1) - 0.5) / n)
    keep = _thin(n)
    _points(ax, expected[keep], ordered[keep])
    ends = expected[[0, -1]]
    ax.plot(ends, values.mean() + values.std() * ends, **DASHED)
    ax.set_xlabel("normal quantile")
    ax.set_ylabel(label, parse_math=False)


def _nodes(ax: Any, found: _LeftOver) -> None:
    """Root mean square of each node, and where it should be for the same noise everywhere."""
    n = len(found.nodes)
    count = np.bincount(found.owner, minlength=n)
    on = np.flatnonzero(count)
    m = count[on]
    spread = np.sqrt(np.bincount(found.owner, found.residuals**2, n)[on] / m)
    whole = np.sqrt((found.residuals**2).mean())
    _points(ax, m.astype(float), spread)
    at = np.unique(np.round(np.geomspace(m.min(), m.max(), 100)))
    for share in ((1 - _SURE) / 2, (1 + _SURE) / 2):
        ax.plot(at, whole * np.sqrt(chi2.ppf(share, at) / at), **DASHED)
    above = spread / np.maximum(whole * np.sqrt(chi2.ppf((1 + _SURE) / 2, m) / m), 1e-300)
    for k in np.argsort(-above)[:_NAMED]:
        if above[k] > 1:
            name = shorten(str(found.nodes[on[k]]))
            place = dict(xytext=(4, 2), textcoords="offset points", fontsize="small")
            ax.annotate(name, (m[k], spread[k]), color=ORANGE, parse_math=False, **place)
    if m.max() > 3 * m.min():
        _logarithmic(ax)
    ax.set_xlabel("rows of the node")
    ax.set_ylabel(f"root mean square of {found.label}s")


def _logarithmic(ax: Any) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())


_DRAWN: dict[str, Callable[[Any, _LeftOver], None]] = {
    "fitted": _fitted,
    "normal": _normal,
    "effects": _effects,
    "nodes": _nodes,
}
