"""A graph on which given signals are smooth, with a log barrier on the degrees (Kalofolias 2016).

    min over symmetric W >= 0 with zero diagonal:
        sum_ij W_ij Z_ij - alpha sum_i log(sum_j W_ij) + (beta / 2) |W|_F^2

where Z_ij = |s_i - s_j|^2 are squared distances of the nodes' signals. With one multiplier l_i > 0
per degree, W_ij = max(0, l_i + l_j - 2 Z_ij) / (2 beta), and l minimises the smooth function
sum_{i<j} max(0, l_i + l_j - 2 Z_ij)^2 / (4 beta) - alpha sum_i log l_i: n unknowns, solved by
Newton's method with a duality gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from nefele._checks import Array, check_name, check_number
from nefele.estimators.builders import GraphBuilder, TrainingRows
from nefele.graph import Graph
from nefele.graph_learning._rows import linear_fits, node_rows
from nefele.graph_learning.embedding import describe_nodes
from nefele.graph_learning.refine import check_k, normalize_weights

__all__ = ["SmoothSignalGraph", "learn_smooth_graph"]

_STEPS = 100
_BISECTIONS = 25


class SmoothSignalGraph(GraphBuilder):
    """The graph on which the fitted parameters of the nodes are smooth (Kalofolias 2016).

    Every node gets neighbours, by the log barrier on the degrees; weights are learnt, not set by a
    rule.

    Parameters
    ----------
    k : int, optional
        Mean number of neighbours to aim at; default 4, or what there is.
    theta : float, optional
        In the place of k: the unit of the distances, Z_ij = theta |s_i - s_j|^2 / mean, with
        alpha = beta = 1; other alpha and beta give the same family of graphs. Larger: sparser.
    signals : {"parameters", "moments"}
        Ridge fits of the nodes, or their means, deviations and covariances.
    l2 : float
        Ridge of the fits.
    normalize : {"none", "mean", "degree"}
        See `normalize_weights`.

    Examples
    --------
    >>> X = np.tile([0.0, 1.0, 2.0], 4)[:, None]
    >>> y = X * np.repeat([1.0, 1.1, -1.0, -1.1], 3)[:, None]
    >>> rows = TrainingRows(X, y, np.repeat(["a", "b", "c", "d"], 3), np.ones(12))
    >>> SmoothSignalGraph(k=1).fit_graph(rows).neighbors("a")
    ['b']
    """

    def __init__(
        self,
        k: Any = None,
        *,
        theta: float | None = None,
        signals: str = "parameters",
        l2: float = 1e-3,
        normalize: str = "mean",
    ) -> None:
        self.k = k
        self.theta = theta
        self.signals = signals
        self.l2 = l2
        self.normalize = normalize

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The learnt graph, see the class."""
        check_name(self.signals, ("parameters", "moments"), "kind of signals")
        if self.k is not None and self.theta is not None:
            raise ValueError(f"Give k or theta, not both; got {self.k!r} and {self.theta!r}.")
        nodes = node_rows(rows)
        n = len(nodes.ids)
        if n == 1:
            return Graph(nodes.ids, [], [])
        if self.signals == "parameters":
            points = linear_fits(nodes, self.l2).points
        else:
            points = describe_nodes(nodes, nodes.values(True))
        Z = cdist(points, points, "sqeuclidean")
        mean = Z.sum() / (n * (n - 1))
        Z = Z / mean if mean > 0 else Z
        if self.theta is None:
            W = _with_degree(Z, check_k(self.k, n))
        else:
            W = learn_smooth_graph(check_number(self.theta, "theta", low=0.0, strict=True) * Z)
        head, tail = np.nonzero(np.triu(W, 1))
        return normalize_weights(Graph(nodes.ids, head, tail, W[head, tail]), self.normalize)


