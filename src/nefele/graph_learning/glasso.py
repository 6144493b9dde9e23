"""Nodes whose signals depend on each other given all others: the graphical lasso."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning as SklearnConvergenceWarning

from nefele._checks import Array, check_count, check_name, check_number
from nefele.graph import Graph
from nefele.graph_learning._finish import Finished
from nefele.graph_learning._rows import NodeRows, linear_fits, node_rows
from nefele.graph_learning.builders import TrainingRows


@dataclass(eq=False, repr=False)
class GlassoGraph(Finished):
    """Join nodes whose signals have a positive partial correlation, by the graphical lasso.

    Parameters
    ----------
    alpha : float
        Penalty on the entries of the inverse correlation matrix, > 0: larger gives fewer edges.
    signals : {"parameters", "target"}
        "parameters": the entries of the nodes' ridge fits. "target": the targets at the times
        that `time` gives, for rows of different nodes that belong together.
    time : str or int, optional
        Feature, by name or number, of which equal values say that rows of different nodes belong
        together, such as the day; needed for signals="target". A node that lacks some times, as
        with rows held out, has its mean there: its correlations get weaker, never others.
    l2 : float
        Ridge of the fits.
    shrinkage : float in [0, 1]
        Share of the identity in the correlation matrix, which is singular with fewer signals
        than nodes.
    degree, connect, normalize
        See `graph_from_discrepancy`. The weights are the partial correlations, and the heaviest
        edges are kept; the links that connect are those of the largest correlation.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> common = rng.normal(size=(2, 40))
    >>> y = common[[0, 0, 1, 1]] + 0.3 * rng.normal(size=(4, 40))
    >>> ids = np.repeat(["a", "b", "c", "d"], 40)
    >>> day = np.tile(np.arange(40.0), 4)[:, None]
    >>> rows = TrainingRows(day, y.reshape(-1, 1), ids, np.ones(160), ["day"])
    >>> GlassoGraph(alpha=0.3, signals="target", time="day").fit_graph(rows).neighbors("a")
    ['b']
    """

    alpha: float = 0.2
    _: KW_ONLY
    signals: str = "parameters"
    time: str | int | None = None
    l2: float = 1e-3
    shrinkage: float = 0.05

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of positive partial correlations, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        from sklearn.covariance import graphical_lasso

        alpha = check_number(self.alpha, "alpha", low=0.0, strict=True)
        check_name(self.signals, ("parameters", "target"), "kind of signals")
        self._check_finish()
        shrinkage = check_number(self.shrinkage, "shrinkage", low=0.0)
        if shrinkage > 1:
            raise ValueError(f"shrinkage must lie in [0, 1]; got {shrinkage}.")
        nodes = node_rows(rows)
        column = self._time_column(rows)
        if len(nodes.ids) == 1:
            return Graph(nodes.ids, [], [])
        if self.signals == "target":
            signal = _at_times(nodes, nodes.X[:, column])
        else:
            signal = linear_fits(nodes, self.l2).points
            signal = signal - signal.mean(axis=0)
        moving, correlation = _correlations(signal, shrinkage)
        W = np.zeros((len(nodes.ids), len(nodes.ids)))
        far = np.ones_like(W)
        far[np.ix_(moving, moving)] = np.clip(1.0 - correlation, 0.0, 2.0)
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
        graph = Graph(nodes.ids, head, tail, W[head, tail])
        return self._finish(graph, far, by_weight=True)

    def _time_column(self, rows: TrainingRows) -> int:
        """Position of the time among the features; -1 when it is not needed."""
        if self.signals != "target":
            return -1
        names = rows.feature_names or []
        if self.time is None:
            raise ValueError(
                'signals="target" needs time=, the feature that says which rows of different nodes '
                'belong together. Use signals="parameters" when there is none.'
            )
        if isinstance(self.time, str):
            return names.index(check_name(self.time, names, "column"))
        column = check_count(self.time, "time")
        if column >= rows.X.shape[1]:
            raise ValueError(f"time must be below {rows.X.shape[1]} features; got {column}.")
        return column


def _at_times(nodes: NodeRows, time: Array) -> Array:
    """Targets less their means at each time, 0 where there is none, (n_nodes, times * targets)."""
    times, at = np.unique(time, return_inverse=True)
    count = np.zeros((len(nodes.ids), len(times), 1))
    np.add.at(count, (nodes.owner, at), 1.0)
    if count.max() > 1:
        node, again = np.argwhere(count[:, :, 0] > 1)[0]
        raise ValueError(
            f"time must be different in the rows of one node; {times[again]:g} comes again at node "
            f'{nodes.ids[node : node + 1].tolist()[0]!r}. Use signals="parameters".'
        )
    if not (count.sum(axis=0) > 1).any():
        raise ValueError(
            'time must have equal values at different nodes; got none. Use signals="parameters".'
        )
    signal = np.zeros((*count.shape[:2], nodes.targets.shape[1]))
    mean = np.add.reduceat(nodes.targets, nodes.ptr[:-1], axis=0) / np.diff(nodes.ptr)[:, None]
    signal[nodes.owner, at] = nodes.targets - mean[nodes.owner]
    return signal.reshape(len(nodes.ids), -1)


def _correlations(signal: Array, shrinkage: float) -> tuple[NDArray[np.int64], Array]:
    """Nodes whose signal is not constant, and the correlations between them."""
    apart = signal - signal.mean(axis=1, keepdims=True)
    size = np.linalg.norm(apart, axis=1)
    moving = np.flatnonzero(size > 1e-12 * np.abs(signal).max(axis=1, initial=0.0))
    unit: Any = apart[moving] / size[moving, None]
    return moving, (1 - shrinkage) * unit @ unit.T + shrinkage * np.eye(len(moving))
