"""Solutions along lam, from consensus down (NFL, Sec. V: the choice of lam).

For a norm penalty and differentiable losses each connected component has one model from a finite
lam on: the least lam with a flow D^T u = -grad L(wbar), ||u_e||_dual <= lam A_e, wbar the pooled
optimum. Any such flow bounds it from above; on a forest there is only one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import breadth_first_order
from scipy.sparse.linalg import spsolve_triangular

from nefele._checks import Array, as_float_array, check_count, check_name, check_number
from nefele.correction import BlockLaplacian, _laplacian_direct, conjugate_gradients
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, Result, Status
from nefele.solvers import solve

_DEPTH = 1e-3  # least lam of a path relative to lam_max
_NEAR = 1e-2  # spread, relative to the local fits', at which smooth penalties start
_MOST_DOUBLINGS = 60
_NEWTON_STEPS = 100
_REWEIGHTINGS = 12
_DIRECT, _SPARSE = 200, 2.0  # nodes, and edges per node, up to which a Laplacian is factorised
_SAME = 1e-5  # difference, relative to the local fits' spread, up to which neighbours are equal


@dataclass(frozen=True, eq=False)
class PathResult:
    """Solutions along lam, in descending order of lam.

    Attributes
    ----------
    lams : array of shape (n_lams,)
        Strengths of the coupling that were solved.
    results : list of Result
        One per lam; empty when the path was asked to keep clusters only.
    objectives, gaps : arrays of shape (n_lams,)
        Objective and certified relative gap of each point.
    clusters : int array of shape (n_lams, n_nodes)
        Labels of the groups of connected nodes with equal parameters.
    converged : bool
        Whether every point asked for was solved to the tolerance.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, path
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> found = path(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0), n_lams=4)
    >>> found
    PathResult(4 lams from 4 to 0.004, 1 to 2 clusters, converged)
    >>> found.w.shape
    (4, 2, 1)
    """

    lams: Array
    results: list[Result] = field(repr=False)
    objectives: Array = field(repr=False)
    gaps: Array = field(repr=False)
    clusters: NDArray[np.int64] = field(repr=False)
    converged: bool

    def __len__(self) -> int:
        return len(self.lams)

    def __repr__(self) -> str:
        ended = "converged" if self.converged else "not converged"
        if not len(self):
            return f"PathResult(0 lams, {ended})"
        few, many = self.n_clusters.min(), self.n_clusters.max()
        return (
            f"PathResult({len(self)} lams from {self.lams[0]:.4g} to {self.lams[-1]:.4g}, "
            f"{few} to {many} clusters, {ended})"
        )

    @property
    def n_clusters(self) -> NDArray[np.int64]:
        """Number of clusters at each lam, shape (n_lams,)."""
        return self.clusters.max(axis=1, initial=-1) + 1

    @property
    def w(self) -> Array:
        """Parameters at each lam, shape (n_lams, n_nodes, d); a copy."""
        if len(self.results) < len(self):
            raise ValueError('The parameters were not kept. Use path(..., keep="all").')
        if not self.results:
            raise ValueError("The path has no points: it was stopped at the first.")
        return np.stack([result.w for result in self.results])


def path(
    problem: Problem,
    lams: Any = None,
    n_lams: int = 50,
    *,
    tol: float = 1e-4,
    callback: Callable[[Result], Any] | None = None,
    keep: str = "all",
) -> PathResult:
    """Solve the problem for many lam, each point started at the one before.

    Parameters
    ----------
    problem : Problem
        Its own lam plays no part.
    lams : array of shape (n_lams,), optional
        Strengths of the coupling, solved in descending order. Default: `n_lams` values, geometric
        from `lam_max(problem)` down to a thousandth of it.
    n_lams : int
        Number of lams when none are given.
    tol : float
        Relative gap to reach at each point.
    callback : callable, optional
        Called with the Result of each point; returning True ends the path there.
    keep : {"all", "clusters"}
        "all" keeps parameters and flow of every point: 8 n_lams (n_nodes + n_edges) d bytes.
        "clusters" keeps objectives, gaps and cluster labels only.

    Returns
    -------
    PathResult
        After Ctrl-C: the points done by then.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem, path
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> found = path(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0), [1.0, 6.0])
    >>> found.lams.tolist(), found.n_clusters.tolist()
    ([6.0, 1.0], [1, 2])
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a Problem; got {type(problem).__name__}.")
    check_number(tol, "tol", low=0.0, strict=True)
    n_lams = check_count(n_lams, "n_lams", low=1)
    check_name(keep, ["all", "clusters"], "keep")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable; got {callback!r}.")
    given = None if lams is None else _descending(lams)
    start = _consensus(problem)
    if given is None:
        top = _top(problem, start)
        if not top > 0:
            raise ValueError(
                "lam_max is 0: connected nodes agree without any coupling, so that every lam "
                "gives the same parameters. Give lams=[...] to solve for some all the same."
            )
        given = np.geomspace(top, _DEPTH * top, n_lams)
    return _follow(problem, given, start, tol, callback, keep == "all")


