"""How far from the optimum, guessed: no proof, and no system to solve."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.certificate.correction import node_give, shift_flow
from nefele.certificate.posed import Posed, inside
from nefele.program import Program, run_alone, total


def estimate(problem: Posed, w: Array, u: Array) -> float:
    """A guess of the gap of a whole problem, without proof and without solving a system.

    Fenchel-Young residuals of the edges, which no correction removes, plus what the error of the
    dual point's equation costs when each node corrects it by itself. For smooth losses.
    """
    return run_alone(guess(problem, w, u))


def guess(problem: Posed, w: Array, u: Array) -> Program[float]:
    """The same as a program for each part."""
    graph, loss = problem.graph, problem.loss
    u = inside(problem, u)
    curvature, off = loss.curvature(), loss.grad(w) + problem.outflow(u)
    seen = yield from problem.seen(w, "parameters")
    none = np.zeros((graph.n_edges, 1)), np.zeros_like(seen)
    _, _, edges = yield from shift_flow(problem, u, *none, seen)
    bend = curvature[:, None] + (yield from node_give(problem, w, u))
    return edges + (yield from total((off**2 / np.where(bend > 0, bend, 1.0)).sum()))
