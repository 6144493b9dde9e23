"""Solutions along lam, from consensus down (NFL, Sec. V: the choice of lam)."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_count, check_flag, check_name, check_number
from nefele._html import count, facts
from nefele._progress import Line, check_verbose, progress
from nefele._threads import one_blas_thread
from nefele.graph import Graph
from nefele.paths.critical import consensus, critical_lam, local_fits, spread
from nefele.paths.follow import follow
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, Result, Status, equal_groups, groups_within

_DEPTH = 1e-3  # least lam of a path relative to lam_max
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
        Whether every point asked for was certified to the tolerance.
    interrupted : bool
        Whether Ctrl-C ended the path.

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
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.lams)

    def __repr__(self) -> str:
        nothing = len(self) > 0 and bool(np.isinf(self.gaps).all())
        ended = "converged" if self.converged else "not certified" if nothing else "not converged"
        if not len(self):
            return f"PathResult(0 lams, {ended})"
        few, many = self.n_clusters.min(), self.n_clusters.max()
        return (
            f"PathResult({len(self)} lams from {self.lams[0]:.4g} to {self.lams[-1]:.4g}, "
            f"{few} to {many} clusters, {ended})"
        )

    def _repr_html_(self) -> str:
        few, many = self.n_clusters.min(initial=0), self.n_clusters.max(initial=0)
        return facts(
            f"PathResult: {count(len(self), 'lam')}",
            {
                "lam": f"{self.lams[0]:.4g} to {self.lams[-1]:.4g}" if len(self) else "none",
                "clusters": f"{few} to {many}",
                "converged": "yes" if self.converged else "no",
            },
        )

    def plot(self, *, axes: Any = None) -> Any:
        """Clusters and parameters along lam, the clusterpath; needs matplotlib.

        Parameters
        ----------
        axes : pair of matplotlib Axes, optional

        Returns
        -------
        array of two matplotlib Axes

        Examples
        --------
        >>> import matplotlib; matplotlib.use("agg")
        >>> from nefele import Graph, LocalData, Problem, path
        >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
        >>> found = path(Problem(Graph.from_edges([(0, 1)]), data, lam=1.0), n_lams=4)
        >>> [ax.get_xlabel() for ax in found.plot()]
        ['lam', 'lam']
        """
        from nefele._draw.pictures import draw_path

        w = self.w if self.results and len(self.results) == len(self) else None
        return draw_path(self.lams, self.n_clusters, w, self.gaps, axes)

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
    certify: bool = True,
    verbose: bool | int = False,
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
    certify : bool
        False, for the hurried: no certificates, see `solve`; the gaps are infinite.
    verbose : bool or int
        Whether to show progress in one line, as `solve` does.

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
    check_flag(certify, "certify")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be callable; got {callback!r}.")
    check_verbose(verbose)
    given = None if lams is None else _descending(lams)
    start = consensus(problem)
    if given is None:
        top = critical_lam(problem, start)
        if not top > 0:
            raise ValueError(
                "lam_max is 0: connected nodes agree without any coupling, so that every lam "
                "gives the same parameters. Give lams=[...] to solve for some all the same."
            )
        given = np.geomspace(top, _DEPTH * top, n_lams)
    options = {"tol": tol, "certify": certify}
    with progress(verbose) as line, one_blas_thread():
        told = telling(callback, line, len(given))
        return _collect(problem, given, start, options, told, keep == "all")


def telling(
    callback: Callable[[Result], Any] | None, line: Line, total: int
) -> Callable[[Result], Any] | None:
    """The callback of a path that also shows each point."""
    if not line.on:
        return callback
    numbers = itertools.count(1)

    def tell(result: Result) -> Any:
        gap = f", gap {result.gap:.1e}" if np.isfinite(result.gap) else ""
        line.show(f"point {next(numbers)} of {total}: lam {result.problem.lam:.3g}{gap}")
        return None if callback is None else callback(result)

    return tell


def whole_path(problem: Problem, lams: Any, **options: Any) -> PathResult:
    """As `path`, but one that Ctrl-C ended raises KeyboardInterrupt."""
    found = path(problem, lams, **options)
    if found.interrupted:
        raise KeyboardInterrupt
    return found


def _descending(lams: Any) -> Array:
    values = as_float_array(lams, "lams", 1)
    if not len(values):
        raise ValueError("lams must have at least one value; got none.")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        k = int(np.argmax(bad))
        raise ValueError(f"lams must be finite and >= 0; got {values[k]} at position {k}.")
    return np.sort(values)[::-1]


def _collect(
    problem: Problem,
    lams: Array,
    start: tuple[Array, Array] | None,
    options: dict[str, Any],
    callback: Callable[[Result], Any] | None,
    keep: bool,
) -> PathResult:
    unit = spread(problem, local_fits(problem))
    steps = follow(problem, lams, start, **options)
    points: list[_Point] = []
    notes: dict[str, type[Warning]] = {}
    interrupted = False
    try:
        while True:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                result = next(steps, None)
            if result is None:
                break
            notes.update({str(c.message): c.category for c in caught})
            points.append(_Point(result, clusters_at(problem.graph, result.w, unit), keep))
            if callback is not None and callback(result) is True:
                break
    except KeyboardInterrupt:
        interrupted = True
    _warn(notes, lams, points, options["tol"])
    labels = np.array([point.labels for point in points], dtype=np.int64)
    return PathResult(
        lams=lams[: len(points)],
        results=[point.result for point in points if point.result is not None],
        objectives=np.array([point.objective for point in points]),
        gaps=np.array([point.gap for point in points]),
        clusters=labels.reshape(len(points), problem.graph.n_nodes),
        converged=len(points) == len(lams) and all(point.converged for point in points),
        interrupted=interrupted,
    )


class _Point:
    """What is kept of one lam."""

    def __init__(self, result: Result, labels: NDArray[np.int64], keep: bool) -> None:
        self.result = result if keep else None
        self.labels, self.converged = labels, result.converged
        self.reached = result.converged or result.status is Status.UNCERTIFIED
        self.objective, self.gap = result.objective, result.gap
        self.left = result.gap if np.isfinite(result.gap) else result.history[-1].guess


def clusters_at(graph: Graph, w: Array, unit: float) -> NDArray[np.int64]:
    """Labels of equal neighbours, equal in this unit: at consensus a point's spread is rounding."""
    return groups_within(graph, w, _SAME * unit) if unit > 0 else equal_groups(graph, w, _SAME)


def _warn(notes: dict[str, type[Warning]], lams: Array, points: list[_Point], tol: float) -> None:
    missed = [k for k, point in enumerate(points) if not point.reached]
    if missed:
        worst = max(missed, key=lambda k: points[k].left)
        left = points[worst].left
        what = "relative gap" if left == points[worst].gap else "guess"
        warnings.warn(
            f"{len(missed)} of {len(points)} points did not reach tol {tol:.1e}; the largest "
            f"{what} is {left:.1e} at lam {lams[worst]:.3g}. Finite gaps are valid bounds all the "
            "same; increase tol, or solve these points on their own.",
            ConvergenceWarning,
            stacklevel=4,
        )
    for text, category in notes.items():
        if not issubclass(category, ConvergenceWarning):
            warnings.warn(text, category, stacklevel=4)
