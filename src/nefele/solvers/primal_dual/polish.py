"""Exact reduced solves: fuse what the flow holds together, then Newton on what is left.

Where the flow of an edge is strictly inside its ball, the solution has no difference over it
(NFL, Eq. (28)). Groups of fused entries move as one unknown, and over the other edges the
penalty is differentiable, so a few Newton steps end at the reduced problem's optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele._kernels.groups import group_sums
from nefele._kernels.short_rows import row_all, row_largest
from nefele._systems.direct import SmallGraph
from nefele.problem import Problem

Index = NDArray[np.int64]

_DENSE = 1000  # most unknowns of a dense Newton system,
_FEW, _CROWDED = 150, 0.1  # of one that is always dense; share of its numbers above which it is
_MOST_UNKNOWNS = 3000  # of a sparse one, and its
_MOST_ENTRIES = 300_000
_RIDGE, _HELD = 1e-13, 1e-10  # relative to a unit diagonal, far from the optimum and near it
_ROUNDS, _FEW_ROUNDS = 30, 8  # Newton steps far from the optimum and near it
_ROUNDING = 1e-14  # progress of a Newton step, relative to the objective at zero, that is none
_LEVEL = 1e-2  # slope, relative to the first, at which a line search may stop
_MOST_TRIALS, _INTERPOLATED = 60, 20  # of a line search; the last ones halve the interval where
_STEEP = 1e6  # slopes at its end are so many times the first
_NEGLIGIBLE = 1e-9  # difference, relative to the spread, below which an edge is fused


@dataclass(frozen=True)
class Polished:
    """A better point, a matching flow, its objective; `exact`: a reduced problem's optimum."""

    w: Array
    u: Array
    objective: float
    exact: bool = True


def polish(
    problem: Problem,
    w: Array,
    u: Array,
    fused: NDArray[np.bool_] | None = None,
    near: bool = False,
    enough: float = 0.0,
) -> Polished | None:
    """The optimum of the problem reduced by the fusions that u proves, or None if too large.

    `fused`, shape (n_edges, d), says what is equal over which edges in their place; `near` that w
    is near the optimum: few steps will do, and none goes far where all is flat. Steps end where
    one makes the objective fall by no more than the share `enough`, or by rounding errors.

    Without derivatives of the loss, or of the penalty over an edge that is not fused, only the
    fusions: rounding errors in a difference cost much when lam is large.
    """
    penalty = problem.penalty
    if not problem.coupled:
        return None
    fused = penalty.fused(u, problem.scale) if fused is None else fused
    if not problem.loss.smooth or not (penalty.twice or fused.all()):
        w = group_means(*groups_of(problem, fused), w)
        return Polished(w, u, problem.objective(w))
    least = max(_ROUNDING * abs(problem.objective_at_zero), enough * abs(problem.objective(w)))
    for _ in range(_FEW_ROUNDS if near else _ROUNDS):
        groups, k = groups_of(problem, fused)
        if not _affordable(problem, k):
            return None
        w = group_means(groups, k, w)
        move = _newton_step(problem, groups, k, w, _HELD if near else _RIDGE)
        if move is None:
            return None
        w, progress = _search(problem, w, move)
        merged = fused | _vanished(problem, w)
        if progress <= least and np.array_equal(merged, fused):
            break
        fused = merged
    return Polished(w, matching_flow(problem, w, u), problem.objective(w))


def matching_flow(problem: Problem, w: Array, u: Array) -> Array:
    """The flow that w fixes where it has differences, u where it is fused."""
    diff = problem.graph.diff(w)
    flow = problem.scale[:, None] * _gradient(problem.penalty, diff)
    if not problem.penalty.is_norm:
        return flow
    entrywise = problem.penalty.entrywise
    held = (diff == 0) if entrywise else row_all(diff == 0)[:, None]
    return np.where(held, u, flow)


def groups_of(problem: Problem, fused: NDArray[np.bool_]) -> tuple[Index, int]:
    """Unknown of each entry of w, shape (n_nodes, d), and their number."""
    graph = problem.graph
    groups = np.empty((graph.n_nodes, problem.d), dtype=np.int64)
    total, count, before = 0, 0, None
    for j in range(problem.d):
        if before is None or not np.array_equal(fused[:, j], fused[:, before]):
            labels, before = graph.joined(fused[:, j]), j
            count = int(labels.max()) + 1
        groups[:, j] = labels + total
        total += count
    return groups, total


