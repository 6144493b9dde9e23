"""Reduced solves: one node per fused group, solved for itself, and back.

The quotient problem has the summed quadratic losses of each group and the summed weights between
groups. It is a problem of the same kind, much smaller, and moves whole groups at once: that is
where the plain iteration is slow. Newton steps end it where they can, iterations help elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._kernels.groups import group_sums
from nefele._kernels.short_rows import row_all
from nefele.graph import Graph
from nefele.losses.quadratic import BoundQuadratic
from nefele.losses.squared import BoundSquared
from nefele.problem import Problem
from nefele.solvers.primal_dual.polish import Polished, matching_flow, polish

Moves = Callable[[Problem, Array, Array], tuple[Array, Array]]

_UNREDUCED = 1000  # unknowns up to which Newton steps beat iterations without a reduction
NEWTON = 300  # unknowns of a reduced problem up to which they beat iterations


def reduced_solve(
    problem: Problem,
    iterate: Moves,
    w: Array,
    u: Array,
    most: int | None = NEWTON,
    enough: float = 0.0,
) -> Polished | None:
    """A point with the groups that u holds together moved as wholes; None if that is no use.

    `iterate` brings a point of the quotient problem nearer to its optimum. Up to `most` unknowns
    are left to Newton steps; None: as many as these can take, for a result in many digits. These
    end where one makes the objective fall by no more than the share `enough`, see `polish`.
    """
    loss = problem.loss
    quadratic = isinstance(loss, BoundSquared | BoundQuadratic) and loss.smooth
    if not (quadratic and problem.coupled and problem.penalty.is_norm):
        return polish(problem, w, u)
    fused = row_all(problem.penalty.fused(u, problem.scale))
    labels = problem.graph.joined(fused)
    k = int(labels.max()) + 1
    if k > problem.graph.n_nodes / 2:  # hardly reduced
        return polish(problem, w, u, enough=enough) if k * problem.d <= _UNREDUCED else None
    small, flow = quotient(problem, loss, labels, k, u)  # type: ignore[arg-type]
    found = group_sums(labels, w) / np.bincount(labels)[:, None]
    small_enough = most is None or k * problem.d <= most
    better = polish(small, found, flow, enough=enough) if small_enough else None
    if better is None:
        found, flow = iterate(small, found, flow)
        better = polish(small, found, flow, enough=enough) if small_enough else None
    if better is None:
        w = found[labels]
        return Polished(w, u, problem.objective(w), exact=False)
    w = better.w[labels]
    u = matching_flow(problem, w, u) if problem.penalty.twice else u
    return Polished(w, u, problem.objective(w))


def same_clusters(
    problem: Problem, solve: Callable[[Problem], tuple[Array, Array]], w: Array, u: Array
) -> tuple[Array, Array] | None:
    """The best point with the clusters of w, and its flow; None if that is no reduction.

    `solve` gives the optimum and the flow of the quotient problem. Inside the clusters the flow
    stays u; between two of them it is shared in proportion to the weights.
    """
    loss, graph = problem.loss, problem.graph
    if not (isinstance(loss, BoundSquared | BoundQuadratic) and loss.smooth and problem.coupled):
        return None
    labels = graph.joined(row_all(graph.diff(w) == 0))
    k = int(labels.max()) + 1
    if k > graph.n_nodes / 2:
        return None
    small, _ = quotient(problem, loss, labels, k, u)
    found, flow = solve(small)
    if small.graph.n_edges == 0:
        return found[labels], u
    head, tail = labels[graph.head], labels[graph.tail]
    pairs = small.graph.head * k + small.graph.tail
    place = np.searchsorted(pairs, np.minimum(head, tail) * k + np.maximum(head, tail))
    place = np.minimum(place, len(pairs) - 1)  # inside a cluster, where it is not used
    share = graph.weight / small.graph.weight[place] * np.sign(tail - head)
    return found[labels], np.where((head == tail)[:, None], u, share[:, None] * flow[place])


def quotient(
    problem: Problem,
    loss: BoundSquared | BoundQuadratic,
    labels: NDArray[np.int64],
    k: int,
    u: Array,
) -> tuple[Problem, Array]:
    """The problem of the groups, and the flow between them."""
    graph = problem.graph
    at_zero = loss.value(np.zeros((graph.n_nodes, problem.d)))
    head, tail = labels[graph.head], labels[graph.tail]
    across = head != tail
    head, tail, u = head[across], tail[across], u[across]
    u = np.where((head < tail)[:, None], u, -u)
    head, tail = np.minimum(head, tail), np.maximum(head, tail)
    pairs, place = np.unique(head * k + tail, return_inverse=True)
    small = Graph(np.arange(k), pairs // k, pairs % k, group_sums(place, graph.weight[across]))
    bound = BoundQuadratic(*(group_sums(labels, rows) for rows in (loss.H, loss.b, at_zero)))
    whole = Problem(small, None, loss=bound, penalty=problem.penalty, lam=problem.lam)
    return whole, group_sums(place, u)
