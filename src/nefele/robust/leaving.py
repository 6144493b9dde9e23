"""What changes when a node is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.graph import Graph
from nefele.penalties import Penalty, Quadratic, SquaredL2
from nefele.problem import Problem
from nefele.robust.poisoning import captured
from nefele.solvers import solve
from nefele.theory.coupled import coupled_solver, fixed_nodes
from nefele.theory.spectrum import node_blocks

_SINGULAR = 1e-12  # eigenvalues of Q below this share of the largest: a refit


@dataclass(frozen=True, eq=False)
class Without:
    """The fit without a node.

    Attributes
    ----------
    w : array of shape (n_nodes, d)
        The fit of the others; NaN at the node itself, and where without it nothing is fixed.
    change : array of shape (n_nodes, d)
        New minus old.
    size : array of shape (n_nodes,)
        Euclidean norm of the change at each node.
    method : {"exact", "refit"}
        A linear system, for quadratic losses and a penalty `squared_l2` or `quadratic` with a
        regular Q, or another solve.
    gap : float
        The larger certified gap of the two solves; 0 for a linear system.

    Examples
    --------
    >>> from nefele.robust import without_node
    >>> from nefele.robust.example import stations
    >>> found = without_node(stations(shifted=[3], penalty="squared_l2", lam=1.0), 3)
    >>> found.method, bool(found.size[0] > 0.1)
    ('exact', True)
    """

    w: Array = field(repr=False)
    change: Array = field(repr=False)
    size: Array
    method: str
    gap: float


def without_node(problem: Problem, node: Any, *, tol: float = 1e-8) -> Without:
    """Leave out a node with all its edges, and say what changes at the others.

    Parameters
    ----------
    problem : Problem
    node : node id
    tol : float
        Certified gap of the two solves where no linear system gives the optimum.

    Returns
    -------
    Without

    Examples
    --------
    >>> from nefele.robust import without_node
    >>> from nefele.robust.example import stations
    >>> without_node(stations(shifted=[3]), 3).method
    'refit'
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type(problem).__name__}.")
    problem.graph.check_plain("nefele.robust")
    graph = problem.graph
    gone = int(captured(graph.ids, [node], "the graph")[0])
    if graph.n_nodes < 2:
        raise ValueError("Some node must be left; the graph has only this one.")
    kept = (graph.head != gone) & (graph.tail != gone)
    smaller = Graph(graph.ids, graph.head[kept], graph.tail[kept], graph.weight[kept])
    root = _root(problem.penalty, problem.d) if problem.lam > 0 else None
    if root is not None and problem.loss.affine_grad and problem.loss.smooth:
        before, after = _linear(problem, graph, root), _linear(problem, smaller, root)
        method, gap = "exact", 0.0
    else:
        first = solve(problem, tol=tol)
        second = solve(_on(problem, smaller), tol=tol, w0=first.w, u0=first.u[kept])
        before, after = first.w, second.w
        method, gap = "refit", max(first.gap, second.gap)
    after = after.copy()
    after[gone] = np.nan
    change = after - before
    return Without(after, change, np.sqrt((change**2).sum(axis=1)), method, gap)


def _root(penalty: Penalty, d: int) -> Array | None:
    """Q^(-1/2) of a penalty 1/2 v^T Q v: with w = Q^(-1/2) v it is squared_l2; None for others."""
    if isinstance(penalty, SquaredL2):
        return np.eye(d)
    if not isinstance(penalty, Quadratic):
        return None
    values, vectors = np.linalg.eigh(penalty.Q)
    if values[0] <= _SINGULAR * values[-1]:
        return None
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def _linear(problem: Problem, graph: Graph, root: Array) -> Array:
    """The optimum over a graph by the linear system; NaN where the data do not fix it."""
    blocks = root @ node_blocks(problem) @ root
    right = -0.5 * problem.loss.grad(np.zeros((graph.n_nodes, problem.d))) @ root
    fixed = fixed_nodes(graph, blocks)
    place = np.cumsum(fixed) - 1
    inside = fixed[graph.head]
    ends = place[graph.head[inside]], place[graph.tail[inside]]
    w = np.full(right.shape, np.nan)
    if fixed.any():
        part = Graph(np.arange(fixed.sum()), *ends, graph.weight[inside])
        w[fixed] = coupled_solver(part, blocks[fixed], 0.5 * problem.lam)(right[fixed])
    return w @ root


def _on(problem: Problem, graph: Graph) -> Problem:
    """The same losses over another graph of the same nodes."""
    other = problem.with_lam(problem.lam)
    other.graph = graph
    return other
