"""How far from the optimum, guessed and not proven: what a solve without certificates stops on.

For a flow u inside its balls, objective(w) - optimum is at most

    sum_e FY_e + sum_i [L_i(w_i) + <(D^T u)_i, w_i> - min_z (L_i(z) + <(D^T u)_i, z>)]

with FY_e the Fenchel-Young residual of edge e (NFL, Eq. (24)). The minimum is -inf at a node
without data unless its flow is exactly balanced, so it is taken near w_i only: as far away as
parameters are large. That an optimum is so near is a guess.
"""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.problem import Problem

_LONGEST = 1e6  # longest step of a prox in units of 1 / curvature: all but the local minimiser
_ENDLESS = 1e30  # the same where there is no curvature and nothing to solve


def residual(problem: Problem, w: Array, u: Array) -> float:
    """A guess of objective(w) - optimum from a flow u inside its balls; zero at a solution.

    Never above what u itself proves.
    """
    graph, loss = problem.graph, problem.loss
    pull = graph.div(u)
    curvature = loss.curvature()
    curved = curvature > 0
    short = 1 / np.where(curved, curvature, 1.0)
    if loss.smooth:
        slope = loss.grad(w) + pull
    else:
        slope = (w - loss.prox(w - short[:, None] * pull, short, start=w)) / short[:, None]
    steep = np.sqrt((slope**2).sum(axis=1))
    # Near the start w says nothing of how large parameters are; the way that slopes point does.
    sizes = (w**2).sum(axis=1), np.where(curved, short * steep, 0.0) ** 2
    reach = float(np.sqrt(max(size.mean() for size in sizes))) or 1.0
    step = reach / np.where(steep > 0, steep, 1.0)
    step = np.minimum(step, np.where(curved, _LONGEST * short, _ENDLESS))
    near = loss.prox(w - step[:, None] * pull, step, start=w)
    gain = loss.value(w) - loss.value(near) + (pull * (w - near)).sum(axis=1)
    total = float(np.maximum(gain, 0.0).sum())
    if problem.coupled:
        diff = graph.diff(w)
        edges = problem.scale @ problem.penalty.value(diff) - np.vdot(u, diff)
        total += max(float(edges + problem.penalty.conjugate(u, problem.scale).sum()), 0.0)
    return total if total >= 0 else np.inf
