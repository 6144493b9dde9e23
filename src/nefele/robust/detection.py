"""Suspicious edges and nodes, with a rate of false alarms that is kept.

Two nodes of an edge are compared by what their rows say. For squared losses, normal errors and one
variance at both ends, Chow's test of equal parameters is exact. A node is suspicious when it
disagrees with more than half of its neighbours, so the border of a cluster raises no alarm.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from nefele._checks import Array, check_name, check_number
from nefele.data import LocalData
from nefele.losses.squared import BoundSquared
from nefele.problem import Problem
from nefele.result import Result

_FULL = 0.99  # share of its ball that a flow fills when its edge counts as saturated
_RANK = 1e-10  # singular values below this share of the largest count as zero
_ROUNDING = 16 * np.finfo(float).eps  # residuals below this share of the labels count as zero

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Suspects:
    """Edges and nodes that the data speak against.

    Attributes
    ----------
    nodes, edges : lists of node ids and of pairs of them
        Those that are suspicious at this level.
    node_p, edge_p : arrays of shapes (n_nodes,) and (n_edges,)
        p-values before the correction for many tests; NaN where nothing can be tested.
    level : float
    rate : str
        What the level bounds, see `suspects`.

    Examples
    --------
    >>> from nefele.robust import suspects
    >>> from nefele.robust.example import stations
    >>> suspects(stations(shifted=[3])).nodes
    [3]
    """

    nodes: list[Any]
    edges: list[tuple[Any, Any]]
    node_p: Array = field(repr=False)
    edge_p: Array = field(repr=False)
    level: float
    rate: str


def suspects(problem: Problem, level: float = 0.05, rate: str = "family") -> Suspects:
    """Nodes that disagree with more than half of their neighbours, and edges whose ends disagree.

    Parameters
    ----------
    problem : Problem
        With squared losses. The penalty does not matter: the rows themselves are compared.
    level : float
        In (0, 1).
    rate : {"family", "discovery"}
        "family": the probability of any false alarm among the nodes, and among the edges, is at
        most `level` (Holm). "discovery": the expected share of false ones among the alarms is
        (Benjamini and Yekutieli). Both hold however the tests depend on each other.

    Returns
    -------
    Suspects

    Notes
    -----
    It is exact for normal errors of one variance at both ends of an edge, and nearly so for other
    errors when rows are many. The p-value of a node with k neighbours is that of the u-th
    smallest of its edges, u = floor(k/2) + 1, times k - u + 1 (Benjamini and Heller 2008): a node
    is a false alarm only when half of its neighbours or more truly have its parameters.
    Neighbours whose rows are too few for a test count as such. Edges between clusters that truly
    differ are no false alarms: their ends disagree.

    Examples
    --------
    >>> from nefele.robust import suspects
    >>> from nefele.robust.example import stations
    >>> suspects(stations()).nodes
    []
    """
    data = _rows_of(problem)
    level = check_number(level, "level", low=0.0, strict=True)
    if level >= 1:
        raise ValueError(f"level must be in (0, 1); got {level!r}. Usual is 0.05.")
    check_name(rate, ("family", "discovery"), "rate of false alarms")
    graph = problem.graph
    edge_p = edge_p_values(problem, data)
    node_p = np.full(graph.n_nodes, np.nan)
    for i in range(graph.n_nodes):
        own = edge_p[(graph.head == i) | (graph.tail == i)]
        if not np.isnan(own).all():
            u = own.size // 2 + 1
            own = np.sort(np.nan_to_num(own, nan=1.0))  # who cannot be tested may well agree
            node_p[i] = min((own.size - u + 1) * own[u - 1], 1.0)
    reject = _holm if rate == "family" else _yekutieli
    bad_edges = np.flatnonzero(reject(edge_p, level))
    ids = graph.ids
    ends = zip(ids[graph.head[bad_edges]].tolist(), ids[graph.tail[bad_edges]].tolist(),
               strict=True)  # fmt: skip
    return Suspects(ids[reject(node_p, level)].tolist(), list(ends), node_p, edge_p, level, rate)


def edge_p_values(problem: Problem, data: LocalData) -> Array:
    """Chow's test for each edge: have both ends the same parameters? NaN where rows are few."""
    graph, out = problem.graph, np.full(problem.graph.n_edges, np.nan)
    fits = [_fit(data.X[a:b], data.y[a:b]) for a, b in zip(data.ptr, data.ptr[1:], strict=False)]
    for e, (i, j) in enumerate(zip(graph.head, graph.tail, strict=True)):
        rows = np.r_[data.ptr[i] : data.ptr[i + 1], data.ptr[j] : data.ptr[j + 1]]
        joint, rank = _fit(data.X[rows], data.y[rows])
        (own, own_rank), (other, other_rank) = fits[i], fits[j]
        extra, left = own_rank + other_rank - rank, len(rows) - own_rank - other_rank
        if extra > 0 and left > 0:
            lost = float(len(rows) * (_ROUNDING * np.abs(data.y[rows]).max()) ** 2)
            apart, noise = (v if v > lost else 0.0 for v in (joint - own - other, own + other))
            ratio = np.inf if not noise > 0 else (apart / extra) / (noise / left)
            out[e] = f_distribution.sf(ratio, extra, left) if apart > 0 else 1.0
    return out


