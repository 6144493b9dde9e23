"""The same problems for a general cone solver, and whether they have a minimiser at all."""

from __future__ import annotations

import time
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
from every_problem_cases import Case
from scipy import sparse
from scipy.optimize import linprog

from nefele.losses import Absolute, Hinge, HuberLoss, Logistic, Multinomial, Poisson, Squared
from nefele.penalties import (
    ByEdge,
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Quadratic,
    SquaredL2,
)

LIMIT = 60.0  # seconds that the cone solver may take


def groups(case: Case) -> list[tuple[Any, np.ndarray]]:
    """Each kind of loss with the nodes, by position, that have it and rows."""
    found: dict[str, tuple[Any, list[int]]] = {}
    for i in np.flatnonzero(case.data.labelled).tolist():
        loss = case.loss_of(i)
        found.setdefault(repr(loss), (loss, []))[1].append(i)
    return [(loss, np.array(nodes)) for loss, nodes in found.values()]


def rows_of(case: Case, nodes: np.ndarray, length: int, classes: int = 1) -> tuple[Any, Any]:
    """The rows of some nodes, and the matrix that maps all parameters to their predictions."""
    data, d = case.data, case.data.d
    rows = np.flatnonzero(np.isin(data.row_node, nodes))
    count = len(rows)
    start = data.row_node[rows] * length
    i = np.repeat(np.arange(count * classes), d)
    j = (start[:, None, None] + np.arange(classes)[:, None] * d + np.arange(d)).ravel()
    values = np.repeat(data.X[rows][:, None, :], classes, axis=1).ravel()
    shape = (count * classes, case.graph.n_nodes * length)
    return rows, sparse.csr_array((values, (i, j)), shape=shape)


def _fit(loss: Any, z: Any, y: Any, c: Any) -> Any:
    if isinstance(loss, Squared):
        return cp.sum_squares(cp.multiply(np.sqrt(c), z - y))
    if isinstance(loss, Logistic):
        return c @ cp.logistic(cp.multiply(-y, z))
    if isinstance(loss, Poisson):
        return c @ (cp.exp(z) - cp.multiply(y, z))
    if isinstance(loss, HuberLoss):
        return 0.5 * (c @ cp.huber(z - y, loss.delta))
    if isinstance(loss, Absolute):
        return c @ cp.abs(z - y)
    if isinstance(loss, Hinge):
        return c @ cp.pos(1 - cp.multiply(y, z))
    raise TypeError(loss)


def _coupling(penalty: Any, v: Any, s: Any, constraints: list[Any]) -> Any:
    if isinstance(penalty, ByEdge):
        kinds = [(p, np.flatnonzero(penalty.kind == k)) for k, p in enumerate(penalty.penalties)]
        return sum(_coupling(p, v[on], s[on], constraints) for p, on in kinds if len(on))
    if isinstance(penalty, Partial):
        return _coupling(penalty.penalty, v[:, list(penalty.on)], s, constraints)
    if isinstance(penalty, L1Norm):
        return s @ cp.sum(cp.abs(v), axis=1)
    if isinstance(penalty, L2Norm):
        return s @ cp.norm(v, 2, axis=1)
    if isinstance(penalty, LinfNorm):
        return s @ cp.max(cp.abs(v), axis=1)
    if isinstance(penalty, SquaredL2):
        return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(s)[:, None], v))
    if isinstance(penalty, Quadratic):
        values, vectors = np.linalg.eigh(penalty.Q)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        root = root[:, values > 1e-12 * values.max()]
        return 0.5 * cp.sum_squares(cp.multiply(np.sqrt(s)[:, None], v @ root))
    if isinstance(penalty, HuberPenalty):
        return s @ cp.huber(cp.norm(v, 2, axis=1), penalty.delta) / (2 * penalty.delta)
    if isinstance(penalty, Lp):
        m, k = v.shape
        r, t = cp.Variable((m, k)), cp.Variable(m)
        wide = cp.reshape(t, (m, 1), order="C") @ np.ones((1, k))
        flat = [cp.reshape(x, (m * k,), order="C") for x in (r, wide, v)]
        constraints += [cp.PowCone3D(*flat, 1 / penalty.p), cp.sum(r, axis=1) == t]
        return s @ t
    raise TypeError(penalty)


