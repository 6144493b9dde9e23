"""The problem written out naively and handed to a general cone solver."""

import warnings

import cvxpy as cp
import numpy as np

from nefele import Problem
from nefele.losses import (
    Absolute,
    Hinge,
    HuberLoss,
    Logistic,
    Multinomial,
    Poisson,
    Quantile,
    Squared,
    SquaredHinge,
)
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


def _node_term(loss, X, y, c, w, offset=0.0):
    """sum_r c_r f(x_r^T w + o_r, y_r); a multinomial node has one vector per class."""
    if isinstance(loss, Multinomial):
        z = X @ cp.reshape(w, (loss.n_classes, X.shape[1]), order="C").T
        hot = np.eye(loss.n_classes)[y.astype(int)]
        return c @ (cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(hot, z), axis=1))
    return c @ _row_terms(loss, X @ w + offset, y)


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
    if isinstance(loss, SquaredHinge):
        return cp.square(cp.pos(1 - cp.multiply(y, z)))
    if isinstance(loss, Quantile):
        return cp.maximum(loss.q * (y - z), (1 - loss.q) * (z - y))
    raise TypeError(loss)


def edge_term(penalty, v):
    if isinstance(penalty, Partial):
        return edge_term(penalty.penalty, v[list(penalty.on)])
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
    if isinstance(penalty, HuberPenalty):
        d = penalty.delta
        return cp.huber(cp.norm2(v), d) / (2 * d)
    raise TypeError(penalty)


def terms_of(graph, data, loss, penalty, lam):
    """The variable, of shape (n_nodes, d), and the terms of the objective, one by one."""
    data = data.align(graph.ids)
    d = data.d * getattr(loss, "n_classes", 1)
    w = cp.Variable((graph.n_nodes, d))
    terms = []
    for i in range(graph.n_nodes):
        rows = slice(data.ptr[i], data.ptr[i + 1])
        c = data.row_weight[rows]
        if c.sum() == 0:
            continue
        offset = 0.0 if data.offset is None else data.offset[rows]
        terms.append(_node_term(loss, data.X[rows], data.y[rows], c, w[i], offset))
        seen = w[i] if data.shrink is None else cp.multiply(np.tile(data.shrink, d // data.d), w[i])
        l2, l1 = (np.resize(weight, d) for weight in (loss.l2, loss.l1))
        terms.append(cp.sum(cp.multiply(l2, cp.square(seen)) + cp.multiply(l1, cp.abs(seen))))
    for e in range(graph.n_edges):
        v = w[int(graph.head[e])] - w[int(graph.tail[e])]
        kind = penalty.penalties[penalty.kind[e]] if isinstance(penalty, ByEdge) else penalty
        terms.append(lam * graph.weight[e] * edge_term(kind, v))
    return w, terms


def solved(w, terms, constraints=()):
    """Optimal value, None when the solver calls it inaccurate, and the point."""
    problem = cp.Problem(cp.Minimize(sum(terms)), list(constraints))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        for tol in (1e-11, 1e-9, 1e-8):
            precision = {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol}
            problem.solve(solver=cp.CLARABEL, max_iter=500, **precision)
            if problem.status == cp.OPTIMAL:
                break
    assert problem.status in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE), problem.status
    return (float(problem.value) if problem.status == cp.OPTIMAL else None), w.value


def oracle(graph, data, loss, penalty, lam):
    """Optimal value by CVXPY with Clarabel, node by node and edge by edge.

    Returns the solver's value (None when it calls it inaccurate) and nefele's objective at the
    solver's point.
    """
    value, w = solved(*terms_of(graph, data, loss, penalty, lam))
    # The objective at the oracle's own point: feasible, so never below the optimum.
    return value, Problem(graph, data, loss=loss, penalty=penalty, lam=lam).objective(w)
