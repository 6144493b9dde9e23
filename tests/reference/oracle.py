"""The problem written out naively and handed to a general cone solver."""

import cvxpy as cp
import numpy as np

from nefele import Problem
from nefele.losses import (
    Absolute,
    Hinge,
    HuberLoss,
    Logistic,
    Poisson,
    Squared,
)
from nefele.penalties import Huber, L1Norm, L2Norm, LinfNorm, Lp, Quadratic, SquaredL2


def _row_terms(loss, z, y):
    if isinstance(loss, Squared):
        return cp.square(z - y)
    if isinstance(loss, Logistic):
        return cp.logistic(cp.multiply(-y, z))
    if isinstance(loss, Poisson):
        return cp.exp(z) - cp.multiply(y, z)
    if isinstance(loss, HuberLoss):
        return 0.5 * cp.huber(z - y, loss.delta)
    if isinstance(loss, Absolute):
        return cp.abs(z - y)
    if isinstance(loss, Hinge):
        return cp.pos(1 - cp.multiply(y, z))
    raise TypeError(loss)


def _edge_term(penalty, v):
    if isinstance(penalty, L1Norm):
        return cp.norm1(v)
    if isinstance(penalty, L2Norm):
        return cp.norm2(v)
    if isinstance(penalty, LinfNorm):
        return cp.norm_inf(v)
    if isinstance(penalty, Lp):
        return cp.pnorm(v, penalty.p)
    if isinstance(penalty, SquaredL2):
        return 0.5 * cp.sum_squares(v)
    if isinstance(penalty, Quadratic):
        return 0.5 * cp.quad_form(v, cp.psd_wrap(penalty.Q))
    if isinstance(penalty, Huber):
        d = penalty.delta
        return cp.huber(cp.norm2(v), d) / (2 * d)
    raise TypeError(penalty)


def oracle(graph, data, loss, penalty, lam):
    """Optimal value by CVXPY with Clarabel, node by node and edge by edge."""
    data = data.align(graph.ids)
    d = data.d
    w = cp.Variable((graph.n_nodes, d))
    terms = []
    for i in range(graph.n_nodes):
        rows = slice(data.ptr[i], data.ptr[i + 1])
        c = data.row_weight[rows]
        if c.sum() == 0:
            continue
        terms.append(c @ _row_terms(loss, data.X[rows] @ w[i], data.y[rows]))
        terms.append(loss.l2 * cp.sum_squares(w[i]) + loss.l1 * cp.norm1(w[i]))
    for e in range(graph.n_edges):
        v = w[int(graph.head[e])] - w[int(graph.tail[e])]
        terms.append(lam * graph.weight[e] * _edge_term(penalty, v))
    problem = cp.Problem(cp.Minimize(sum(terms)))
    problem.solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11, max_iter=500
    )
    # The objective at the oracle's own point: feasible, so never below the optimum.
    point = Problem(graph, data, loss=loss, penalty=penalty, lam=lam).objective(w.value)
    return float(problem.value), point
