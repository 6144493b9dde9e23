"""Nodes whose models fit each other's rows: by loss, by gradient, by the gain from pooling.

The models are ridge fits of the target (for classes: of one indicator per class) on the features
and a constant, all in units of their standard deviations over the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from nefele._checks import Array, check_name
from nefele._ids import describe
from nefele.graph_learning._rows import LinearFits, linear_fits, node_rows
from nefele.graph_learning.builders import TrainingRows
from nefele.graph_learning.pairwise import PairwiseGraph

_BLOCK = 2_000_000


@dataclass(eq=False, repr=False, kw_only=True)
class LossGraph(PairwiseGraph):
    """Join nodes whose models do well on each other's rows.

    Discrepancy: ((L_i(w_j) - L_i(w_i)) + (L_j(w_i) - L_j(w_j))) / 2, with w_i the fit of node i
    and L_i the mean squared error on its rows, in units of the target's variance.

    Parameters
    ----------
    l2 : float
        Ridge of the fits, > 0.
    k, threshold, weight, scale, degree, connect, normalize
        See `PairwiseGraph`.

    Examples
    --------
    >>> X = np.tile([0.0, 1.0, 2.0], 3)[:, None]
    >>> y = X * np.repeat([1.0, 1.1, -1.0], 3)[:, None]
    >>> rows = TrainingRows(X, y, np.repeat(["a", "b", "c"], 3), np.ones(9))
    >>> LossGraph(k=1, threshold=0.5).fit_graph(rows).neighbors("a")
    ['b']
    """

    l2: float = 1e-3

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and mean excess losses of all pairs.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        nodes = node_rows(rows)
        return nodes.ids, excess_losses(linear_fits(nodes, self.l2))


@dataclass(eq=False, repr=False, kw_only=True)
class GradientGraph(PairwiseGraph):
    """Join nodes that pull one common model in the same direction.

    Discrepancy: the distance of the gradients of L_i and L_j at the fit to all rows (each node
    counting once), or one minus the cosine of the angle between them.

    Parameters
    ----------
    l2 : float
        Ridge of the pooled fit, > 0.
    metric : {"euclidean", "cosine"}
    k, threshold, weight, scale, degree, connect, normalize
        See `PairwiseGraph`.

    Notes
    -----
    A node with very large slopes dominates the common fit, at which all others then pull alike:
    leave it out, or use `LossGraph`.

    Examples
    --------
    >>> X = np.tile([0.0, 1.0, 2.0], 3)[:, None]
    >>> y = X * np.repeat([1.0, 1.1, -1.0], 3)[:, None]
    >>> rows = TrainingRows(X, y, np.repeat(["a", "b", "c"], 3), np.ones(9))
    >>> GradientGraph(k=1, threshold=0.5).fit_graph(rows).neighbors("a")
    ['b']
    """

    l2: float = 1e-3
    metric: str = "euclidean"

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and differences of the gradients, all pairs.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_name(self.metric, ("euclidean", "cosine"), "metric")
        nodes = node_rows(rows)
        fits = linear_fits(nodes, self.l2)
        pull = 2 * (fits.gram @ fits.pooled - fits.cross).reshape(len(nodes.ids), -1)
        if self.metric == "cosine":
            size = np.linalg.norm(pull, axis=1, keepdims=True)
            pull = pull / np.where(size > 0, size, 1.0)
            return nodes.ids, np.maximum(1.0 - pull @ pull.T, 0.0)
        return nodes.ids, cdist(pull, pull)


@dataclass(eq=False, repr=False, kw_only=True)
class PoolingGainGraph(PairwiseGraph):
    """Join nodes that gain by pooling their rows.

    Pooling nodes i and j raises the sum of squares by Delta_ij and spares r_ij parameters, so
    that the estimated error at new labels (Mallows) falls when Delta_ij < 2 r_ij s^2, s^2 being
    the noise variance. Discrepancy: Delta_ij / (2 r_ij s^2); below 1 pooling pays, and by default
    only such pairs are joined.

    Parameters
    ----------
    l2 : float
        Ridge of the fits, > 0.
    k : int, "auto" or None
        Only the k nearest of each node; default all that gain.
    threshold : float, "auto" or None
        Largest discrepancy of an edge.
    weight, scale, degree, connect, normalize
        See `PairwiseGraph`.

    Examples
    --------
    >>> X = np.tile([0.0, 1.0, 2.0, 3.0], 3)[:, None]
    >>> noise = np.tile([0.1, -0.1, -0.1, 0.1], 3)[:, None]
    >>> y = X * np.repeat([1.0, 1.01, -1.0], 4)[:, None] + noise
    >>> rows = TrainingRows(X, y, np.repeat(["a", "b", "c"], 4), np.ones(12))
    >>> PoolingGainGraph().fit_graph(rows).neighbors("a")
    ['b']
    """

    l2: float = 1e-6
    threshold: Any = 1.0

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and Delta_ij / (2 r_ij s^2) of all pairs.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        nodes = node_rows(rows)
        fits = linear_fits(nodes, self.l2)
        count = nodes.total  # a row of weight 2 is two rows
        spare = np.maximum(count - fits.rank, 0.0)
        if not spare.any():
            raise ValueError(
                f"PoolingGainGraph needs nodes with more rows than parameters "
                f"({fits.gram.shape[1]}) to estimate the noise; the most has {count.max():g}: "
                f"{describe(nodes.ids[count == count.max()], 1)}. Use LossGraph or GradientGraph."
            )
        own = np.maximum(np.diagonal(fits.losses()), 0.0)
        outputs = fits.w.shape[2]
        # perfect fits leave rounding errors in the place of noise
        noise = max(float((own * count)[spare > 0].sum() / spare.sum()), 1e-10 * outputs)
        shared = fits.rank[:, None] + fits.rank
        shared = shared - np.minimum(shared, fits.gram.shape[1])
        increase = _increases(fits, nodes.total, self.l2)
        # nodes that spare nothing have rows in unlike directions: no ground to join them
        found = np.where(shared > 0, increase / (2 * np.maximum(shared, 1) * noise), np.inf)
        return nodes.ids, found


def excess_losses(fits: LinearFits) -> Array:
    """Mean of what i loses with the model of j and j with that of i, shape (n, n)."""
    losses = fits.losses()
    more = losses - np.diagonal(losses)[:, None]
    return np.maximum((more + more.T) / 2, 0.0)


def _increases(fits: LinearFits, total: Array, l2: float) -> Array:
    """Rise of the sum of squares when two nodes share a model, (w_i - w_j)' P (w_i - w_j).

    P = S_i (S_i + S_j)^-1 S_j with the Gram matrices S, the parallel sum.
    """
    n, p, _ = fits.w.shape
    gram = (fits.gram + l2 * np.eye(p)) * total[:, None, None]
    out = np.zeros((n, n))
    step = max(1, _BLOCK // (n * p * p))
    for start in range(0, n, step):
        i = slice(start, min(start + step, n))
        apart = fits.w[i][:, None] - fits.w[None]
        right = gram[None] @ apart
        solved = np.linalg.solve(gram[i][:, None] + gram[None], right)
        left = gram[i][:, None] @ apart
        out[i] = (left * solved).sum(axis=(2, 3))
    return np.maximum((out + out.T) / 2, 0.0)
