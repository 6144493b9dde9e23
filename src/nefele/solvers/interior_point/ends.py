"""Exact ends: which neighbours are equal tells the last step, Newton steps solve what is left.

Over an edge the difference or the room of the flow tends to zero, the other one does not. The one
that a step has shrunk more is known long before either is small (Tapia's indicators, El-Bakry,
Tapia and Zhang 1994). With the equal ones fused all is smooth. They were the right ones if flows
inside the groups, and within their balls, carry away what the losses of each group leave.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.problem import Problem
from nefele.result import relative_gap
from nefele.solvers.interior_point import kinks
from nefele.solvers.interior_point.forms import edge_kind, forms
from nefele.solvers.interior_point.state import NewtonState
from nefele.solvers.primal_dual.polish import polish

_MOST_UNKNOWNS = 1500
_TRIES = 4  # steps that wait for the right ones
_ROUNDS = 3  # corrections of the flow
_OUTSIDE = 1e-10  # how far outside its ball a flow may be, relative to it
_FAR = 1e-3  # the same from which no further correction helps
_LEAST = 1e-12  # least room of a flow, relative to its ball


def has_end(problem: Problem) -> bool:
    """Whether a reduced problem is smooth, and small enough to be worth its steps."""
    if problem.graph.n_nodes * problem.d > _MOST_UNKNOWNS:
        return False
    smooth = problem.loss.smooth and not kinks.present(problem) and problem.penalty.twice
    return bool(smooth and problem.graph.plain and edge_kind(problem) == "cones")


def find_end(problem: Problem, state: NewtonState, tol: float) -> bool:
    """Look for the exact optimum; returns whether it is found, or not to be waited for."""
    if state.tries >= _TRIES or state.terms is None or state.before is None:
        return True
    state.tries += 1
    is_norm = problem.penalty.is_norm
    fused = _fused(problem, state.before, state.terms.edges.cores[0].sizes()) if is_norm else None
    better = polish(problem, state.w, state.u, fused, near=True)
    if better is None:
        state.tries = _TRIES
        return True
    flow = _carried(problem, better.w, better.u) if is_norm else better.u
    if flow is not None:
        found = problem.certificate(better.w, flow, firm=is_norm, tol=tol, direct=True)
        if relative_gap(problem, found.objective, found.gap_abs) <= tol:
            state.end = better.w, found
    return state.end is not None or state.tries >= _TRIES


def _fused(problem: Problem, before: Array, after: Array) -> NDArray[np.bool_]:
    """Entries of edges whose difference a step has shrunk more than the room of their flow."""
    away, room = np.divide(after, before, out=np.ones_like(after), where=before > 0)
    out = np.zeros((problem.graph.n_edges, problem.d), dtype=bool)
    out[forms(problem)[0].place] = away < room
    return out


def _carried(problem: Problem, w: Array, u: Array) -> Array | None:
    """The flow u, changed where w has no difference so that it meets the losses' slopes.

    None where that takes it out of its balls: then w is not the optimum.
    """
    graph, penalty = problem.graph, problem.penalty
    slope, u = problem.loss.grad(w), u.copy()
    for _ in range(_ROUNDS):
        room = _room(problem, u)
        rest = slope + graph.div(u)
        before = None
        for on in _columns(problem):
            held = (graph.diff(w[:, on]) == 0).all(axis=1)
            if before is None or not np.array_equal(held, before[0]):
                before = held, graph.joined(held)
            weight = np.where(held, room[:, on[0]], 0.0)
            x = _potential(problem, before[1], held, weight, rest[:, on])
            if x is None:
                return None
            u[:, on] -= weight[:, None] * graph.diff(x)
        over = penalty.domain_ratio(u, problem.scale)
        most = float(over.max(initial=0.0)) - 1
        if most <= _OUTSIDE or not most <= _FAR:
            break
        u = problem.inside(u)
    return u if most <= _OUTSIDE else None


def _columns(problem: Problem) -> list[list[int]]:
    """Entries of the parameters that are fused together."""
    _, penalty, on, _ = forms(problem)[0]
    return [[j] for j in on] if penalty.entrywise else [list(on)]


def _room(problem: Problem, u: Array) -> Array:
    """What the flow leaves of its balls, shape (n_edges, d)."""
    _, penalty, on, _ = forms(problem)[0]
    used = np.abs(u)
    if not penalty.entrywise:
        columns = list(on)
        used = np.repeat(penalty.dual_norm(u[:, columns])[:, None], u.shape[1], axis=1)
    scale = problem.scale[:, None]
    return np.maximum(scale - used, _LEAST * scale)


def _potential(
    problem: Problem, groups: NDArray[np.int64], held: NDArray[np.bool_], weight: Array, b: Array
) -> Array | None:
    """X with D^T C D x = b inside each group, zero at its first node; None if that fails."""
    graph = problem.graph
    first = np.unique(groups, return_index=True)[1]
    keep = np.ones(graph.n_nodes, dtype=bool)
    keep[first] = False
    x = np.zeros_like(b)
    if not keep.any():
        return x
    place, k = np.cumsum(keep) - 1, np.arange(int(keep.sum()))
    inner = held & keep[graph.head] & keep[graph.tail]
    head, tail = place[graph.head[inner]], place[graph.tail[inner]]
    diagonal = graph.at_ends(weight[:, None])[keep, 0]
    root = np.sqrt(diagonal)
    values = -weight[inner] / root[head] / root[tail]
    rows, columns = np.concatenate([k, head, tail]), np.concatenate([k, tail, head])
    numbers = np.concatenate([np.ones(len(k)), values, values])
    matrix = sparse.csc_array((numbers, (rows, columns)), shape=(len(k), len(k)))
    try:
        options = {"SymmetricMode": True}
        factor = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:
        return None
    x[keep] = factor.solve(b[keep] / root[:, None]) / root[:, None]
    return x if np.isfinite(x).all() else None
