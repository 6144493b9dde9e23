"""The compiled primal-dual iteration: squared losses with the common penalties.

Nodes are renumbered for locality (reverse Cuthill-McKee) when their order is poor; callers see
graph order throughout.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee

from nefele._checks import Array
from nefele.certificate.posed import Posed
from nefele.graph import Graph
from nefele.losses.quadratic import BoundQuadratic
from nefele.losses.squared import BoundSquared
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, SquaredL2

LEAST_WORK = 2000  # numbers in u from which compiled loops pay off
_LEAST_PARALLEL = 1_000_000  # numbers in u from which threads pay off: 2 ms per iteration
_BLOCKS = 16  # the same for any number of threads, so that results are the same
_LEFTOVER = 0.1  # largest share of nodes whose edges wait for all blocks
_LARGE = 20_000  # nodes from which their order matters
_SHORT = 2000  # mean length of edges in nodes whose rows are still in the cache
_CHUNK = 3072  # bytes that the two passes move in turn: 8 times as many cost 20% more
_LONGEST_CHUNK = 32  # nodes
_PAUSE = 8  # serial iterations after a parallel one that was slower
_PENALTIES = (L2Norm, L1Norm, SquaredL2, HuberPenalty)


Index = NDArray[np.int64]


class Layout:
    """Edges by owner, in a node order with good locality, or in that of the graph."""

    def __init__(self, graph: Graph, order: Index | None) -> None:
        self.order = order
        self.ptr, tail = graph.ptr, graph.tail
        self.edges: Index | None = None
        self.sign: Array | None = None
        if self.order is not None:
            head, tail = graph.head, graph.tail
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
        """Node values in the order of the layout: x itself if that is the graph's."""
        return x if self.order is None else x[self.order]

    def nodes_out(self, x: Array) -> Array:
        """Node values back in graph order (a copy)."""
        if self.order is None:
            return x.copy()
        out = np.empty_like(x)
        out[self.order] = x
        return out

    def edges_in(self, x: Array) -> Array:
        """Values that do not depend on an edge's orientation, in the order of the layout."""
        return x if self.edges is None else x[self.edges]

    def flow_in(self, u: Array) -> Array:
        """A flow in the order and orientation of the layout."""
        return u if self.edges is None else u[self.edges] * self.sign[:, None]  # type: ignore[index]

    def flow_out(self, u: Array) -> Array:
        """A flow back in graph order (a copy)."""
        if self.edges is None:
            return u.copy()
        out = np.empty_like(u)
        out[self.edges] = u * self.sign[:, None]  # type: ignore[index]
        return out

    def reach(self, chunk: int) -> Index:
        """For each chunk of nodes, the node after all that edges of it or of earlier ones touch."""
        far = np.arange(1, len(self.ptr))
        some = np.diff(self.ptr) > 0
        far[some] = self.tail[self.ptr[1:][some] - 1] + 1  # tails ascend
        ends = np.minimum(np.arange(chunk, len(far) + chunk, chunk), len(far))
        return np.maximum.accumulate(far)[ends - 1]

    def blocks(self, reach: Index, chunk: int, most: int) -> tuple[Index, Index]:
        """At most so many blocks of chunks, of equal work, that threads may take separately.

        Returns the first chunk of each block (and the end), and in each the first chunk whose
        edges leave it. These must be few, and must not reach those that leave the next block.
        """
        ends = np.minimum(np.arange(1, len(reach) + 1) * chunk, len(self.ptr) - 1)
        work = self.ptr[ends] + ends
        for count in range(most, 0, -1):
            inner = np.searchsorted(work, work[-1] * np.arange(1, count) / count)
            bounds = np.concatenate([[0], inner, [len(reach)]])
            cuts = np.searchsorted(reach, ends[bounds[1:] - 1], side="right")
            few = (bounds[1:] - cuts).sum() <= _LEFTOVER * len(reach)
            if few and (reach[inner - 1] <= cuts[1:] * chunk).all():
                break
        return bounds, cuts


