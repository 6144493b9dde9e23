"""The linear system that makes a dual point feasible; see `nefele.certificate`.

    (M + D^T C D) x = s + D^T u

M_i is the curvature of the loss duals and C_e the room left to the flow. Where w is already the
optimum of a reduced problem only the flow need change (M = 0): a weighted graph Laplacian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.base import DualPoint
from nefele.penalties import Penalty, Quadratic

if TYPE_CHECKING:
    from nefele.problem import Problem

_DENSE = 600  # unknowns up to which a stagnating system is solved densely
_DIRECT = 300  # nodes up to which a Laplacian is factorised
_MOST_STEPS = 500
_STIFF = 1e8  # most give of an edge relative to the losses' curvature: keeps the system solvable
_COMPILED = 20_000  # numbers in x from which compiled products pay off


class LossAndFlow:
    """Corrections shared by the losses and the flow, by block-Jacobi conjugate gradients."""

    def __init__(self, problem: Problem, w: Array) -> None:
        self.problem = problem
        self.unit, self.least = _typical(w), 0.02
        self._inverse: Array | None = None

    def solve(self, dual: DualPoint, u: Array, rtol: float) -> tuple[Array, Array]:
        """The correction x of the losses, shape (n_nodes, d), and the change C D x of the flow."""
        problem, graph = self.problem, self.problem.graph
        right = dual.flow() + graph.div(u)
        metric = dual.metric()
        if not problem.coupled:
            return _blockwise(metric, right), 0 * u
        penalty = problem.penalty
        most = _STIFF * float(np.einsum("ijj->ij", metric).max(initial=0.0)) or np.inf
        give = np.minimum(penalty.give(u, problem.scale, self.unit, self.least), most)
        if self._inverse is None:
            self._inverse = block_inverse(metric, graph, give)
        system = BlockLaplacian(graph, give, metric, penalty)
        x, solved = conjugate_gradients(system, Blocks(self._inverse), right, rtol)
        if not solved and right.size <= _DENSE:
            x = _dense_solve(system, right)
        return x, penalty.mix(give * graph.diff(x))


class FlowOnly:
    """Corrections by the flow inside the clusters alone: a Laplacian with the room as weights."""

    def __init__(self, problem: Problem, w: Array) -> None:
        self.problem = problem
        self.least = 1e-5

    def solve(self, dual: DualPoint, u: Array, rtol: float) -> tuple[Array, Array]:
        """No correction of the losses, and the change of the flow."""
        problem, graph = self.problem, self.problem.graph
        right = dual.flow() + graph.div(u)
        right -= _component_means(graph, right)
        give = problem.penalty.give(u, problem.scale, 1.0, self.least)
        if graph.n_nodes <= _DIRECT or graph.n_edges <= 1.05 * graph.n_nodes:
            x = laplacian_direct(graph, give, right)
        else:
            diagonal = np.maximum(_ends(graph, give), np.finfo(float).tiny)
            system = BlockLaplacian(graph, give)
            x, _ = conjugate_gradients(system, lambda r: r / diagonal, right, rtol)
        return np.zeros_like(x), give * graph.diff(x)


class Blocks:
    """Product with one small matrix per node."""

    def __init__(self, blocks: Array) -> None:
        self.blocks = blocks

    def __call__(self, x: Array) -> Array:
        if x.size < _COMPILED:
            return (self.blocks @ x[..., None])[..., 0]
        from nefele._kernels.laplacian import block_product

        out = np.empty_like(x)
        block_product(_unrolled(x), self.blocks, x, out)
        return out


class BlockLaplacian:
    """Product with M + D^T C D, C one weight per edge (or per entry), shape (n_edges, 1 or d)."""

    def __init__(
        self, graph: Graph, give: Array, metric: Array | None = None, penalty: Penalty | None = None
    ) -> None:
        self.graph, self.give, self.penalty = graph, give, penalty
        self.metric = None if metric is None else Blocks(metric)
        self.mixed = isinstance(penalty, Quadratic)

    def __call__(self, x: Array) -> Array:
        out = np.zeros_like(x) if self.metric is None else self.metric(x)
        if x.size < _COMPILED or self.mixed:
            flow = self.give * self.graph.diff(x)
            return out + self.graph.div(flow if self.penalty is None else self.penalty.mix(flow))
        from nefele._kernels.laplacian import add_laplacian

        add_laplacian(_unrolled(x), self.graph.head, self.graph.tail, self.give, x, out)
        return out


def _unrolled(x: Array) -> tuple[int, ...]:
    from nefele._kernels.primal_dual import MOST_UNROLLED

    return (0,) * x.shape[1] if x.shape[1] <= MOST_UNROLLED else ()


def conjugate_gradients(
    apply: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    rtol: float,
) -> tuple[Array, bool]:
    """Preconditioned conjugate gradients on arrays of any shape; whether rtol was reached."""
    x, r = np.zeros_like(right), right.copy()
    z = precondition(r)
    p, rz = z.copy(), float(np.vdot(r, z))
    goal = rtol * float(np.linalg.norm(right))
    for _ in range(_MOST_STEPS):
        if float(np.linalg.norm(r)) <= goal or not rz > 0:
            return x, True
        Ap = apply(p)
        bend = float(np.vdot(p, Ap))
        if not bend > 0:
            return x, False
        alpha = rz / bend
        x += alpha * p
        r -= alpha * Ap
        z = precondition(r)
        rz, before = float(np.vdot(r, z)), rz
        p *= rz / before
        p += z
    return x, False


def block_inverse(metric: Array, graph: Graph, give: Array) -> Array:
    """Inverse diagonal blocks of M + D^T C D, a little regularised, shape (n_nodes, d, d)."""
    d = metric.shape[1]
    ends = np.broadcast_to(_ends(graph, give), (len(metric), d))
    blocks = metric + ends[:, :, None] * np.eye(d)
    size = np.einsum("ijj->i", blocks)
    floor = np.where(size > 0, 1e-14 * size, 1.0)
    inverse = np.linalg.inv(blocks + floor[:, None, None] * np.eye(d))
    return np.asarray(inverse, dtype=float)


def _typical(w: Array) -> float:
    """The spread of the parameters, or their size when all are equal."""
    spread = float(np.sqrt(np.mean((w - w.mean(axis=0)) ** 2)))
    return spread or float(np.abs(w).max()) or 1.0


def _ends(graph: Graph, give: Array) -> Array:
    """Sum of C_e over the edges at each node, shape (n_nodes, 1 or d)."""
    columns = [
        np.bincount(graph.head, column, graph.n_nodes)
        + np.bincount(graph.tail, column, graph.n_nodes)
        for column in give.T
    ]
    return np.stack(columns, axis=1)


def _component_means(graph: Graph, values: Array) -> Array:
    """Mean over each node's component: the part that no flow can carry away."""
    parts = graph.components
    count = np.bincount(parts)
    return np.stack([(np.bincount(parts, v) / count)[parts] for v in values.T], axis=1)