def _fit(X: Array, y: Array) -> tuple[float, int]:
    """Residual sum of squares of least squares, and the rank of X."""
    if not len(y):
        return 0.0, 0
    left, values, _ = np.linalg.svd(X, full_matrices=False)
    rank = int((values > _RANK * values[0]).sum()) if values[0] > 0 else 0
    rest = y - left[:, :rank] @ (left[:, :rank].T @ y)
    rest = rest - left[:, :rank] @ (left[:, :rank].T @ rest)
    return float(rest @ rest), rank


def _rows_of(problem: Any) -> LocalData:
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type(problem).__name__}.")
    problem.graph.check_plain("nefele.robust")
    if not isinstance(problem.loss, BoundSquared) or problem.loss.data.sample_weight is not None:
        raise ValueError(
            'suspects needs loss="squared" at every node and no sample weights: its test is exact '
            "for these only. For other losses look at saturation(result)."
        )
    return problem.loss.data


def _holm(p: Array, level: float) -> Mask:
    """Rejections of Holm's method; NaN is never rejected."""
    order = np.argsort(p)  # NaN last
    count = int((~np.isnan(p)).sum())
    small = p[order[:count]] <= level / (count - np.arange(count))
    out = np.zeros(len(p), dtype=bool)
    out[order[: int(np.argmin(small)) if not small.all() else count]] = True
    return out


def _yekutieli(p: Array, level: float) -> Mask:
    """Rejections of Benjamini and Yekutieli's method; NaN is never rejected."""
    order = np.argsort(p)
    count = int((~np.isnan(p)).sum())
    rank = np.arange(1, count + 1)
    small = np.flatnonzero(p[order[:count]] <= level * rank / (count * (1 / rank).sum()))
    out = np.zeros(len(p), dtype=bool)
    out[order[: int(small[-1]) + 1 if small.size else 0]] = True
    return out


@dataclass(frozen=True, eq=False)
class Saturation:
    """How much of what they may the flows of a fit use.

    Attributes
    ----------
    edge : array of shape (n_edges,)
        ||u_e|| in the dual norm over lam A_e: 1 means saturated.
    node : array of shape (n_nodes,)
        Share of a node's edges that are saturated; NaN without edges.
    alone : list of (node id, neighbour id)
        Nodes with three neighbours or more of which this one alone saturates its edge: it alone
        pulls as hard as it can. Where a backdoor enters it looks so.

    Examples
    --------
    >>> from nefele import solve
    >>> from nefele.robust import saturation
    >>> from nefele.robust.example import stations
    >>> found = saturation(solve(stations(shifted=[3])))
    >>> float(found.node[3])
    1.0
    """

    edge: Array = field(repr=False)
    node: Array = field(repr=False)
    alone: list[tuple[Any, Any]]


def saturation(result: Result) -> Saturation:
    """Which edges of a fit are saturated, and at which nodes one neighbour alone does that.

    A description without a rate of false alarms: edges between clusters are saturated too.

    Parameters
    ----------
    result : Result
        Of a problem with a norm or Huber as penalty.

    Examples
    --------
    >>> from nefele import solve
    >>> from nefele.robust import saturation
    >>> from nefele.robust.example import stations
    >>> saturation(solve(stations())).edge.shape
    (15,)
    """
    if not isinstance(result, Result):
        raise ValueError(f"result must be what nefele.solve returns; got {type(result).__name__}.")
    problem, graph = result.problem, result.problem.graph
    if not problem.penalty.bounded or not problem.coupled:
        raise ValueError(
            f"saturation needs a norm or Huber as penalty, lam > 0 and an edge; got {problem!r}."
        )
    edge = problem.penalty.domain_ratio(result.u, problem.scale)
    full = edge >= _FULL
    counts = graph.at_ends(full.astype(float))
    node = np.divide(counts, graph.degree, out=np.full(graph.n_nodes, np.nan),
                     where=graph.degree > 0)  # fmt: skip
    one = (counts == 1) & (graph.degree >= 3)
    ids, alone = graph.ids.tolist(), []
    for e in np.flatnonzero(full):
        for i, j in ((graph.head[e], graph.tail[e]), (graph.tail[e], graph.head[e])):
            alone += [(ids[i], ids[j])] if one[i] else []
    return Saturation(np.asarray(edge), node, alone)
