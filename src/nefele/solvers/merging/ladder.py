"""Clusters by merging: small lam first, and each next one on the clusters found so far.

Points that are one cluster at some lam mostly stay one when lam grows. So the next problem has
one node per cluster, with summed losses, and one edge per pair of clusters, with summed weights:
what is slow over a large graph is quick over a small one. What was merged too early is found by
the certificate, which is that of the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._kernels.groups import group_sums
from nefele.problem import Problem
from nefele.solvers.primal_dual.quotient import quotient

Index = NDArray[np.int64]
Rung = Callable[[Problem, Array, Array, float], tuple[Array, Array]]

_FIRST = 100.0  # least lam, in units of the one at which a point first meets its neighbours
_RATIO = 10.0  # of one lam to the one before
_ROUGH = 1e-3  # gap at which clusters are merged, if that is less than
_FEW = 5.0  # times what one of all points counts: two that are merged wrongly count no more
_TINY = 100  # clusters so few that no more rungs are worth while
_FINE = 1e-5  # gap over the last clusters
_SHARE = 0.1  # of the gap that is asked for, which is fine enough
_INSIDE = 0.99  # share of its ball up to which a flow holds two clusters together


class Merged:
    """The problem of the clusters found so far, and the flow over all edges."""

    def __init__(self, problem: Problem) -> None:
        self.problem = self.small = problem
        self.labels = np.arange(problem.graph.n_nodes)
        self.w = problem.loss.minimise()
        self.u = self.flow = np.zeros((problem.graph.n_edges, problem.d))
        self.place, self.share = np.arange(problem.graph.n_edges), np.ones(problem.graph.n_edges)

    def at(self, lam: float, rung: Rung, gap: float = _FINE) -> tuple[Array, Array]:
        """Parameters and flow for this lam, with the clusters found so far or larger ones."""
        self.small = self.small.with_lam(lam)
        if self.small.graph.n_edges:
            self.w, self.u = rung(self.small, self.w, self.u, gap)
        self.merge()
        self.spread()
        return self.w[self.labels], self.flow

    def merge(self) -> None:
        """Join the clusters that the flow between them holds together."""
        small = self.small
        ratio = small.penalty.domain_ratio(self.u, small.scale)
        labels = small.graph.joined(np.asarray(ratio <= _INSIDE))
        k = int(labels.max()) + 1
        if k == small.graph.n_nodes:
            return
        self.spread()
        self.w = group_sums(labels, self.w) / np.bincount(labels)[:, None]
        self.small, self.u = quotient(small, small.loss, labels, k, self.u)  # type: ignore
        self.labels = labels[self.labels]
        self._find()

    def spread(self) -> None:
        """Bring the flow between clusters to the edges, in proportion to their weights."""
        across = self.place >= 0
        self.flow = self.flow.copy()
        self.flow[across] = self.share[across, None] * self.u[self.place[across]]

    def _find(self) -> None:
        """The edge between clusters that each edge belongs to, -1 inside, and its signed share."""
        graph, small = self.problem.graph, self.small.graph
        k = small.n_nodes
        head, tail = self.labels[graph.head], self.labels[graph.tail]
        pairs = small.head * k + small.tail
        place = np.searchsorted(pairs, np.minimum(head, tail) * k + np.maximum(head, tail))
        inner = head == tail
        self.place = np.where(inner, -1, place)
        weight = small.weight[np.where(inner, 0, place)] if len(pairs) else 1.0
        self.share = graph.weight / weight * np.sign(tail - head)


def climb(problem: Problem, rungs: Array, rung: Rung, tol: float) -> tuple[Array, Array]:
    """Parameters and flow whose gap is below tol, mostly, by way of the smaller lams `rungs`.

    `rung` solves the problem of clusters to a gap.
    """
    found = Merged(problem)
    rough = max(min(_ROUGH, _FEW / problem.graph.n_nodes), _SHARE * tol)
    for lam in rungs:
        found.at(lam, rung, rough)
        if found.small.graph.n_nodes <= _TINY:
            break  # a step costs less than another rung
    return found.at(problem.lam, rung, max(min(rough, _FINE), _SHARE * tol))


def lams(problem: Problem) -> Array:
    """Rungs below the problem's lam; none when that is small enough to begin with."""
    graph, loss = problem.graph, problem.loss
    apart = np.sqrt((graph.diff(loss.minimise()) ** 2).sum(axis=1))
    pull = float(np.median(loss.curvature())) * float(np.median(apart))
    first = _FIRST * pull / float(graph.weighted_degree.mean())
    if not 0 < first < problem.lam / _RATIO:
        return np.empty(0)
    count = int(np.ceil(np.log(problem.lam / first) / np.log(_RATIO)))
    return problem.lam * _RATIO ** -np.arange(count, 0.0, -1.0)
