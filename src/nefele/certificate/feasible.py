"""The bound of a flow that needs no correction: no system to solve.

Flows of bounds are feasible, and so are their averages: each D^T u_i lies where the conjugate of
L_i is finite, and a flow between two that fit lam_1 and lam_2 fits the lam between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nefele._checks import Array
from nefele.certificate.bound import Certificate, bound, objective_of
from nefele.certificate.correction import fenchel_young, variation
from nefele.certificate.posed import Posed, inside
from nefele.losses.base import Duals
from nefele.losses.quadratic import QuadraticDual
from nefele.program import run_alone


def certify_feasible(problem: Posed, w: Array, u: Array, tol: float = np.inf) -> Certificate | None:
    """Bound objective(w) - optimum by the flow u as it is; None where that proves nothing.

    For whole problems with quadratic losses, whose duals follow from the flow. None as well where
    the edges' part alone, which is quick to find, is more than a relative gap of `tol`.
    """
    if not (problem.whole and problem.coupled):
        return None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        rise = variation(problem, w)
        objective = float(problem.loss.value(w).sum() + rise)
        out = problem.outflow(u)
        inner = float(np.vdot(out, w))  # <u, D w>; the conjugate of a norm is zero in its ball
        left = rise - inner if problem.penalty.is_norm else fenchel_young(problem, u, w)
        if left > tol * abs(objective):
            return None
        dual = problem.loss.dual_point(w, -out)
        if not isinstance(dual, QuadraticDual):
            return None
        x = dual.point - dual.loss.least_norm(dual.loss.b - out)
        found, feasible = run_alone(bound(problem, dual, u, x, w, objective, False, out))
    return found if feasible else None


def certify_known(problem: Posed, w: Array, u: Array, duals: Sequence[Duals]) -> Certificate:
    """Bound objective(w) - optimum by the flow u and the losses' duals as they are, of all nodes.

    A solver's own may meet their equation better than a correction leaves them, which rounding
    errors of huge weights spoil; and no system is solved.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        objective, u = run_alone(objective_of(problem, w, w)), inside(problem, u)
        dual = problem.loss.dual_point(w, -problem.outflow(u))
        if dual is None:
            return Certificate(objective, -np.inf, "dual", 0.0, u)
        dual.adopt(duals, w)
        return run_alone(bound(problem, dual, u, np.zeros_like(w), w, objective, False))[0]
