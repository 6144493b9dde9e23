"""Solutions along growing lam, each next one on the clusters of those before: a clusterpath."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nefele.paths.follow import whole_solve
from nefele.problem import Problem
from nefele.result import Result
from nefele.solvers.merging import Merging
from nefele.solvers.merging.ladder import Merged


def rising(problem: Problem, lams: Iterable[float], tol: float) -> Iterator[Result]:
    """Solutions for these lams, ascending, every one certified over the whole graph.

    What is one cluster stays one node of the next problem, unless the certificate shows that it
    falls apart. For problems that `nefele.solvers.Merging` takes.

    Examples
    --------
    >>> import numpy as np
    >>> from nefele import Graph
    >>> from nefele.losses.quadratic import BoundQuadratic
    >>> a = np.array([[0.0], [1.0], [5.0]])
    >>> loss = BoundQuadratic(np.full((3, 1, 1), 2.0), 2 * a, (a * a).sum(axis=1))
    >>> problem = Problem(Graph.from_edges([(0, 1), (1, 2)]), None, loss=loss, lam=1.0)
    >>> [result.w.round(3).ravel().tolist() for result in rising(problem, [0.5, 2.0], 1e-6)]
    [[0.25, 1.0, 4.75], [1.0, 1.0, 4.0]]
    """
    solver = Merging(ladder=False)
    merged = Merged(problem)
    for lam in lams:
        whole = problem.with_lam(float(lam))
        if not whole.coupled:
            yield whole_solve(whole, tol=tol)
            continue
        start = merged.at(whole.lam, solver.rung)
        result = whole_solve(whole, solver, tol=tol, w0=start[0], u0=start[1])
        if result.n_iter:  # the clusters were not all of it
            merged = Merged(problem)
            merged.w, merged.u, merged.small = result.w, result.u, whole
        merged.merge()
        yield result
