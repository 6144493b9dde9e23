"""Least congested vector flows in the Euclidean norm, by a barrier method.

min t subject to C f = right, ||f_e|| <= t is a second-order cone programme (f = u / A, see
`nefele.theory.tree_basis`). Newton steps on s t - sum_e log(t^2 - ||f_e||^2) follow its central
path as s grows; the multipliers of the equation prove a lower bound (Boyd and Vandenberghe,
Ch. 11).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import splu

from nefele._checks import Array

_DENSE = 800  # unknowns up to which the Newton system is factorised as a dense matrix
_FULL = 0.1  # share of entries from which on it is no sparse matrix
_GROWTH = 20.0
_MOST_STEPS = 150
_CENTRED = 0.1  # Newton decrement at which s grows
_GOAL = 1e-10  # relative distance of the bounds
_REFINEMENTS = 2  # of each Newton system


def cone_flow(C: sparse.csr_array, right: Array) -> tuple[Array, Array]:
    """The f with C f = right and the least max_e ||f_e||, and the multipliers that prove it.

    C has shape (k, n_edges) and full row rank, `right` and the multipliers (k, d). Flow and
    multipliers are the best found; their bounds tell how good they are.
    """
    flow = _least_squares(C, right)
    top = _load(flow)
    best_flow, best_y, lower = flow, np.zeros_like(right), 0.0
    f, t = flow, 1.5 * top
    s = 2 * len(flow) / t
    for _ in range(_MOST_STEPS):
        try:
            df, dt, y, decrement = _newton_step(C, f, t, s)
        except (LinAlgError, RuntimeError):
            break  # as far as floating point goes
        if not np.isfinite(decrement):
            break
        new = _cut(C, right, y)
        if new > lower:
            best_y, lower = y, new
        moved = _line_search(f, t, s, df, dt)
        if moved is None and decrement > 1.0:
            break
        f, t = (f, t) if moved is None else moved
        if _load(f) < top:
            best_flow, top = f, _load(f)
        if top - lower <= _GOAL * top:
            break
        if moved is None or decrement < _CENTRED:
            s *= _GROWTH
    return best_flow, best_y


def _least_squares(C: sparse.csr_array, right: Array) -> Array:
    """The f of least norm with C f = right."""
    d = right.shape[1]
    solve = block_solver(C, np.broadcast_to(np.eye(d), (C.shape[1], d, d)))
    return np.asarray(C.T @ solve(right))


def _load(f: Array) -> float:
    return float(np.sqrt((f * f).sum(axis=1)).max())


def _cut(C: sparse.csr_array, right: Array, y: Array) -> float:
    top = np.abs(y).max()
    if not 0 < top < np.inf:
        return 0.0
    y = y / top  # multipliers of an ill-conditioned step can be too large to square
    total = float(np.sqrt(((C.T @ y) ** 2).sum(axis=1)).sum())
    return float((right * y).sum()) / total if total > 0 else 0.0


def _room(f: Array, t: float) -> Array:
    """t^2 - ||f_e||^2, as a product so that small values keep their digits."""
    size = np.sqrt((f * f).sum(axis=1))
    return np.asarray((t - size) * (t + size))


def _newton_step(
    C: sparse.csr_array, f: Array, t: float, s: float
) -> tuple[Array, float, Array, float]:
    """Steps of f and t, the multipliers of C f = right, and the decrement.

    With g, h, b the gradient in f, the mixed and the second derivative in t, and K the inverse
    Hessian in f, block by block: df = K (C^T y - g - h dt), where C df = 0 fixes y.
    """
    q = _room(f, t)
    slope = 2 * f / q[:, None]
    mixed = (-4 * t / q**2)[:, None] * f
    slope_t = s - float((2 * t / q).sum())
    bend_t = float(((4 * t * t / q - 2) / q).sum())
    outer = f[:, :, None] * f[:, None, :]
    both = t * t + (f * f).sum(axis=1)
    K = (q / 2)[:, None, None] * np.eye(f.shape[1]) - (q / both)[:, None, None] * outer
    solve = block_solver(C, K)

    def conserving(force: Array) -> tuple[Array, Array]:
        """Multipliers y with C K (C^T y - force) = 0, and K (C^T y - force)."""
        y = solve(C @ (K @ force[..., None])[..., 0])
        moved = (K @ (C.T @ y - force)[..., None])[..., 0]
        for _ in range(_REFINEMENTS):
            fix = solve(C @ moved)
            y, moved = y - fix, moved - (K @ (C.T @ fix)[..., None])[..., 0]
        return y, moved

    y1, f1 = conserving(slope)
    y2, f2 = conserving(mixed)
    dt = -(slope_t + float((mixed * f1).sum())) / (bend_t + float((mixed * f2).sum()))
    df = f1 + dt * f2
    fall = -float((slope * df).sum()) - slope_t * dt
    return df, dt, y1 + dt * y2, float(np.sqrt(max(fall, 0.0)))


def block_solver(C: sparse.csr_array, K: Array) -> Callable[[Array], Array]:
    """Solver of C K C^T y = right, with K one block per edge, shape (n_edges, d, d)."""
    m, d = K.shape[:2]
    blocks = sparse.bsr_array((K, np.arange(m), np.arange(m + 1)), shape=(m * d, m * d))
    wide = sparse.kron(C, sparse.eye_array(d), format="csr")
    matrix = wide @ blocks.tocsr() @ wide.T
    scale = 1 / np.sqrt(matrix.diagonal())
    matrix = sparse.diags_array(scale) @ matrix @ sparse.diags_array(scale)
    if matrix.shape[0] <= _DENSE or matrix.nnz > _FULL * matrix.shape[0] ** 2:
        inner = partial(cho_solve, cho_factor(matrix.toarray(), lower=True))
    else:
        inner = splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A").solve

    def solve(right: Array) -> Array:
        return np.asarray(scale * inner(scale * right.ravel())).reshape(-1, d)

    return solve


def _line_search(f: Array, t: float, s: float, df: Array, dt: float) -> tuple[Array, float] | None:
    """A step that stays inside the cones and lowers the barrier function; None if there is none."""

    def value(step: float) -> float:
        q = _room(f + step * df, t + step * dt)
        if t + step * dt <= 0 or not (q > 0).all():
            return np.inf
        return s * step * dt - float(np.log(q / now).sum())

    now = _room(f, t)
    step = 1.0
    for _ in range(40):
        if value(step) < 0:
            return f + step * df, t + step * dt
        step *= 0.5
    return None
