"""From which lam on everything is equal (NFL, Sec. V).

For a norm penalty and differentiable losses each connected component has one model from a finite
lam on: the least lam with a flow D^T u = -grad L(wbar), ||u_e||_dual <= lam A_e, wbar the pooled
optimum. Any such flow bounds it from above; on a forest there is only one.
"""

from __future__ import annotations

import warnings

import numpy as np

from nefele._checks import Array
from nefele._kernels.groups import group_means, group_sums
from nefele._systems.forest import Forest
from nefele._systems.grounded import laplacian_direct
from nefele._systems.laplacian import conjugate_gradients, laplacian
from nefele._threads import one_blas_thread
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.result import Status
from nefele.solvers import solve

_NEAR = 1e-2  # spread, relative to the local fits', at which smooth penalties start
_MOST_DOUBLINGS = 60
_REWEIGHTINGS, _LITTLE = 12, 0.01  # the most, and the gain that is not worth another
_ACCURACY, _MOST_STEPS = 1e-4, 500  # of their potentials, whose errors the forest carries
_DIRECT, _SPARSE = 200, 2.0  # nodes, and edges per node, up to which a Laplacian is factorised


def lam_max(problem: Problem) -> float:
    """From which lam on each connected component has one model (nearly, for smooth penalties).

    Norm penalties and differentiable losses: an upper bound of the critical lam, max_e
    ||u_e||_dual / A_e over a flow D^T u = -grad L(wbar), wbar the pooled optimum of each
    component; exact when the graph has no cycles. Other penalties and losses have no such lam:
    there the lam at which the parameters spread 1% as far as the local fits.

    This is a quick bound for any size of graph, the start of a path; the exact value, with its
    flow as a proof, is `nefele.theory.critical_lambda`.

    Parameters
    ----------
    problem : Problem
        Its own lam plays no part.

    Returns
    -------
    float

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, lam_max
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> lam_max(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0))
    4.0
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type(problem).__name__}.")
    return critical_lam(problem, consensus(problem))


def critical_lam(problem: Problem, start: tuple[Array, Array] | None) -> float:
    """The value of `lam_max`, given what `consensus` found."""
    if not problem.graph.n_edges or not problem.loss.labelled.any():
        return 0.0
    return _by_doubling(problem) if start is None else _congestion(problem, start[1])


@one_blas_thread()
def consensus(problem: Problem) -> tuple[Array, Array] | None:
    """Pooled optima and a flow that holds them, for norms and losses with a Hessian."""
    penalty = problem.penalty
    plain = problem.graph.plain and problem.graph.n_edges
    if not (penalty.is_norm and penalty.whole and problem.loss.smooth and plain):
        return None
    parts = problem.graph.components
    w = problem.loss.pooled(parts)
    if w is None or not np.isfinite(w).all():
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        pull = -problem.loss.grad(w)
        return w, _least_congested(problem, pull - group_means(parts, pull))


def _congestion(problem: Problem, u: Array) -> float:
    return float((problem.penalty.dual_norm(u) / problem.graph.weight).max())


def _least_congested(problem: Problem, demand: Array) -> Array:
    """A flow D^T u = demand with a small max_e ||u_e||_dual / A_e; the only one on a forest.

    Electrical flows C D x with conductances C = A at first, then less on congested edges.
    Rounding errors go over a spanning forest, so that every flow is valid.
    """
    graph, penalty = problem.graph, problem.penalty
    forest, one = Forest(graph), np.ones((graph.n_edges, 1))
    best = forest.carry(one, demand)[1]
    if graph.n_edges == len(forest.order) - forest.n_roots or not demand.any():
        return best
    least = _congestion(problem, best)
    weight = graph.weight[:, None]
    give, x = weight.copy(), None
    for _ in range(_REWEIGHTINGS):
        x, near = _potential(graph, give, demand, x)
        flow = give * graph.diff(x)
        flow += forest.carry(one, demand - graph.div(flow))[1]
        load = np.abs(flow) if penalty.entrywise else penalty.dual_norm(flow)[:, None]
        load = load / weight
        top = load.max(axis=0)
        gain = 1 - float(top.max()) / least
        if gain > 0:
            best, least = flow, float(top.max())
        if not near or 0 <= gain < _LITTLE:  # or conductances of very different sizes
            break
        top = np.where(top > 0, top, 1.0)
        give = give / (0.1 + load / top)
    return best


def _potential(graph: Graph, give: Array, demand: Array, start: Array | None) -> tuple[Array, bool]:
    """Potentials x with D^T C D x = demand, nearly, and whether they are near enough."""
    if graph.n_nodes <= _DIRECT or graph.n_edges <= _SPARSE * graph.n_nodes:
        return laplacian_direct(graph, give, demand), True
    system = laplacian(graph, give, columns=demand.shape[1])
    return conjugate_gradients(system, demand, _ACCURACY, start, _MOST_STEPS)


def local_fits(problem: Problem) -> Array:
    """Local fits, slightly regularised since some losses have no minimiser."""
    zero = np.zeros((problem.graph.n_nodes, problem.d))
    return problem.loss.prox(zero, problem.loss.steps(100))


def spread(problem: Problem, w: Array) -> float:
    """How far parameters of nodes with data are from their component's mean (root mean square)."""
    known = problem.loss.labelled
    if not known.any():
        return 0.0
    if not (problem.graph.plain and problem.penalty.edges is None):
        # What the edges compare, whatever lets it vanish: each may compare something else.
        away = problem.penalty.mix(problem.graph.diff(w))
        return float(np.sqrt((away**2).sum(axis=1).mean()))
    seen = problem.penalty.mix(np.where(known[:, None], w, 0.0))
    parts = problem.graph.components
    count = np.maximum(np.bincount(parts, known), 1)[:, None]
    away = seen - (group_sums(parts, seen) / count)[parts]
    return float(np.sqrt((away[known] ** 2).sum(axis=1).mean()))


def _by_doubling(problem: Problem) -> float:
    """Where the spread of w is about 1% of the local fits', to a factor of two."""
    goal = _NEAR * spread(problem, local_fits(problem))
    if not goal > 0:
        return 0.0
    known = problem.loss.labelled
    lam = float(problem.loss.curvature()[known].mean() / problem.graph.weighted_degree.mean())
    lam = lam if 0 < lam < np.inf else 1.0
    w: Array | None = None
    rising: bool | None = None
    for _ in range(_MOST_DOUBLINGS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = solve(problem.with_lam(lam), tol=1e-3, w0=w)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        w = result.w
        near = spread(problem, w) <= goal
        if rising is None:
            rising = not near
        if near and rising:
            return lam
        if not near and not rising:
            return 2 * lam
        lam = 2 * lam if rising else lam / 2
    return lam
