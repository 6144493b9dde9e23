"""The primal-dual iteration on one part, in two halves: what is exchanged lies between them.

Nodes move, say 2 w+ - w to those who see them, and then the edges move. Two forms, as for a whole
problem: NumPy for any loss and penalty, and the compiled loops of `nefele.solvers`. A compiled part
runs the very machine code of a whole problem, and sums the flows at a node in the same order, so
that its numbers are those of one process to the last bit.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program
from nefele.runtime.part import Index, Part
from nefele.solvers.primal_dual.fused import Fused, Layout
from nefele.solvers.updates import ahead, dual, primal, relaxed

Rows = dict[Any, Array]


class Halves(Protocol):
    """An iteration that is at some point, and goes on by halves."""

    def set_steps(self, gamma: float, tau: Array, sigma: Array) -> None:
        """Go on with these steps."""

    def set_w(self, w: Array) -> None:
        """Go on from other parameters of the own nodes."""

    def nodes(self, relax: float) -> Rows:
        """The primal half; what each neighbouring part must be told."""

    def edges(self, relax: float, heard: Rows) -> None:
        """The dual half, with what the neighbouring parts have told."""

    def unrelaxed(self, last: float | None = None) -> Program[tuple[Array, Array]]:
        """An unrelaxed iterate, whose flow is inside its balls; see `Fused.unrelaxed`."""

    def kept(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """What a solve needs to go on from here: arrays by own node, and by edge."""

    def take(self, nodes: dict[str, Array], edges: dict[str, Array]) -> None:
        """Go on from there."""


def halves(part: Part, flow: Array, compiled: bool) -> Halves:
    """The iteration from where the part stands; `flow` is the expected size of each edge's flow."""
    return CompiledHalves(part, flow) if compiled else PlainHalves(part)


def iteration(halves: Halves, relax: float) -> Program[None]:
    """One over-relaxed iteration of NFL, Algorithm 1: one exchange."""
    heard: Heard = yield Exchange("parameters", halves.nodes(relax))
    halves.edges(relax, heard.rows)


class PlainHalves:
    """The NumPy form."""

    tau: Array
    sigma: Array

    def __init__(self, part: Part) -> None:
        self.part = part
        self.w, self.u = self.w1, self.u1 = part.w, part.u

    def set_steps(self, gamma: float, tau: Array, sigma: Array) -> None:
        self.tau, self.sigma = tau, sigma

    def set_w(self, w: Array) -> None:
        self.w = w

    def nodes(self, relax: float) -> Rows:
        part = self.part
        self.w1 = primal(part.loss, self.w, part.outflow(self.u), self.tau)
        said = ahead(self.w, self.w1)
        return {neighbour: said[i] for neighbour, i in part.says.items()}

    def edges(self, relax: float, heard: Rows) -> None:
        part = self.part
        diff = part.graph.diff(part.together(ahead(self.w, self.w1), heard))
        self.u1 = dual(part.penalty, self.u, diff, part.scale, self.sigma)
        self.w, self.u = relaxed(self.w, self.w1, relax), relaxed(self.u, self.u1, relax)

    def unrelaxed(self, last: float | None = None) -> Program[tuple[Array, Array]]:
        return self.w1, self.u1
        yield

    def kept(self) -> tuple[dict[str, Array], dict[str, Array]]:
        return {"w": self.w, "w1": self.w1}, {"u": self.u, "u1": self.u1}

    def take(self, nodes: dict[str, Array], edges: dict[str, Array]) -> None:
        self.w, self.w1, self.u, self.u1 = nodes["w"], nodes["w1"], edges["u"], edges["u1"]


class CompiledHalves(Fused):
    """The compiled form: all nodes in one block whose edges wait until all nodes have moved.

    Nodes that are only seen have a row each, which the neighbours fill before the edges move.
    """

    def __init__(self, part: Part, flow: Array) -> None:
        layout = Layout(part.graph, part.order)
        super().__init__(part, part.w, part.u.copy(), flow, layout, part.uniform)
        self.part = part
        self.wbar[:], self.A[:], self.c[:] = 0.0, 0.0, 0.0
        chunk, reach = self.schedule[:2]
        self.schedule = (chunk, reach, np.array([0, len(reach)]), np.array([0]))
        place = np.arange(part.graph.n_nodes)
        if part.order is not None:
            place[part.order] = np.arange(part.graph.n_nodes)
        self.own: Index = place[part.own]
        self.says = {neighbour: self.own[i] for neighbour, i in part.says.items()}
        self.hears = {neighbour: place[i] for neighbour, i in part.hears.items()}

    def set_steps(self, gamma: float, tau: Array, sigma: Array) -> None:
        self.gamma, self.tau = gamma, self.layout.nodes_in(self.part.placed(tau))
        n, d = len(tau), self.part.d
        if self.dims is None:
            blocks, c = self.loss.affine_prox(tau)
            A = blocks[:, *np.triu_indices(d)]
        else:
            A, c = np.empty((n, self.A.shape[1])), np.empty((n, d))
            k: Any = self.kernels
            k.affine_prox(self.loss.H, self.loss.b, tau, np.empty(0, dtype=np.int64), A, c)
        self.A[self.own], self.c[self.own] = A, c

    def set_w(self, w: Array) -> None:
        self.w[self.own] = w

    def nodes(self, relax: float) -> Rows:
        return self._nodes(self.w, self.u, self.q, relax)

    def edges(self, relax: float, heard: Rows) -> None:
        self._edges(self.w, self.u, self.q, relax, heard)

    def unrelaxed(  # type: ignore[override]
        self, last: float | None = None
    ) -> Program[tuple[Array, Array]]:
        done = None if last is None else (self.w + (1 - last) * self.wbar) / (2 - last)
        before = self.wbar.copy()
        w, u, q = self.w.copy(), self.u.copy(), self.q.copy()
        heard: Heard = yield Exchange("parameters", self._nodes(w, u, q, 1.0))
        self._edges(w, u, q, 1.0, heard.rows)
        self.wbar[:] = before
        w = w if done is None else done
        return w[self.own], self.layout.flow_out(u)

    def kept(self) -> tuple[dict[str, Array], dict[str, Array]]:
        rows = {"w": self.w, "q": self.q, "wbar": self.wbar}
        nodes = {name: array[self.own] for name, array in rows.items()}
        return nodes, {"u": self.layout.flow_out(self.u)}

    def take(  # type: ignore[override]
        self, nodes: dict[str, Array], edges: dict[str, Array]
    ) -> None:
        for name in ("w", "q", "wbar"):
            getattr(self, name)[self.own] = nodes[name]
        self.u[:] = self.layout.flow_in(edges["u"])

    def _nodes(self, w: Array, u: Array, q: Array, relax: float) -> Rows:
        self._run(w, u, q, relax, edges=False)
        return {neighbour: self.wbar[at] for neighbour, at in self.says.items()}

    def _edges(self, w: Array, u: Array, q: Array, relax: float, heard: Rows) -> None:
        for neighbour, rows in heard.items():
            self.wbar[self.hears[neighbour]] = rows
        self._run(w, u, q, relax, edges=True)

    def _run(self, w: Array, u: Array, q: Array, relax: float, edges: bool) -> None:
        arrays = (w, q, self.wbar, self.A, self.c, self.tau)
        flows = (u, self.layout.ptr, self.layout.tail, self.scale, self.flow)
        rule = (0.5 / self.gamma, float(relax), *self.rule)
        k: Any = self.kernels
        k.iterate(self.dims, (0, 1, not edges, edges), self.schedule, arrays, flows, rule)
