"""One update of FedRelax on predictions, for whoever drives it: one process, or sites far apart."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.agnostic._discrepancy import Discrepancy, as_discrepancy
from nefele.agnostic._models import constant, fresh, predictions
from nefele.agnostic._site import Moved, Site, move

__all__ = [
    "Discrepancy",
    "Moved",
    "Site",
    "as_discrepancy",
    "change",
    "constant",
    "fresh",
    "move",
    "predictions",
]


def change(before: Array | None, after: Array, spread: float) -> float:
    """How far predictions on the shared rows have moved: root mean square, in units of `spread`.

    Examples
    --------
    >>> change(np.zeros(2), np.array([3.0, 3.0]), 1.5), change(None, np.zeros(2), 1.0)
    (2.0, inf)
    """
    if before is None:
        return np.inf
    moved = (after - before).reshape(len(after), -1)
    return float(np.sqrt((moved**2).sum(axis=1).mean())) / spread
