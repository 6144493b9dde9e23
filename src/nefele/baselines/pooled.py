"""One model for all nodes, or one for each group of nodes: what a single data centre would fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.baselines._common import Fit, bound
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses import as_loss
from nefele.problem import Problem
from nefele.result import DataWarning
from nefele.runtime.messages import Ledger
from nefele.solvers import solve

_TOL = 1e-12


def pooled(data: Any, loss: Any = "squared") -> Fit:
    """argmin_w sum_i L_i(w): one model for all, every node's mean loss counting once.

    Parameters
    ----------
    data : LocalData
    loss : str or Loss

    Returns
    -------
    Fit

    Examples
    --------
    >>> from nefele import LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> pooled(data).w.round(6).tolist()
    [[2.0], [2.0]]
    """
    losses = bound(data, loss)
    w = group_models(data, loss, np.zeros(data.n_nodes, dtype=np.int64))
    return Fit("pooled", w, 0, Ledger(), np.array([float(losses.value(w).sum())]), True)


def oracle(data: Any, clusters: Any, loss: Any = "squared") -> Fit:
    """One pooled model per group of nodes, for groups that are known: what clustering aims at.

    Parameters
    ----------
    data : LocalData
    clusters : int array of shape (n_nodes,)
    loss : str or Loss

    Returns
    -------
    Fit
        Nodes of groups without data have zero models.

    Examples
    --------
    >>> from nefele import LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0]), None])
    >>> oracle(data, [0, 1, 1]).w.round(6).tolist()
    [[0.0], [4.0], [4.0]]
    """
    losses = bound(data, loss)
    labels = as_clusters(clusters, data.n_nodes)
    w = group_models(data, loss, labels)
    value = np.array([float(losses.value(w).sum())])
    return Fit("oracle", w, 0, Ledger(), value, True, labels)


def as_clusters(clusters: Any, n_nodes: int) -> NDArray[np.int64]:
    """Labels 0, 1, ... of the nodes, after a check of their number."""
    labels = np.asarray(clusters)
    if labels.shape != (n_nodes,):
        raise ValueError(f"clusters must have shape ({n_nodes},); got {labels.shape}.")
    return np.unique(labels, return_inverse=True)[1].astype(np.int64)


def group_models(data: LocalData, loss: Any, labels: NDArray[np.int64]) -> Array:
    """The pooled model of each node's group, shape (n_nodes, d)."""
    order = np.argsort(labels[data.row_node], kind="stable")
    counts = np.bincount(labels[data.row_node], minlength=int(labels.max()) + 1)
    rows = LocalData(
        data.X[order],
        data.y[order],
        np.concatenate([[0], np.cumsum(counts)]),
        sample_weight=data.row_weight[order],
        shrink=data.shrink,
        offset=None if data.offset is None else data.offset[order],
    )
    alone = Graph(np.arange(len(counts)), [], [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # groups without data keep zero
        return solve(Problem(alone, rows, loss=as_loss(loss), lam=0.0), tol=_TOL).w[labels]
