"""What one label and one edge change, for squared losses and the quadratic penalty.

The optimum solves Q w = q (see `nefele.theory.spectrum`), so both are exact linear algebra.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.squared import BoundSquared
from nefele.problem import Problem
from nefele.theory._inputs import check_problem, check_quadratic
from nefele.theory.coupled import coupled_solver, fixed_nodes
from nefele.theory.spectrum import component_bound, coupled_matrix, node_blocks

_DENSE = 2000  # unknowns up to which the least eigenvalue is computed
_CANCELLED = 1e-6  # what the identity must leave of one, so that few digits are lost


@dataclass(frozen=True, eq=False)
class EdgeInfluence:
    """The exact change of the optimum when an edge is removed.

    Attributes
    ----------
    edges : int array of shape (k,)
        Positions of the edges in the graph.
    change : array of shape (k, n_nodes, d)
        New optimum minus old one; NaN where without the edge no optimum is unique. Zero at nodes
        of other components.
    size : array of shape (k,)
        Euclidean norm of the change.
    w : array of shape (n_nodes, d)
        The optimum with all edges; NaN at components whose data do not fix all parameters.

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

    ||w' - w||_2 <= c_r ||x_r|| |dy| / lambda_min(Q), c_r = 1/m_i: the factor of |dy| for each row,
    with Q restricted to the row's connected component. The least eigenvalue is computed for up to
    2000 unknowns, bounded otherwise.

    Parameters
    ----------
    problem : Problem
        With squared losses and the squared_l2 penalty.

    Returns
    -------
    array of shape (n_rows,)
        In the order of `problem.data`; infinite where the component has no unique solution.

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
    least = _least_eigenvalues(problem)[problem.graph.components[data.row_node]]
    pull = data.row_weight * np.sqrt((data.X**2).sum(axis=1))
    out = np.where(pull > 0, np.inf, 0.0)
    return np.divide(pull, least, out=out, where=least > 0)


def _least_eigenvalues(problem: Problem) -> Array:
    """A safe value of the least eigenvalue of Q over each connected component."""
    parts, d, blocks = problem.graph.components, problem.d, node_blocks(problem)
    fixed, Q = fixed_nodes(problem.graph, blocks), coupled_matrix(problem).tocsr()
    out = np.zeros(int(parts.max()) + 1)
    for c in np.unique(parts[fixed]):
        nodes = np.flatnonzero(parts == c)
        out[c] = component_bound(problem, blocks, nodes)
        if len(nodes) * d <= _DENSE:
            own = (nodes[:, None] * d + np.arange(d)).ravel()
            values = np.linalg.eigvalsh(Q[own][:, own].toarray())
            error = len(own) * np.finfo(float).eps * values[-1]
            out[c] = max(out[c], values[0] - error)
    return out


def edge_influence(problem: Problem, edges: Any = None) -> EdgeInfluence:
    """The exact change of the optimum when an edge is removed, without solving again.

    dw = a A_e G (I - a A_e S^T G)^-1 S^T w with a = lam/2, S = s (x) I the edge's column of the
    incidence matrix and G = Q^-1 S (Woodbury's identity): one factorisation for all edges. Only
    for edges that carry nearly all of the coupling of their ends the optimum is computed again.

    Parameters
    ----------
    problem : Problem
        With quadratic losses, the squared_l2 penalty and a unique optimum on at least one
        connected component.
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
    graph, blocks, a = problem.graph, node_blocks(problem), 0.5 * problem.lam
    chosen, fixed = _edges(edges, graph.n_edges), fixed_nodes(graph, blocks)
    if not fixed.any():
        raise ValueError(
            "edge_influence needs a unique optimum; the data do not fix all parameters. "
            "Add a ridge term: Squared(l2=1e-6)."
        )
    right = -0.5 * problem.loss.grad(np.zeros((graph.n_nodes, problem.d)))
    w = np.full(right.shape, np.nan)
    w[fixed], solve = _optimum(graph, blocks, a, right, fixed)
    place = np.cumsum(fixed) - 1
    change = np.full((len(chosen), *right.shape), np.nan)
    for k, e in enumerate(chosen):
        head, tail = graph.head[e], graph.tail[e]
        if not fixed[head]:
            continue
        moved = _without(solve, w[fixed], (place[head], place[tail]), a * graph.weight[e])
        if moved is None:  # too little is left of what held the ends together: solve again
            rest = np.arange(graph.n_edges) != e
            smaller = Graph(graph.ids, graph.head[rest], graph.tail[rest], graph.weight[rest])
            if not fixed_nodes(smaller, blocks)[fixed].all():
                continue  # what was behind the edge is left without data
            moved = _optimum(smaller, blocks, a, right, fixed)[0] - w[fixed]
        change[k] = 0.0
        change[k, fixed] = moved
    return EdgeInfluence(chosen, change, np.sqrt((change**2).sum(axis=(1, 2))), w)


def _optimum(
    graph: Graph, blocks: Array, a: float, right: Array, fixed: Any
) -> tuple[Array, Callable[[Array], Array]]:
    """The optimum at the nodes of whole components, and the solver for any other right side."""
    place = np.cumsum(fixed) - 1
    inside = fixed[graph.head]
    ends = place[graph.head[inside]], place[graph.tail[inside]]
    part = Graph(np.arange(fixed.sum()), *ends, graph.weight[inside])
    solve = coupled_solver(part, blocks[fixed], a)
    return solve(right[fixed]), solve


def _without(
    solve: Callable[[Array], Array], w: Array, ends: tuple[int, int], weight: float
) -> Array | None:
    """The change by Woodbury's identity; None where that would lose digits."""
    n, d = w.shape
    G = np.empty((n, d, d))
    for j in range(d):
        column = np.zeros((n, d))
        column[ends, j] = 1.0, -1.0
        G[:, :, j] = solve(column)
    inner = np.eye(d) - weight * (G[ends[0]] - G[ends[1]])
    if np.linalg.eigvalsh((inner + inner.T) / 2)[0] <= _CANCELLED:
        return None
    moved: Array = weight * G @ np.linalg.solve(inner, w[ends[0]] - w[ends[1]])
    return moved


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