def good_order(graph: Graph) -> Index | None:
    """A node order with short edges, or None when the present one is good enough."""
    if graph.n_nodes < _LARGE or not graph.n_edges:
        return None
    now = (float(graph.tail.sum()) - float(graph.head.sum())) / graph.n_edges  # heads come first
    if now < _SHORT:
        return None
    order = np.asarray(reverse_cuthill_mckee(graph.adjacency, symmetric_mode=True), dtype=np.int64)
    rank = np.empty(graph.n_nodes, dtype=np.int64)
    rank[order] = np.arange(graph.n_nodes)
    then = np.abs(rank[graph.head] - rank[graph.tail]).mean()
    return order if then < 0.5 * now else None


def is_uniform(scale: Array) -> bool:
    """Whether all edges have the same lam A_e."""
    return bool((scale == scale[:1]).all())


class Turns:
    """Runs the work in several threads while that is faster than in one.

    Where other processes keep the cores busy, threads that wait for each other take 30 ms for
    what one does in 4; they are tried again after ever more turns.
    """

    def __init__(self) -> None:
        self.alone, self.wait, self.pause = np.inf, 2, _PAUSE

    def run(self, serial: Callable[[], None], parallel: Callable[[], None]) -> None:
        """Call one of the two, which do the same."""
        together = self.wait == 0
        started = time.perf_counter()
        (parallel if together else serial)()
        seconds = time.perf_counter() - started
        if not together:
            self.alone, self.wait = seconds, self.wait - 1
        elif seconds < self.alone:
            self.pause = _PAUSE
        else:
            self.wait, self.pause = self.pause, 2 * self.pause


