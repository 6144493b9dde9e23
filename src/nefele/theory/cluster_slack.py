"""The well-connectedness condition of one cluster as maximum flows (NFL, Eq. (35) and Lemma 3).

For a node i0 the condition asks for cut(A) - d(A) > 0 for all A without i0. By the feasible
distribution theorem the least value is that of a maximum flow into i0 from sources d_i; what can
still be pushed from a node v afterwards is the least value over the sets that hold v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.theory.max_flow import MaxFlow

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cluster:
    """The inside of a cluster: nodes 0..k-1, edges between them, demand of each node.

    The demands d_i >= 0 may be infinite.
    """

    head: Index
    tail: Index
    weight: Array
    demand: Array

    @property
    def unit(self) -> float:
        """The size of the numbers involved, for rounding errors."""
        finite = self.demand[np.isfinite(self.demand)]
        return float(max(self.weight.max(initial=0.0), finite.max(initial=0.0)))

    def value(self, members: list[int]) -> float:
        """cut(A) - d(A)."""
        inside = np.zeros(len(self.demand), dtype=bool)
        inside[members] = True
        across = inside[self.head] != inside[self.tail]
        return float(self.weight[across].sum() - self.demand[inside].sum())

    def inner_degree(self) -> Array:
        """Weight of the edges at each node, shape (k,)."""
        k = len(self.demand)
        ends = np.bincount(self.head, self.weight, k), np.bincount(self.tail, self.weight, k)
        return np.asarray(ends[0] + ends[1], dtype=float)


def best_center(cluster: Cluster) -> tuple[int, float, list[int]]:
    """The node i0 with the largest slack, that slack, and the set A that attains it.

    Any set A found for one i0 bounds the slack of every node outside A: only nodes inside all
    the sets found so far can be better.
    """
    k = len(cluster.demand)
    if k == 1:
        return 0, np.inf, []
    best = (-1, -np.inf, list[int]())
    order = np.lexsort((-cluster.inner_degree(), -cluster.demand)).tolist()
    order.sort(key=lambda i: not np.isinf(cluster.demand[i]))
    left = set(order)
    while left:
        center = next(i for i in order if i in left)
        slack, members = center_slack(cluster, center, best[1])
        if best[0] < 0 or slack > best[1]:
            best = center, slack, members
        left &= set(members)
    return best


def center_slack(cluster: Cluster, center: int, enough: float) -> tuple[float, list[int]]:
    """Least cut(A) - d(A) over nonempty A without the center, and a set that attains it.

    Stops early when the slack is known to be at most `enough`.
    """
    k = len(cluster.demand)
    demand = cluster.demand.copy()
    demand[center] = 0.0
    endless = np.flatnonzero(np.isinf(demand))
    if endless.size:
        return -np.inf, endless[:1].tolist()
    network = MaxFlow(
        k,
        cluster.head.tolist(),
        cluster.tail.tolist(),
        cluster.weight,
        negligible=1e-13 * cluster.unit,
    )
    source = network.add_source(demand)
    total = float(demand.sum())
    if network.push(source, {center}) < total - 1e-11 * total:
        members = [i for i in network.reached if i != source]
        if members:
            return cluster.value(members), members
    return _strict_slack(cluster, network, center, enough)


def _strict_slack(
    cluster: Cluster, network: MaxFlow, center: int, enough: float
) -> tuple[float, list[int]]:
    """What each node can still push. A node that is done joins the sinks: its sets are known."""
    k = len(cluster.demand)
    # single nodes and the whole rest are the usual bottlenecks: a good limit from the start
    others = [i for i in range(k) if i != center]
    single = np.delete(cluster.inner_degree() - cluster.demand, center)
    least = int(np.argmin(single))
    best, members = float(single[least]), [others[least]]
    if (rest := cluster.value(others)) < best:
        best, members = rest, others
    sinks = {center}
    network.arcs = network.arcs[:k]
    network.arcs = [[arc for arc in arcs if network.to[arc] < k] for arcs in network.arcs]
    for v in _outwards(cluster, center):
        if best <= enough:
            break
        found = network.push(v, sinks, limit=max(best, 0.0))
        if found < best:
            inside = list(network.reached)
            value = cluster.value(inside)
            if value < best:
                best, members = value, inside
        sinks.add(v)
    return best, members


def _outwards(cluster: Cluster, center: int) -> list[int]:
    """The other nodes from near to far, those that are not connected to the center last."""
    k = len(cluster.demand)
    near: list[list[int]] = [[] for _ in range(k)]
    for i, j in zip(cluster.head.tolist(), cluster.tail.tolist(), strict=True):
        near[i].append(j)
        near[j].append(i)
    order, seen = [center], {center}
    for i in order:
        fresh = [j for j in near[i] if j not in seen]
        seen.update(fresh)
        order += fresh
    return order[1:] + [i for i in range(k) if i not in seen]
