"""Piecewise linear losses in an interior-point method: one cone t_r >= |x_r^T w - y_r| per row.

With slopes in [low, high] (absolute: [-1, 1], hinge: [-y, 0] or [0, -y]) a row's loss is

    f(z, y) = (high - low) / 2 |z - y| + (high + low) / 2 (z - y).

The first term is a cone as for an entry of the l1 norm, the second is linear.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._systems.forest import unrolled
from nefele.solvers.interior_point.cones import Cones


class RowCones(Cones):
    """The kinks of the rows of the nodes `on`, with v = X w - y and u = c times their part of a.

    They start at w, where x^T z is `level` in each cone.
    """

    name = "rows"

    def __init__(self, loss: Any, w: Array, level: float, on: NDArray[np.bool_]) -> None:
        self.loss, data = loss, loss.data
        # Hessian and constant gradient of what has no kinks
        self.ridge: Array = loss.ridged(np.zeros((loss.n_nodes, loss.d, loss.d)))
        self.linear: Array = loss.pull((loss.low + loss.high) / 2)
        s = data.row_weight * (loss.high - loss.low) / 2
        self.on = np.flatnonzero((s > 0) & on[data.row_node])
        self.y, s = data.y[self.on, None], s[self.on]
        self.dims = unrolled(1, len(s))
        v = self.off_labels(w)
        self.shape = v.shape
        self._begin(s, np.zeros_like(s), v, np.zeros_like(v), level * len(s))

    @staticmethod
    def number(loss: Any, on: NDArray[np.bool_]) -> int:
        """How many cones there are."""
        return int(np.count_nonzero((loss.data.row_weight > 0) & on[loss.data.row_node]))

    def off_labels(self, w: Array) -> Array:
        """X w - y, shape (n_cones, 1)."""
        return np.asarray(self.loss.predict(w)[self.on, None] - self.y)

    def to_nodes(self, values: Array) -> Array:
        """X^T values over each node, shape (n_nodes, d)."""
        data = self.loss.data
        return np.asarray(data.node_sum(self._all(values)[:, None] * data.X))

    def gram(self) -> Array:
        """Scale the cones to the present point; returns X^T C X, shape (n_nodes, d, d)."""
        return np.asarray(self.loss._weighted_gram(self._all(self.scale())))

    def change(self, dw: Array) -> Array:
        """X dw, shape (n_cones, 1)."""
        return np.asarray(self.loss.predict(dw)[self.on, None])

    def give(self, change: Array) -> Array:
        """C X dw, shape (n_cones, 1)."""
        return self._C[:, 0] * change

    def _all(self, values: Array) -> Array:
        out = np.zeros(self.loss.data.n_rows)
        out[self.on] = values.ravel()
        return out
