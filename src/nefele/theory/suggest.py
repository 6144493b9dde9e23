"""Which nodes to ask next: whose data would tighten the bounds most.

With clusters: the error bound |dC| lam / alpha of a cluster falls as the curvature alpha of its
summed loss grows, and is infinite without data; within a cluster the condition (35) of NFL asks
for nodes that are well tied to it. Without clusters: the variances of the parameters under the
quadratic model whose posterior mean the squared penalty gives.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count, check_number
from nefele._ids import as_ids, unknown_ids_message
from nefele.problem import Problem
from nefele.theory._inputs import Index, boundary, check_partition, check_problem
from nefele.theory.cluster_slack import Cluster, best_center

_TRIED = 8  # nodes of a cluster whose slack is computed
_MOST_NODES = 5000  # of a dense matrix of variances
_LOOSE = 1e-6  # variance of what nothing determines: a little curvature, relative to the coupling


@dataclass(frozen=True, eq=False)
class Suggestion:
    """Nodes to ask for data, the most useful first.

    Attributes
    ----------
    nodes : list
        Ids.
    bound : array of shape (k + 1,)
        The total bound before, and after each of them has data as good as that of the others: the
        mean of |dC| lam / alpha over the nodes of all clusters, or the mean variance.
    slack : array of shape (k,)
        With clusters the slack of (NFL, Eq. (35)) of the node's cluster then; else NaN.

    Examples
    --------
    >>> from nefele import LocalData, Problem
    >>> from nefele.graphs import chain
    >>> data = LocalData.from_list([([[1.0]], [0.0]), None, None, None])
    >>> suggest_nodes(Problem(chain(4), data, lam=1.0), 1).nodes
    [3]
    """

    nodes: list[Any]
    bound: Array
    slack: Array = field(repr=False)


def suggest_nodes(
    problem: Problem,
    k: int,
    partition: Any = None,
    *,
    candidates: Any = None,
    curvature: float | None = None,
) -> Suggestion:
    """The k nodes whose data would tighten the bounds most, one after the other (greedy).

    Parameters
    ----------
    problem : Problem
        With lam > 0; what data it has counts.
    k : int
        How many nodes.
    partition : array of shape (n_nodes,), optional
        Label of each node's cluster, in the order of `problem.graph.ids`. With it the error bound
        |dC| lam / alpha decides for a cluster, and the slack of (NFL, Eq. (35)) for a node of it.
        Without it the variances decide, which need no clusters.
    candidates : sequence of ids, optional
        Who may be asked; default: the nodes without data.
    curvature : float, optional
        What an asked node's data would add to alpha; default: the mean over nodes with data, or 1.

    Returns
    -------
    Suggestion

    Notes
    -----
    What is gained over nodes drawn at random depends on the network. It is much where the groups
    are clear and few nodes are asked, so that chance misses a group. It is little or nothing where
    chance reaches every group as well (many nodes asked of each), where edges say little about who
    is alike, on networks without groups, such as grids, and where rows are so noisy that the noise
    decides.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
    >>> data = LocalData.from_list([([[1.0]], [0.0])] + 5 * [None])
    >>> found = suggest_nodes(Problem(graph, data, lam=1.0), 2, [0, 0, 0, 1, 1, 1])
    >>> found.nodes[0] in (3, 4, 5), found.bound.round(2).tolist()
    (True, [inf, 0.5, 0.38])
    """
    problem, k = check_problem(problem), check_count(k, "k", low=1)
    if not problem.coupled:
        raise ValueError("suggest_nodes needs lam > 0 and edges: nothing is coupled.")
    asked = _candidates(problem, candidates)
    if k > len(asked):
        raise ValueError(f"k must be at most the {len(asked)} nodes that may be asked; got {k}.")
    own = np.where(problem.loss.labelled, problem.loss.curvature(), 0.0)
    if curvature is None:
        known = own[own > 0]
        curvature = float(known.mean()) if known.size else 1.0
    gain = check_number(curvature, "curvature", low=0.0, strict=True)
    if partition is None:
        return _by_variance(problem, k, asked, own, gain)
    return _by_clusters(problem, k, asked, own, gain, check_partition(problem, partition)[1])


def _candidates(problem: Problem, candidates: Any) -> Index:
    if candidates is None:
        return np.flatnonzero(~problem.loss.labelled)
    keys = as_ids(candidates)
    place = problem.graph.positions(keys)
    if (place < 0).any():
        raise ValueError(unknown_ids_message(problem.graph.ids, keys[place < 0], "candidates"))
    return np.unique(place)


def _by_clusters(
    problem: Problem, k: int, asked: Index, own: Array, gain: float, cluster: Index
) -> Suggestion:
    """The cluster whose bound falls most, and in it the node with the largest slack."""
    graph, own = problem.graph, own.copy()
    outside = boundary(graph, cluster)
    size = np.bincount(cluster)
    cut = np.bincount(cluster, outside)
    alpha = np.bincount(cluster, own, len(size)).astype(float)
    left, nodes, slacks = set(asked.tolist()), list[int](), list[float]()

    def bounds(alpha: Any) -> Array:
        """Each cluster's error bound times its nodes; a cluster without edges to others needs data.

        Its bound would be zero: it counts as if one edge of the mean weight led out of it.
        """
        edge = np.maximum(cut, float(graph.weight.mean()))
        with np.errstate(divide="ignore"):
            return np.asarray(size * edge * problem.lam / alpha / len(own))

    totals = [float(bounds(alpha).sum())]
    for _ in range(k):
        there = np.unique(cluster[sorted(left)])
        now, then = bounds(alpha), bounds(alpha + gain)
        falls = np.where(np.isinf(now), np.inf, now - then)[there]
        best = there[np.lexsort((-size[there], -falls))[0]]
        inside = [i for i in left if cluster[i] == best]
        node, slack = _best_tied(problem, cluster, int(best), inside, own, outside, gain)
        own[node] += gain
        alpha[best] += gain
        left.discard(node)
        nodes.append(node)
        slacks.append(slack)
        totals.append(float(bounds(alpha).sum()))
    return Suggestion(graph.ids[nodes].tolist(), np.array(totals), np.array(slacks))


def _best_tied(
    problem: Problem,
    cluster: Index,
    label: int,
    inside: list[int],
    own: Array,
    outside: Array,
    gain: float,
) -> tuple[int, float]:
    """The node of a cluster with which the condition (35) has the largest slack."""
    graph = problem.graph
    members = np.flatnonzero(cluster == label)
    place = np.full(len(cluster), -1)
    place[members] = np.arange(len(members))
    edges = np.flatnonzero((cluster[graph.head] == label) & (cluster[graph.tail] == label))
    head, tail = place[graph.head[edges]], place[graph.tail[edges]]
    weight = np.array(graph.weight[edges])
    tied = np.bincount(head, weight, len(members)) + np.bincount(tail, weight, len(members))
    total = own[members].sum() + gain
    order = sorted(inside, key=lambda i: (outside[i] - tied[place[i]], i))[:_TRIED]
    found = (order[0], -np.inf)
    for i in order:
        beta = own[members].copy()
        beta[place[i]] += gain
        demand = outside[members] + beta * outside[members].sum() / total
        slack = best_center(Cluster(head, tail, weight, demand))[1]
        if slack > found[1]:
            found = (i, slack)
    return found


def _by_variance(problem: Problem, k: int, asked: Index, own: Array, gain: float) -> Suggestion:
    """The node that lowers the sum of variances of (diag(own) + lam L)^-1 most."""
    graph = problem.graph
    n = graph.n_nodes
    if n > _MOST_NODES:
        raise ValueError(
            f"suggest_nodes takes at most {_MOST_NODES} nodes without a partition; got {n}."
        )
    weight = problem.scale
    Q = np.diag(own + graph.at_ends(weight))
    Q[graph.head, graph.tail] -= weight
    Q[graph.tail, graph.head] -= weight
    Q[np.diag_indices(n)] += _LOOSE * float(weight.mean())
    G = np.linalg.inv(Q)
    free: NDArray[np.bool_] = np.zeros(n, dtype=bool)
    free[asked] = True
    nodes, totals = list[int](), [float(np.trace(G)) / n]
    for _ in range(k):
        fall = gain * (G**2).sum(axis=0) / (1 + gain * G.diagonal())
        node = int(np.argmax(np.where(free, fall, -np.inf)))
        G = G - gain / (1 + gain * G[node, node]) * np.outer(G[:, node], G[node])
        free[node] = False
        nodes.append(node)
        totals.append(float(np.trace(G)) / n)
    return Suggestion(graph.ids[nodes].tolist(), np.array(totals), np.full(k, np.nan))
