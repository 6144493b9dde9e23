"""Steps of the primal-dual method: as printed, and scaled to the data.

The printed rule needs the degree of a node only. The other one needs two numbers that are sums
over all nodes: the typical sizes of parameters and of flows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array
from nefele.graph import Graph
from nefele.problem import Problem

_FLAT = 1e-4  # least curvature of all losses together, relative to its bound


def through(graph: Graph, size: Array) -> Array:
    """Sum of the sizes of the flows at each node, shape (n_nodes,)."""
    both = np.bincount(graph.head, size, graph.n_nodes)
    both += np.bincount(graph.tail, size, graph.n_nodes)
    return np.asarray(both, dtype=float)


def scaled(graph: Graph, size: Array, gamma: float, longest: Any = np.inf) -> tuple[Array, Array]:
    """tau_i = gamma / sum_e f_e, at most `longest`, and sigma_e = f_e / (2 gamma).

    f_e is the expected size of the flow of edge e. f_e = 1 and gamma = 1 are the printed steps,
    tau_i = 1/degree_i and sigma_e = 1/2 (NFL, Algorithm 1).

    Examples
    --------
    >>> from nefele.graphs import chain
    >>> tau, sigma = scaled(chain(3), np.ones(2), 1.0)
    >>> tau.tolist(), sigma.tolist()
    ([1.0, 0.5, 1.0], [0.5, 0.5])
    """
    total = through(graph, size)
    tau = np.minimum(gamma / np.where(total > 0, total, 1.0), longest)
    return tau, size / (2 * gamma)


def typical_sizes(problem: Problem) -> tuple[float, float]:
    """Typical sizes of parameters and of flows.

    The first is the distance of the (slightly regularised) local fits from the pooled one, the
    second the largest gradient there: flows hardly grow beyond it, however heavy an edge is.
    """
    loss = problem.loss
    curvature = loss.curvature()
    known = loss.labelled & (curvature > 0)
    if not known.any():
        return 1.0, np.inf
    zero = np.zeros((problem.graph.n_nodes, problem.d))
    step = 10 / np.where(known, curvature, curvature[known].mean())
    fits = loss.prox(zero, step)
    centre = np.broadcast_to(_pooled(problem, fits[known].mean(axis=0)), zero.shape)
    away = np.sqrt(((fits - centre)[known] ** 2).sum(axis=1))
    spread = float(np.median(away)) or float(away.max()) or float(np.abs(centre).max()) or 1.0
    pull = (centre - loss.prox(centre.copy(), 0.1 * step)) / (0.1 * step)[:, None]
    force = float(np.sqrt((pull[known] ** 2).sum(axis=1)).max())
    return spread, force if force > 0 else np.inf


def _pooled(problem: Problem, start: Array) -> Array:
    """One Newton step towards the pooled optimum, where the loss has a Hessian."""
    loss = problem.loss
    at = np.broadcast_to(start, (problem.graph.n_nodes, problem.d)).copy()
    hess = loss.hess(at) if loss.smooth else None
    if hess is None:
        return start
    total = hess.sum(axis=0)
    # Huber losses are straight far from the data: no step as long as their Hessian allows
    least = 1e-10 * np.trace(total) if loss.affine_grad else _FLAT * loss.curvature().sum()
    total += least * np.eye(problem.d)
    return start - np.linalg.solve(total, loss.grad(at).sum(axis=0))
