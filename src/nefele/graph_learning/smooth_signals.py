"""A graph on which given signals are smooth, with a log barrier on the degrees (Kalofolias 2016).

    min over symmetric W >= 0 with zero diagonal:
        sum_ij W_ij Z_ij - alpha sum_i log(sum_j W_ij) + (beta / 2) |W|_F^2

where Z_ij = |s_i - s_j|^2 are squared distances of the nodes' signals. With one multiplier l_i > 0
per degree, W_ij = max(0, l_i + l_j - 2 Z_ij) / (2 beta), and l minimises the smooth function
sum_{i<j} max(0, l_i + l_j - 2 Z_ij)^2 / (4 beta) - alpha sum_i log l_i: n unknowns, solved by
Newton's method until l_i times the degree of i is alpha at every node.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from nefele._checks import Array, check_name, check_number
from nefele.graph import Graph
from nefele.graph_learning._finish import Finished
from nefele.graph_learning._rows import linear_fits, node_rows
from nefele.graph_learning.builders import TrainingRows, check_k
from nefele.graph_learning.embedding import describe_nodes
from nefele.graph_learning.refine import square_matrix
from nefele.result import ConvergenceWarning

_STEPS = 100
_BISECTIONS = 40
_MISS = 1e-4  # of the optimality conditions, above which a warning tells


@dataclass(eq=False, repr=False)
class SmoothSignalGraph(Finished):
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
    degree, connect, normalize
        See `graph_from_discrepancy`; the heaviest edges are kept, and the links that connect are
        between the nearest signals.

    Examples
    --------
    >>> X = np.tile([0.0, 1.0, 2.0], 4)[:, None]
    >>> y = X * np.repeat([1.0, 1.1, -1.0, -1.1], 3)[:, None]
    >>> rows = TrainingRows(X, y, np.repeat(["a", "b", "c", "d"], 3), np.ones(12))
    >>> SmoothSignalGraph(k=1).fit_graph(rows).neighbors("a")
    ['b']
    """

    k: Any = None
    _: KW_ONLY
    theta: float | None = None
    signals: str = "parameters"
    l2: float = 1e-3
    normalize: str = "mean"

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The learnt graph, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_name(self.signals, ("parameters", "moments"), "kind of signals")
        if self.k is not None and self.theta is not None:
            raise ValueError(f"Give k or theta, not both; got {self.k!r} and {self.theta!r}.")
        self._check_finish()
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
        return self._finish(Graph(nodes.ids, head, tail, W[head, tail]), Z, by_weight=True)


def learn_smooth_graph(Z: Any, alpha: float = 1.0, beta: float = 1.0, tol: float = 1e-9) -> Array:
    """Weights W of the log-degree model, see the module.

    Parameters
    ----------
    Z : array of shape (n, n)
        Symmetric, finite, >= 0: squared distances of the nodes' signals; n >= 2.
    alpha, beta : float
        > 0.
    tol : float
        Largest |l_i d_i / alpha - 1| over the nodes, d_i the degree: 0 at the optimum. When it
        stays above 1e-4 a ConvergenceWarning says so.

    Returns
    -------
    array of shape (n, n)

    Examples
    --------
    >>> learn_smooth_graph([[0.0, 1.0], [1.0, 0.0]], alpha=1.0, beta=1.0).round(3).tolist()
    [[0.0, 0.618], [0.618, 0.0]]
    """
    alpha = check_number(alpha, "alpha", low=0.0, strict=True)
    beta = check_number(beta, "beta", low=0.0, strict=True)
    tol = check_number(tol, "tol", low=0.0, strict=True)
    Z = square_matrix(Z, "Z")
    if len(Z) < 2 or not np.isfinite(Z).all():
        raise ValueError(
            f"Z must be finite and of 2 nodes or more, or no degrees are positive; got shape "
            f"{Z.shape} and a largest entry {Z.max(initial=0.0):g}."
        )
    # W = sqrt(alpha / beta) V, with V the solution for Z / sqrt(alpha beta) and alpha = beta = 1
    W, miss = _solve(Z / np.sqrt(alpha * beta), tol)
    _tell(miss)
    return np.sqrt(alpha / beta) * W


