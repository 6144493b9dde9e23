"""How far from the optimum, guessed: no proof, and no system to solve."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.certificate.correction import fenchel_young, node_give
from nefele.certificate.posed import Posed, inside
from nefele.program import Program, run_alone, total


def estimate(problem: Posed, w: Array, u: Array, most: float = np.inf) -> float:
    """A guess of the gap of a whole problem, without proof and without solving a system.

    Where the edges' part alone is larger than `most`, that part.

    Fenchel-Young residuals of the edges, which no correction removes, plus what the error of the
    dual point's equation costs when each node corrects it by itself. For smooth losses.
    """
    return run_alone(guess(problem, w, u, most))


def guess(problem: Posed, w: Array, u: Array, most: float = np.inf) -> Program[float]:
    """The same as a program for each part."""
    loss = problem.loss
    u = inside(problem, u)
    seen = yield from problem.seen(w, "parameters")
    edges = yield from total(fenchel_young(problem, u, seen))
    if edges > most:
        return edges
    curvature, off = loss.curvature(), loss.grad(w) + problem.outflow(u)
    bend = curvature[:, None] + (yield from node_give(problem, w, u))
    off *= off
    off /= np.where(bend > 0, bend, 1.0)
    return edges + (yield from total(off.sum()))
