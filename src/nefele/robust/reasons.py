"""What a bound on captured nodes rests on, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nefele._ids import describe
from nefele.problem import Problem

Mask = NDArray[np.bool_]


def on_convexity(problem: Problem, covered: Mask, bad: Mask, alpha: float, kappa: float) -> str:
    """The bound rests on strongly convex losses; which nodes have none, and why."""
    left = ~covered & ~bad
    which = ""
    if left.any():
        names = describe(problem.graph.ids[left])
        which = (
            f" Not covered: {names}: their own losses are not strongly convex (no rows, or rows "
            "that do not span all directions). Give these losses a ridge term."
        )
    if not covered.any():
        return f"None: no honest loss is strongly convex.{which}"
    return (
        f"Flows of edges to attackers are at most lam A_e (slope kappa = {kappa:.4g}) and honest "
        f"losses at least alpha = {alpha:.4g} strongly convex.{which}"
    )


def on_curvature(problem: Problem, covered: Mask, bad: Mask, alpha: float, kappa: float) -> str:
    """The bound rests on the curvature at a fit; which nodes have none, and why."""
    left = ~covered & ~bad
    why = (
        "a loss without a ridge term on all parameters pushes back with a bounded force, and there "
        "the attackers may pull harder, or there are no rows. Use a smaller lam, or a ridge term "
        "on all parameters, the intercept too"
    )
    if not covered.any():
        return f"None: at every honest node {why}."
    which = f" Not covered: {describe(problem.graph.ids[left])}: {why}." if left.any() else ""
    return (
        f"Flows of edges to attackers are at most lam A_e (slope kappa = {kappa:.4g}); at the fit "
        f"without attackers honest losses are curved by at least alpha = {alpha:.4g}, and further "
        f"away as much less as such losses can be.{which}"
    )