def _tell(miss: float) -> None:
    if miss > _MISS:
        warnings.warn(
            f"The smooth graph is not optimal: its degrees miss their conditions by {miss:.1e}. "
            "The distances differ too much in size: leave far nodes out, or use LossGraph.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _solve(Z: Array, tol: float) -> tuple[Array, float]:
    """Weights for alpha = beta = 1, and the largest |l_i d_i - 1|.

    The multipliers are l = base + s with base_i twice the least distance of node i. W depends on
    s_i + s_j - (2 Z_ij - base_i - base_j), which keeps its digits for a node far from all.
    """
    off = ~np.eye(len(Z), dtype=bool)
    base = 2 * np.where(off, Z, np.inf).min(axis=1)
    # the larger base first: it cancels against 2 Z where the node is the nearest
    large, small = np.maximum(base[:, None], base), np.minimum(base[:, None], base)
    gap = np.where(off, (2 * Z - large) - small, np.inf)
    s = np.full(len(Z), np.sqrt(2.0))  # all degrees are positive here
    best, least = _weights(s, gap), np.inf
    for _ in range(_STEPS):
        W = _weights(s, gap)
        miss = float(np.abs(W.sum(axis=1) * (base + s) - 1.0).max())
        if miss < least:
            best, least = W, miss
        if miss <= tol:
            break
        found = _newton_step(s, W, base, gap)
        if (found == s).all():
            break
        s = found
    return best, least


def _weights(s: Array, gap: Array) -> Array:
    return np.maximum(s[:, None] + s - gap, 0.0) / 2


def _dual(W: Array, multiplier: Array) -> float:
    """The function to minimise over the multipliers: sum_{i<j} W_ij^2 - sum log l."""
    return float((W * W).sum() / 2 - np.log(multiplier).sum())


def _newton_step(s: Array, W: Array, base: Array, gap: Array) -> Array:
    """A damped Newton step; the Hessian is a signless Laplacian of the edges plus a diagonal."""
    multiplier = base + s
    gradient = W.sum(axis=1) - 1.0 / multiplier
    active = (W > 0).astype(np.float64)
    hessian = active / 2
    hessian[np.diag_indices_from(hessian)] += active.sum(axis=1) / 2 + 1.0 / multiplier**2
    step = -cho_solve(cho_factor(hessian), gradient)
    value, slope = _dual(W, multiplier), float(gradient @ step)
    size = 1.0
    while size > 1e-12:
        found = s + size * step
        if (base + found > 0).all():
            new = _dual(_weights(found, gap), base + found)
            # near the end the steps are below the rounding of the value
            if new <= value + 1e-4 * size * slope + 1e-13 * abs(value):
                return found
        size /= 2
    return s


def _with_degree(Z: Array, k: int) -> Array:
    """The graph for distances in the unit that brings the mean degree nearest to k."""
    nearby = np.sort(Z, axis=1)[:, k]  # to the k-th other node; the mean would follow far ones
    unit = float(np.median(nearby)) or float(Z.mean()) or 1.0
    low, high, middle = 0.0, np.inf, 1.0  # a larger factor: fewer edges
    best, miss, wrong = Z, np.inf, 0.0
    for _ in range(_BISECTIONS):
        W, residual = _solve(middle / unit * Z, 1e-9)
        degree = float((W > 0).sum() / len(W))
        if abs(degree - k) < miss:
            best, miss, wrong = W, abs(degree - k), residual
        if miss <= 0.05 * k:
            break
        low, high = (middle, high) if degree > k else (low, middle)
        middle = 10 * low if high == np.inf else high / 10 if low == 0.0 else np.sqrt(low * high)
    _tell(wrong)
    return best
