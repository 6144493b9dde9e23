"""Targets as a normal model sees them: itself, or a linearisation at the last fit."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from nefele._checks import Array

_LEAST_WEIGHT, _LARGEST = 1e-4, 30.0


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
        """What a prediction costs, by which models are compared, shape (n_rows,)."""


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
        mean = np.exp(np.clip(eta, -_LARGEST, _LARGEST))
        weight = np.maximum(mean, _LEAST_WEIGHT)
        return eta + (y - mean) / weight, weight

    def errors(self, eta: Array, y: Array) -> Array:
        """Half of Poisson's deviance."""
        mean = np.exp(np.clip(eta, -_LARGEST, _LARGEST))
        logs = np.where(y > 0, y * np.log(np.where(y > 0, y, 1.0) / mean), 0.0)
        return np.asarray(logs - (y - mean))
