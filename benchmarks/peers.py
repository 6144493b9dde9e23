"""What nefele is compared with: general cone solvers, and the algorithm node by node."""

from __future__ import annotations

import time

import numpy as np


def cone(problem, solver: str, **options):
    """CVXPY on the problem written with sparse matrices; returns w and the solver's seconds."""
    import cvxpy as cp
    from scipy import sparse

    graph, data, d = problem.graph, problem.data, problem.d
    n, m = graph.n_nodes, data.n_rows
    w = cp.Variable(n * d)
    columns = (data.row_node[:, None] * d + np.arange(d)).ravel()
    ptr = np.arange(0, m * d + 1, d)
    root = np.sqrt(data.row_weight)
    A = sparse.csr_array(((data.X * root[:, None]).ravel(), columns, ptr), shape=(m, n * d))
    D = sparse.kron(graph.incidence_t.T, sparse.eye_array(d)).tocsr()
    V = cp.reshape(D @ w, (graph.n_edges, d), order="C")
    rises = problem.scale @ cp.norm(V, 2, axis=1)
    model = cp.Problem(cp.Minimize(cp.sum_squares(A @ w - root * data.y) + rises))
    started = time.perf_counter()
    model.solve(solver=solver, **options)
    return w.value.reshape(n, d), time.perf_counter() - started


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

    def seconds_per_step(self, steps: int = 5) -> float:
        self.step()
        started = time.perf_counter()
        for _ in range(steps):
            self.step()
        return (time.perf_counter() - started) / steps