def learn_smooth_graph(Z: Any, alpha: float = 1.0, beta: float = 1.0, tol: float = 1e-9) -> Array:
    """Weights W of the log-degree model, see the module.

    Parameters
    ----------
    Z : array of shape (n, n)
        Symmetric, >= 0: squared distances of the nodes' signals.
    alpha, beta : float
        > 0.
    tol : float
        Duality gap relative to the objective's size.

    Returns
    -------
    array of shape (n, n)

    Examples
    --------
    >>> learn_smooth_graph([[0.0, 1.0], [1.0, 0.0]], alpha=1.0, beta=1.0).round(3).tolist()
    [[0.0, 0.618], [0.618, 0.0]]
    """
    Z = np.asarray(Z, dtype=np.float64)
    alpha = check_number(alpha, "alpha", low=0.0, strict=True)
    beta = check_number(beta, "beta", low=0.0, strict=True)
    if Z.ndim != 2 or Z.shape[0] != Z.shape[1] or not (Z >= 0).all():
        raise ValueError(f"Z must be square and >= 0; got shape {Z.shape}.")
    n = len(Z)
    off = ~np.eye(n, dtype=bool)
    # where every node has its nearest: there all degrees are positive
    multiplier = np.where(off, Z, np.inf).min(axis=1) * 2 + np.sqrt(2 * alpha * beta)
    for _ in range(_STEPS):
        W = _weights(multiplier, Z, beta, off)
        if _gap(W, multiplier, Z, alpha, beta) <= tol:
            break
        multiplier = _newton_step(multiplier, W, Z, alpha, beta, off)
    return W


def _weights(multiplier: Array, Z: Array, beta: float, off: NDArray[np.bool_]) -> Array:
    W = np.maximum(multiplier[:, None] + multiplier - 2 * Z, 0.0) / (2 * beta)
    return np.where(off, W, 0.0)


def _dual(multiplier: Array, W: Array, alpha: float, beta: float) -> float:
    """The function to minimise over the multipliers: sum_{i<j} beta W_ij^2 - alpha sum log l."""
    return float(beta * (W * W).sum() / 2 - alpha * np.log(multiplier).sum())


def _gap(W: Array, multiplier: Array, Z: Array, alpha: float, beta: float) -> float:
    """Primal minus dual objective, relative."""
    degree = W.sum(axis=1)
    if not (degree > 0).all():
        return np.inf
    smooth, square = float((W * Z).sum()), float(beta * (W * W).sum() / 2)
    primal = smooth + square - alpha * np.log(degree).sum()
    lower = len(W) * alpha * (1 - np.log(alpha)) - _dual(multiplier, W, alpha, beta)
    return (primal - lower) / max(smooth + square, alpha)


def _newton_step(
    multiplier: Array, W: Array, Z: Array, alpha: float, beta: float, off: NDArray[np.bool_]
) -> Array:
    """A damped Newton step; the Hessian is a signless Laplacian of the edges plus a diagonal."""
    gradient = W.sum(axis=1) - alpha / multiplier
    active = (W > 0).astype(np.float64)
    hessian = active / (2 * beta)
    hessian[np.diag_indices_from(hessian)] += active.sum(axis=1) / (2 * beta)
    hessian[np.diag_indices_from(hessian)] += alpha / multiplier**2
    step = -cho_solve(cho_factor(hessian), gradient)
    value, slope = _dual(multiplier, W, alpha, beta), float(gradient @ step)
    size = 1.0
    while size > 1e-12:
        found = multiplier + size * step
        if (found > 0).all():
            new = _dual(found, _weights(found, Z, beta, off), alpha, beta)
            if new <= value + 1e-4 * size * slope:
                return found
        size /= 2
    return multiplier


def _with_degree(Z: Array, k: int) -> Array:
    """The graph for distances in the unit that brings the mean degree nearest to k."""
    low, high = 1e-6, 1e6  # a larger unit: fewer edges
    best, miss = Z, np.inf
    for _ in range(_BISECTIONS):
        middle = np.sqrt(low * high)
        W = learn_smooth_graph(middle * Z)
        degree = float((W > 0).sum() / len(W))
        if abs(degree - k) < miss:
            best, miss = W, abs(degree - k)
        if miss <= 0.05 * k:
            break
        low, high = (middle, high) if degree > k else (low, middle)
    return best
