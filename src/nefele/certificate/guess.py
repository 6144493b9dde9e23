"""How far from the optimum, guessed: no proof, and no system to solve."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.certificate.correction import fenchel_young, node_give
from nefele.certificate.posed import Posed, inside


def estimate(problem: Posed, w: Array, u: Array) -> float:
    """A guess of the gap, without proof and without solving a system.

    Fenchel-Young residuals of the edges, which no correction removes, plus what the error of the
    dual point's equation costs when each node corrects it by itself. For smooth losses.
    """
    graph, loss = problem.graph, problem.loss
    u = inside(problem, u)
    curvature, off = loss.curvature(), loss.grad(w) + graph.div(u)
    edges = fenchel_young(problem, u, w)
    bend = curvature[:, None] + node_give(problem, w, u)
    return float(edges + (off**2 / np.where(bend > 0, bend, 1.0)).sum())
