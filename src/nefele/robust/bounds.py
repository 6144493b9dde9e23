"""How far captured nodes can move the honest ones, whatever they do.

With a norm as penalty the flow of an edge is at most lam A_e in the dual norm, whatever is at its
other end. So an attacked honest node feels a force of at most r_i = lam kappa a_i, a_i the weight
of its edges to attackers and kappa the largest slope of the penalty. For the change x of the
honest optimum, mu_i the strong convexity of L_i,

    sum_i mu_i ||x_i||^2 <= sum_i r_i ||x_i||,

since the edges between honest nodes only pull together. All bounds here follow from this line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.squared import BoundSquared
from nefele.penalties import (
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Penalty,
    Quadratic,
    SquaredL2,
)
from nefele.problem import Problem
from nefele.robust.curved import curved_bound, is_curved
from nefele.robust.poisoning import captured
from nefele.robust.reasons import on_convexity, on_curvature
from nefele.theory import label_sensitivity

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class InfluenceBound:
    """How far any behaviour of the attackers can move the honest nodes.

    The distance is from the fit without the attackers' edges; two behaviours of the attackers end
    at most twice as far from each other.

    Attributes
    ----------
    attackers : array of node ids
    per_node : array of shape (n_nodes,)
        Bound on ||w_i - w_i without attackers||; inf where nothing is proven, NaN at attackers.
    total : float
        Bound on the Euclidean norm over all nodes that are covered; inf when none is.
    covered : bool array of shape (n_nodes,)
        Honest nodes with a finite bound.
    alpha, kappa : float
        Strong convexity, or curvature at the fit without attackers, and largest slope that it
        rests on; NaN where there is no bound.
    force : array of shape (n_nodes,)
        r_i: the strongest pull of the attackers at each honest node; NaN at those without a bound
        that attackers reach.
    per_label : float
        Quadratic penalty with squared losses: how far the whole solution moves at most per unit
        by which one label of an attacker changes; otherwise NaN.
    reason : str
        What the bound rests on, or why there is none.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.robust import influence_bound
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> found = influence_bound(problem, [1])
    >>> round(found.total, 9), found.certified
    (0.5, True)
    """

    attackers: NDArray[Any]
    per_node: Array = field(repr=False)
    total: float
    covered: Mask = field(repr=False)
    alpha: float
    kappa: float
    force: Array = field(repr=False)
    per_label: float = field(repr=False)
    reason: str

    @property
    def certified(self) -> bool:
        """Whether some honest node has a bound."""
        return bool(self.covered.any())


def influence_bound(problem: Problem, attackers: Any) -> InfluenceBound:
    """How far any behaviour of these nodes can move each honest one, and all together.

    Whatever data the attackers have and whatever they say, as long as it comes to rest: the
    optimum of the honest nodes, given what the attackers hold on to, is at most so far from the
    optimum without the attackers' edges. In sum (lam kappa / alpha) sqrt(sum_i a_i^2); at node k
    r_k / (2 mu_k) + sqrt(sum_i r_i^2 / (4 mu_i) / mu_k), whichever is less. Both are taken
    within a connected part of the honest nodes: what attackers do not touch does not move.

    Parameters
    ----------
    problem : Problem
        With a norm, Huber, or one of these on some entries as penalty.
    attackers : sequence of node ids

    Returns
    -------
    InfluenceBound
        For the quadratic penalty without a bound, and the reason.

    Notes
    -----
    A node is covered when its own loss is strongly convex: for squared losses when its rows span
    all directions, for others when it has a ridge term. Other honest nodes are not, and those of
    them that attackers reach count as free to do anything: their edges to covered nodes pull
    with twice their weight, since both fits have them.

    Logistic and Poisson losses whose ridge spares a column, as it spares intercepts, are not
    strongly convex. Their curvature at the fit without attackers, for which the problem is solved,
    bounds what a force can do as long as it is weaker than what the loss can resist at all. Beyond
    that there is no bound: the optimum itself runs away.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.robust import influence_bound
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> graph = Graph.from_edges([(0, 1)])
    >>> influence_bound(Problem(graph, data, penalty="l2", lam=1.0), [1]).per_node.round(9).tolist()
    [0.5, nan]
    >>> influence_bound(Problem(graph, data, penalty="squared_l2", lam=1.0), [1]).reason
    'None: the quadratic penalty pulls the harder the further away a neighbour is...
    """
    bad = _attackers(problem, attackers)
    kappa = steepest(problem.penalty, problem.d)
    if not np.isfinite(kappa):
        return _none(problem, bad)
    if by_curvature(problem, bad):
        return _local(problem, bad, kappa)
    return _bounded(problem, bad, _convexity(problem), kappa)


def by_curvature(problem: Problem, bad: Mask) -> bool:
    """Whether a bound rests on the curvature at a fit: some honest loss is not strongly convex."""
    return is_curved(problem) and not (_convexity(problem)[~bad & problem.loss.labelled] > 0).all()


def steepest(penalty: Penalty, d: int) -> float:
    """The largest slope kappa of a penalty of d parameters in the Euclidean norm; else inf.

    Examples
    --------
    >>> steepest(L2Norm(), 4), steepest(L1Norm(), 4), steepest(SquaredL2(), 4)
    (1.0, 2.0, inf)
    """
    if isinstance(penalty, Partial):
        return steepest(penalty.penalty, len(penalty.on))
    if isinstance(penalty, Lp):
        return float(d ** max(1 / penalty.p - 0.5, 0.0))
    if isinstance(penalty, L1Norm):
        return float(np.sqrt(d))
    return 1.0 if isinstance(penalty, L2Norm | LinfNorm | HuberPenalty) else np.inf


def _convexity(problem: Problem) -> Array:
    """mu_i of each loss, less what an eigenvalue may be wrong by."""
    rounding = 4 * problem.d**2 * np.finfo(float).eps * problem.loss.curvature()
    return np.maximum(problem.loss.strong_convexity() - rounding, 0.0)


def _attackers(problem: Any, attackers: Any) -> Mask:
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type(problem).__name__}.")
    problem.graph.check_plain("nefele.robust")
    bad = np.zeros(problem.graph.n_nodes, dtype=bool)
    bad[captured(problem.graph.ids, attackers, "the graph")] = True
    if bad.all():
        raise ValueError("Some node must be honest; all are attackers.")
    return bad


def _bounded(problem: Problem, bad: Mask, mu: Array, kappa: float) -> InfluenceBound:
    graph = problem.graph
    mu = np.where(bad, 0.0, mu)
    free = _free(graph, bad, mu)
    force = problem.lam * kappa * _pulls(graph, bad, free)
    inside = ~bad & ~free  # what moves by the line above; of these, those with mu > 0 are covered
    parts = graph.joined(inside[graph.head] & inside[graph.tail])
    solid = inside & (mu > 0)
    per_node = np.where(bad, np.nan, np.inf)
    least, total = np.inf, 0.0
    for part in np.unique(parts[solid]):
        own = np.flatnonzero(solid & (parts == part))
        r, m = force[own], mu[own]
        alone = float(m.min())
        together = float(np.sqrt((r**2).sum())) / alone
        each = r / (2 * m) + np.sqrt((r**2 / (4 * m)).sum() / m)
        per_node[own] = np.minimum(each, together)
        least, total = min(least, alone), float(np.hypot(total, together))
    covered = np.isfinite(per_node)
    # Euclidean norm of the nodes' bounds bounds the sum too.
    total = min(total, float(np.sqrt((per_node[covered] ** 2).sum())))
    return InfluenceBound(
        graph.ids[bad],
        per_node,
        total if covered.any() else np.inf,
        covered,
        float(least) if covered.any() else np.nan,
        kappa,
        np.where(inside, force, np.nan),
        np.nan,
        on_convexity(problem, covered, bad, float(least), kappa),
    )


def _local(problem: Problem, bad: Mask, kappa: float) -> InfluenceBound:
    """From the curvature at the fit without attackers."""
    found = curved_bound(problem, bad, kappa)
    covered = np.isfinite(found.per_node)
    return InfluenceBound(
        problem.graph.ids[bad],
        found.per_node,
        found.total,
        covered,
        found.alpha,
        kappa,
        np.where(bad, np.nan, problem.lam * kappa * _pulls(problem.graph, bad, ~bad & ~covered)),
        np.nan,
        on_curvature(problem, covered, bad, found.alpha, kappa),
    )


def _free(graph: Graph, bad: Mask, mu: Array) -> Mask:
    """Honest nodes without strong convexity that attackers reach through such nodes."""
    loose = ~bad & ~(mu > 0)
    joined = graph.joined((loose | bad)[graph.head] & loose[graph.tail]
                          | loose[graph.head] & bad[graph.tail])  # fmt: skip
    reached = np.isin(joined, joined[bad])
    return np.asarray(loose & reached)


def _pulls(graph: Graph, bad: Mask, free: Mask) -> Array:
    """Weight of each node's edges to attackers, and twice that to nodes that are free."""
    times = bad + 2.0 * free
    to_head = np.bincount(graph.head, graph.weight * times[graph.tail], graph.n_nodes)
    to_tail = np.bincount(graph.tail, graph.weight * times[graph.head], graph.n_nodes)
    return np.asarray(to_head + to_tail)


