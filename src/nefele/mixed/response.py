"""Targets as a normal model sees them: itself, or a linearisation at the last fit."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.optimize import brentq

from nefele._checks import Array

_LEAST_WEIGHT, _LARGEST = 1e-4, 30.0
_LOG_K = (-14.0, 7.0)  # of the variance beyond Poisson's


class Response(Protocol):
    """A kind of target: numbers, two classes, counts.

    `noise` is the variance of the linearised target where that is known, `direct` says that the
    target is normal and needs no linearisation.
    """

    noise: float | None
    direct: bool

    def start(self, y: Array) -> Array:
        """Linear predictors to begin with, shape (n_rows,)."""

    def linear(self, eta: Array, y: Array) -> tuple[Array, Array]:
        """Working target and weight of each row at predictors eta."""

    def errors(self, eta: Array, y: Array) -> Array:
        """What a prediction costs, shape (n_rows,)."""

    def costs(self, etas: list[Array], y: Array, weight: Array) -> list[Array]:
        """The same for the predictors of several models, in the measure that compares them best.

        A row of weight k stands for k rows.
        """


class Numbers:
    """A target with normal noise.

    Examples
    --------
    >>> Numbers().errors(np.array([1.0]), np.array([3.0]))
    array([4.])
    """

    noise: float | None = None
    direct = True

    def start(self, y: Array) -> Array:
        return y

    def linear(self, eta: Array, y: Array) -> tuple[Array, Array]:
        return y, np.ones(len(y))

    def errors(self, eta: Array, y: Array) -> Array:
        return np.asarray((eta - y) ** 2)

    def costs(self, etas: list[Array], y: Array, weight: Array) -> list[Array]:
        return [self.errors(eta, y) for eta in etas]


class Classes:
    """Two classes, labels -1 and 1, with probability 1 / (1 + exp(-eta)) of the second.

    Examples
    --------
    >>> Classes().errors(np.zeros(1), np.ones(1)).round(3)
    array([0.693])
    """

    noise: float | None = 1.0
    direct = False

    def start(self, y: Array) -> Array:
        return y

    def linear(self, eta: Array, y: Array) -> tuple[Array, Array]:
        share = 1 / (1 + np.exp(-np.clip(eta, -_LARGEST, _LARGEST)))
        weight = np.maximum(share * (1 - share), _LEAST_WEIGHT)
        return eta + (0.5 * (y + 1) - share) / weight, weight

    def errors(self, eta: Array, y: Array) -> Array:
        return np.logaddexp(0.0, -y * eta)

    def costs(self, etas: list[Array], y: Array, weight: Array) -> list[Array]:
        return [self.errors(eta, y) for eta in etas]


class Counts:
    """Counts of mean exp(eta), perhaps more widely spread than Poisson's: the noise is estimated.

    Examples
    --------
    >>> Counts().errors(np.log([3.0]), np.array([3.0])).round(9) + 0.0
    array([0.])
    """

    noise: float | None = None
    direct = False

    def start(self, y: Array) -> Array:
        return np.log(y + 0.5)

    def linear(self, eta: Array, y: Array) -> tuple[Array, Array]:
        mean = _mean(eta)
        weight = np.maximum(mean, _LEAST_WEIGHT)
        return eta + (y - mean) / weight, weight

    def errors(self, eta: Array, y: Array) -> Array:
        """Half of Poisson's deviance."""
        return _deviance(y, _mean(eta), 0.0)

    def costs(self, etas: list[Array], y: Array, weight: Array) -> list[Array]:
        """Half of the deviance at the variance mean + k mean^2 (negative binomial), one k for all.

        Counts that vary more than Poisson's do so in proportion to their mean: by Poisson's
        deviance a few large counts would decide which model is taken. k is that of the model with
        the least errors there.
        """
        best = min(etas, key=lambda eta: float(weight @ self.errors(eta, y)))
        k = extra_variance(y, _mean(best), weight)
        return [_deviance(y, _mean(eta), k) for eta in etas]


def extra_variance(y: Array, mean: Array, weight: Array) -> float:
    """The k at which Pearson's statistic of variance mean + k mean^2 is the number of rows.

    Examples
    --------
    >>> mean = np.full(4, 10.0)
    >>> round(extra_variance(np.array([0.0, 20.0, 0.0, 20.0]), mean, np.ones(4)), 6)
    0.9
    """

    def above(log_k: float) -> float:
        ratio = (y - mean) ** 2 / (mean + np.exp(log_k) * mean**2)
        return float(weight @ (ratio - 1.0))

    low, high = _LOG_K
    if above(low) <= 0:
        return 0.0
    return float(np.exp(high if above(high) >= 0 else brentq(above, low, high, xtol=1e-6)))


def _mean(eta: Array) -> Array:
    return np.asarray(np.exp(np.clip(eta, -_LARGEST, _LARGEST)))


def _deviance(y: Array, mean: Array, k: float) -> Array:
    """Half of the deviance of counts of variance mean + k mean^2; Poisson's at k = 0."""
    logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mean), 0.0)
    if k == 0:
        return np.asarray(logs - (y - mean))
    return np.asarray(logs - (y + 1 / k) * np.log((1 + k * y) / (1 + k * mean)))
