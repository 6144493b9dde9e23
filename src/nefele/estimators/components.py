"""What a user of mixed models asks of a fit: variance components and shrinkage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array
from nefele._html import facts
from nefele.estimators.metric import counted
from nefele.mixed.coupling import mean_degree


@dataclass(frozen=True, eq=False)
class Components:
    """How much coefficients differ between nodes, and how much of it is noise.

    Attributes
    ----------
    names : list of str
        Features, and "intercept" (at the mean of the features) the last.
    deviation : array of shape (d + 1,)
        Standard deviation of each coefficient over the nodes, 0 where it is common; in the units
        of the coefficient. With a graph that of a node's deviation from its neighbours and the
        centre, as the metric has it.
    noise : float or None
        Standard deviation of the rows around their node's model; None for classes and counts.
    intraclass : float or None
        Share of the variance at the mean of the features that is between nodes.
    shrinkage : array of shape (n_nodes,) or None
        How far each node's intercept is drawn from its own rows to the others, from 0 to 1: the
        noise's share, s2 / (s2 + m S) for m rows and the variance S of intercepts. None for
        classes and counts.
    covariance : array of shape (d + 1, d + 1) or None
        Of the coefficients over the nodes, in their units; its diagonal is `variance`.

    Examples
    --------
    >>> found = Components(["x", "intercept"], np.array([0.0, 3.0]), 4.0, 0.36, np.array([0.1]))
    >>> for name, value in found.rows():
    ...     print(f"{name}: {value}")
    deviation of x over nodes: 0 (common)
    deviation of intercept over nodes: 3
    deviation of rows: 4
    intraclass correlation: 0.360
    """

    names: list[str]
    deviation: Array
    noise: float | None
    intraclass: float | None
    shrinkage: Array | None
    covariance: Array | None = None

    @property
    def variance(self) -> Array:
        """Variance of each coefficient over the nodes, shape (d + 1,)."""
        return np.asarray(self.deviation**2)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        return facts("Variance components", dict(self.rows()))

    def rows(self) -> list[tuple[str, str]]:
        """The components as label and value."""
        found = [
            (f"deviation of {name} over nodes", f"{value:.4g}" if value else "0 (common)")
            for name, value in zip(self.names, self.deviation, strict=True)
        ]
        if self.noise is not None:
            found.append(("deviation of rows", f"{self.noise:.4g}"))
        if self.intraclass is not None:
            found.append(("intraclass correlation", f"{self.intraclass:.3f}"))
        return found


def components_of(model: Any) -> Components:
    """Variance components of a fitted estimator with a centre, such as `GTVRegressorCV()`.

    Parameters
    ----------
    model : GTVRegressor, GTVClassifier or a CV form
        Fitted with the squared penalty and a scale, given or estimated.

    Examples
    --------
    >>> import nefele
    >>> rng = np.random.default_rng(0)
    >>> ids = np.repeat(np.arange(100), 10)
    >>> X = rng.normal(size=(1000, 1))
    >>> y = X[:, 0] + 2.0 * rng.normal(size=100)[ids] + rng.normal(size=1000)
    >>> found = components_of(nefele.GTVRegressorCV().fit(X, y, node_ids=ids))
    >>> found.names, found.deviation.round(1).tolist(), round(found.noise, 1)
    (['x0', 'intercept'], [0.0, 2.2], 1.0)
    """
    model = getattr(model, "best_estimator_", model)
    check_is_fitted(model, "coef_")
    layout = getattr(model, "_layout", None)
    if layout is None:
        raise ValueError(
            'Variance components need a model with a scale; fit with scale= or penalty="auto".'
        )
    d = len(layout.shift)
    unit = np.append(layout.scale, 1.0) if layout.fit_intercept else layout.scale
    covariance = np.zeros((len(unit), len(unit)))
    covariance[np.ix_(layout.personal, layout.personal)] = layout.F @ layout.F.T
    covariance /= np.outer(unit, unit)
    deviation = np.sqrt(covariance.diagonal())
    names = model._names() or [f"x{j}" for j in range(d)]
    counts = _counts(model)
    noise = _noise(model, counts)
    whole = [*names, "intercept"] if layout.fit_intercept else list(names)
    between = deviation[-1] ** 2 if layout.fit_intercept else 0.0
    if noise is None or not between + noise**2 > 0:
        return Components(whole, deviation, noise, None, None, covariance)
    share = between / (between + noise**2)
    shrinkage = noise**2 / np.maximum(noise**2 + counts * between, np.finfo(float).tiny)
    return Components(whole, deviation, noise, share, shrinkage, covariance)


def _counts(model: Any) -> Array:
    rows = getattr(model, "_rows", None)
    if rows is None:
        raise ValueError("Variance components need the training rows: save(path, rows=True).")
    place = model.graph_.positions(rows.node_ids)
    weight = counted(rows.sample_weight)
    return np.asarray(np.bincount(place, weight, model.graph_.n_nodes), dtype=float)


def _noise(model: Any, counts: Array) -> float | None:
    """From the strength of the coupling: alpha = 2 s2 / (mean rows x mean degree)."""
    from nefele.losses import Squared

    if not isinstance(model._core_loss(), Squared):
        return None
    degree = mean_degree(model.graph_) or 1.0
    return float(np.sqrt(model.alpha * degree * counts[counts > 0].mean() / 2))
