"""The mechanism `predictions`: clipped mean predictions of models fitted to disjoint shards.

It takes any model, since nothing is known of how one record changes it: it changes one of the k
shards' models by as much as the range allows, and their mean by a k-th of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.privacy.noise import Source, noisy
from nefele.privacy.sensitivity import of_predictions, of_probabilities

Fit = Callable[[Any], Array]


def shards_of(rows: int, shards: int) -> list[Any]:
    """Positions of the rows of each shard: every k-th, whatever the rows hold.

    Examples
    --------
    >>> [part.tolist() for part in shards_of(5, 2)]
    [[0, 2, 4], [1, 3]]
    """
    return [np.arange(k, rows, shards) for k in range(shards)]


def release(
    fit: Fit,
    rows: int,
    low: float,
    high: float,
    shards: int,
    multiplier: float,
    unit: str,
    rng: Source,
) -> Array:
    """All that leaves a node in one round: noisy predictions on the shared rows, shape (m',).

    Parameters
    ----------
    fit : callable
        Gets the positions of a shard's rows and gives predictions, of a model that saw no others.
    rows : int
        Number of rows of the node.
    low, high : float
        Range into which predictions are clipped.
    shards : int
        Number of shards k.
    multiplier, unit, rng
        See `statistics.release`.
    """
    said = [np.clip(_finite(fit(part)), low, high) for part in shards_of(rows, shards)]
    mean = np.mean(said, axis=0)
    spread = multiplier * of_predictions(high - low, len(mean), shards, unit)
    return np.clip(noisy(mean, spread, rng), low, high)


def release_classes(
    fit: Fit, rows: int, shards: int, multiplier: float, unit: str, rng: Source
) -> Array:
    """The same for probabilities of classes, shape (m', n_classes), rows again on the simplex."""
    mean = np.mean([_simplex(_finite(fit(part))) for part in shards_of(rows, shards)], axis=0)
    spread = multiplier * of_probabilities(len(mean), shards, unit)
    return _simplex(noisy(mean, spread, rng))


def _finite(values: Array) -> Array:
    """Non-finite predictions count as 0: an error here would tell about the shard's rows."""
    return np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0)


def _simplex(values: Array) -> Array:
    """The nearest points with entries >= 0 that sum up to 1."""
    ordered = -np.sort(-values, axis=1)
    excess = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, values.shape[1] + 1)
    last = (ordered > excess).sum(axis=1) - 1
    return np.asarray(np.maximum(values - excess[np.arange(len(values)), last][:, None], 0.0))
