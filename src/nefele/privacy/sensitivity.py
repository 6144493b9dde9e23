"""How far one record, or one node, can move what is released, in the Euclidean norm.

One record of a node is replaced by any other that keeps to the bounds; the number of rows m is
public. With unit "node" all records of a node are replaced.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Multinomial, Squared

UNITS = ("record", "node")


def share(rows: Any, unit: str) -> Array:
    """What one unit counts in a mean over the rows of a node: 1/m, or all of it."""
    m = np.asarray(rows, dtype=np.float64)
    return np.ones_like(m) if unit == "node" else 1 / np.maximum(m, 1.0)


def of_statistics(radius: float, constant: float = 0.0) -> float:
    """The mean of a a^T over one row, a = (x, y, constant), ||(x, y)|| <= radius.

    ||a a^T - b b^T||_F is sqrt(2) times the largest ||a||^2, for a and b at right angles; the
    constant keeps vectors shorter than it from being so, and opposite ones are the worst. A mean
    over rows lies in the hull of such matrices, so with weight 1 this holds for a whole node too.

    Examples
    --------
    >>> round(of_statistics(1.0) / math.sqrt(2), 3)
    1.0
    """
    if radius >= constant:
        return math.sqrt(2) * (constant**2 + radius**2)
    return 2 * math.sqrt(2) * radius * constant


def of_gradient(clip: float) -> float:
    """The mean over one row of gradients cut to the norm `clip`."""
    return 2 * clip


def of_prox(lipschitz: float, weight: Any, mu: float, rho: Any, residual: float = 0.0) -> Array:
    """The minimiser of (mean loss) + mu/2 ||w||^2 + rho/2 ||w - v||^2, a row of weight `weight`.

    `residual` bounds the gradient's norm where the minimum is found inexactly.
    """
    return np.asarray(2 * (lipschitz * np.asarray(weight) + residual) / (mu + np.asarray(rho)))


def of_predictions(width: float, rows: int, shards: int, unit: str) -> float:
    """Mean predictions of models fitted to disjoint shards, each in a range of this width."""
    return width * math.sqrt(rows) / (1 if unit == "node" else shards)


def of_probabilities(rows: int, shards: int, unit: str) -> float:
    """The same for probabilities of classes: two rows of these are sqrt(2) apart at most."""
    return of_predictions(math.sqrt(2), rows, shards, unit)


def lipschitz(
    loss: Any, radius: float, weights: float | None = None, target: float | None = None
) -> float | None:
    """A bound of the gradient's norm for rows with ||x|| <= radius; None when there is none.

    The squared loss has one only while ||w|| <= `weights` and |y| <= `target`.

    Examples
    --------
    >>> lipschitz(HuberLoss(delta=2.0), 3.0), lipschitz(Squared(), 3.0)
    (6.0, None)
    >>> lipschitz(Squared(), 3.0, weights=1.0, target=2.0)
    30.0
    """
    if isinstance(loss, Logistic | Hinge | Absolute):
        return float(radius)
    if isinstance(loss, HuberLoss):
        return float(loss.delta * radius)
    if isinstance(loss, Multinomial):
        return float(math.sqrt(2) * radius)
    if isinstance(loss, Squared) and weights is not None and target is not None:
        return float(2 * radius * (radius * weights + target))
    return None
