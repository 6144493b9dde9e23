"""FedGD and FedSGD: gradient descent on GTV minimisation with the squared penalty (math: LN 9)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count, check_flag, check_name, check_number
from nefele.baselines._common import ROUNDS, TOL, Fit, bound, repeat, spread, step_size
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses import as_loss
from nefele.runtime.messages import Ledger


def fedgd(
    data: Any,
    graph: Any,
    loss: Any = "squared",
    *,
    lam: float = 1.0,
    project: bool = False,
    batch: int | None = None,
    noise: float = 0.0,
    lr: float | None = None,
    decay: bool | None = None,
    order: str = "random",
    start: Any = None,
    rounds: int = ROUNDS,
    tol: float = TOL,
    seed: int = 0,
) -> Fit:
    """w_i <- w_i - lr [grad L_i(w_i) + lam sum_j A_ij (w_i - w_j)], all nodes at once.

    The fixed point minimises GTVMin with the penalty `SquaredL2` and the same lam.

    Parameters
    ----------
    data : LocalData
    graph : Graph
        Over the nodes of the data, in the same order or matched by id.
    loss : str or Loss
    lam : float
        Strength of the coupling; not used when `project`.
    project : bool
        Instead of coupling: a gradient step, then the mean over all nodes with data, the projection
        on the subspace of equal models. This is FedAvg with one local step.
    batch : int, optional
        Rows per node and round (FedSGD); default all.
    noise : float
        Standard deviation of normal noise added to every gradient (perturbed gradient descent).
    lr : float, optional
        Length of a step; default 1 over the largest curvature, coupling included.
    decay : bool, optional
        Whether the step falls like 1 / sqrt(round), so that the iterates settle; default with
        `batch` or `noise` only. False keeps it constant.
    order : {"random", "sequential"}
        Rows of a batch: drawn anew in every round, or one batch after the other in the order of
        the rows, from the first again after the last. The last batch of a node may be smaller.
    start : array of shape (n_nodes, d) or (d,), optional
        Parameters to begin with, nodes in the order of the graph; default zero.
    rounds, tol : int, float
        Most rounds; relative change that ends the method when nothing is random.
    seed : int

    Returns
    -------
    Fit

    Examples
    --------
    >>> from nefele import Graph, LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> fedgd(data, Graph.from_edges([(0, 1)]), lam=1.0).w.round(6).tolist()
    [[1.0], [3.0]]
    """
    if not isinstance(graph, Graph):
        raise ValueError(f"graph must be a Graph; got {type(graph).__name__}. Use as_graph.")
    bound(data, loss)
    data = data.align(graph.ids)
    losses = bound(data, loss)
    lam = check_number(lam, "lam", low=0.0)
    noise = check_number(noise, "noise", low=0.0)
    batch = None if batch is None else check_count(batch, "batch", low=1)
    check_name(order, ("random", "sequential"), "order")
    stochastic = batch is not None or noise > 0
    falls = stochastic if decay is None else check_flag(decay, "decay")
    coupling = 0.0 if project else 2 * lam * graph.weighted_degree
    lr = step_size(losses, lr, coupling)
    rng = np.random.default_rng(seed)
    known = losses.labelled
    w = _started(start, losses.n_nodes, losses.d)

    def rows_of(k: int, size: int) -> LocalData:
        return some_rows(data, size, rng) if order == "random" else next_rows(data, size, k)

    def one_round(k: int) -> Array:
        nonlocal w
        part = losses if batch is None else as_loss(loss).bind(rows_of(k, batch))
        slope = part.grad(w)
        if noise > 0:
            slope = slope + noise * rng.standard_normal(slope.shape) * known[:, None]
        if not project:
            slope = slope + lam * graph.div(graph.weight[:, None] * graph.diff(w))
        w = w - (lr / np.sqrt(k + 1) if falls else lr) * slope
        if project:
            w = spread(w[known].mean(axis=0), losses.n_nodes)
        return w

    w, history, converged = repeat(one_round, losses, w, rounds, None if stochastic else tol)
    ledger = Ledger(rounds=len(history))
    messages = 2 * (int(known.sum()) if project else graph.n_edges)
    ledger.tally("parameters", len(history) * messages, losses.d)
    name = "fedgd" if batch is None else "fedsgd"
    return Fit(name, w, len(history), ledger, history, converged)


def fedsgd(data: Any, graph: Any, loss: Any = "squared", *, batch: int = 1, **options: Any) -> Fit:
    """`fedgd` with a few rows per node and round.

    Parameters
    ----------
    data, graph, loss :
        As for `fedgd`.
    batch : int
        Rows per node and round.
    **options :
        Of `fedgd`.

    Returns
    -------
    Fit

    Examples
    --------
    >>> from nefele import Graph, LocalData
    >>> data = LocalData.from_list([([[1.0], [1.0]], [0.0, 0.2]), ([[1.0], [1.0]], [3.8, 4.0])])
    >>> fit = fedsgd(data, Graph.from_edges([(0, 1)]), rounds=2000)
    >>> bool(abs(fit.w[:, 0] - [1.0, 3.0]).max() < 0.2)
    True
    """
    return fedgd(data, graph, loss, batch=batch, **options)


def some_rows(data: LocalData, batch: int, rng: np.random.Generator) -> LocalData:
    """At most `batch` rows of each node, drawn without replacement."""
    shuffled = rng.random(data.n_rows)
    order = np.lexsort((shuffled, data.row_node))
    rank = np.arange(data.n_rows) - data.ptr[data.row_node]
    return _part(data, order[rank < batch])


def next_rows(data: LocalData, batch: int, k: int) -> LocalData:
    """Batch k of every node in the order of its rows; after its last one a node begins again."""
    batches = np.maximum(-(-data.counts // batch), 1)
    turn = (k % batches)[data.row_node]
    rank = np.arange(data.n_rows) - data.ptr[data.row_node]
    return _part(data, np.flatnonzero(rank // batch == turn))


def _part(data: LocalData, rows: NDArray[np.int64]) -> LocalData:
    """Some rows, which are in the order of the nodes."""
    counts = np.bincount(data.row_node[rows], minlength=data.n_nodes)
    weight = None if data.sample_weight is None else data.sample_weight[rows]
    return LocalData(
        data.X[rows],
        data.y[rows],
        np.concatenate([[0], np.cumsum(counts)]),
        data.ids,
        sample_weight=weight,
        node_weight=data.node_weight,
        shrink=data.shrink,
        offset=None if data.offset is None else data.offset[rows],
    )


def _started(start: Any, n_nodes: int, d: int) -> Array:
    """Parameters to begin with, a copy."""
    if start is None:
        return np.zeros((n_nodes, d))
    w = np.array(start, dtype=np.float64)
    if w.shape not in ((d,), (n_nodes, d)) or not np.isfinite(w).all():
        raise ValueError(
            f"start must be finite, of shape ({d},) or ({n_nodes}, {d}); got shape {w.shape}."
        )
    return np.broadcast_to(w, (n_nodes, d)).copy()