def _descending(lams: Any) -> Array:
    values = as_float_array(lams, "lams", 1)
    if not len(values):
        raise ValueError("lams must have at least one value; got none.")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"lams must be finite and >= 0; got {values[k]} at position {k}.")
    return np.sort(values)[::-1]


def _follow(
    problem: Problem,
    lams: Array,
    start: tuple[Array, Array] | None,
    tol: float,
    callback: Callable[[Result], Any] | None,
    keep: bool,
) -> PathResult:
    unit = _spread(problem, _local_fits(problem))
    w, u = (None, None) if start is None else start
    points: list[_Point] = []
    notes: dict[str, type[Warning]] = {}
    try:
        for lam in lams:
            problem = problem.with_lam(lam)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = solve(problem, tol=tol, w0=w, u0=_inside(problem, u))
            if result.status is Status.INTERRUPTED:
                break
            notes.update({str(c.message): c.category for c in caught})
            points.append(_Point(result, _clusters(result, unit), keep))
            w, u = result.w, result.u
            if callback is not None and callback(result) is True:
                break
    except KeyboardInterrupt:
        pass
    _warn(notes, lams, points, tol)
    labels = np.array([point.labels for point in points], dtype=np.int64)
    return PathResult(
        lams=lams[: len(points)],
        results=[point.result for point in points if point.result is not None],
        objectives=np.array([point.objective for point in points]),
        gaps=np.array([point.gap for point in points]),
        clusters=labels.reshape(len(points), problem.graph.n_nodes),
        converged=len(points) == len(lams) and all(point.converged for point in points),
    )


class _Point:
    """What is kept of one lam."""

    def __init__(self, result: Result, labels: NDArray[np.int64], keep: bool) -> None:
        self.result = result if keep else None
        self.labels, self.converged = labels, result.converged
        self.objective, self.gap = result.objective, result.gap


def _inside(problem: Problem, u: Array | None) -> Array | None:
    """The flow of another lam, scaled into the balls of this one."""
    if u is None or not problem.coupled:
        return None
    return u / np.maximum(problem.penalty.domain_ratio(u, problem.scale), 1.0)[:, None]


def _clusters(result: Result, unit: float) -> NDArray[np.int64]:
    """Labels with one scale along the path: at consensus the point's own spread is rounding."""
    spread = float(np.ptp(result.w, axis=0).max())
    return result.clusters(_SAME * unit / spread if unit * spread > 0 else _SAME)


def _warn(notes: dict[str, type[Warning]], lams: Array, points: list[_Point], tol: float) -> None:
    missed = [k for k, point in enumerate(points) if not point.converged]
    if missed:
        worst = max(missed, key=lambda k: points[k].gap)
        warnings.warn(
            f"{len(missed)} of {len(points)} points did not reach tol {tol:.1e}; the largest "
            f"relative gap is {points[worst].gap:.1e} at lam {lams[worst]:.3g}. The gaps are "
            "valid bounds all the same; increase tol, or solve these points on their own.",
            ConvergenceWarning,
            stacklevel=4,
        )
    for text, category in notes.items():
        if not issubclass(category, ConvergenceWarning):
            warnings.warn(text, category, stacklevel=4)


