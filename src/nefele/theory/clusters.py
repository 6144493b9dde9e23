"""When does it work: well-connected clusters and the error bound (NFL, Sec. V)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_number
from nefele._kernels.groups import group_sums
from nefele.problem import Problem
from nefele.theory._inputs import (
    Index,
    boundary,
    check_norm,
    check_partition,
    check_problem,
    check_smooth,
    pooled_optima,
)
from nefele.theory.cluster_slack import Cluster, best_center
from nefele.theory.curvature import curvature_bounds

_STRICT = 1e-10  # slack, relative to the largest weight or demand, that counts as more than zero


@dataclass(frozen=True, eq=False)
class WellConnected:
    r"""Which clusters are well-connected (NFL, Definition 1).

    Each well-connected cluster has one model at every optimum, whatever the other clusters are:
    the others may be taken as single nodes, which are always well-connected.

    Attributes
    ----------
    labels : array of shape (n_clusters,)
        The distinct labels of the partition; all lists below follow this order.
    holds : bool array of shape (n_clusters,)
        Whether the cluster is well-connected.
    slack : array of shape (n_clusters,)
        max over i0 of min over A of cut(A, C \ A) - sum_{i in A} d_i, in units of edge weight;
        infinite for a single node. The condition is slack > 0.
    center : list
        The id of the best i0.
    worst : list of lists
        Ids of the set A that attains the slack: the violating subset where it fails.
    demand : array of shape (n_nodes,)
        d_i, the flow that node i may need per unit of lam.
    boundary, alpha : arrays of shape (n_clusters,)
        |dC| and the strong convexity of the summed loss, in the penalty's norm.
    lam : float

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import well_connected
    >>> data = LocalData.from_list([([[1.0]], [0.0]), None, None])
    >>> found = well_connected(Problem(Graph.from_edges([(0, 1)], nodes=[0, 1, 2]), data, lam=1.0),
    ...                        ["a", "a", "a"])
    >>> found.all, found.worst
    (False, [[2]])
    """

    labels: NDArray[Any] = field(repr=False)
    holds: NDArray[np.bool_]
    slack: Array
    center: list[Any]
    worst: list[list[Any]] = field(repr=False)
    demand: Array = field(repr=False)
    boundary: Array = field(repr=False)
    alpha: Array = field(repr=False)
    lam: float

    @property
    def all(self) -> bool:
        """Whether every cluster is well-connected, as Theorem 2 asks."""
        return bool(self.holds.all())


@dataclass(frozen=True, eq=False)
class ErrorBound:
    """How far the model of a cluster is from its own optimum.

    Attributes
    ----------
    labels : array of shape (n_clusters,)
    value : array of shape (n_clusters,)
        |dC| lam / alpha >= ||w_i - wbar_c|| in the penalty's norm; infinite when the cluster's
        data do not fix its parameters and it has edges to others.
    proven : bool array of shape (n_clusters,)
        Whether the cluster is well-connected. Otherwise the bound holds for the problem in which
        each cluster is one node, not necessarily for the one given.
    optimum : array of shape (n_clusters, d)
        wbar_c, the minimiser of the cluster's summed loss (NFL, Eq. (9)).

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import error_bound
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> error_bound(Problem(Graph.from_edges([(0, 1)]), data, lam=0.5), ["a", "b"]).value.tolist()
    [0.25, 0.25]
    """

    labels: NDArray[Any] = field(repr=False)
    value: Array
    proven: NDArray[np.bool_]
    optimum: Array = field(repr=False)


def well_connected(
    problem: Problem,
    partition: Any,
    lam: float | None = None,
    *,
    alpha: Any = None,
    beta: Any = None,
) -> WellConnected:
    r"""Whether each cluster of a partition is well-connected (NFL, Eq. (35)).

    For some i0 in C and all A in C \ {i0}: sum_{i in A} d_i < cut(A, C \ A), with
    d_i = boundary_i + beta_i |dC| / alpha + delta_i / lam, delta_i = ||grad L_i(wbar_c)||_dual.
    One maximum flow per candidate i0 instead of all subsets. The condition is sufficient, not
    necessary: many clusters are found by the method without being well-connected.

    Parameters
    ----------
    problem : Problem
        With a norm penalty and differentiable losses.
    partition : array of shape (n_nodes,)
        Label of each node's cluster, in the order of `problem.graph.ids`.
    lam : float, optional
        Default: `problem.lam`.
    alpha, beta : arrays of shape (n_clusters,) and (n_nodes,), optional
        Curvature bounds in the penalty's norm; computed for quadratic losses with l1, l2, linf.

    Returns
    -------
    WellConnected

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import well_connected
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.0, 5.0, 5.0)])
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], weight=[1.0, 0.1, 1.0])
    >>> found = well_connected(Problem(graph, data, lam=0.5), [0, 0, 1, 1])
    >>> found.holds.tolist(), found.center, found.slack.round(6).tolist()
    ([True, True], [1, 2], [0.95, 0.95])
    """
    names, cluster, lam = _checked(problem, partition, lam, "well_connected")
    least, own = curvature_bounds(problem, cluster, alpha, beta, "well_connected")
    w = pooled_optima(problem, cluster, "well_connected")
    outside = boundary(problem.graph, cluster)
    total = group_sums(cluster, outside)
    demand = _demand(problem, cluster, w, lam, least, own)
    slack, center, worst, holds = [], [], [], []
    for c in range(len(names)):
        nodes = np.flatnonzero(cluster == c)
        part = _inside(problem, nodes, demand)
        i0, value, members = best_center(part)
        slack.append(value)
        holds.append(value > _STRICT * part.unit)
        ids = problem.graph.ids[nodes]
        center.append(ids[[i0]].tolist()[0])
        worst.append(ids[np.sort(np.array(members, dtype=np.int64))].tolist())
    return WellConnected(
        names, np.array(holds), np.array(slack), center, worst, demand, total, least, lam
    )


def error_bound(
    problem: Problem,
    partition: Any,
    lam: float | None = None,
    *,
    alpha: Any = None,
    beta: Any = None,
) -> ErrorBound:
    """Bound on the distance of each cluster's model from the cluster's own optimum.

    ||w_i - wbar_c|| <= |dC| lam / alpha in the penalty's norm: half of NFL, Eq. (37), since strong
    monotonicity of the gradient gives alpha ||w - wbar||^2 <= lam |dC| ||w - wbar|| directly.

    Parameters
    ----------
    problem, partition, lam, alpha, beta
        As in `well_connected`.

    Returns
    -------
    ErrorBound

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import error_bound
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.0, 5.0, 5.0)])
    >>> graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], weight=[1.0, 0.1, 1.0])
    >>> found = error_bound(Problem(graph, data, lam=0.5), [0, 0, 1, 1])
    >>> found.value.round(6).tolist(), found.proven.tolist(), found.optimum.ravel().tolist()
    ([0.0125, 0.0125], [True, True], [0.0, 5.0])
    """
    found = well_connected(problem, partition, lam, alpha=alpha, beta=beta)
    cluster = check_partition(problem, partition)[1]
    optimum = pooled_optima(problem, cluster, "error_bound")
    first = np.unique(cluster, return_index=True)[1]
    value = _ratio(found.lam * found.boundary, found.alpha)
    return ErrorBound(found.labels, value, found.holds, optimum[first])


def _checked(
    problem: Any, partition: Any, lam: Any, what: str
) -> tuple[NDArray[Any], Index, float]:
    check_problem(problem)
    names, cluster = check_partition(problem, partition)
    check_norm(problem, what)
    check_smooth(problem, what)
    lam = problem.lam if lam is None else lam
    return names, cluster, check_number(lam, "lam", low=0.0, strict=True)


def _ratio(top: Array, bottom: Array) -> Array:
    """The quotient, with 0 / 0 = 0."""
    out = np.where(top > 0, np.inf, 0.0)
    return np.divide(top, bottom, out=out, where=bottom > 0)


def _demand(
    problem: Problem, cluster: Index, w: Array, lam: float, alpha: Array, beta: Array
) -> Array:
    """d_i of NFL, Eq. (35)."""
    outside = boundary(problem.graph, cluster)
    reach = _ratio(group_sums(cluster, outside), alpha)[cluster]
    drift = np.zeros_like(beta)
    np.multiply(beta, reach, out=drift, where=beta > 0)
    delta = problem.penalty.dual_norm(problem.loss.grad(w))
    return outside + drift + delta / lam


def _inside(problem: Problem, nodes: Index, demand: Array) -> Cluster:
    graph = problem.graph
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    keep = (place[graph.head] >= 0) & (place[graph.tail] >= 0)
    return Cluster(
        place[graph.head[keep]], place[graph.tail[keep]], graph.weight[keep], demand[nodes]
    )
