"""The critical lam: from where on each connected component has one model (NFL, Sec. VI-C).

For a norm penalty and differentiable losses the pooled optimum wbar solves the problem exactly
when a flow holds it there: D^T u = -grad L(wbar) and ||u_e||_dual <= lam A_e (NFL, Eq. (28)). The
least such lam is the congestion of the least congested flow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele._kernels.groups import group_sums
from nefele.graph import Graph
from nefele.penalties import Partial, Penalty
from nefele.problem import Problem
from nefele.theory._inputs import check_problem, check_smooth, pooled_optima
from nefele.theory.congestion import congestion, cut_bound, least_congested_flow

_WHAT = "critical_lambda"
_EXACT = 1e-6  # relative distance of the two bounds below which the value counts as exact


@dataclass(frozen=True, eq=False)
class CriticalLambda:
    """The critical lam with its proofs.

    Attributes
    ----------
    value : float
        From this lam on each connected component has one model; proven by `flow`. Infinite for
        smooth penalties, which never fuse nodes.
    lower : float
        Below this lam they do not; proven by `potential`.
    exact : bool
        Whether the two agree to a relative 1e-6.
    flow : array of shape (n_edges, d) or None
        A flow D^T u = -grad L(wbar) with max_e ||u_e||_dual / A_e = value; None for smooth
        penalties.
    potential : array of shape (n_nodes, d) or None
        x with <-grad L(wbar), x> / sum_e A_e phi((D x)_e) = lower, over the component that needs
        the most. On a tree the flow alone proves `lower`, as there is no other; for a norm of
        your own with d > 1 the potential may then prove less.
    w : array of shape (n_nodes, d)
        The pooled optimum wbar of each component.
    component_values, component_lower : arrays of shape (n_components,)
        The same for each connected component, in the order of `graph.components`.
    load : array of shape (n_edges,)
        ||u_e||_dual / A_e: the edges near `value` are the bottleneck.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import critical_lambda
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.0, 3.0)])
    >>> found = critical_lambda(Problem(Graph.from_edges([(0, 1), (1, 2)]), data, lam=1.0))
    >>> found.load.round(6).tolist(), found.flow.round(6).tolist()
    ([2.0, 4.0], [[-2.0], [-4.0]])
    """

    value: float
    lower: float
    exact: bool
    flow: Array | None = field(repr=False)
    potential: Array | None = field(repr=False)
    w: Array = field(repr=False)
    component_values: Array = field(repr=False)
    component_lower: Array = field(repr=False)
    load: Array = field(repr=False)


def critical_lambda(problem: Problem) -> CriticalLambda:
    """The smallest lam at which each connected component has one model.

    lam* = min_u max_e ||u_e||_dual / A_e over the flows D^T u = -grad L(wbar) (NFL, Eq. (28)),
    wbar the pooled optimum. Trees have a single flow. Otherwise a linear programme (l1, linf, and
    every norm at d = 1) or a second-order cone programme (l2); other norms get two bounds.

    Parameters
    ----------
    problem : Problem
        With differentiable losses; its own lam plays no part. With `Partial` (quadratic losses
        only) the coupled parameters become equal.

    Returns
    -------
    CriticalLambda

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import critical_lambda
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [3.0]), ([[1.0]], [0.0])])
    >>> ring = Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    >>> found = critical_lambda(Problem(ring, data, lam=1.0))
    >>> round(found.value, 9), found.exact
    (2.0, True)
    """
    check_problem(problem)
    check_smooth(problem, _WHAT)
    penalty, graph = problem.penalty, problem.graph
    if isinstance(penalty, Partial):
        w, on = _partly_pooled(problem, penalty), list(penalty.on)
        inner: Penalty = penalty.penalty
    else:
        w, on = pooled_optima(problem, graph.components, _WHAT), list(range(problem.d))
        inner = penalty
    pull = -problem.loss.grad(w)[:, on]
    if not inner.is_norm:
        return _never(problem, w, pull)
    return _by_component(problem, inner, w, pull, on)


def _by_component(
    problem: Problem, penalty: Penalty, w: Array, pull: Array, on: list[int]
) -> CriticalLambda:
    graph, d = problem.graph, problem.d
    count = int(graph.components.max()) + 1
    values, lower = np.zeros(count), np.zeros(count)
    flow, potential = np.zeros((graph.n_edges, d)), np.zeros((graph.n_nodes, d))
    for c in range(count):
        nodes = np.flatnonzero(graph.components == c)
        if len(nodes) == 1:
            continue
        part, edges = _component(graph, nodes)
        demand = pull[nodes] - pull[nodes].mean(axis=0)
        if np.abs(demand).max() <= 1e-14 * np.abs(pull).max():
            continue  # the pooled optimum is the optimum of every node
        u, x = least_congested_flow(part, penalty, demand)
        values[c] = congestion(part, penalty, u).max()
        tree = part.n_edges == part.n_nodes - 1
        lower[c] = values[c] if tree else min(cut_bound(part, penalty, demand, x), values[c])
        flow[np.ix_(edges, np.array(on))] = u
        if lower[c] >= lower.max():
            potential[:] = 0.0
            potential[np.ix_(nodes, np.array(on))] = x
    return CriticalLambda(
        value=float(values.max()),
        lower=float(lower.max()),
        exact=bool(values.max() - lower.max() <= _EXACT * values.max()),
        flow=flow,
        potential=potential,
        w=w,
        component_values=values,
        component_lower=lower,
        load=congestion(graph, problem.penalty, flow),
    )


def _never(problem: Problem, w: Array, pull: Array) -> CriticalLambda:
    """Smooth penalties: equal models only where nothing pulls them apart."""
    graph = problem.graph
    size = np.zeros(int(graph.components.max()) + 1)
    np.maximum.at(size, graph.components, np.abs(pull).max(axis=1))
    lone = np.bincount(graph.components) == 1
    values = np.where(lone | (size <= 1e-14 * max(np.abs(pull).max(), 1.0)), 0.0, np.inf)
    none = np.full(graph.n_edges, np.nan)
    top = float(values.max())
    return CriticalLambda(top, top, True, None, None, w, values, values, none)


def _component(graph: Graph, nodes: Any) -> tuple[Graph, Any]:
    """The graph of some nodes and the positions of its edges."""
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    edges = np.flatnonzero(place[graph.head] >= 0)
    ends = place[graph.head[edges]], place[graph.tail[edges]]
    return Graph(np.arange(len(nodes)), *ends, graph.weight[edges]), edges


def _partly_pooled(problem: Problem, penalty: Partial) -> Array:
    """Optimum with equal coupled entries over each component, the other entries personal.

    Personal entries are eliminated node by node: p_i = H_pp^+ (b_p - H_pc v).
    """
    loss = problem.loss
    zero = np.zeros((problem.graph.n_nodes, problem.d))
    H = loss.hess(zero)
    if not loss.affine_grad or H is None:
        raise ValueError(f"{_WHAT} with Partial needs quadratic losses; use loss='squared'.")
    b, on = -loss.grad(zero), np.array(penalty.on)
    own = np.setdiff1d(np.arange(problem.d), on)
    inverse = np.linalg.pinv(H[:, own[:, None], own], rcond=1e-13, hermitian=True)
    carry = H[:, on[:, None], own] @ inverse
    parts = problem.graph.components
    left = group_sums(parts, H[:, on[:, None], on] - carry @ H[:, own[:, None], on])
    right = group_sums(parts, b[:, on, None] - carry @ b[:, own, None])
    shared = np.linalg.pinv(left, rcond=1e-13, hermitian=True) @ right
    w = zero
    w[:, on] = shared[parts, :, 0]
    rest = b[:, own, None] - H[:, own[:, None], on] @ w[:, on, None]
    w[:, own] = (inverse @ rest)[..., 0]
    return w
