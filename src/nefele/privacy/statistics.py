"""The mechanism `statistics`: second moments of each node, once, with noise.

For squared errors they are all that a fit needs of the rows. Whatever is made of them after that
costs nothing more: any alpha, a path, a graph learnt from them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele.privacy.bounds import Box
from nefele.privacy.noise import Source, noisy
from nefele.privacy.sensitivity import of_statistics, share

RADIUS = float(np.sqrt(2))  # of (x, y) in the units of the bounds
# The constant column. Means are averages of many rows and need little care: a small constant
# leaves more of the budget to the second moments (a third less noise than with 1).
CONSTANT = 0.5
_FEWEST = 4  # nodes that tell how far nodes differ
_TURNS = 20  # of the estimate of that; it settles in a few


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and covariance of (x, y) at one node, in the units of the data, after noise.

    Attributes
    ----------
    mean : array of shape (d + 1,)
    covariance : array of shape (d + 1, d + 1)
        Positive semidefinite.
    rows : int
    """

    mean: Array
    covariance: Array
    rows: int

    def rows_alike(self) -> tuple[Array, Array, Array]:
        """2 (d + 1) rows X, y of equal weights that have exactly these moments.

        They stand for the node's rows wherever only squares are summed, and hold nothing else.
        The weights sum up to the node's number of rows.
        """
        values, vectors = np.linalg.eigh(self.covariance)
        p = len(values)
        axes = (vectors * np.sqrt(p * np.maximum(values, 0.0))).T
        points = np.concatenate([self.mean + axes, self.mean - axes])
        return points[:, :-1], points[:, -1], np.full(2 * p, self.rows / (2 * p))


def moments(X: Array, y: Array) -> Array:
    """The mean of a a^T over rows, a = (x, y, CONSTANT), shape (d + 2, d + 2)."""
    rows = np.column_stack([X, y, np.full(len(X), CONSTANT)])
    return np.asarray(rows.T @ rows / max(len(rows), 1))


def deviation(multiplier: float, rows: int, unit: str) -> float:
    """Deviation of the noise of a release, in the units of the bounds; public."""
    return float(multiplier * of_statistics(RADIUS, CONSTANT) * share(rows, unit))


def release(X: Array, y: Array, box: Box, multiplier: float, unit: str, rng: Source) -> Array:
    """All that leaves a node: its noisy moments in the units of the bounds.

    Parameters
    ----------
    X, y : arrays of shape (m, d) and (m,)
        Rows of one node, moved into the bounds here.
    box : Box
    multiplier : float
        Deviation of the noise in units of the sensitivity, see `calibrate`.
    unit : {"record", "node"}
    rng : Source

    Returns
    -------
    array of shape (d + 2, d + 2)
        Symmetric; the last entry is known, since the number of rows is public.
    """
    X, y, _ = box.unit(X, y)
    clean = moments(X, y)
    spread = deviation(multiplier, len(X), unit)
    # Off the diagonal each number stands twice in the Frobenius norm: half the variance each.
    upper = np.triu_indices(len(clean), 1)
    found = np.zeros_like(clean)
    found[upper] = noisy(clean[upper], spread / np.sqrt(2), rng)
    found += found.T
    np.fill_diagonal(found, noisy(clean.diagonal(), spread, rng))
    found[-1, -1] = CONSTANT**2
    return found


def drawn_together(noise: Array, spread: Array) -> Array:
    """Releases of many nodes, each drawn to their mean as far as noise explains its distance.

    Empirical Bayes: an entry that varies over the nodes with variance V, beside noise of the known
    variance v_i, is the mean plus V / (V + v_i) times the distance to it. It needs nothing but what
    was released, so it costs nothing. Without it small nodes would have covariances that are mostly
    noise, and cutting off their negative eigenvalues would bias every fit.

    Parameters
    ----------
    noise : array of shape (n, p, p)
    spread : array of shape (n,)
        Deviation of the noise on the diagonal; off it the variance is half.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> alike = 1.0 + 0.5 * rng.normal(size=(50, 2, 2))
    >>> bool(drawn_together(alike, np.full(50, 0.5))[:, 0, 0].std() < 0.2)
    True
    """
    if len(noise) < _FEWEST:
        return noise
    p = noise.shape[1]
    variance = spread[:, None, None] ** 2 * np.where(np.eye(p, dtype=bool), 1.0, 0.5)
    between = np.zeros((p, p))
    for _ in range(_TURNS):
        weight = 1 / (between + variance)
        mean = (weight * noise).sum(axis=0) / weight.sum(axis=0)
        excess = (noise - mean) ** 2 - variance
        between = np.maximum((weight**2 * excess).sum(axis=0) / (weight**2).sum(axis=0), 0.0)
    found = mean + between / (between + variance) * (noise - mean)
    found[:, -1, -1] = noise[:, -1, -1]  # known
    return np.asarray(found)


def repaired(noise: Array, box: Box, rows: int) -> Moments:
    """Moments in the units of the data from what was released; nothing else is needed.

    The nearest covariance without negative eigenvalues, about a mean inside the bounds.
    """
    mean = np.clip(noise[-1, :-1] / CONSTANT, -1.0, 1.0)
    centred = noise[:-1, :-1] - np.outer(mean, mean)
    values, vectors = np.linalg.eigh((centred + centred.T) / 2)
    covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    scale = np.append(box.width, box.half)
    return Moments(
        mean * scale + np.append(box.centre, box.middle),
        covariance * np.outer(scale, scale),
        rows,
    )
