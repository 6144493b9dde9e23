"""The primal-dual iteration on one part, in two halves: what is exchanged lies between them.

Nodes move, say 2 w+ - w to those who see them, and then the edges move. Two forms, as for a whole
problem: NumPy for any loss and penalty, and the compiled loops of `nefele.solvers`. A compiled part
runs the very machine code of a whole problem, and sums the flows at a node in the same order, so
that its numbers are those of one process to the last bit. It works while its rows are on their way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from nefele._checks import Array
from nefele.program import Exchange, Heard, Program
from nefele.runtime.border import BorderLayout
from nefele.runtime.part import Part
from nefele.solvers.primal_dual.fused import Fused
from nefele.solvers.updates import ahead, dual, primal, relaxed


class Halves(Protocol):
    """An iteration that is at some point, and goes on by halves."""

    def set_steps(self, gamma: float, tau: Array, sigma: Array) -> None:
        """Go on with these steps."""

    def set_w(self, w: Array) -> None:
        """Go on from other parameters of the own nodes."""

    def step(self, relax: float) -> Program[None]:
        """One over-relaxed iteration of NFL, Algorithm 1: one exchange."""

    def unrelaxed(self, last: float | None = None) -> Program[tuple[Array, Array]]:
        """An unrelaxed iterate, whose flow is inside its balls; see `Fused.unrelaxed`."""

    def kept(self) -> tuple[dict[str, Array], dict[str, Array]]:
        """What a solve needs to go on from here: arrays by own node, and by edge."""

    def take(self, nodes: dict[str, Array], edges: dict[str, Array]) -> None:
        """Go on from there."""


def halves(part: Part, flow: Array, compiled: bool) -> Halves:
    """The iteration from where the part stands; `flow` is the expected size of each edge's flow."""
    return CompiledHalves(part, flow) if compiled else PlainHalves(part)


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

    def step(self, relax: float) -> Program[None]:
        part = self.part
        self.w1 = primal(part.loss, self.w, part.outflow(self.u), self.tau)
        seen = yield from part.seen(ahead(self.w, self.w1), "parameters")
        self.u1 = dual(part.penalty, self.u, part.graph.diff(seen), part.scale, self.sigma)
        self.w, self.u = relaxed(self.w, self.w1, relax), relaxed(self.u, self.u1, relax)

    def unrelaxed(self, last: float | None = None) -> Program[tuple[Array, Array]]:
        return self.w1, self.u1
        yield

    def kept(self) -> tuple[dict[str, Array], dict[str, Array]]:
        return {"w": self.w, "w1": self.w1}, {"u": self.u, "u1": self.u1}

    def take(self, nodes: dict[str, Array], edges: dict[str, Array]) -> None:
        self.w, self.w1, self.u, self.u1 = nodes["w"], nodes["w1"], edges["u"], edges["u1"]


class CompiledHalves(Fused):
    """The compiled form: the border moves first, the rest in one pass over memory, as a whole does.

    Nodes that are only seen have rows that stay zero; what they have told is kept at the border.
    """

    def __init__(self, part: Part, flow: Array) -> None:
        from nefele._kernels import edges

        layout = BorderLayout(part)
        super().__init__(part, part.w, part.u.copy(), flow, layout, part.uniform)
        self.part, self.own, self.sums = part, layout.own, edges
        self.border, self.inside = layout.border, layout.inside
        self.wbar[:], self.A[:], self.c[:] = 0.0, 0.0, 0.0
        chunk, reach = self.schedule[:2]
        self.schedule = (chunk, reach, *layout.blocks(reach, chunk, 1))  # one thread

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
        self.border.set_proxes(self.A, self.c, self.tau)

    def set_w(self, w: Array) -> None:
        self.w[self.own] = w

    def step(self, relax: float) -> Program[None]:  # type: ignore[override]
        yield from self._step(self.w, self.u, self.q, relax)

    def unrelaxed(  # type: ignore[override]
        self, last: float | None = None
    ) -> Program[tuple[Array, Array]]:
        done = None if last is None else (self.w + (1 - last) * self.wbar) / (2 - last)
        before = self.wbar.copy()
        w, u, q = self.w.copy(), self.u.copy(), self.q.copy()
        yield from self._step(w, u, q, 1.0)
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

    def _step(self, w: Array, u: Array, q: Array, relax: float) -> Program[None]:
        border, inside = self.border, self.inside
        rule = (0.5 / self.gamma, float(relax), *self.rule)
        k: Any = self.kernels

        def at_border(nodes: bool) -> None:
            rows = border.w, border.q, border.wbar, *border.proxes
            sizes = self.scale[-border.size :], self.flow[-border.size :]
            edges = u[inside:], border.ptr, border.tail, *sizes
            k.iterate(self.dims, (0, 1, nodes, not nodes), border.schedule, rows, edges, rule)

        rest = Once(lambda: self._iterate(w, u, q, relax))
        if not border.size:
            rest()
            yield Exchange("parameters", {})
            return
        border.begin(w, q)
        at_border(nodes=True)
        heard: Heard = yield Exchange("parameters", border.told(), meanwhile=rest)
        rest()
        border.hear(heard.rows)
        at_border(nodes=False)
        self.sums.divergence_at(*border.sums, u, q)


class Once:
    """Work that is done by the first call."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.work: Callable[[], None] | None = work

    def __call__(self) -> None:
        if self.work is not None:
            work, self.work = self.work, None
            work()
