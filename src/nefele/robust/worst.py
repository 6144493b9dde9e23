"""Which nodes' capture would allow most."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from nefele._checks import check_count
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.robust.bounds import InfluenceBound, by_curvature, influence_bound, steepest

_MOST = 5000  # sets that are all compared


@dataclass(frozen=True, eq=False)
class WorstNodes:
    """The nodes whose capture would allow most.

    Attributes
    ----------
    nodes : list of node ids
    bound : InfluenceBound
        Of their capture.
    exact : bool
        Whether all sets of this size were compared; otherwise one node after the other was taken,
        and there may be a worse set.

    Examples
    --------
    >>> from nefele import LocalData, Problem
    >>> from nefele.graphs import star
    >>> from nefele.robust import worst_nodes
    >>> data = LocalData.from_list([([[1.0]], [0.0])] * 5)
    >>> found = worst_nodes(Problem(star(5), data, lam=1.0), 1)
    >>> found.nodes, found.exact, round(found.bound.total, 9)
    ([0], True, 1.0)
    """

    nodes: list[Any]
    bound: InfluenceBound
    exact: bool


def worst_nodes(problem: Problem, k: int = 1) -> WorstNodes:
    """The k nodes whose capture would allow most, by `influence_bound`.

    Most is what moves without any limit: honest nodes without a bound that the captured ones reach.
    Where those are equally many, it is the sum of the bound, infinite when it covers no node.

    All sets are compared while there are at most 5000; otherwise the worst node is taken, then
    the worst beside it, and so on. Where the bound rests on the curvature at a fit (logistic and
    Poisson losses with a spared column), it is none for those that pull hardest, and each is a
    solve: there the nodes are taken one after the other by how hard they pull, the square root of
    sum_i a_i^2.

    Parameters
    ----------
    problem : Problem
        With a norm or Huber as penalty.
    k : int
        Less than the number of nodes.

    Returns
    -------
    WorstNodes

    Examples
    --------
    >>> from nefele import LocalData, Problem
    >>> from nefele.graphs import chain
    >>> from nefele.robust import worst_nodes
    >>> data = LocalData.from_list([([[1.0]], [0.0])] * 5)
    >>> worst_nodes(Problem(chain(5), data, lam=1.0), 2).nodes
    [1, 3]
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type(problem).__name__}.")
    problem.graph.check_plain("nefele.robust")
    k, n = check_count(k, "k", low=1), problem.graph.n_nodes
    if k >= n:
        raise ValueError(f"k must leave an honest node of the {n}; got {k}.")
    if not np.isfinite(steepest(problem.penalty, problem.d)):
        reason = influence_bound(problem, problem.graph.ids[:1]).reason
        raise ValueError(f"worst_nodes needs a bound. {reason}")
    by_pull = by_curvature(problem, np.zeros(n, dtype=bool))

    def reach(nodes: tuple[int, ...]) -> tuple[int, float]:
        if by_pull:
            return 0, _pull(problem.graph, nodes)
        found = influence_bound(problem, problem.graph.ids[list(nodes)])
        return int(np.isnan(found.force).sum()) - len(nodes), found.total

    exact = comb(n, k) <= _MOST and not by_pull
    chosen: tuple[int, ...] = ()
    if exact:
        chosen = max(combinations(range(n), k), key=reach)
    else:
        for _ in range(k):
            rest = (i for i in range(n) if i not in chosen)
            chosen = max(((*chosen, i) for i in rest), key=reach)
    ids = problem.graph.ids[sorted(chosen)]
    return WorstNodes(ids.tolist(), influence_bound(problem, ids), exact)


def _pull(graph: Graph, nodes: tuple[int, ...]) -> float:
    """sqrt(sum_i a_i^2) over the other nodes."""
    bad = np.zeros(graph.n_nodes)
    bad[list(nodes)] = 1.0
    return float(np.linalg.norm((graph.adjacency @ bad)[bad == 0]))
