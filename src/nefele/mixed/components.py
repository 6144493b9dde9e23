"""Variance components by restricted maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from nefele._checks import Array
from nefele.mixed.coupling import Index
from nefele.mixed.likelihood import Evaluation, Likelihood

# Relative to the noise. At the least a coefficient is as good as common, and the likelihood still
# tells whether it should not be. At the most the sums of squares have few digits left.
_LEAST, _FIRST, _MOST = 1e-3, 0.3, 3e6
_GROWTH, _MOST_GROWTH = 100.0, 3  # of a first guess from which the likelihood rises on, and times
_LARGE = _GROWTH * _FIRST  # deviations from which steps grow with them
_LOG_RIDGE, _FIRST_RIDGE = (-4.0, 25.0), 0.01
_UNIT = 10.0  # the optimiser's first step has length 1; factors of coefficients are smaller
_MOST_STEPS, _TRIES = 200, 4
_AGAIN, _CLEAR = 0.05, 0.1  # where to start again, and the gain that this must promise
# Change of the deviance that is none: to report, and to compare. With ten times as much, rounding
# errors can decide between members that are nearly as good.
FINE, FAIR = 1e-5, 1e-3


@dataclass(frozen=True, eq=False)
class Form:
    """What is estimated: entries of the factor F, and one ridge for each group of columns.

    Attributes
    ----------
    p : int
        Number of columns with a personal part.
    full : bool
        Whether coefficients may depend on each other: F is lower triangular, not diagonal.
    groups : int array of shape (d,)
        Group of columns with the same ridge, -1 for none.
    fixed : array of shape (p, p), optional
        The factor where it is given and only the ridges are estimated.

    Examples
    --------
    >>> form = Form(2, True, np.array([-1, -1]))
    >>> form.F(np.array([1.0, 2.0, 3.0]))
    array([[1., 0.],
           [2., 3.]])
    """

    p: int
    full: bool
    groups: Index
    fixed: Array | None = None

    @property
    def entries(self) -> tuple[Index, Index]:
        """Places of the free entries of F."""
        if self.fixed is not None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        place = np.tril_indices(self.p) if self.full else (np.arange(self.p),) * 2
        return np.asarray(place[0]), np.asarray(place[1])

    @property
    def n_groups(self) -> int:
        """Number of ridges."""
        return int(self.groups.max(initial=-1)) + 1

    def F(self, x: Array) -> Array:
        """The factor of free numbers x."""
        if self.fixed is not None:
            return self.fixed
        out = np.zeros((self.p, self.p))
        out[self.entries] = x[: len(self.entries[0])]
        return out

    def ridge(self, x: Array) -> Array:
        """The ridges, shape (d,)."""
        out, on = np.zeros(len(self.groups)), self.groups >= 0
        out[on] = np.exp(x[len(self.entries[0]) :])[self.groups[on]]
        return out

    def slope(self, found: Evaluation) -> Array:
        """Gradient by the free numbers."""
        on = self.groups >= 0
        by_group = np.bincount(self.groups[on], found.slope_ridge[on], self.n_groups)
        return np.concatenate([found.slope_F[self.entries], by_group])

    def start(self, n_rows: float) -> Array:
        """A first guess; a column of deviation 1 has the sum of squares n_rows."""
        rows, columns = self.entries
        factor = np.where(rows == columns, _FIRST, 0.0)
        return np.concatenate([factor, np.full(self.n_groups, np.log(_FIRST_RIDGE * n_rows))])

    def unit(self, x: Array) -> Array:
        """Size of the free numbers: 1, and in proportion to their row of F where that is large.

        Deviations may be thousands of times the noise, as the offsets of instruments are.
        """
        rows, _ = self.entries
        size = np.sqrt(np.bincount(rows, x[: len(rows)] ** 2, self.p)) / _LARGE
        return np.concatenate([np.maximum(size, 1.0)[rows], np.ones(self.n_groups)])

    def bounds(self) -> list[tuple[float, float]]:
        """Bounds of the free numbers."""
        rows, columns = self.entries
        least = np.where(rows == columns, _LEAST, -_MOST)
        return [(float(low), _MOST) for low in least] + [_LOG_RIDGE] * self.n_groups


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated components: the free numbers, the factor, the ridges, and the model there."""

    form: Form
    x: Array
    F: Array
    ridge: Array
    model: Evaluation

    @property
    def S(self) -> Array:
        """Covariance of the personal deviations, shape (p, p)."""
        return np.asarray(self.model.s2 * self.F @ self.F.T)

    @property
    def n_free(self) -> int:
        """Number of components but for those as good as left out: at a bound."""
        low, high = np.reshape(self.form.bounds(), (-1, 2)).T
        return int(((self.x > 2 * low) & (self.x < high)).sum())

    @property
    def aic(self) -> float:
        """Akaike's criterion: the deviance plus two for each component."""
        return self.model.deviance + 2.0 * len(self.x)

    def correlated(self) -> Array:
        """Free numbers of a full factor that is at least as likely, for nodes without a graph.

        Deviations that do not depend on each other are a special case of those that may. From
        them one step of expectation maximisation is taken: to the covariance of the personal
        parts that were found, and of what is not known of them. It never lowers the likelihood.
        """
        model, d = self.model, len(self.ridge)
        Z, blocks = model.personal.Z[..., :d], model.personal.blocks()
        unknown = blocks + Z @ model.spread @ np.swapaxes(Z, 1, 2)
        S = model.r.T @ model.r / model.s2 + self.F @ unknown.sum(axis=0) @ self.F.T
        F = np.linalg.cholesky(S / len(model.r))
        j = np.arange(len(F))
        F[j, j] = np.maximum(F[j, j], _LEAST)
        full = replace(self.form, full=True)
        return np.concatenate([F[full.entries], self.x[len(self.form.entries[0]) :]])


