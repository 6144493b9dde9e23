"""Flows of least congestion: min_u max_e ||u_e||_dual / A_e subject to D^T u = demand.

The dual of this problem is a cut: max_x <demand, x> / sum_e A_e phi((D x)_e), so that any x
proves a lower bound and any flow an upper one.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from nefele._checks import Array
from nefele.correction import laplacian_direct
from nefele.graph import Graph
from nefele.penalties import Penalty
from nefele.theory._inputs import norm_name
from nefele.theory.cone_flow import cone_flow

_REPAIRS = 3


def congestion(graph: Graph, penalty: Penalty, flow: Array) -> Array:
    """||u_e||_dual / A_e, shape (n_edges,)."""
    return penalty.dual_norm(flow) / graph.weight


def cut_bound(graph: Graph, penalty: Penalty, demand: Array, x: Array) -> float:
    """<demand, x> / sum_e A_e phi((D x)_e): no flow is less congested."""
    total = float(graph.weight @ penalty.value(graph.diff(x)))
    return float((demand * x).sum()) / total if total > 0 else 0.0


def least_congested_flow(graph: Graph, penalty: Penalty, demand: Array) -> tuple[Array, Array]:
    """The flow and the potentials that prove it, over a connected graph.

    Parameters
    ----------
    graph : Graph
        Connected.
    penalty : Penalty
        A norm. l1, l2, linf and every norm at d = 1 are solved; others get the electrical flow.
    demand : array of shape (n_nodes, d)
        Sums to zero over the nodes.

    Returns
    -------
    flow, potential : arrays of shape (n_edges, d) and (n_nodes, d)
    """
    size = float(np.abs(demand).max())
    unit = float(graph.weight.max())
    graph = Graph(graph.ids, graph.head, graph.tail, graph.weight / unit)
    demand = demand / size
    x = laplacian_direct(graph, graph.weight[:, None], demand)
    flow = _conserved(graph, graph.weight[:, None] * graph.diff(x), demand)
    if graph.n_edges == graph.n_nodes - 1:
        return size * flow, _worst_cut(graph, penalty, flow)
    name = norm_name(penalty, demand.shape[1])
    if name == "l1":
        found = _entrywise(graph, demand)
    elif name == "linf":
        found = _programme(graph, demand)
    elif name == "l2":
        found = cone_flow(graph, demand, flow)
    else:
        found = None
    flows, potentials = [flow], [x]
    if found is not None:
        flows.append(_conserved(graph, found[0], demand))
        potentials.append(found[1])
    best = min(flows, key=lambda u: float(congestion(graph, penalty, u).max()))
    return size * best, max(potentials, key=lambda x: cut_bound(graph, penalty, demand, x))


def _conserved(graph: Graph, flow: Array, demand: Array) -> Array:
    """The flow with its rounding errors in D^T u = demand spread over the edges."""
    for _ in range(_REPAIRS):
        rest = demand - graph.div(flow)
        if np.abs(rest).max() <= 1e-15:
            break
        x = laplacian_direct(graph, graph.weight[:, None], rest - rest.mean(axis=0))
        flow = flow + graph.weight[:, None] * graph.diff(x)
    return flow


def _worst_cut(graph: Graph, penalty: Penalty, flow: Array) -> Array:
    """On a tree: the indicator of the subtree behind the fullest edge, along its flow."""
    e = int(np.argmax(congestion(graph, penalty, flow)))
    rest = np.arange(graph.n_edges) != e
    cut = Graph(graph.ids, graph.head[rest], graph.tail[rest])
    side = cut.components == cut.components[graph.head[e]]
    x: Array = np.where(side[:, None], _aligned(penalty, flow[e]), 0.0)
    return x


def _aligned(penalty: Penalty, u: Array) -> Array:
    """A direction v with <u, v> = ||u||_dual phi(v), for the norms that are known."""
    name = norm_name(penalty, len(u))
    if name == "linf":
        return np.sign(u)
    if name == "l1":
        return np.where(np.arange(len(u)) == np.argmax(np.abs(u)), np.sign(u), 0.0)
    return u


def _entrywise(graph: Graph, demand: Array) -> tuple[Array, Array] | None:
    """Dual norm linf: a linear programme for each entry, of which the worst one counts."""
    flow, x = np.zeros((graph.n_edges, demand.shape[1])), np.zeros_like(demand)
    worst = -1.0
    for j in range(demand.shape[1]):
        if np.abs(demand[:, j]).max() <= 1e-15:
            continue
        found = _programme(graph, demand[:, j : j + 1])
        if found is None:
            return None
        flow[:, j] = found[0][:, 0]
        top = float((np.abs(flow[:, j]) / graph.weight).max())
        if top > worst:
            worst, x[:] = top, 0.0
            x[:, j] = found[1][:, 0]
    return flow, x


def _programme(graph: Graph, demand: Array) -> tuple[Array, Array] | None:
    """Dual norm l1: least t with D^T A (p - q) = demand, sum_j (p + q)_ej <= t, by HiGHS."""
    n, m, d = graph.n_nodes, graph.n_edges, demand.shape[1]
    size = float(np.abs(demand).max())
    balance = (graph.incidence_t * graph.weight)[1:]  # node 0 follows from the others
    eye = sparse.eye_array(d)
    moves = sparse.kron(balance, eye)
    total = sparse.kron(sparse.eye_array(m), np.ones((1, d)))
    zero = sparse.csr_array(((n - 1) * d, 1))
    best = linprog(
        np.r_[np.zeros(2 * m * d), 1.0],
        A_ub=sparse.hstack([total, total, -np.ones((m, 1))], format="csr"),
        b_ub=np.zeros(m),
        A_eq=sparse.hstack([moves, -moves, zero], format="csr"),
        b_eq=demand[1:].ravel() / size,
        bounds=(0, None),
        method="highs",
    )
    if best.status != 0:
        return None
    split = best.x[:-1].reshape(2, m, d)
    flow = size * graph.weight[:, None] * (split[0] - split[1])
    return flow, np.vstack([np.zeros((1, d)), best.eqlin.marginals.reshape(n - 1, d)])
