"""Least congested vector flows in the Euclidean norm, by a barrier method.

min t subject to D^T u = demand, ||u_e|| <= t A_e is a second-order cone programme. Newton steps on
s t - sum_e log(t^2 A_e^2 - ||u_e||^2) follow its central path as s grows; the multipliers of the
flow's equation are potentials that prove a lower bound (Boyd and Vandenberghe, Ch. 11).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.graph import Graph

_DENSE = 800  # unknowns up to which the Newton system is factorised as a dense matrix
_GROWTH = 20.0
_MOST_STEPS = 150
_CENTRED = 0.1  # Newton decrement at which s grows
_GOAL = 1e-10  # relative distance of the bounds
_AMPLE = 3.0  # room for what all nodes send out, in units of it
_REFINEMENTS = 2  # of each Newton system


def cone_flow(graph: Graph, demand: Array, flow: Array) -> tuple[Array, Array]:
    """The flow with the least max_e ||u_e|| / A_e, and potentials that prove it.

    Parameters
    ----------
    graph : Graph
        Connected.
    demand : array of shape (n_nodes, d)
    flow : array of shape (n_edges, d)
        Any flow with D^T u = demand.

    Returns
    -------
    flow, potential : arrays of shape (n_edges, d) and (n_nodes, d)
        The best found; their bounds tell how good they are.
    """
    narrow, wide = _narrowed(graph, demand)
    best_flow, x = _central_path(narrow, demand, flow)
    groups = Graph(graph.ids, graph.head[wide], graph.tail[wide]).components
    mean = np.stack([np.bincount(groups, column) for column in x.T], axis=1)
    level = (mean / np.bincount(groups)[:, None])[groups]
    return best_flow, max(x, level, key=lambda z: _cut(graph, demand, z))


def _narrowed(graph: Graph, demand: Array) -> tuple[Graph, NDArray[np.bool_]]:
    """The graph without capacity that no flow can use, and the edges that had such capacity.

    Without cycles the flow of an edge is at most what all nodes send out, entry by entry, and
    dropping cycles only makes flows smaller. So an edge that carries this much at a lower bound
    of the optimum may be cut down to it; weights of many orders of magnitude become alike.
    """
    sent = float(np.sqrt((np.maximum(demand, 0.0).sum(axis=0) ** 2).sum()))
    least = float((np.sqrt((demand**2).sum(axis=1)) / graph.weighted_degree).max())
    most = _AMPLE * sent / least
    wide = graph.weight > most
    return Graph(graph.ids, graph.head, graph.tail, np.minimum(graph.weight, most)), wide


def _central_path(graph: Graph, demand: Array, flow: Array) -> tuple[Array, Array]:
    top = _load(graph, flow)
    best_flow, best_x, lower = flow, np.zeros_like(demand), 0.0
    u, t = flow, 1.5 * top
    s = 2 * graph.n_edges / t
    for _ in range(_MOST_STEPS):
        try:
            du, dt, x, decrement = _newton_step(graph, u, t, s)
        except (LinAlgError, RuntimeError):
            break  # as far as floating point goes
        if not np.isfinite(decrement):
            break
        new = _cut(graph, demand, x)
        if new > lower:
            best_x, lower = x, new
        moved = _line_search(graph, u, t, s, du, dt)
        if moved is None and decrement > 1.0:
            break
        u, t = (u, t) if moved is None else moved
        if _load(graph, u) < top:
            best_flow, top = u, _load(graph, u)
        if top - lower <= _GOAL * top:
            break
        if moved is None or decrement < _CENTRED:
            s *= _GROWTH
    return best_flow, best_x


def _load(graph: Graph, u: Array) -> float:
    return float((np.sqrt((u * u).sum(axis=1)) / graph.weight).max())


def _cut(graph: Graph, demand: Array, x: Array) -> float:
    top = np.abs(x).max()
    if not 0 < top < np.inf:
        return 0.0
    x = x / top  # potentials of an ill-conditioned step can be too large to square
    total = float(graph.weight @ np.sqrt((graph.diff(x) ** 2).sum(axis=1)))
    return float((demand * x).sum()) / total if total > 0 else 0.0


def _room(graph: Graph, u: Array, t: float) -> Array:
    """t^2 A_e^2 - ||u_e||^2, as a product so that small values keep their digits."""
    size = np.sqrt((u * u).sum(axis=1))
    radius = t * graph.weight
    return np.asarray((radius - size) * (radius + size))


def _newton_step(graph: Graph, u: Array, t: float, s: float) -> tuple[Array, float, Array, float]:
    """Steps of u and t, the multipliers of D^T u = demand, and the decrement.

    With g, h, b the gradient in u, the mixed and the second derivative in t, and K the inverse
    Hessian in u, block by block: du = K (D x - g - h dt), where D^T du = 0 fixes x.
    """
    q, square = _room(graph, u, t), graph.weight**2
    slope = 2 * u / q[:, None]
    mixed = (-4 * t * square / q**2)[:, None] * u
    slope_t = s - float((2 * t * square / q).sum())
    bend_t = float((square * (4 * t * t * square / q - 2) / q).sum())
    outer = u[:, :, None] * u[:, None, :]
    both = t * t * square + (u * u).sum(axis=1)
    K = (q / 2)[:, None, None] * np.eye(u.shape[1]) - (q / both)[:, None, None] * outer
    solve = _laplacian_solver(graph, K)

    def conserving(force: Array) -> tuple[Array, Array]:
        """Potentials x with D^T K (D x - force) = 0, and K (D x - force)."""
        x = solve(graph.div((K @ force[..., None])[..., 0]))
        moved = (K @ (graph.diff(x) - force)[..., None])[..., 0]
        for _ in range(_REFINEMENTS):
            fix = solve(graph.div(moved))
            x, moved = x - fix, moved - (K @ graph.diff(fix)[..., None])[..., 0]
        return x, moved

    x1, u1 = conserving(slope)
    x2, u2 = conserving(mixed)
    dt = -(slope_t + float((mixed * u1).sum())) / (bend_t + float((mixed * u2).sum()))
    du = u1 + dt * u2
    fall = -float((slope * du).sum()) - slope_t * dt
    return du, dt, x1 + dt * x2, float(np.sqrt(max(fall, 0.0)))


def _laplacian_solver(graph: Graph, K: Array) -> Callable[[Array], Array]:
    """Solver of D^T K D x = right with x = 0 at node 0."""
    n, d = graph.n_nodes, K.shape[1]
    h, t = graph.head, graph.tail
    rows = np.concatenate([h, t, h, t])
    columns = np.concatenate([h, t, t, h])
    blocks = np.concatenate([K, K, -K, -K])
    at_row = np.broadcast_to(rows[:, None, None] * d + np.arange(d)[:, None], blocks.shape)
    at_column = np.broadcast_to(columns[:, None, None] * d + np.arange(d), blocks.shape)
    place = at_row.ravel(), at_column.ravel()
    matrix = sparse.coo_array((blocks.ravel(), place), shape=(n * d, n * d)).tocsc()[d:, d:]
    scale = 1 / np.sqrt(matrix.diagonal())
    matrix = sparse.diags_array(scale) @ matrix @ sparse.diags_array(scale)
    if matrix.shape[0] <= _DENSE:
        inner = partial(cho_solve, cho_factor(matrix.toarray(), lower=True))
    else:
        inner = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A").solve

    def solve(right: Array) -> Array:
        x = np.zeros((n, d))
        x.reshape(-1)[d:] = scale * inner(scale * right.reshape(-1)[d:])
        return x

    return solve


def _line_search(
    graph: Graph, u: Array, t: float, s: float, du: Array, dt: float
) -> tuple[Array, float] | None:
    """A step that stays inside the cones and lowers the barrier function; None if there is none."""

    def value(step: float) -> float:
        q = _room(graph, u + step * du, t + step * dt)
        if t + step * dt <= 0 or not (q > 0).all():
            return np.inf
        return s * step * dt - float(np.log(q / now).sum())

    now = _room(graph, u, t)
    step = 1.0
    for _ in range(40):
        if value(step) < 0:
            return u + step * du, t + step * dt
        step *= 0.5
    return None
