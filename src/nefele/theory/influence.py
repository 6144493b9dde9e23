"""What one label and one edge change, for squared losses and the quadratic penalty.

The optimum solves Q w = q (see `nefele.theory.spectrum`), so both are exact linear algebra.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from nefele._checks import Array
from nefele.losses.squared import BoundSquared
from nefele.problem import Problem
from nefele.theory._inputs import check_problem, check_quadratic
from nefele.theory.spectrum import coupled_matrix, spectrum_bounds

_DENSE = 2000  # unknowns up to which the least eigenvalue is computed
_SINGULAR = 1e-10  # relative size of a pivot that counts as zero


@dataclass(frozen=True, eq=False)
class EdgeInfluence:
    """The exact change of the optimum when an edge is removed.

    Attributes
    ----------
    edges : int array of shape (k,)
        Positions of the edges in the graph.
    change : array of shape (k, n_nodes, d)
        New optimum minus old one; NaN where without the edge no optimum is unique.
    size : array of shape (k,)
        Euclidean norm of the change.
    w : array of shape (n_nodes, d)
        The optimum with all edges.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import edge_influence
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.0, 4.0)])
    >>> graph = Graph.from_edges([(0, 1), (1, 2)])
    >>> found = edge_influence(Problem(graph, data, "squared", "squared_l2", lam=2.0))
    >>> int(found.size.argmax())
    1
    """

    edges: NDArray[np.int64] = field(repr=False)
    change: Array = field(repr=False)
    size: Array
    w: Array = field(repr=False)


def label_sensitivity(problem: Problem) -> Array:
    """How far the whole solution moves, at most, when one label changes by one.

    ||w' - w||_2 <= c_r ||x_r|| |dy| / lambda_min(Q), c_r = 1/m_i: the factor of |dy| for each row.
    The least eigenvalue is computed for up to 2000 unknowns, bounded otherwise.

    Parameters
    ----------
    problem : Problem
        With squared losses and the squared_l2 penalty.

    Returns
    -------
    array of shape (n_rows,)
        In the order of `problem.data`; infinite when the solution is not unique.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import label_sensitivity
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[2.0]], [4.0])])
    >>> graph = Graph.from_edges([(0, 1)])
    >>> label_sensitivity(Problem(graph, data, "squared", "squared_l2", lam=2.0)).round(4).tolist()
    [0.5892, 1.1784]
    """
    check_problem(problem)
    check_quadratic(problem, "label_sensitivity")
    if not isinstance(problem.loss, BoundSquared):
        raise ValueError('label_sensitivity needs labels: use loss="squared" at every node.')
    data = problem.loss.data
    matrix = coupled_matrix(problem)
    if matrix.shape[0] <= _DENSE:
        values = np.linalg.eigvalsh(matrix.toarray())
        least = float(values[0]) if values[0] > 1e-14 * values[-1] else 0.0
    else:
        least = spectrum_bounds(problem).lower
    pull = data.row_weight * np.sqrt((data.X**2).sum(axis=1))
    out = np.where(pull > 0, np.inf, 0.0)
    return np.divide(pull, least, out=out, where=least > 0)


def edge_influence(problem: Problem, edges: Any = None) -> EdgeInfluence:
    """The exact change of the optimum when an edge is removed, without solving again.

    dw = a A_e G (I - a A_e S^T G)^-1 S^T w with a = lam/2, S = s (x) I the edge's column of the
    incidence matrix and G = Q^-1 S (Woodbury's identity): one factorisation for all edges.

    Parameters
    ----------
    problem : Problem
        With quadratic losses, the squared_l2 penalty and a unique optimum.
    edges : sequence of int, optional
        Positions of the edges; default: all. The result holds k * n_nodes * d numbers.

    Returns
    -------
    EdgeInfluence

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import edge_influence
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> graph = Graph.from_edges([(0, 1)])
    >>> found = edge_influence(Problem(graph, data, "squared", "squared_l2", lam=2.0))
    >>> (found.w + found.change[0] + 1).round(6).tolist()
    [[1.0], [5.0]]
    """
    check_problem(problem)
    check_quadratic(problem, "edge_influence")
    graph, d = problem.graph, problem.d
    chosen = _edges(edges, graph.n_edges)
    zero = np.zeros((graph.n_nodes, d))
    if problem.undetermined.any():
        node = graph.ids[problem.undetermined][:1].tolist()[0]
        raise ValueError(f"edge_influence needs a unique optimum; no data reach node {node!r}.")
    try:
        factor = splu(coupled_matrix(problem))
        pivots = np.abs(factor.U.diagonal())
        solve, loose = factor.solve, bool(pivots.min() <= _SINGULAR * pivots.max())
    except RuntimeError:
        loose = True
    if loose:
        raise ValueError(
            "edge_influence needs a unique optimum; the data do not fix all parameters. "
            "Add a ridge term: Squared(l2=1e-6)."
        )
    w = solve(-0.5 * problem.loss.grad(zero).ravel()).reshape(zero.shape)
    change = np.empty((len(chosen), *zero.shape))
    for k, e in enumerate(chosen):
        S = np.zeros((graph.n_nodes, d, d))
        S[graph.head[e]], S[graph.tail[e]] = np.eye(d), -np.eye(d)
        G = solve(S.reshape(-1, d)).reshape(S.shape)
        weight = 0.5 * problem.lam * graph.weight[e]
        inner = np.eye(d) - weight * (G[graph.head[e]] - G[graph.tail[e]])
        across = w[graph.head[e]] - w[graph.tail[e]]
        if np.linalg.eigvalsh((inner + inner.T) / 2)[0] <= _SINGULAR:
            change[k] = np.nan  # what was behind the edge is left without data
        else:
            change[k] = weight * G @ np.linalg.solve(inner, across)
    return EdgeInfluence(chosen, change, np.sqrt((change**2).sum(axis=(1, 2))), w)


def _edges(edges: Any, count: int) -> NDArray[np.int64]:
    if edges is None:
        return np.arange(count)
    chosen = np.atleast_1d(np.asarray(edges))
    if not chosen.size:
        return np.zeros(0, dtype=np.int64)
    whole = chosen.dtype.kind in "iu" and chosen.ndim == 1
    if not whole or (len(chosen) and not (chosen.min() >= 0 and chosen.max() < count)):
        raise ValueError(f"edges must hold edge positions 0..{count - 1}; got {edges!r}.")
    return chosen.astype(np.int64)
