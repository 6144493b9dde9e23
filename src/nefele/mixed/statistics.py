"""What squared errors need to know of the rows of each node: a few sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nefele._checks import Array
from nefele._kernels.mixed import add_rows, mirror
from nefele.data import LocalData


@dataclass(frozen=True, eq=False)
class Statistics:
    """Sums over the rows of each node, enough for every squared error of a linear model.

    Attributes
    ----------
    G : array of shape (n_nodes, d, d)
        X_i^T X_i.
    c : array of shape (n_nodes, d)
        X_i^T y_i.
    yy : array of shape (n_nodes,)
        y_i^T y_i.
    rows : array of shape (n_nodes,)
        Number of rows, or their total weight.

    Examples
    --------
    >>> data = LocalData.from_list([([[1.0], [2.0]], [1.0, 3.0]), ([[1.0]], [2.0])])
    >>> found = Statistics.of(data)
    >>> found.G.ravel(), found.c.ravel(), found.yy, found.rows
    (array([5., 1.]), array([7., 2.]), array([10.,  4.]), array([2., 1.]))
    """

    G: Array
    c: Array
    yy: Array
    rows: Array

    @classmethod
    def of(cls, data: LocalData, count: Array | None = None) -> Statistics:
        """The sums of local datasets; weights of rows count as so many rows.

        With `count`, shape (n_rows,), these are the numbers of rows, and the weights are
        precisions: those of a linearised target.
        """
        n, d = data.n_nodes, data.X.shape[1]
        weight = np.ones(data.n_rows) if data.sample_weight is None else data.sample_weight
        G, c = np.zeros((n, d, d)), np.zeros((n, d))
        add_rows(data.X, data.y, weight, data.row_node, G, c)
        mirror(G)
        rows = data.node_sum(weight if count is None else count)
        return cls(G, c, data.node_sum(weight * data.y**2), rows)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.rows)

    @property
    def d(self) -> int:
        """Number of columns."""
        return self.c.shape[1]