def all_smooth(problem: Problem) -> bool:
    """Whether Newton steps for all unknowns at once are possible, and end at the optimum."""
    penalty = problem.penalty
    smooth = problem.loss.smooth and penalty.twice and not penalty.bounded
    suits = problem.coupled and problem.graph.plain and not problem.loss.affine_grad
    return smooth and suits and _affordable(problem, problem.graph.n_nodes * problem.d)


def _affordable(problem: Problem, k: int) -> bool:
    entries = (problem.graph.n_nodes + 4 * problem.graph.n_edges) * problem.d**2
    return k <= _DENSE or (k <= _MOST_UNKNOWNS and entries <= _MOST_ENTRIES)


def group_means(groups: Index, k: int, w: Array) -> Array:
    flat = groups.ravel()
    return (np.bincount(flat, w.ravel(), k) / np.bincount(flat, minlength=k))[groups]


def _newton_step(problem: Problem, groups: Index, k: int, w: Array, ridge: float) -> Array | None:
    """Newton direction of the reduced problem, as a change of w."""
    graph, scale, penalty = problem.graph, problem.scale, problem.penalty
    diff = graph.diff(w)
    slope = problem.loss.grad(w) + graph.div(scale[:, None] * _gradient(penalty, diff))
    hess = problem.loss.hess(w)
    if hess is None:
        return None
    bent = (row_largest(diff) > 0) | (not penalty.bounded)
    active = np.flatnonzero(bent & penalty.twice)  # else all edges are fused
    bend = np.empty((0, problem.d, problem.d))
    if active.size:
        bend = scale[active, None, None] * penalty.at(active).curvature(diff[active])
    if k == groups.size and len(active) == graph.n_edges:
        return _unfused_step(problem, hess, bend, -slope, ridge)
    right = -np.bincount(groups.ravel(), slope.ravel(), k)
    members, summed = _summed(groups, hess, penalty.entrywise)
    parts = [(*_pairs(members, members), summed.ravel())]
    if active.size:
        ends = (groups[graph.head[active]], groups[graph.tail[active]])
        for a, first in enumerate(ends):
            for b, second in enumerate(ends):
                sign = 1.0 if a == b else -1.0
                parts.append((*_pairs(first, second), sign * bend.ravel()))
    rows, columns, values = (np.concatenate(p) for p in zip(*parts, strict=True))
    step = _solve(rows, columns, values, k, right, ridge)
    return None if step is None else step[groups]


def _unfused_step(
    problem: Problem, hess: Array, bend: Array, right: Array, ridge: float
) -> Array | None:
    """The Newton direction where nothing is fused: blocks of nodes and edges, as they are."""
    try:
        step = SmallGraph.of(problem.graph, problem.d).factorise(hess, bend, ridge).solve(right)[0]
    except np.linalg.LinAlgError:
        return None
    return step if np.isfinite(step).all() else None


def _summed(groups: Index, hess: Array, entrywise: bool) -> tuple[Index, Array]:
    """Unknowns and summed Hessian of each set of nodes with the same unknowns."""
    if entrywise:
        return groups, hess
    labels = groups[:, 0]  # numbered from zero
    first = np.empty(int(labels.max()) + 1, dtype=np.int64)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    return groups[first], group_sums(labels, hess)


def _gradient(penalty: Any, diff: Array) -> Array:
    """The penalty's gradient; zero if it has none, for then all differences are zero."""
    return penalty.gradient(diff) if penalty.twice else np.zeros_like(diff)


def _pairs(first: Index, second: Index) -> tuple[Index, Index]:
    d = first.shape[1]
    return np.repeat(first, d, axis=1).ravel(), np.tile(second, (1, d)).ravel()


