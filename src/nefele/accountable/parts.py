"""What rows and nodes add to the model of a node, in the units of X."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from nefele._checks import Array
from nefele.accountable.common import Common, common_of
from nefele.accountable.fitted import Fitted
from nefele.accountable.system import System


class Parts:
    """The sums of an explanation, rows and nodes through what all share as well.

    Where common coefficients cannot be told apart by rows, they are one more part, `common`.
    """

    def __init__(self, fit: Fitted, system: System) -> None:
        self.fit, self.system = fit, system

    @cached_property
    def split(self) -> Common | None:
        """What all nodes share, by rows."""
        return common_of(self.fit, self.system)

    @cached_property
    def common(self) -> Array:
        """What is in no row's part."""
        if self.split is None:
            return self.fit.base
        return np.asarray(self.fit.base - self.split.to_units @ self.split.stored)

    @cached_property
    def by_row(self) -> Array | None:
        """What each row of the problem adds, shape (n_rows, d + 1); None for other losses."""
        asks, data, split = self.system.row_asks, self.fit.problem.data, self.split
        if asks is None or data is None:
            return None
        if split is not None:
            asks = (2 * data.row_weight * split.target)[:, None] * data.X
        found = self.fit.to_units(np.einsum("rkl,rk->rl", self.system.Z[data.row_node], asks))
        if split is None:
            return found
        through = split.to_units - self.fit.to_units(split.follow.T).T
        return np.asarray(found + split.by_row() @ through.T)

    @cached_property
    def by_node(self) -> Array:
        """What the rows of each node add, shape (n_nodes, d + 1)."""
        data = self.fit.problem.data
        if self.by_row is None or data is None:
            return self.fit.to_units(self.system.by_node)
        out = np.zeros((self.fit.problem.graph.n_nodes, self.by_row.shape[1]))
        np.add.at(out, data.row_node, self.by_row)
        return out

    @cached_property
    def curves(self) -> Array | None:
        """What the rows of each node add to the functions of curves, (n_nodes, n_functions)."""
        split, data = self.split, self.fit.problem.data
        if split is None or data is None or split.straight.all():
            return None
        found = split.by_row()[:, ~split.straight]
        out = np.zeros((self.fit.problem.graph.n_nodes, found.shape[1]))
        np.add.at(out, data.row_node, found)
        return out

    @cached_property
    def pulls(self) -> Array:
        """What the bounded forces of norms and Huber add."""
        return self.fit.to_units(self.system.by_edge.sum(axis=0))

    @cached_property
    def share(self) -> Array:
        """Part of the parameters that each node's rows determine."""
        system, split, data = self.system, self.split, self.fit.problem.data
        if split is None or data is None:
            return system.shares
        size, more = system.n_told, int(split.straight.sum())
        through = split.shares(data.row_node, data.X, len(system.shares))
        return np.asarray((size * system.shares + through) / (size + more))

    @property
    def ridge_share(self) -> float:
        """The rest: ridge terms draw the model to zero."""
        return float(1.0 - self.share.sum()) if self.system.live.any() else 0.0