def _none(problem: Problem, bad: Mask) -> InfluenceBound:
    n, penalty = problem.graph.n_nodes, problem.penalty
    quadratic = isinstance(penalty, SquaredL2 | Quadratic)
    if isinstance(penalty, Partial):
        quadratic = isinstance(penalty.penalty, SquaredL2 | Quadratic)
    reason = f"None: no largest slope is known of {penalty!r}. Use l2, l1, linf or huber."
    per_label = np.nan
    if quadratic:
        reason = (
            "None: the quadratic penalty pulls the harder the further away a neighbour is, so one "
            "neighbour can move a node any distance. Use l2 or huber, or guard the messages."
        )
        if isinstance(penalty, SquaredL2) and isinstance(problem.loss, BoundSquared):
            per_label = _per_label(problem, bad)
    nothing = np.where(bad, np.nan, np.inf)
    return InfluenceBound(
        problem.graph.ids[bad], nothing, np.inf, np.zeros(n, dtype=bool), np.nan, np.nan,
        np.where(bad, np.nan, np.inf), per_label, reason,
    )  # fmt: skip


def _per_label(problem: Problem, bad: Mask) -> float:
    """What one label of an attacker can do, per unit, as long as its features are true."""
    if not (problem.loss.smooth and problem.lam > 0):
        return np.nan
    assert isinstance(problem.loss, BoundSquared)
    rows = bad[problem.loss.data.row_node]
    return float(label_sensitivity(problem)[rows].max(initial=0.0))