class Fused:
    """State and steps of the compiled iteration.

    Takes over w and u: they change with it when the nodes keep their order. A part of a network
    has rows for the nodes that it sees, too; see `nefele.runtime.halves`. `uniform` says that all
    edges of the network have the same lam A_e, which takes another way through the compiled loops.
    """

    def __init__(
        self, problem: Posed, w: Array, u: Array, flow: Array, layout: Layout, uniform: bool
    ) -> None:
        from nefele._kernels import primal_dual, threads

        assert isinstance(problem.loss, BoundSquared | BoundQuadratic)
        self.loss, self.kernels, self.threads = problem.loss, primal_dual, threads
        self.layout, w = layout, problem.placed(w)
        n, d = w.shape
        self.dims = (0,) * d if d <= primal_dual.MOST_UNROLLED else None
        self.w, self.u = layout.nodes_in(w), layout.flow_in(u)
        self.q = layout.nodes_in(problem.graph.div(u))
        self.wbar, self.c = np.empty_like(w), np.empty_like(w)
        self.A = np.empty((n, d * (d + 1) // 2))
        self.scale, self.flow = problem.scale, flow
        if uniform:
            self.scale, self.flow = self.scale[:1].copy(), flow[:1].copy()
        else:
            self.scale, self.flow = layout.edges_in(self.scale), layout.edges_in(flow)
        penalty = problem.penalty
        # For one parameter the l2 norm is the l1 norm, whose update needs no square root.
        by_entry = isinstance(penalty, L1Norm) or (isinstance(penalty, L2Norm) and d == 1)
        delta = 1.0 if isinstance(penalty, SquaredL2) else float(getattr(penalty, "delta", 0.0))
        self.rule = (by_entry, not isinstance(penalty, SquaredL2), delta)
        moved = (self.A.nbytes + 6 * w.nbytes + 2 * u.nbytes) // n
        chunk = int(np.clip(_CHUNK // moved, 1, _LONGEST_CHUNK))
        reach = layout.reach(chunk)
        large = u.size >= _LEAST_PARALLEL
        self.turns = Turns()
        self.schedule = (chunk, reach, *layout.blocks(reach, chunk, _BLOCKS if large else 1))

    @staticmethod
    def fits(problem: Posed, n_edges: int | None = None, least: int = LEAST_WORK) -> bool:
        """Whether loss and penalty have compiled steps and as many edges are worth it."""
        loss, edges = problem.loss, problem.graph.n_edges if n_edges is None else n_edges
        return (
            isinstance(loss, BoundSquared | BoundQuadratic)
            and loss.smooth
            and type(problem.penalty) in _PENALTIES
            and edges * problem.d >= least
        )

    def set_steps(self, gamma: float, tau: Array, sigma: Array) -> None:
        """Precompute the affine proxes w+ = A_i v + c_i; sigma follows from gamma and the flow."""
        order = self.layout.order
        self.gamma, self.tau = gamma, self.layout.nodes_in(tau)
        if self.dims is not None:  # in place: A holds 120 MB for a million nodes, d = 5
            empty = np.empty(0, dtype=np.int64)
            which = empty if order is None else order
            k: Any = self.kernels
            k.affine_prox(self.loss.H, self.loss.b, self.tau, which, self.A, self.c)
            return
        A, c = self.loss.affine_prox(tau)
        upper = A[:, *np.triu_indices(A.shape[1])]
        self.A = np.ascontiguousarray(self.layout.nodes_in(upper))
        self.c = np.ascontiguousarray(self.layout.nodes_in(c))

    def set_w(self, w: Array) -> None:
        """Go on from other parameters."""
        self.w = self.layout.nodes_in(w).copy()

    def set_flow(self, u: Array, out: Array) -> None:
        """Go on from another flow, and what leaves each node by it."""
        self.u[:], self.q[:] = self.layout.flow_in(u), self.layout.nodes_in(out)

    def step(self, relax: float) -> None:
        """One over-relaxed iteration."""
        self._iterate(self.w, self.u, self.q, relax)

    def _iterate(self, w: Array, u: Array, q: Array, relax: float) -> None:
        k: Any = self.kernels
        nodes = (w, q, self.wbar, self.A, self.c, self.tau)
        edges = (u, self.layout.ptr, self.layout.tail, self.scale, self.flow)
        rule = (0.5 / self.gamma, float(relax), *self.rule)
        arguments = (self.schedule, nodes, edges, rule)
        blocks, threads = len(self.schedule[3]), self.threads.usable()

        def part(first: int, last: int, sweep: bool = True, leftover: bool = True) -> None:
            k.iterate(self.dims, (first, last, sweep, leftover), *arguments)

        def shared() -> None:
            count = min(threads, blocks)
            ends = [blocks * at // count for at in range(count + 1)]
            run = self.threads.together
            run(lambda at: part(ends[at], ends[at + 1], leftover=False), count)
            run(lambda at: part(ends[at], ends[at + 1], sweep=False), count)

        if blocks > 1 and threads > 1:
            self.turns.run(lambda: part(0, blocks), shared)
        else:
            part(0, blocks)

    def unrelaxed(self, last: float | None = None) -> tuple[Array, Array]:
        """The next plain iterate, in graph order: its flow is inside the balls.

        With `last`, the relaxation used so far, w is instead that of the iteration just done:
        w = w- + last (w+ - w-) and wbar = 2 w+ - w- give w+.
        """
        done = None if last is None else (self.w + (1 - last) * self.wbar) / (2 - last)
        w, u = self.w.copy(), self.u.copy()
        self._iterate(w, u, self.q.copy(), 1.0)
        w = w if done is None else done
        if self.layout.order is None:
            return w, u
        return self.layout.nodes_out(w), self.layout.flow_out(u)

    def current(self) -> tuple[Array, Array]:
        """The relaxed iterate, in graph order."""
        return self.layout.nodes_out(self.w), self.layout.flow_out(self.u)

    def arrays(self) -> dict[str, Array]:
        """What a resumed solve needs beside the relaxed iterate, in the order of the layout."""
        return {"q": self.q.copy(), "wbar": self.wbar.copy()}

    def take(self, arrays: dict[str, Array]) -> None:
        """Go on from `arrays` and the relaxed iterate, its "w" and "u"."""
        self.set_w(arrays["w"])
        self.u[:] = self.layout.flow_in(arrays["u"])
        self.q[:], self.wbar[:] = arrays["q"], arrays["wbar"]
