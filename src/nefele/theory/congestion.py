"""Flows of least congestion: min_u max_e ||u_e||_dual / A_e subject to D^T u = demand.

The dual of this problem is a cut: max_x <demand, x> / sum_e A_e phi((D x)_e), so that any x
proves a lower bound and any flow an upper one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from nefele._checks import Array
from nefele._systems.grounded import laplacian_direct
from nefele.graph import Graph
from nefele.penalties import Lp, Penalty
from nefele.theory._inputs import norm_name
from nefele.theory.cone_flow import cone_flow
from nefele.theory.tree_basis import TreeBasis

_FAINT = (0.0, 1e-12, 1e-10, 1e-8)  # shares of the dual below which an edge may be left out
_FEW = 200  # nodes up to which every level of the potentials is tried as a cut
_LP_TOLERANCE = 1e-10


def congestion(graph: Graph, penalty: Penalty, flow: Array) -> Array:
    """||u_e||_dual / A_e, shape (n_edges,)."""
    return penalty.dual_norm(flow) / graph.weight


def cut_bound(graph: Graph, penalty: Penalty, demand: Array, x: Array) -> float:
    """<demand, x> / sum_e A_e phi((D x)_e): no flow is less congested."""
    total = float(graph.weight @ penalty.value(graph.diff(x)))
    return float((demand * x).sum()) / total if total > 0 else 0.0


def least_congested_flow(graph: Graph, penalty: Penalty, demand: Array) -> tuple[Array, Array]:
    """The flow and the potentials that prove it, over a connected graph.

    The penalty is a norm: l1, l2, linf and every norm at d = 1 are solved; others get the
    electrical flow. The demand, shape (n_nodes, d), sums to zero over the nodes.
    """
    size = float(np.abs(demand).max())
    graph = Graph(graph.ids, graph.head, graph.tail, graph.weight / float(graph.weight.max()))
    demand = demand / size
    basis = TreeBasis.of(graph)
    flow = basis.flow(demand)
    if graph.n_edges == graph.n_nodes - 1:
        return size * flow, _worst_cut(graph, penalty, flow)
    x = laplacian_direct(graph, graph.weight[:, None], demand)
    flows, potentials = [flow, basis.flow(demand, graph.weight[:, None] * graph.diff(x))], [x]
    C, right, potential = _equations(basis, demand)
    found = _solved(norm_name(penalty, demand.shape[1]), C, right)
    if found is not None:
        flows.append(basis.flow(demand, graph.weight[:, None] * found[0]))
        potentials += _candidates(found[1], potential)
    best = min(flows, key=lambda u: float(congestion(graph, penalty, u).max()))
    return size * best, max(potentials, key=lambda x: cut_bound(graph, penalty, demand, x))


def _equations(
    basis: TreeBasis, demand: Array
) -> tuple[sparse.csr_array, Array, Callable[[Array], Array]]:
    """D^T u = demand as C (u / A) = right, and the potentials that belong to multipliers of it."""
    if not basis.by_nodes:
        return basis.matrix, basis.right(demand), basis.potential
    graph = basis.graph
    degree = graph.weighted_degree[1:]  # node 0 follows from the others
    C = sparse.diags_array(1 / degree) @ (graph.incidence_t * graph.weight).tocsr()[1:]

    def potential(y: Array) -> Array:
        return np.vstack([np.zeros((1, y.shape[1])), y / degree[:, None]])

    return sparse.csr_array(C), demand[1:] / degree[:, None], potential


def _solved(name: str | None, C: sparse.csr_array, right: Array) -> tuple[Array, Array] | None:
    """Flow in units of the weights and multipliers of its equations, for the norms known."""
    if name == "l1":
        return _entrywise(C, right)
    if name == "linf":
        return _programme(C, right)
    return cone_flow(C, right) if name == "l2" else None


def _candidates(y: Array, potential: Callable[[Array], Array]) -> list[Array]:
    """Potentials of the multipliers, and simpler ones that rounding errors cannot blur.

    Over a heavy edge even the last digit of a potential counts. So multipliers that hardly matter
    are left out, which makes the potentials of both ends bit-equal; and when a single entry counts
    (l1, d = 1), the best cut is among the levels of the potentials.
    """
    size = np.abs(y).max(axis=1)
    out = [potential(np.where((size > f * size.max())[:, None], y, 0.0)) for f in _FAINT]
    columns = np.flatnonzero(np.abs(y).any(axis=0))
    if len(columns) == 1 and len(y) < _FEW:
        x = out[0]
        out += [np.where(x > level, 1.0, 0.0) for level in np.unique(x)[:-1]]
    return out


def _worst_cut(graph: Graph, penalty: Penalty, flow: Array) -> Array:
    """On a tree: the indicator of the subtree behind the fullest edge, along its flow."""
    e = int(np.argmax(congestion(graph, penalty, flow)))
    rest = np.arange(graph.n_edges) != e
    cut = Graph(graph.ids, graph.head[rest], graph.tail[rest])
    side = cut.components == cut.components[graph.head[e]]
    x: Array = np.where(side[:, None], _aligned(penalty, flow[e]), 0.0)
    return x


def _aligned(penalty: Penalty, u: Array) -> Array:
    """A direction v with <u, v> = ||u||_dual phi(v), for the norms of this package."""
    name = norm_name(penalty, len(u))
    if name == "linf":
        return np.sign(u)
    if name == "l1":
        return np.where(np.arange(len(u)) == np.argmax(np.abs(u)), np.sign(u), 0.0)
    if name is None and isinstance(penalty, Lp):
        # equality in Hoelder's inequality, |v_j|^p in proportion to |u_j|^q with 1/p + 1/q = 1
        return np.sign(u) * (np.abs(u) / np.abs(u).max()) ** (1 / (float(penalty.p) - 1))
    return u


def _entrywise(C: sparse.csr_array, right: Array) -> tuple[Array, Array] | None:
    """Dual norm linf: a linear programme for each entry, of which the worst one counts."""
    flow, y = np.zeros((C.shape[1], right.shape[1])), np.zeros_like(right)
    worst = -1.0
    for j in range(right.shape[1]):
        if not right[:, j].any():
            continue
        found = _programme(C, right[:, j : j + 1])
        if found is None:
            return None
        flow[:, j] = found[0][:, 0]
        top = float(np.abs(flow[:, j]).max())
        if top > worst:
            worst, y[:] = top, 0.0
            y[:, j] = found[1][:, 0]
    return flow, y


def _programme(C: sparse.csr_array, right: Array) -> tuple[Array, Array] | None:
    """Dual norm l1: least t with C (p - q) = right, sum_j (p + q)_ej <= t, by HiGHS."""
    m, d = C.shape[1], right.shape[1]
    size = float(np.abs(right).max())
    moves = sparse.kron(C, sparse.eye_array(d))
    total = sparse.kron(sparse.eye_array(m), np.ones((1, d)))
    zero = sparse.csr_array((moves.shape[0], 1))
    best = linprog(
        np.r_[np.zeros(2 * m * d), 1.0],
        A_ub=sparse.hstack([total, total, -np.ones((m, 1))], format="csr"),
        b_ub=np.zeros(m),
        A_eq=sparse.hstack([moves, -moves, zero], format="csr"),
        b_eq=right.ravel() / size,
        bounds=(0, None),
        method="highs",
        options=dict.fromkeys(
            ("primal_feasibility_tolerance", "dual_feasibility_tolerance"), _LP_TOLERANCE
        ),
    )
    if best.status != 0:
        return None
    split = best.x[:-1].reshape(2, m, d)
    return size * (split[0] - split[1]), best.eqlin.marginals.reshape(right.shape)