def _solve(rows, columns, values, k, right, ridge):  # type: ignore[no-untyped-def]
    """Solve the reduced system, slightly regularised so that singular ones have a solution.

    Scaled to a unit diagonal first, so that features of very different sizes do no harm.
    """
    on = rows == columns
    diagonal = np.bincount(rows[on], values[on], k)
    root = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, right = values / root[rows] / root[columns], right / root
    try:
        if k <= _FEW or (k <= _DENSE and len(rows) > _CROWDED * k * k):
            matrix = np.bincount(rows * k + columns, values, k * k).reshape(k, k)
            matrix[np.diag_indices(k)] += ridge
            step = _solve_psd(matrix, right)
        else:
            step = _solve_sparse(rows, columns, values, k, right, ridge)
    except (np.linalg.LinAlgError, RuntimeError, ValueError):  # singular, or overflowed
        return None
    step = step / root
    return step if np.isfinite(step).all() else None


def _solve_sparse(rows, columns, values, k, right, ridge):  # type: ignore[no-untyped-def]
    """By a symmetric elimination, or by least squares where that breaks down and k is small."""
    matrix = sparse.coo_array((values, (rows, columns)), shape=(k, k)).tocsc()
    matrix = matrix + ridge * sparse.eye_array(k, format="csc")
    options = {"SymmetricMode": True}  # pivots are taken as they come: that keeps the fill low
    try:
        step = splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options).solve(right)
    except RuntimeError:
        if k > _DENSE:
            raise
        return _solve_psd(matrix.toarray(), right)
    return step


def _solve_psd(matrix: NDArray[Any], right: Array) -> Array:
    """By Cholesky, or by least squares when rounding errors make the matrix indefinite."""
    try:
        factor = linalg.cho_factor(matrix, lower=True, check_finite=False)
        return np.asarray(linalg.cho_solve(factor, right, check_finite=False), dtype=float)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-13)[0], dtype=float)


def _search(problem: Problem, w: Array, move: Array) -> tuple[Array, float]:
    """Exact line search on [0, 1] by the sign of the slope; returns the point and the decrease."""
    graph, loss = problem.graph, problem.loss
    diff, change = graph.diff(w), graph.diff(move)
    on = np.flatnonzero(row_largest(change) > 0)
    diff, change, scale = diff[on], change[on], problem.scale[on]
    penalty = problem.penalty.at(on)
    ends = [float(np.vdot(loss.grad(w + t * move), move)) for t in (0.0, 1.0)]

    def slope(t: float) -> float:
        if t in (0.0, 1.0):
            inner = ends[int(t)]
        elif loss.affine_grad:
            inner = ends[0] + t * (ends[1] - ends[0])
        else:
            inner = float(np.vdot(loss.grad(w + t * move), move))
        along = _gradient(penalty, diff + t * change) * change
        found = inner + float(scale @ along.sum(axis=1))
        return np.inf if np.isnan(found) else found  # where exponentials overflow

    start = slope(0.0)
    high = _first_rise(slope, start)
    before, trial = problem.objective(w), w + high * move
    after = problem.objective(trial)
    if not after <= before:
        return w, 0.0
    return trial, max(before - after, -start * 1e-3 if high == 1.0 else 0.0)


def _vanished(problem: Problem, w: Array) -> NDArray[np.bool_]:
    """Entries whose difference has become negligible, to be fused."""
    if not problem.penalty.is_norm:
        return np.zeros((problem.graph.n_edges, problem.d), dtype=bool)
    diff = np.abs(problem.graph.diff(w))
    small = diff <= _NEGLIGIBLE * np.ptp(w, axis=0)
    if problem.penalty.entrywise:
        return small
    return np.repeat(row_all(small)[:, None], problem.d, axis=1)


def _first_rise(slope: Callable[[float], float], start: float) -> float:
    """End of the descent on [0, 1] of a convex function, by the Illinois method on its slope."""
    if not start < 0:
        return 0.0
    low, high, below, above = 0.0, 1.0, start, slope(1.0)
    side = 0
    for k in range(_MOST_TRIALS):
        if above <= _LEVEL * abs(start) or high - low <= 1e-12 * high:
            break
        middle = low - below * (high - low) / (above - below)
        middle = min(max(middle, low + 0.01 * (high - low)), high - 0.01 * (high - low))
        if k >= _INTERPOLATED and above > _STEEP * abs(start):  # of exponentials, say
            middle = 0.5 * (low + high)
        value = slope(middle)
        if value > 0:
            high, above = middle, value
            below, side = (0.5 * below if side == 1 else below), 1
        else:
            low, below = middle, value
            above, side = (0.5 * above if side == -1 else above), -1
    return high