def lam_max(problem: Problem) -> float:
    """From which lam on each connected component has one model (nearly, for smooth penalties).

    Norm penalties and differentiable losses: an upper bound of the critical lam, max_e
    ||u_e||_dual / A_e over a flow D^T u = -grad L(wbar), wbar the pooled optimum of each
    component; exact when the graph has no cycles. Other penalties and losses have no such lam:
    there the lam at which the parameters spread 1% as far as the local fits.

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
    return _top(problem, _consensus(problem))


def _top(problem: Problem, start: tuple[Array, Array] | None) -> float:
    """The value of `lam_max`, given what `_consensus` found."""
    if not problem.graph.n_edges or not problem.loss.labelled.any():
        return 0.0
    return _by_doubling(problem) if start is None else _congestion(problem, start[1])


def _consensus(problem: Problem) -> tuple[Array, Array] | None:
    """Pooled optima and a flow that holds them, for norms and losses with a Hessian."""
    if not (problem.penalty.is_norm and problem.loss.smooth and problem.graph.n_edges):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        w = _pooled(problem)
        if w is None or not np.isfinite(w).all():
            return None
        pull = -problem.loss.grad(w)
        return w, _least_congested(problem, pull - _means(problem.graph, pull))


def _means(graph: Graph, values: Array) -> Array:
    """Mean over each node's component, shape (n_nodes, d)."""
    return (_sums(graph, values) / np.bincount(graph.components)[:, None])[graph.components]


def _sums(graph: Graph, values: Array) -> Array:
    """Sum over each component, shape (n_components, d)."""
    parts = graph.components
    return np.stack([np.bincount(parts, column) for column in values.T], axis=1)


def _pooled(problem: Problem) -> Array | None:
    """Minimiser of each component's summed loss by damped Newton steps, shape (n_nodes, d).

    None when the loss has no Hessian.
    """
    graph, loss, d = problem.graph, problem.loss, problem.d
    parts = graph.components
    w = np.zeros((graph.n_nodes, d))
    value = np.bincount(parts, loss.value(w))
    for _ in range(_NEWTON_STEPS):
        hess = loss.hess(w)
        if hess is None:
            return None
        slope = _sums(graph, loss.grad(w))
        bend = _sums(graph, hess.reshape(-1, d * d)).reshape(-1, d, d)
        move = -(np.linalg.pinv(bend, rcond=1e-13, hermitian=True) @ slope[..., None])[..., 0]
        step = np.ones(len(move))
        for _ in range(40):
            trial = w + (step[:, None] * move)[parts]
            new = np.bincount(parts, loss.value(trial))
            ok = new <= value + 1e-14 * np.abs(value)
            if ok.all():
                break
            step = np.where(ok, step, 0.5 * step)
        w, fallen = np.where(ok[parts, None], trial, w), value - np.where(ok, new, value)
        value = np.where(ok, new, value)
        if (fallen <= 1e-15 * np.abs(value)).all():
            break
    return w


def _congestion(problem: Problem, u: Array) -> float:
    return float((problem.penalty.dual_norm(u) / problem.graph.weight).max())


def _least_congested(problem: Problem, demand: Array) -> Array:
    """A flow D^T u = demand with a small max_e ||u_e||_dual / A_e; the only one on a forest.

    Electrical flows C D x with conductances C = A at first, then less on congested edges.
    Rounding errors go over a spanning forest, so that every flow is valid.
    """
    graph, penalty = problem.graph, problem.penalty
    forest = _Forest(graph)
    best = forest.flow(demand)
    if forest.spans_all or not demand.any():
        return best
    least = _congestion(problem, best)
    weight = graph.weight[:, None]
    give = weight.copy()
    for _ in range(_REWEIGHTINGS):
        flow = give * graph.diff(_potential(graph, give, demand))
        flow += forest.flow(demand - graph.div(flow))
        load = np.abs(flow) if penalty.entrywise else penalty.dual_norm(flow)[:, None]
        load = load / weight
        top = load.max(axis=0)
        if top.max() < least:
            best, least = flow, float(top.max())
        top = np.where(top > 0, top, 1.0)
        give = give / (0.1 + load / top)
    return best


