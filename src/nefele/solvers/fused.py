"""The compiled primal-dual iteration: squared losses with the common penalties.

Nodes are renumbered for locality (reverse Cuthill-McKee) when their order is poor; callers see
graph order throughout.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.quadratic import BoundQuadratic
from nefele.losses.squared import BoundSquared
from nefele.penalties import Huber, L1Norm, L2Norm, SquaredL2
from nefele.problem import Problem

_LEAST_WORK = 2000  # numbers in u from which compiled loops pay off
_LARGE = 20_000  # nodes from which their order matters
_KINDS = {L2Norm: "L2", L1Norm: "L1", SquaredL2: "SQUARED", Huber: "HUBER"}


class Layout:
    """Edges by owner, in a node order with good locality."""

    def __init__(self, graph: Graph) -> None:
        self.order = _good_order(graph)
        head, tail = graph.head, graph.tail
        self.edges: NDArray[np.int64] | None = None
        self.sign: Array | None = None
        if self.order is not None:
            rank = np.empty(graph.n_nodes, dtype=np.int64)
            rank[self.order] = np.arange(graph.n_nodes)
            head, tail = rank[head], rank[tail]
            sign = np.where(head < tail, 1.0, -1.0)
            head, tail = np.minimum(head, tail), np.maximum(head, tail)
            self.edges = np.lexsort((tail, head))
            head, tail, self.sign = head[self.edges], tail[self.edges], sign[self.edges]
        self.ptr = np.searchsorted(head, np.arange(graph.n_nodes + 1))
        self.tail = tail.astype(np.int32)

    def nodes_in(self, x: Array) -> Array:
        """Node values in the order of the layout (a copy)."""
        return x.copy() if self.order is None else x[self.order]

    def nodes_out(self, x: Array) -> Array:
        """Node values back in graph order (a copy)."""
        if self.order is None:
            return x.copy()
        out = np.empty_like(x)
        out[self.order] = x
        return out

    def edges_in(self, x: Array) -> Array:
        """Values that do not depend on an edge's orientation, in the order of the layout."""
        return x.copy() if self.edges is None else x[self.edges]

    def flow_in(self, u: Array) -> Array:
        """A flow in the order and orientation of the layout (a copy)."""
        return u.copy() if self.edges is None else u[self.edges] * self.sign[:, None]  # type: ignore[index]

    def flow_out(self, u: Array) -> Array:
        """A flow back in graph order (a copy)."""
        if self.edges is None:
            return u.copy()
        out = np.empty_like(u)
        out[self.edges] = u * self.sign[:, None]  # type: ignore[index]
        return out


def _good_order(graph: Graph) -> NDArray[np.int64] | None:
    """A node order with short edges, or None when the present one is good enough."""
    if graph.n_nodes < _LARGE:
        return None
    order = np.asarray(reverse_cuthill_mckee(graph.adjacency, symmetric_mode=True), dtype=np.int64)
    rank = np.empty(graph.n_nodes, dtype=np.int64)
    rank[order] = np.arange(graph.n_nodes)
    now = np.abs(graph.head - graph.tail).mean()
    then = np.abs(rank[graph.head] - rank[graph.tail]).mean()
    return order if then < 0.5 * now else None


class Fused:
    """State and steps of the compiled iteration."""

    def __init__(self, problem: Problem, w: Array, u: Array, flow: Array) -> None:
        from nefele._kernels import primal_dual as kernels

        assert isinstance(problem.loss, BoundSquared | BoundQuadratic)
        self.problem, self.loss, self.kernels = problem, problem.loss, kernels
        self.layout = Layout(problem.graph)
        self.kind = getattr(kernels, _KINDS[type(problem.penalty)])
        self.delta = float(getattr(problem.penalty, "delta", 0.0))
        self.dims = (0,) * problem.d if problem.d <= kernels.MOST_UNROLLED else ()
        self.w, self.u = self.layout.nodes_in(w), self.layout.flow_in(u)
        self.q = self.layout.nodes_in(problem.graph.div(u))
        self.wbar = np.empty_like(self.w)
        self.scale, self.flow = self.layout.edges_in(problem.scale), self.layout.edges_in(flow)

    @staticmethod
    def fits(problem: Problem) -> bool:
        """Whether loss and penalty have compiled steps and the problem is worth it."""
        loss = problem.loss
        return (
            isinstance(loss, BoundSquared | BoundQuadratic)
            and loss.smooth
            and type(problem.penalty) in _KINDS
            and problem.graph.n_edges * problem.d >= _LEAST_WORK
        )

    def set_steps(self, gamma: float, tau: Array) -> None:
        """Precompute the affine proxes w+ = A_i v + c_i for these steps."""
        self.gamma, self.tau = gamma, self.layout.nodes_in(tau)
        A, c = self.loss.affine_prox(tau)
        if self.layout.order is not None:
            A, c = A[self.layout.order], c[self.layout.order]
        self.A, self.c = A, c

    def set_w(self, w: Array) -> None:
        """Go on from other parameters."""
        self.w = self.layout.nodes_in(w)

    def step(self, relax: float) -> None:
        """One over-relaxed iteration."""
        self._iterate(self.w, self.u, self.q, relax)

    def _iterate(self, w: Array, u: Array, q: Array, relax: float) -> None:
        k: Any = self.kernels
        k.node_pass(self.dims, w, q, self.A, self.c, self.tau, self.wbar, relax)
        k.edge_pass(
            self.dims,
            u,
            q,
            self.layout.ptr,
            self.layout.tail,
            self.scale,
            self.flow,
            self.wbar,
            self.gamma,
            relax,
            self.kind,
            self.delta,
        )

    def unrelaxed(self, last: float | None = None) -> tuple[Array, Array]:
        """The next plain iterate, in graph order: its flow is inside the balls.

        With `last`, the relaxation used so far, w is instead that of the iteration just done:
        w = w- + last (w+ - w-) and wbar = 2 w+ - w- give w+.
        """
        done = None if last is None else (self.w + (1 - last) * self.wbar) / (2 - last)
        w, u, q = self.w.copy(), self.u.copy(), self.q.copy()
        self._iterate(w, u, q, 1.0)
        return self.layout.nodes_out(w if done is None else done), self.layout.flow_out(u)
