"""The dual at d = 1 as a minimum-cost flow (NFL, Sec. III-C).

One arc per edge, of capacity lam A_e and without cost, and arcs from each node to a ground node:
one for each row, whose cost is the conjugate of the row's loss, and one for each regulariser.
Flow is conserved at every node, potentials are the parameters, and the least cost is minus the
optimum. With absolute or hinge losses every cost is linear: the classical problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from nefele._checks import Array, type_name
from nefele.losses import Absolute, Hinge, HuberLoss, Quantile, Squared
from nefele.losses.pointwise import BoundPointwise
from nefele.losses.zero import BoundZero
from nefele.problem import Problem
from nefele.result import Result
from nefele.theory._inputs import check_problem

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FlowNetwork:
    """A network with convex costs: min_f sum_a quadratic_a f_a^2 / 2 + linear_a f_a.

    Attributes
    ----------
    n_nodes : int
        The nodes of the graph and, as the last one, the ground.
    tail, head : int arrays of shape (n_arcs,)
        Arc a carries f_a from tail[a] to head[a]; negative flows go the other way. The first
        n_edges arcs are the edges of the graph.
    lower, upper : arrays of shape (n_arcs,)
        Capacities.
    linear, quadratic : arrays of shape (n_arcs,)
        Cost quadratic f^2 / 2 + linear f.
    constant : float
        Rows without a feature cost this much whatever the flow: optimum = constant - least cost.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import min_cost_flow
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> network = min_cost_flow(Problem(Graph.from_edges([(0, 1)]), data, "absolute", lam=0.25))
    >>> network.tail.tolist(), network.head.tolist(), network.upper.tolist()
    ([0, 0, 1], [1, 2, 2], [0.25, 1.0, 1.0])
    """

    n_nodes: int
    tail: Index = field(repr=False)
    head: Index = field(repr=False)
    lower: Array = field(repr=False)
    upper: Array = field(repr=False)
    linear: Array = field(repr=False)
    quadratic: Array = field(repr=False)
    constant: float

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.tail)

    @property
    def is_linear(self) -> bool:
        """Whether every cost is linear: the classical minimum-cost flow."""
        return not self.quadratic.any()

    def cost(self, flow: Array) -> float:
        """Cost of a flow, shape (n_arcs,).

        Parameters
        ----------
        flow : array of shape (n_arcs,)
        """
        return float(flow @ (0.5 * self.quadratic * flow + self.linear))

    def excess(self, flow: Array) -> Array:
        """What leaves each node minus what comes in, shape (n_nodes,); zero when conserved.

        Parameters
        ----------
        flow : array of shape (n_arcs,)
        """
        n = self.n_nodes
        leaves, enters = np.bincount(self.tail, flow, n), np.bincount(self.head, flow, n)
        return np.asarray(leaves - enters, dtype=float)

    def solve(self) -> FlowSolution:
        """The least cost by linear programming (HiGHS); only for linear costs."""
        if not self.is_linear:
            raise ValueError(
                "solve needs linear costs; got quadratic ones. Use an absolute or hinge loss "
                "without l2, or nefele.solve and `flow_of`."
            )
        arcs = np.arange(self.n_arcs)
        ones = np.ones(self.n_arcs)
        shape = (self.n_nodes, self.n_arcs)
        balance = sparse.coo_array((ones, (self.tail, arcs)), shape=shape)
        balance = (balance - sparse.coo_array((ones, (self.head, arcs)), shape=shape)).tocsr()
        best = linprog(
            self.linear,
            A_eq=balance[:-1],
            b_eq=np.zeros(self.n_nodes - 1),
            bounds=np.stack([self.lower, self.upper], axis=1),
            method="highs",
        )
        if best.status != 0:
            raise ValueError(f"The linear programme has no solution: {best.message}")
        w = best.eqlin.marginals[:, None]
        return FlowSolution(best.x, float(best.fun), self.constant - float(best.fun), w)

    def flow_of(self, result: Result) -> Array:
        """The flow that belongs to a result, shape (n_arcs,); at an optimum its cost is the least.

        Edges carry u. An arc to the ground with a quadratic cost carries what its marginal cost,
        equal to the node's parameter, says; what is left of a node's flow goes over its arcs of
        linear cost, cheapest first. The result must be one of the problem the network came from.

        Parameters
        ----------
        result : Result
        """
        self._check_result(result)
        u, w = result.u[:, 0], result.w[:, 0]
        flow = np.concatenate([u, np.zeros(self.n_arcs - len(u))])
        bent = self.quadratic > 0
        price = (w[self.tail[bent]] - self.linear[bent]) / self.quadratic[bent]
        flow[bent] = np.clip(price, self.lower[bent], self.upper[bent])
        straight = np.flatnonzero(~bent[len(u) :]) + len(u)
        flow[straight] = self.lower[straight]
        left = -self.excess(flow)
        for arc in straight[np.argsort(self.linear[straight], kind="stable")]:
            node = self.tail[arc]
            step = min(max(left[node], 0.0), self.upper[arc] - flow[arc])
            flow[arc] += step
            left[node] -= step
        return flow

    def _check_result(self, result: Any) -> None:
        if not isinstance(result, Result):
            raise ValueError(
                f"result must be a Result; got {type_name(result)}. Use nefele.solve(problem)."
            )
        other = min_cost_flow(result.problem)
        names = ("tail", "head", "lower", "upper", "linear", "quadratic")
        if not all(np.array_equal(getattr(self, k), getattr(other, k)) for k in names):
            raise ValueError(
                "result must belong to the problem of this network; got one with other edges, "
                "data, loss or lam. Use min_cost_flow(result.problem).flow_of(result)."
            )


@dataclass(frozen=True, eq=False)
class FlowSolution:
    """A flow of least cost.

    Attributes
    ----------
    flow : array of shape (n_arcs,)
    cost : float
    optimum : float
        The optimum of the problem the network came from.
    w : array of shape (n_nodes, 1)
        Potentials relative to the ground: parameters that solve the problem.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import min_cost_flow
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> network = min_cost_flow(Problem(Graph.from_edges([(0, 1)]), data, "absolute", lam=0.25))
    >>> (network.solve().w + 1).round(6).tolist()
    [[1.0], [5.0]]
    """

    flow: Array = field(repr=False)
    cost: float
    optimum: float
    w: Array = field(repr=False)


def min_cost_flow(problem: Problem) -> FlowNetwork:
    """The dual of a problem with one parameter per node as a minimum-cost flow.

    A row c f(x w, y) has the conjugate c f*(s / (c x)): for the squared loss s^2 / (4 c x^2) +
    (y/x) s, for the absolute loss (y/x) s with |s| <= c |x|. A ridge term l2 w^2 costs
    s^2 / (4 l2), an l1 term is a free arc of capacity l1.

    Parameters
    ----------
    problem : Problem
        With d = 1, a norm penalty, and squared, absolute, hinge or Huber losses.

    Returns
    -------
    FlowNetwork

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import min_cost_flow
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, "absolute", lam=0.25)
    >>> network = min_cost_flow(problem)
    >>> network.n_arcs, network.is_linear, network.solve().optimum
    (3, True, 1.0)
    """
    check_problem(problem)
    graph, penalty = problem.graph, problem.penalty
    if problem.d != 1:
        raise ValueError(f"min_cost_flow needs one parameter per node (d = 1); got d={problem.d}.")
    if not penalty.is_norm:
        raise ValueError(f"min_cost_flow needs a norm penalty; got {penalty!r}.")
    reach = problem.scale * float(penalty.value(np.ones((1, 1)))[0])
    zero = np.zeros(graph.n_edges)
    # u_e counts with plus at the edge's head in D^T u: it leaves the head for the tail.
    edges = (graph.head, graph.tail, -reach, reach, zero, zero)
    rows, constant = _row_arcs(problem)
    arcs = [np.concatenate(parts) for parts in zip(edges, *rows, strict=True)]
    tail, head, low, high, linear, quadratic = arcs
    return FlowNetwork(graph.n_nodes + 1, tail, head, low, high, linear, quadratic, constant)


def _row_arcs(problem: Problem) -> tuple[list[Any], float]:
    """Arcs from the nodes to the ground, and the cost of rows whose feature is zero."""
    bound, ground = problem.loss, problem.graph.n_nodes
    if isinstance(bound, BoundZero):
        return [], 0.0
    if not isinstance(bound, BoundPointwise):
        raise ValueError(f"min_cost_flow needs one kind of loss over rows; got {bound!r}.")
    loss, data = bound.loss, bound.data
    low, high, bend = _conjugate_shape(loss, data.y)
    seen = (data.X[:, 0] != 0) & (data.row_weight > 0)
    blind = ~seen & (data.row_weight > 0)
    constant = float(data.row_weight[blind] @ loss.f(np.zeros(blind.sum()), data.y[blind]))
    x, y, c = data.X[seen, 0], data.y[seen], data.row_weight[seen]
    ends = np.sort(np.stack([c * x * low[seen], c * x * high[seen]]), axis=0)
    node = data.row_node[seen]
    rows = (node, np.full(len(node), ground), *ends, y / x, bend / (c * x * x))
    arcs = [rows]
    for strength, is_ridge in ((bound.ridge[:, 0], True), (bound.lasso[:, 0], False)):
        nodes = np.flatnonzero(strength > 0)
        k = strength[nodes]
        reach = np.full(len(nodes), np.inf) if is_ridge else k
        bent = 1 / (2 * k) if is_ridge else np.zeros(len(nodes))
        to = np.full(len(nodes), ground)
        arcs.append((nodes, to, -reach, reach, np.zeros(len(nodes)), bent))
    return arcs, constant


def _conjugate_shape(loss: Any, y: Array) -> tuple[Array, Array, float]:
    """Domain [low, high] and second derivative of f*(a) = bend a^2 / 2 + y a."""
    full = np.full(len(y), np.inf)
    if type(loss) is Squared:
        return -full, full, 0.5
    if type(loss) is HuberLoss:
        return np.full(len(y), -loss.delta), np.full(len(y), loss.delta), 1.0
    if type(loss) in (Absolute, Quantile, Hinge):
        low, high = loss.box(y)
        return low, high, 0.0
    raise ValueError(
        "min_cost_flow needs a squared, absolute, quantile, hinge or Huber loss; got "
        f"{type(loss).__name__}: its conjugate is not quadratic."
    )
