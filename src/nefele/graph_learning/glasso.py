"""Nodes whose signals depend on each other given all others: the graphical lasso."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning

from nefele._checks import Array, check_name, check_number
from nefele._ids import describe
from nefele.estimators.builders import GraphBuilder, TrainingRows
from nefele.graph import Graph
from nefele.graph_learning._rows import NodeRows, linear_fits, node_rows
from nefele.graph_learning.refine import normalize_weights

__all__ = ["GlassoGraph"]


class GlassoGraph(GraphBuilder):
    """Join nodes whose signals have a positive partial correlation, by the graphical lasso.

    Parameters
    ----------
    alpha : float
        Penalty on the entries of the inverse correlation matrix, > 0: larger gives fewer edges.
    signals : {"target", "parameters"}
        "target": the r-th rows of all nodes belong together, as days do; all nodes need equally
        many rows. "parameters": the entries of the nodes' ridge fits, for rows that do not belong
        together.
    l2 : float
        Ridge of the fits.
    shrinkage : float in [0, 1]
        Share of the identity in the correlation matrix, which is singular with fewer signals
        than nodes.
    normalize : {"none", "mean", "degree"}
        See `normalize_weights`. The weights are the partial correlations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> common = rng.normal(size=(2, 40))
    >>> y = common[[0, 0, 1, 1]] + 0.3 * rng.normal(size=(4, 40))
    >>> ids = np.repeat(["a", "b", "c", "d"], 40)
    >>> rows = TrainingRows(np.zeros((160, 1)), y.reshape(-1, 1), ids, np.ones(160))
    >>> GlassoGraph(alpha=0.3).fit_graph(rows).neighbors("a")
    ['b']
    """

    def __init__(
        self,
        alpha: float = 0.2,
        *,
        signals: str = "target",
        l2: float = 1e-3,
        shrinkage: float = 0.05,
        normalize: str = "none",
    ) -> None:
        self.alpha = alpha
        self.signals = signals
        self.l2 = l2
        self.shrinkage = shrinkage
        self.normalize = normalize

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of positive partial correlations, see the class."""
        from sklearn.covariance import graphical_lasso

        alpha = check_number(self.alpha, "alpha", low=0.0, strict=True)
        check_name(self.signals, ("target", "parameters"), "kind of signals")
        shrinkage = check_number(self.shrinkage, "shrinkage", low=0.0)
        if shrinkage > 1:
            raise ValueError(f"shrinkage must lie in [0, 1]; got {shrinkage}.")
        nodes = node_rows(rows)
        if len(nodes.ids) == 1:
            return Graph(nodes.ids, [], [])
        if self.signals == "target":
            signal = _simultaneous(nodes)
        else:
            signal = linear_fits(nodes, self.l2).points
            signal = signal - signal.mean(axis=0)
        moving, correlation = _correlations(signal, shrinkage)
        W = np.zeros((len(nodes.ids), len(nodes.ids)))
        if len(moving) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("error", SklearnConvergenceWarning)
                try:
                    _, precision = graphical_lasso(correlation, alpha, max_iter=500, tol=1e-3)
                except (FloatingPointError, SklearnConvergenceWarning) as error:
                    raise ValueError(
                        f"The graphical lasso did not converge at alpha={alpha:g} ({error}). "
                        "Use a larger alpha or shrinkage."
                    ) from None
            root = np.sqrt(np.diagonal(precision))
            W[np.ix_(moving, moving)] = np.maximum(-precision / np.outer(root, root), 0.0)
        head, tail = np.nonzero(np.triu(W, 1))
        return normalize_weights(Graph(nodes.ids, head, tail, W[head, tail]), self.normalize)


def _simultaneous(nodes: NodeRows) -> Array:
    """Targets of the r-th rows of all nodes, shape (n_nodes, rows * targets)."""
    count = np.diff(nodes.ptr)
    usual = int(np.median(count))
    odd = count != usual
    if odd.any():
        raise ValueError(
            'signals="target" needs equally many rows at all nodes, the r-th of each belonging '
            f"together; most have {usual}, others do not: {describe(nodes.ids[odd])}. Use "
            'signals="parameters".'
        )
    return nodes.targets.reshape(len(count), -1)


def _correlations(signal: Array, shrinkage: float) -> tuple[NDArray[np.int64], Array]:
    """Nodes whose signal is not constant, and the correlations between them."""
    apart = signal - signal.mean(axis=1, keepdims=True)
    size = np.linalg.norm(apart, axis=1)
    moving = np.flatnonzero(size > 1e-12 * np.abs(signal).max(axis=1, initial=0.0))
    unit: Any = apart[moving] / size[moving, None]
    return moving, (1 - shrinkage) * unit @ unit.T + shrinkage * np.eye(len(moving))