def laplacian_direct(graph: Graph, give: Array, right: Array) -> Array:
    """Solve D^T C D x = right, one node of each component held at zero."""
    _, grounded = np.unique(graph.components, return_index=True)
    keep = np.ones(graph.n_nodes, dtype=bool)
    keep[grounded] = False
    x = np.zeros_like(right)
    if not keep.any():
        return x
    place = np.cumsum(keep) - 1
    inner = keep[graph.head] & keep[graph.tail]
    head, tail = place[graph.head[inner]], place[graph.tail[inner]]
    k = int(keep.sum())
    rows = np.concatenate([np.arange(k), head, tail])
    columns = np.concatenate([np.arange(k), tail, head])
    diagonal = _ends(graph, give)[keep]
    for j, weights in enumerate(give.T):
        values = np.concatenate([diagonal[:, j], -weights[inner], -weights[inner]])
        try:
            factor = splu(sparse.csc_array((values, (rows, columns)), shape=(k, k)))
        except RuntimeError:  # singular to working accuracy: no correction
            continue
        part = slice(None) if give.shape[1] == 1 else j
        x[keep, part] = factor.solve(right[keep, part])
    return x


def _blockwise(metric: Array, right: Array) -> Array:
    """Least-norm solutions of M_i x_i = right_i; zero where a number has overflowed."""
    finite = np.asarray(np.isfinite(metric).all(axis=(1, 2)) & np.isfinite(right).all(axis=1))
    safe = np.where(finite[:, None, None], metric, 0.0)
    x = np.linalg.pinv(safe, hermitian=True) @ np.where(finite[:, None], right, 0.0)[..., None]
    return np.asarray(x[..., 0], dtype=float)


def _dense_solve(apply: Callable[[Array], Array], right: Array) -> Array:
    unit = np.eye(right.size).reshape(right.size, *right.shape)
    matrix = np.stack([apply(column).ravel() for column in unit], axis=1)
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.zeros_like(right)
    x = np.linalg.lstsq(matrix, right.ravel(), rcond=1e-15)[0]
    return np.asarray(x, dtype=float).reshape(right.shape)
