"""Exact ends: which neighbours are equal tells the last step, Newton steps solve what is left.

Over an edge the difference or the room of the flow tends to zero, the other one does not. The one
that a step has shrunk more is known long before either is small (Tapia's indicators, El-Bakry,
Tapia and Zhang 1994). With the equal ones fused all is smooth, and a proof shows if they were so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.problem import Problem
from nefele.result import relative_gap
from nefele.solvers.interior_point import kinks
from nefele.solvers.interior_point.cones import edge_kind, form
from nefele.solvers.interior_point.state import NewtonState
from nefele.solvers.primal_dual.polish import polish

_SURE = 1e-7  # certified gap up to which the fused edges were the right ones
_TRIES = 4  # steps that wait for the right ones


def has_end(problem: Problem) -> bool:
    """Whether a reduced problem is smooth."""
    smooth = problem.loss.smooth and not kinks.present(problem) and problem.penalty.twice
    return bool(smooth and problem.graph.plain and edge_kind(problem) == "cones")


def find_end(problem: Problem, state: NewtonState, tol: float) -> bool:
    """Look for the exact optimum; returns whether it is found, or not to be waited for."""
    if state.tries >= _TRIES or state.terms is None or state.before is None:
        return True
    state.tries += 1
    fused = _fused(problem, state.before, state.terms.edges.sizes())
    is_norm = problem.penalty.is_norm
    better = polish(problem, state.w, state.u, fused if is_norm else None)
    if better is None:
        state.tries = _TRIES
        return True
    goal = min(tol, _SURE)
    found = problem.certificate(better.w, better.u, firm=is_norm, tol=goal, direct=True)
    if relative_gap(problem, found.objective, found.gap_abs) > goal:
        return state.tries >= _TRIES
    state.end = better.w, found
    return True


def _fused(problem: Problem, before: Array, after: Array) -> NDArray[np.bool_]:
    """Entries of edges whose difference a step has shrunk more than the room of their flow."""
    away, room = np.divide(after, before, out=np.ones_like(after), where=before > 0)
    out = np.zeros((problem.graph.n_edges, problem.d), dtype=bool)
    out[:, list(form(problem).on)] = away < room
    return out
