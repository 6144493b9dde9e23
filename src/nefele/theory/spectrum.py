"""Bounds for the quadratic penalty: spectrum, gradient descent, consensus, clusters (LN, Sec. 8).

With squared losses and phi = 1/2 ||v||^2 the objective is w^T Q w - 2 q^T w + const, where
Q = blkdiag(Q_i) + a (L (x) I), a = lam / 2, L the weighted Laplacian of the graph and 2 Q_i the
Hessian of L_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from nefele._checks import Array, check_number
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.theory._inputs import check_problem, check_quadratic


@dataclass(frozen=True)
class SpectrumBounds:
    """Bounds on the eigenvalues of Q and what gradient descent makes of them.

    Attributes
    ----------
    lower, upper : float
        lower <= least and largest eigenvalue of Q <= upper.
    step : float
        1 / (lower + upper), the step of w <- w - step * gradient.
    contraction : float
        Each step brings w nearer to the optimum by at least this factor; 1 when lower = 0.
    algebraic_connectivity : float
        The second eigenvalue of the Laplacian; 0 for a disconnected graph.

    Examples
    --------
    >>> SpectrumBounds(1.0, 3.0, 0.25, 0.5, 1.0).iterations(1e-6)
    20
    """

    lower: float
    upper: float
    step: float
    contraction: float
    algebraic_connectivity: float = field(repr=False)

    def iterations(self, accuracy: float = 1e-6) -> float:
        """Gradient steps after which the error is at most `accuracy` times the first one.

        Parameters
        ----------
        accuracy : float
            Above 0.

        Examples
        --------
        >>> SpectrumBounds(1.0, 3.0, 0.25, 0.5, 1.0).iterations(1e-3)
        10
        """
        accuracy = check_number(accuracy, "accuracy", low=0.0, strict=True)
        if accuracy >= 1 or self.contraction == 0:
            return 0 if accuracy >= 1 else 1
        if self.contraction >= 1:
            return math.inf
        return math.ceil(math.log(accuracy) / math.log(self.contraction))


def spectrum_bounds(problem: Problem) -> SpectrumBounds:
    """Bounds on the spectrum of Q, without computing it.

    lambda_max(Q) <= max_i lambda_max(Q_i) + 2 a d_max, d_max the largest weighted degree, and
    lambda_min(Q) >= min(lambda_2 a rho^2, lbar / 2) / (1 + rho^2) with lbar = lambda_min(mean Q_i)
    and rho = lbar / (4 max_i lambda_max(Q_i)). Q is block-diagonal over the connected components:
    each has its own lower bound, and the least one holds for all.

    Parameters
    ----------
    problem : Problem
        With quadratic losses and the squared_l2 penalty. The Laplacian's eigenvalues are computed
        densely: for up to some thousand nodes.

    Returns
    -------
    SpectrumBounds

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import spectrum_bounds
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> found = spectrum_bounds(Problem(Graph.from_edges([(0, 1)]), data, "squared", "squared_l2",
    ...                                 lam=2.0))
    >>> round(found.lower, 4), found.upper
    (0.1176, 3.0)
    """
    check_problem(problem)
    check_quadratic(problem, "spectrum_bounds")
    a, blocks = problem.lam / 2, node_blocks(problem)
    largest = float(np.linalg.eigvalsh(blocks)[:, -1].max())
    upper = largest + 2 * a * float(problem.graph.weighted_degree.max())
    parts = problem.graph.components
    groups = [np.flatnonzero(parts == c) for c in range(int(parts.max()) + 1)]
    lower = min(component_bound(problem, blocks, nodes) for nodes in groups)
    second = connectivity(problem.graph)
    step = 1 / (lower + upper) if upper > 0 else math.inf
    return SpectrumBounds(lower, upper, step, (upper - lower) * step if upper > 0 else 0.0, second)


def component_bound(problem: Problem, blocks: Array, nodes: Any) -> float:
    """Lower bound on the eigenvalues of Q over one connected component."""
    own = blocks[nodes]
    least = max(float(np.linalg.eigvalsh(own.mean(axis=0))[0]), 0.0)
    if len(nodes) == 1 or least == 0:
        return least
    rho = least / (4 * float(np.linalg.eigvalsh(own)[:, -1].max()))
    coupled = connectivity(problem.graph, nodes) * problem.lam / 2 * rho**2
    return min(coupled, least / 2) / (1 + rho**2)


def node_blocks(problem: Problem) -> Array:
    """Q_i, half the Hessian of L_i, shape (n_nodes, d, d)."""
    hess = problem.loss.hess(np.zeros((problem.graph.n_nodes, problem.d)))
    assert hess is not None  # quadratic losses have one
    return 0.5 * hess


def coupled_matrix(problem: Problem) -> sparse.csc_array:
    """Q = blkdiag(Q_i) + a (L (x) I), sparse, of shape (n_nodes d, n_nodes d)."""
    return coupled_matrix_of(problem.graph, node_blocks(problem), 0.5 * problem.lam)


def coupled_matrix_of(graph: Graph, blocks: Array, a: float) -> sparse.csc_array:
    """The same for any graph, blocks Q_i and a."""
    n, d = blocks.shape[:2]
    row = np.arange(n * d).reshape(n, d, 1) + np.zeros((1, 1, d), dtype=int)
    column = np.arange(n * d).reshape(n, 1, d) + np.zeros((1, d, 1), dtype=int)
    local = sparse.coo_array((blocks.ravel(), (row.ravel(), column.ravel())), shape=(n * d, n * d))
    joint = sparse.kron(_laplacian(graph), sparse.eye_array(d))
    return (local + a * joint).tocsc()


def connectivity(graph: Graph, nodes: Any = None) -> float:
    """Second eigenvalue of the Laplacian of the graph, or of the subgraph of some nodes."""
    matrix = _laplacian(graph)
    if nodes is not None:
        inside = graph.adjacency[nodes][:, nodes]
        degree = np.asarray(inside.sum(axis=1), dtype=float).ravel()
        matrix = sparse.diags_array(degree, format="csr") - inside
    if matrix.shape[0] < 2:
        return math.inf
    values = np.linalg.eigvalsh(matrix.toarray())
    return float(values[1]) if values[1] > 1e-12 * values[-1] else 0.0


def _laplacian(graph: Graph) -> sparse.csr_array:
    return (sparse.diags_array(graph.weighted_degree.astype(float)) - graph.adjacency).tocsr()
