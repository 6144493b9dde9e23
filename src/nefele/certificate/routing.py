"""A dual point that is nearly feasible made so without a linear system: one pass over the edges.

What is missing in s_i + (D^T u)_i = 0 can be taken by the loss of a node whose H_i is regular, at
a cost of the second order. Elsewhere it is sent along edges to the nearest such node. Next to an
optimum, where little is missing, the bound is nearly as good as that of the best correction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._systems.laplacian import COMPILED
from nefele.certificate.posed import Posed
from nefele.losses.base import DualPoint
from nefele.losses.quadratic import QuadraticDual

_SOFT = 20.0  # most cost of taking, relative to that of sending on, by parameter
_FARTHEST = 30  # edges that anything is sent along


class Routed(NamedTuple):
    """A flow and the correction x of the losses, s <- s - M x, that make the point feasible."""

    flow: Array
    x: Array
    links: NDArray[np.int64]  # the edges that were used, and the flow there before
    before: Array

    def undo(self) -> None:
        """Bring the flow back to what it was."""
        self.flow[self.links] = self.before


def routed(
    problem: Posed, dual: DualPoint, u: Array, out: Array, spend: bool = False
) -> Routed | None:
    """The point made feasible, where it can be; None where some node reaches none that takes.

    For large whole problems with quadratic losses. `out` is D^T u; the memory of u is used when
    it may be spent: to touch as much new memory takes longer than all the rest.
    """
    graph = problem.graph
    suits = isinstance(dual, QuadraticDual) and problem.coupled and problem.whole and graph.plain
    if not suits or u.size < COMPILED:
        return None
    from nefele._kernels import routing

    H, n = dual.metric(), graph.n_nodes
    level, link = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64)
    routing.takers(H, graph.at_ends(problem.scale), _SOFT * problem.d, level)
    depth = routing.reach(graph.ptr, graph.tail, _FARTHEST, level, link)
    missing = dual.flow()
    missing += out
    lost = level < 0
    if lost.any() and (missing[lost & (graph.degree > 0)] != 0).any():
        return None
    flow, sending = u if spend else u.copy(), np.count_nonzero(level > 0)
    links, before = np.empty(sending, dtype=np.int64), np.empty((sending, problem.d))
    routing.send(depth, graph.head, graph.tail, level, link, missing, flow, links, before)
    routing.take(H, level, missing)
    return Routed(flow, missing, links, before)
