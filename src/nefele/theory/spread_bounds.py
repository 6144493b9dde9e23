"""How far apart the quadratic penalty leaves the models of a cluster (LN, Sec. 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._kernels.groups import group_sums
from nefele.penalties import SquaredL2
from nefele.problem import Problem
from nefele.result import Result
from nefele.theory._inputs import (
    Index,
    boundary,
    check_partition,
    check_problem,
    check_smooth,
    pooled_optima,
)
from nefele.theory.spectrum import connectivity


@dataclass(frozen=True, eq=False)
class SpreadBound:
    """Bounds on sum_i ||w_i - wbar||^2 over each component or cluster.

    Attributes
    ----------
    labels : array of shape (n_parts,)
    value : array of shape (n_parts,)
        The bound; infinite where the part is not connected by its own edges.
    connectivity : array of shape (n_parts,)
        Second eigenvalue of the part's own Laplacian.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import consensus_bound
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, "squared", "squared_l2", lam=2.0)
    >>> consensus_bound(problem).connectivity.round(6).tolist()
    [2.0]
    """

    labels: NDArray[Any] = field(repr=False)
    value: Array
    connectivity: Array = field(repr=False)


def consensus_bound(problem: Problem | Result) -> SpreadBound:
    """How far the models of each connected component are from their mean.

    sum_i ||w_i - wbar||^2 <= [sum_i L_i(pooled) - sum_i L_i(w_i) + gap] / (a lambda_2), a = lam/2:
    the pooled optimum costs no less than w. For a Problem, before any solve, with the least values
    of the L_i in place of L_i(w_i).

    Parameters
    ----------
    problem : Problem or Result
        With the squared_l2 penalty and any differentiable loss. A result gives the sharper bound.

    Returns
    -------
    SpreadBound
        One entry per connected component.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> from nefele.theory import consensus_bound
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, "squared", "squared_l2", lam=2.0)
    >>> result = solve(problem, tol=1e-12)
    >>> before, after = consensus_bound(problem).value, consensus_bound(result).value
    >>> spread = ((result.w - result.w.mean(axis=0)) ** 2).sum()
    >>> before.round(6).tolist(), after.round(6).tolist(), round(float(spread), 6)
    ([4.0], [2.222222], 0.888889)
    """
    what = "consensus_bound"
    core, w, gap = _split(problem, what)
    check_smooth(core, what)
    parts, loss = core.graph.components, core.loss
    w = loss.minimise() if w is None else w
    top = group_sums(parts, loss.value(pooled_optima(core, parts, what)) - loss.value(w))
    return _bound(core, np.arange(len(top)), parts, np.maximum(top, 0.0) + gap)


def cluster_bound(result: Result, partition: Any) -> SpreadBound:
    """How far the models of each cluster are from the cluster's mean.

    sum_C ||w_i - wbar_C||^2 <= [E_C + 2 a |dC| (||w_C||^2 + R^2) + gap] / (a lambda_2(L_C)), with
    w_C the cluster's own optimum, E_C = sum_C L_i(w_C) and R the largest norm of a neighbour
    outside: putting w_C at every node of C costs no less than w. For losses >= 0.

    Parameters
    ----------
    result : Result
        Of a problem with the squared_l2 penalty.
    partition : array of shape (n_nodes,)
        Label of each node's cluster.

    Returns
    -------
    SpreadBound
        One entry per cluster, labels sorted.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> from nefele.theory import cluster_bound
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.0, 1.0, 1.0)])
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], weight=[1.0, 0.01, 1.0])
    >>> result = solve(Problem(graph, data, "squared", "squared_l2", lam=1.0), tol=1e-10)
    >>> bool((cluster_bound(result, [0, 0, 1, 1]).value < 0.03).all())
    True
    """
    what = "cluster_bound"
    if not isinstance(result, Result):
        raise ValueError(f"result must be a Result; got {type(result).__name__}. Use nefele.solve.")
    problem, w, gap = _split(result, what)
    assert w is not None
    check_smooth(problem, what)
    names, cluster = check_partition(problem, partition)
    if (problem.loss.value(w) < 0).any():
        raise ValueError(f"{what} needs losses >= 0; got a negative one (Poisson).")
    own = pooled_optima(problem, cluster, what)
    fit = group_sums(cluster, problem.loss.value(own))
    cut = group_sums(cluster, boundary(problem.graph, cluster))
    first = np.unique(cluster, return_index=True)[1]
    size = (own[first] ** 2).sum(axis=1) + _outside(problem, cluster, w)
    return _bound(problem, names, cluster, fit + problem.lam * cut * size + gap)


def _split(given: Any, what: str) -> tuple[Problem, Array | None, float]:
    """The problem, the point if there is one, and its gap."""
    w, gap = None, 0.0
    if isinstance(given, Result):
        given, w, gap = given.problem, given.w, given.gap_abs
    problem = check_problem(given)
    if not isinstance(problem.penalty, SquaredL2):
        raise ValueError(f'{what} needs penalty="squared_l2"; got {problem.penalty!r}.')
    if not problem.lam > 0:
        raise ValueError(f"{what} needs lam > 0; got {problem.lam:g}: nothing is coupled.")
    return problem, w, gap


def _outside(problem: Problem, cluster: Index, w: Array) -> Array:
    """R^2: largest squared norm of a neighbour outside each cluster, shape (n_clusters,)."""
    graph, square = problem.graph, (w**2).sum(axis=1)
    out = np.zeros(int(cluster.max()) + 1)
    across = cluster[graph.head] != cluster[graph.tail]
    head, tail = graph.head[across], graph.tail[across]
    np.maximum.at(out, cluster[head], square[tail])
    np.maximum.at(out, cluster[tail], square[head])
    return out


def _bound(problem: Problem, names: NDArray[Any], parts: Index, top: Array) -> SpreadBound:
    second = np.array(
        [connectivity(problem.graph, np.flatnonzero(parts == c)) for c in range(len(names))]
    )
    value = np.full(len(names), np.inf)
    np.divide(top, 0.5 * problem.lam * second, out=value, where=second > 0)
    return SpreadBound(names, value, second)
