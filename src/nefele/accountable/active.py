"""Which problems can be explained, what a norm holds together, and solves with their curvature."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.graph import Graph
from nefele.penalties import L1Norm, L2Norm, LinfNorm, Lp, Penalty
from nefele.penalties.partial import Partial
from nefele.problem import Problem

Mask = NDArray[np.bool_]

_EQUAL = 1e-5  # share of the spread up to which two models count as one, as in `Result.clusters`
_ROUNDING = 1e-9  # what a solve to a gap of 1e-10 leaves between equal models
_REFINEMENTS = 3
_FLAT = 1e-11  # of curvature, relative to the largest
_MOST_FACES = 2_000  # unknowns on the faces of linf balls
_CLOSED: dict[float, Penalty] = {1.0: L1Norm(), 2.0: L2Norm(), math.inf: LinfNorm()}


def inner_penalty(problem: Problem) -> tuple[Penalty, NDArray[np.int64]]:
    """The penalty of the coupled entries, and which these are."""
    penalty: Penalty = problem.penalty
    on = np.arange(problem.d)
    if isinstance(penalty, Partial):
        on = np.array(penalty.on)
        penalty = penalty.penalty
    if isinstance(penalty, Lp):
        penalty = _CLOSED.get(float(penalty.p), penalty)
    return penalty, on


def check_explicable(problem: Problem) -> None:
    """Raise ValueError where there is no formula."""
    if not problem.loss.smooth:
        raise ValueError(
            "An explanation needs differentiable losses; got one without a gradient (absolute, "
            "hinge or an l1 term). Use squared, huber or logistic, without l1."
        )
    inner, _ = inner_penalty(problem)
    if problem.coupled and not (inner.twice or isinstance(inner, LinfNorm)):
        raise ValueError(
            "An explanation needs a penalty with second derivatives away from zero (squared_l2, "
            f"quadratic, huber, l2, l1, p-norms with p > 2) or linf; got {problem.penalty!r}."
        )


def fused_entries(problem: Problem, w: Array, v: Array) -> Mask:
    """Entries that a norm holds equal over an edge, shape (n_edges, d)."""
    out = np.zeros(v.shape, dtype=bool)
    if not problem.penalty.is_norm or not problem.coupled:
        return out
    inner, on = inner_penalty(problem)
    small = np.abs(v[:, on]) <= _slack(w[:, on])
    out[:, on] = small if isinstance(inner, L1Norm) else small.all(axis=1, keepdims=True)
    return out


def largest_entries(problem: Problem, w: Array, v: Array, fused: Mask) -> Mask:
    """Entries at which linf takes its largest difference, shape (n_edges, d); else none."""
    out = np.zeros(v.shape, dtype=bool)
    inner, on = inner_penalty(problem)
    if not isinstance(inner, LinfNorm) or not problem.coupled:
        return out
    size = np.abs(v[:, on])
    top = size >= size.max(axis=1, keepdims=True) - _slack(w[:, on])
    out[:, on] = top & ~fused[:, on]
    return out


def _slack(w: Array) -> float:
    """Differences up to this count as none."""
    spread = float(np.ptp(w, axis=0).max(initial=0.0))
    return max(_EQUAL * spread, _ROUNDING * float(np.abs(w).max(initial=0.0)))


def ties(graph: Graph, d: int, fused: Mask) -> sparse.csr_array:
    """From the parameters that are free to those of all nodes, equal ones moving as one."""
    n = graph.n_nodes
    if not fused.any():
        return sparse.csr_array(sparse.eye_array(n * d))
    place, count = np.empty((n, d), dtype=np.int64), 0
    for k in range(d):
        place[:, k] = count + graph.joined(fused[:, k])
        count = int(place[:, k].max()) + 1
    flat = place.ravel()
    return sparse.csr_array((np.ones(n * d), (np.arange(n * d), flat)), shape=(n * d, count))


def faces(graph: Graph, v: Array, largest: Mask, T: sparse.csr_array) -> sparse.csr_array:
    """The same where an edge of linf also keeps its largest differences equally large.

    Several entries at the largest difference stay on that face of the ball: s_k v_k = s_l v_l.
    """
    d = v.shape[1]
    count = 0
    entries: list[tuple[int, int, float]] = []
    for e in np.flatnonzero(largest.sum(axis=1) > 1):
        first, *others = np.flatnonzero(largest[e])
        for k in others:
            for entry, sign in ((k, 1.0), (first, -1.0)):
                side = sign * np.sign(v[e, entry])
                entries.append((count, int(graph.head[e]) * d + int(entry), side))
                entries.append((count, int(graph.tail[e]) * d + int(entry), -side))
            count += 1
    if not count:
        return T
    T = sparse.csr_array(T @ sparse.diags_array(1 / np.sqrt(np.asarray(T.sum(axis=0)).ravel())))
    i, j, values = (np.array(column) for column in zip(*entries, strict=True))
    held = sparse.csr_array((values, (i, j)), shape=(count, T.shape[0])) @ T
    on = np.flatnonzero(abs(held).sum(axis=0) > 0)
    if len(on) > _MOST_FACES:
        raise ValueError(
            f"An explanation with linf needs at most {_MOST_FACES} parameters whose largest "
            f"differences agree; got {len(on)}. Use l2 or l1."
        )
    basis = linalg.null_space(held[:, on].toarray())
    off = np.setdiff1d(np.arange(T.shape[1]), on)
    return sparse.csr_array(sparse.hstack([T[:, off], T[:, on] @ sparse.csr_array(basis)]))


def rooted(T: sparse.csr_array, diagonal: Array, part: Mask, d: int) -> sparse.csr_array:
    """The same ties in another basis: for each parameter one column moves all of a component.

    Edges do not feel it at all, so that a coupling that is much stronger than what the data say
    of a parameter does not drown it. Of its groups, that with most curvature gives way.

    Examples
    --------
    >>> T = sparse.csr_array(sparse.eye_array(2))
    >>> rooted(T, np.array([1.0, 3.0]), np.array([True, True]), 1).toarray().tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    columns = sparse.csc_array(T)
    first = columns.indices[columns.indptr[:-1]]
    curved, inside = np.asarray(T.T @ diagonal), part[first // d]
    others: list[Array] = []
    for k in range(d):
        own = np.flatnonzero(inside & (first % d == k))
        top = int(own[curved[own].argmax()])
        own = own[own != top]
        others.append(np.column_stack([own, np.full(len(own), top)]))
    i, j = np.concatenate(others).T
    size = T.shape[1]
    more = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(size, size))
    return sparse.csr_array(T @ (sparse.eye_array(size) + more))


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


def least_solver(matrix: sparse.csc_array) -> Callable[[Array], Array]:
    """Solver of a positive semidefinite system, the smallest of several solutions.

    Examples
    --------
    >>> least_solver(sparse.csc_array(np.diag([2.0, 0.0])))(np.array([[2.0], [0.0]])).tolist()
    [[1.0], [0.0]]
    """
    if matrix.shape[0] > _MOST_FACES:
        raise ValueError(
            f"An explanation of classes with linf needs at most {_MOST_FACES} parameters; got "
            f"{matrix.shape[0]}. Use l2 or l1."
        )
    inverse = np.linalg.pinv(matrix.toarray(), rcond=_FLAT, hermitian=True)

    def solve(right: Array) -> Array:
        w = inverse @ right
        for _ in range(_REFINEMENTS):
            w = w + inverse @ (right - matrix @ w)
        return np.asarray(w)

    return solve
