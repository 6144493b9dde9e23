"""Which problems can be explained, what a norm holds together, and solves with their curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.penalties import L1Norm, L2Norm
from nefele.penalties.partial import Partial
from nefele.problem import Problem

Mask = NDArray[np.bool_]

_EQUAL = 1e-5  # share of the spread up to which two models count as one, as in `Result.clusters`
_ROUNDING = 1e-12
_REFINEMENTS = 3


def check_explicable(problem: Problem) -> None:
    """Raise ValueError where there is no formula."""
    if not problem.loss.smooth:
        raise ValueError(
            "An explanation needs differentiable losses; got one without a gradient (absolute, "
            "hinge or an l1 term). Use squared, huber or logistic, without l1."
        )
    inner = problem.penalty.penalty if isinstance(problem.penalty, Partial) else problem.penalty
    known = not inner.is_norm or isinstance(inner, L1Norm | L2Norm)
    if problem.coupled and not (known and problem.penalty.twice):
        raise ValueError(
            "An explanation needs the penalty squared_l2, quadratic, huber, l2 or l1; got "
            f"{problem.penalty!r}."
        )


def fused_entries(problem: Problem, w: Array, v: Array) -> Mask:
    """Entries that a norm holds equal over an edge, shape (n_edges, d)."""
    out = np.zeros(v.shape, dtype=bool)
    penalty = problem.penalty
    if not penalty.is_norm or not problem.coupled:
        return out
    on = np.array(penalty.on) if isinstance(penalty, Partial) else np.arange(problem.d)
    inner = penalty.penalty if isinstance(penalty, Partial) else penalty
    spread = float(np.ptp(w[:, on], axis=0).max(initial=0.0))
    size = float(np.abs(w[:, on]).max(initial=0.0))
    small = np.abs(v[:, on]) <= max(_EQUAL * spread, _ROUNDING * size)
    out[:, on] = small if isinstance(inner, L1Norm) else small.all(axis=1, keepdims=True)
    return out


def refined_solver(matrix: sparse.csc_array) -> Callable[[Array], Array]:
    """Solver of a positive definite system, scaled and refined.

    Examples
    --------
    >>> refined_solver(sparse.csc_array(np.diag([2.0, 4.0])))(np.array([[2.0], [2.0]])).tolist()
    [[1.0], [0.5]]
    """
    scale = 1 / np.sqrt(matrix.diagonal())
    scaled = sparse.csc_array(sparse.diags_array(scale) @ matrix @ sparse.diags_array(scale))
    try:
        factor = splu(scaled)
    except RuntimeError:  # exactly singular
        return lambda right: np.full(right.shape, np.nan)

    def solve(right: Array) -> Array:
        w = scale[:, None] * factor.solve(scale[:, None] * right)
        for _ in range(_REFINEMENTS):
            w = w + scale[:, None] * factor.solve(scale[:, None] * (right - matrix @ w))
        return np.asarray(w)

    return solve