def estimate(
    likelihood: Likelihood, form: Form, start: Array | None = None, *, tol: float = FINE
) -> Estimate:
    """Components of the largest restricted likelihood.

    Parameters
    ----------
    likelihood : Likelihood
    form : Form
    start : array, optional
        Free numbers to start from.
    tol : float
        Change of the deviance at which to stop.

    Examples
    --------
    >>> from nefele import LocalData
    >>> from nefele.mixed.statistics import Statistics
    >>> rng = np.random.default_rng(0)
    >>> rows = [(np.ones((9, 1)), 3 * rng.normal() + rng.normal(size=9)) for _ in range(200)]
    >>> likelihood = Likelihood(Statistics.of(LocalData.from_list(rows)), np.array([0]))
    >>> found = estimate(likelihood, Form(1, False, np.array([-1])))
    >>> round(float(found.S[0, 0]), 1), round(found.model.s2, 2)
    (9.2, 1.0)
    """
    if start is None:
        first = form.start(likelihood.n_rows)
        starts, larger = [first], _larger(likelihood, form, first)
        if (larger > first).any():
            starts.append(larger)
        found = (estimate(likelihood, form, x, tol=tol) for x in starts)
        return min(found, key=lambda one: one.model.deviance)
    x = start
    model = likelihood(form.F(x), form.ridge(x))
    for _ in range(_TRIES if len(x) else 0):
        before = model.deviance
        x = _descend(likelihood, form, x, tol, abs(before) or 1.0)
        model = likelihood(form.F(x), form.ridge(x))
        again = _left_behind(form, x, model)
        if not again.any() and not before - model.deviance > tol:  # one short step is no end
            break
        x = np.where(again, _AGAIN, x)
    return Estimate(form, x, form.F(x), form.ridge(x), model)


def _larger(likelihood: Likelihood, form: Form, x: Array) -> Array:
    """A first guess of deviations far larger, where the likelihood still rises with them there."""
    rows, columns = form.entries
    grows = np.concatenate([rows == columns, np.zeros(form.n_groups, dtype=bool)])
    for _ in range(_MOST_GROWTH):
        if not grows.any():
            break
        larger = np.where(grows, _GROWTH * x, x)
        grows &= form.slope(likelihood(form.F(larger), form.ridge(larger))) < 0
        x = np.where(grows, larger, x)
    return x


def _descend(likelihood: Likelihood, form: Form, x: Array, tol: float, size: float) -> Array:
    """Free numbers of a least deviance near x, to `tol` of a deviance of that size."""
    unit = form.unit(x) / _UNIT

    def deviance(scaled: Array) -> tuple[float, Array]:
        x = unit * scaled
        found = likelihood(form.F(x), form.ridge(x))
        return found.deviance, form.slope(found) * unit

    found = minimize(
        deviance,
        x / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=np.reshape(form.bounds(), (-1, 2)) / unit[:, None],
        options={"maxiter": _MOST_STEPS, "ftol": tol / size, "gtol": min(tol, 1e-3)},
    )
    return np.asarray(unit * found.x)


def _left_behind(form: Form, x: Array, model: Evaluation) -> Array:
    """Deviations that an early step took to the least, though the likelihood rises with them.

    By a factor of F its slope is nearly zero there; by its square it is not.
    """
    rows, columns = form.entries
    out = np.zeros(len(x), dtype=bool)
    least = (rows == columns) & (x[: len(rows)] <= 2 * _LEAST)
    gain = -form.slope(model)[: len(rows)] / (2 * np.maximum(x[: len(rows)], _LEAST)) * _AGAIN**2
    out[: len(rows)] = least & (gain > _CLEAR)
    return out