def _potential(graph: Graph, give: Array, demand: Array) -> Array:
    """Potentials x with D^T C D x = demand, nearly."""
    if graph.n_nodes <= _DIRECT or graph.n_edges <= _SPARSE * graph.n_nodes:
        return _laplacian_direct(graph, give, demand)
    ends = np.maximum(np.abs(graph.incidence_t) @ give, np.finfo(float).tiny)
    return conjugate_gradients(BlockLaplacian(graph, give), lambda r: r / ends, demand, 1e-6)[0]


class _Forest:
    """A spanning forest: every balanced demand has exactly one flow over it."""

    def __init__(self, graph: Graph) -> None:
        self.graph, n = graph, graph.n_nodes
        roots = np.unique(graph.components, return_index=True)[1]
        self.spans_all = graph.n_edges == n - len(roots)
        rows = np.concatenate([graph.head, np.full(len(roots), n)])
        columns = np.concatenate([graph.tail, roots])
        links = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n + 1, n + 1))
        order, parent = breadth_first_order(links.tocsr(), n, directed=False)
        self.order = order[:0:-1]  # children before parents
        rank = np.empty(n + 1, dtype=np.int64)
        rank[self.order], rank[n] = np.arange(n), n
        self.up = rank[parent[self.order]]
        ends = np.sort(np.stack([self.order, parent[self.order]]), axis=0)
        keys = graph.head * n + graph.tail  # sorted, as edges are
        self.inner = self.up < n
        self.edge = np.searchsorted(keys, ends[0] * n + ends[1])[self.inner]
        self.sign = np.where(self.order == ends[0], 1.0, -1.0)[self.inner]

    def flow(self, demand: Array) -> Array:
        """The flow over the forest with D^T u = demand: what each subtree sends to its parent."""
        n = self.graph.n_nodes
        inner = np.flatnonzero(self.inner)
        lower = sparse.eye_array(n, format="csr") - sparse.csr_array(
            (np.ones(len(inner)), (self.up[inner], inner)), shape=(n, n)
        )
        total = spsolve_triangular(lower.tocsr(), demand[self.order], lower=True)
        u = np.zeros((self.graph.n_edges, demand.shape[1]))
        u[self.edge] = self.sign[:, None] * total[inner]
        return u


def _local_fits(problem: Problem) -> Array:
    """Local fits, slightly regularised since some losses have no minimiser."""
    curvature = problem.loss.curvature()
    step = 100 / np.where(curvature > 0, curvature, 1.0)
    return problem.loss.prox(np.zeros((problem.graph.n_nodes, problem.d)), step)


def _spread(problem: Problem, w: Array) -> float:
    """How far parameters of nodes with data are from their component's mean (root mean square)."""
    known = problem.loss.labelled
    if not known.any():
        return 0.0
    seen = problem.penalty.mix(np.where(known[:, None], w, 0.0))
    parts = problem.graph.components
    count = np.maximum(np.bincount(parts, known), 1)[:, None]
    away = seen - (_sums(problem.graph, seen) / count)[parts]
    return float(np.sqrt((away[known] ** 2).sum(axis=1).mean()))


def _by_doubling(problem: Problem) -> float:
    """Where the spread of w is about 1% of the local fits', to a factor of two."""
    goal = _NEAR * _spread(problem, _local_fits(problem))
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
        near = _spread(problem, w) <= goal
        if rising is None:
            rising = not near
        if near and rising:
            return lam
        if not near and not rising:
            return 2 * lam
        lam = 2 * lam if rising else lam / 2
    return lam
