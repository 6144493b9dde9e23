"""Ways in which models may move, and the curvature along them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from nefele._checks import Array

SOLVED = 1e-6  # residual from which on the data do not fix the model


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns T along which models move, those of a component, the curvature and its solver."""

    T: sparse.csr_array
    keep: NDArray[np.int64]
    matrix: sparse.csc_array
    by: Callable[[Array], Array]

    def goal(self, right: Array) -> Array:
        """The right side of a system of all nodes along the columns."""
        return np.asarray((self.T.T @ right)[self.keep])

    def spread(self, found: Array) -> Array:
        """A solution as parameters of all nodes."""
        out = np.zeros((self.T.shape[1], found.shape[1]))
        out[self.keep] = found
        return np.asarray(self.T @ out)

    def solves(self, found: Array, goal: Array, within: float = SOLVED) -> bool:
        """Whether it is a solution: each right side in the units of the parameters it is about."""
        scale = 1 / np.sqrt(self.matrix.diagonal())[:, None]
        missed = np.abs(scale * (self.matrix @ found - goal)).max(axis=0, initial=0.0)
        size = np.abs(scale * goal).max(axis=0, initial=0.0)
        return bool((missed <= within * size).all())


def diagonal(blocks: Array) -> sparse.csr_array:
    """Blocks (k, d, d) along the diagonal."""
    k, d, _ = blocks.shape
    inner = np.indices((d, d)) + np.arange(k)[:, None, None, None] * d
    rows, columns = inner[:, 0].ravel(), inner[:, 1].ravel()
    return sparse.csr_array((blocks.ravel(), (rows, columns)), shape=(k * d, k * d))