def cone(case: Case, held: Any = None) -> tuple[float, np.ndarray | None, float]:
    """CPU seconds of CVXPY with Clarabel, its point (None without one), and Clarabel's own time.

    `held` has the weights of squares that are added, shape (n_nodes, d).
    """
    problem = case.problem()
    n, d, data, graph = case.graph.n_nodes, problem.d, problem.data, case.graph
    started = time.process_time()
    w = cp.Variable(n * d)
    terms, constraints = [], []
    for loss, nodes in groups(case):
        classes = loss.n_classes if isinstance(loss, Multinomial) else 1
        rows, matrix = rows_of(case, nodes, d, classes)
        c, y = data.row_weight[rows], data.y[rows]
        z = matrix @ w
        if classes > 1:
            z = cp.reshape(z, (len(rows), classes), order="C")
            hot = np.eye(classes)[y.astype(int)]
            terms.append(c @ (cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(hot, z), axis=1)))
        else:
            terms.append(_fit(loss, z, y, c))
        at = (nodes[:, None] * d + np.arange(d)).ravel()
        if loss.l2:
            terms.append(loss.l2 * cp.sum_squares(w[at]))
        if loss.l1:
            terms.append(loss.l1 * cp.norm1(w[at]))
    if held is not None:
        terms.append(cp.sum_squares(cp.multiply(np.sqrt(held).ravel(), w)))
    v = graph.incidence_t.T @ cp.reshape(w, (n, d), order="C")
    terms.append(_coupling(case.penalty, v, problem.scale, constraints))
    model = cp.Problem(cp.Minimize(sum(terms)), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.solve(solver=cp.CLARABEL, max_iter=200, time_limit=LIMIT)
    except (cp.error.SolverError, ValueError):
        return time.process_time() - started, None, np.inf
    seconds = time.process_time() - started
    point = None if w.value is None else np.asarray(w.value).reshape(n, d)
    own = model.solver_stats.solve_time if model.solver_stats is not None else None
    return seconds, point, np.inf if own is None else float(own)


def running_away(case: Case) -> np.ndarray:
    """Nodes that may run to infinity while the objective falls for ever, shape (n_nodes,).

    A direction along which nothing rises: equal over edges where they are coupled, without effect
    on rows that are pinned, uphill for none. One linear programme for all nodes together asks for
    one along which as many rows as possible fall.
    """
    problem = case.problem()
    n, d, data = case.graph.n_nodes, problem.d, problem.data
    pinned, free, owner = [_held_together(case.penalty, case.graph, d)], [], []
    for loss, nodes in groups(case):
        at = (nodes[:, None] * d + np.arange(d)).ravel()
        if loss.l2 or loss.l1:
            pinned.append(sparse.eye_array(n * d, format="csr")[at])
        classes = loss.n_classes if isinstance(loss, Multinomial) else 1
        rows, matrix = rows_of(case, nodes, d, classes)
        y = data.y[rows]
        if isinstance(loss, Logistic):
            free.append(sparse.diags_array(y) @ matrix)
            owner.append(data.row_node[rows])
        elif isinstance(loss, Poisson):
            pinned.append(matrix[y > 0])
            free.append(-matrix[y == 0])
            owner.append(data.row_node[rows][y == 0])
        elif isinstance(loss, Multinomial):
            places = np.arange(len(rows)) * classes
            for k in range(classes):
                other = y != k
                free.append((matrix[places + y.astype(int)] - matrix[places + k])[other])
                owner.append(data.row_node[rows][other])
        elif isinstance(loss, Hinge):
            continue  # its infimum is attained; along with others it may only not rise
        else:
            pinned.append(matrix)
    out = np.zeros(n, dtype=bool)
    if not free:
        return out
    hinges = [
        sparse.diags_array(data.y[rows]) @ matrix
        for loss, nodes in groups(case)
        if isinstance(loss, Hinge)
        for rows, matrix in [rows_of(case, nodes, d)]
    ]
    falls, equal = sparse.vstack(free).tocsr(), sparse.vstack(pinned).tocsr()
    falls, equal = _unit_rows(falls), _unit_rows(equal)
    m = falls.shape[0]
    # maximise sum of g, 0 <= g <= 1, g <= falls t; t free: a cone, so g is 0 or may be 1
    upper = sparse.hstack([-falls, sparse.eye_array(m)])
    if hinges:
        more = _unit_rows(sparse.vstack(hinges).tocsr())
        upper = sparse.vstack([upper, sparse.hstack([-more, sparse.csr_array((more.shape[0], m))])])
    both = sparse.hstack([equal, sparse.csr_array((equal.shape[0], m))])
    cost = np.concatenate([np.zeros(n * d), -np.ones(m)])
    bounds = [(None, None)] * (n * d) + [(0, 1)] * m
    zero, none = np.zeros(upper.shape[0]), np.zeros(both.shape[0])
    found = linprog(cost, A_ub=upper, b_ub=zero, A_eq=both, b_eq=none, bounds=bounds)
    if found.status == 0:
        out[np.concatenate(owner)[found.x[n * d :] > 0.5]] = True
    return out


def _held_together(penalty: Any, graph: Any, d: int) -> Any:
    """Rows that vanish exactly for parameters without any penalty."""
    differences = graph.incidence_t.T.tocsr()
    if not isinstance(penalty, ByEdge):
        return sparse.kron(differences, _coupled(penalty, d)).tocsr()
    rows = [
        sparse.kron(differences[np.flatnonzero(penalty.kind == k)], _coupled(kind, d))
        for k, kind in enumerate(penalty.penalties)
        if (penalty.kind == k).any()
    ]
    return sparse.vstack(rows).tocsr()


def _coupled(penalty: Any, d: int) -> Any:
    """A matrix that vanishes exactly for differences without any penalty."""
    if isinstance(penalty, Partial):
        inner = penalty.penalty
        Q = inner.Q if isinstance(inner, Quadratic) else np.eye(len(penalty.on))
        return Q @ np.eye(d)[list(penalty.on)]
    return penalty.Q if isinstance(penalty, Quadratic) else np.eye(d)


def _unit_rows(matrix: Any) -> Any:
    size = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    return sparse.diags_array(1 / np.where(size > 0, size, 1.0)) @ matrix
