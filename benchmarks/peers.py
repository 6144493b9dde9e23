"""What nefele is compared with in its own environment: cone solvers, and loops over the nodes."""

from __future__ import annotations

import time
from contextlib import suppress

import numpy as np

NAMES = {"CLARABEL": "CVXPY + Clarabel", "SCS": "CVXPY + SCS"}


def cone(problem, solver: str, eps: float, limit: float):
    """CVXPY on the problem written with sparse matrices: seconds, and w or None.

    `eps` is the solver's tolerance, `limit` its time limit in seconds. The seconds are those of
    CVXPY's `solve`: translation and solver.
    """
    import cvxpy as cp

    w, model = _written(problem)
    options = {
        "CLARABEL": dict(tol_gap_abs=eps, tol_gap_rel=eps, tol_feas=eps, time_limit=limit),
        "SCS": dict(eps_abs=eps, eps_rel=eps, time_limit_secs=limit, max_iters=10**7),
    }[solver]
    started = time.process_time()
    with suppress(cp.SolverError):
        model.solve(solver=solver, **options)
    seconds = time.process_time() - started
    shape = (problem.graph.n_nodes, problem.d)
    return seconds, None if w.value is None else w.value.reshape(shape)


def _written(problem):
    """The problem in CVXPY: squared, logistic, Poisson or multinomial loss, l2 penalty."""
    import cvxpy as cp
    from scipy import sparse

    graph, data, d = problem.graph, problem.data, problem.d
    n, m, features = graph.n_nodes, data.n_rows, data.d
    kind = type(getattr(problem.loss, "loss", problem.loss)).__name__.removeprefix("Bound")
    classes = d // features
    w = cp.Variable(n * d)
    inner = np.arange(classes)[:, None] * features + np.arange(features)
    columns = (data.row_node[:, None, None] * d + inner).ravel()
    values = np.repeat(data.X[:, None, :], classes, axis=1).ravel()
    starts = np.arange(0, m * d + 1, features)
    X = sparse.csr_array((values, columns, starts), shape=(m * classes, n * d))
    z, y, c = X @ w, data.y, data.row_weight
    if kind == "Logistic":
        fit = c @ cp.logistic(cp.multiply(-y, z))
    elif kind == "Poisson":
        fit = c @ (cp.exp(z) - cp.multiply(y, z))
    elif kind == "Multinomial":
        z, hot = cp.reshape(z, (m, classes), order="C"), np.eye(classes)[y.astype(int)]
        fit = c @ (cp.log_sum_exp(z, axis=1) - cp.sum(cp.multiply(hot, z), axis=1))
    else:
        fit = cp.sum_squares(sparse.diags_array(np.sqrt(c)) @ X @ w - np.sqrt(c) * y)
    D = sparse.kron(graph.incidence_t.T, sparse.eye_array(d)).tocsr()
    V = cp.reshape(D @ w, (graph.n_edges, d), order="C")
    return w, cp.Problem(cp.Minimize(fit + problem.scale @ cp.norm(V, 2, axis=1)))


class NodeByNode:
    """Algorithm 1 in the style of notebook code: Python loops and a dense incidence matrix."""

    def __init__(self, problem) -> None:
        graph, data, d = problem.graph, problem.data, problem.d
        self.D = np.zeros((graph.n_edges, graph.n_nodes))
        self.D[np.arange(graph.n_edges), graph.head] = 1.0
        self.D[np.arange(graph.n_edges), graph.tail] = -1.0
        self.scale = problem.scale
        self.tau = 1.0 / np.maximum(graph.degree, 1)
        self.w, self.u = np.zeros((graph.n_nodes, d)), np.zeros((graph.n_edges, d))
        self.local = []
        for i in range(graph.n_nodes):
            X, y = data.X[data.ptr[i] : data.ptr[i + 1]], data.y[data.ptr[i] : data.ptr[i + 1]]
            if len(y) == 0:
                self.local.append(None)
                continue
            t, m = self.tau[i], len(y)
            inverse = np.linalg.inv(np.eye(d) + 2 * t * X.T @ X / m)
            self.local.append((inverse, 2 * t * X.T @ y / m))

    @staticmethod
    def gigabytes(problem) -> float:
        """Size of the dense incidence matrix."""
        return 8e-9 * problem.graph.n_nodes * problem.graph.n_edges

    def step(self) -> None:
        v = self.w - self.tau[:, None] * (self.D.T @ self.u)
        new = v.copy()
        for i, prox in enumerate(self.local):
            if prox is not None:
                new[i] = prox[0] @ (v[i] + prox[1])
        u = self.u + 0.5 * (self.D @ (2 * new - self.w))
        for e in range(len(u)):
            norm = np.linalg.norm(u[e])
            if norm > self.scale[e]:
                u[e] *= self.scale[e] / norm
        self.w, self.u = new, u

    def until(self, error, goal: float, limit: float, every: int = 10):
        """Seconds, steps and error when the error is at most the goal, or after the limit.

        The error is looked at every few steps with the clock stopped.
        """
        seconds, steps = 0.0, 0
        while True:
            started = time.process_time()
            for _ in range(every):
                self.step()
            seconds += time.process_time() - started
            steps += every
            now = error(self.w)
            if now <= goal or seconds > limit:
                return seconds, steps, now


def lbfgs_prox(data, v, step, gtol: float):
    """The prox of the logistic loss, node by node with SciPy's L-BFGS-B."""
    from scipy.optimize import minimize

    out = np.empty_like(v)
    for i in range(len(v)):
        rows = slice(data.ptr[i], data.ptr[i + 1])
        signed, centre, pull = data.y[rows, None] * data.X[rows], v[i], 1 / step[i]

        def excess(z, signed=signed, centre=centre, pull=pull):
            margin, away = signed @ z, z - centre
            value = np.logaddexp(0, -margin).mean() + 0.5 * pull * (away @ away)
            slope = -(signed.T @ (1 / (1 + np.exp(margin)))) / len(margin) + pull * away
            return value, slope

        options = {"gtol": gtol, "ftol": 0.0}
        out[i] = minimize(excess, centre, jac=True, method="L-BFGS-B", options=options).x
    return out
