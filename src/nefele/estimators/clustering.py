"""Convex clustering: total variation of one centroid per point (NFL, Sec. III, L_i a distance)."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import validate_data

from nefele._checks import Array, as_float_array, check_count, check_number
from nefele._progress import check_verbose, progress
from nefele.estimators.point_graph import neighbour_graph
from nefele.graph import Graph
from nefele.graphs import as_graph
from nefele.losses.quadratic import BoundQuadratic
from nefele.paths.critical import lam_max, local_fits, spread
from nefele.paths.follow import whole_solve
from nefele.paths.path import clusters_at, telling, whole_path
from nefele.paths.rising import rising
from nefele.penalties import as_penalty
from nefele.problem import Problem
from nefele.result import DataWarning, Result
from nefele.selection.clearest import clearest
from nefele.solvers import Merging

_BISECTIONS = 15
_DEPTH = 1e-6  # least alpha of a clusterpath relative to the one where all is one cluster
_SAME = 1e-5  # difference, relative to the points' spread, up to which centroids are equal
_FEW = 0.01  # share of equal neighbours at which a clusterpath ends


@dataclass(frozen=True, eq=False)
class ClusterPath:
    """Clusters along alpha, from one cluster down to many.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        Strengths of the fusion, descending.
    labels : int array of shape (n_alphas, n_samples)
        Cluster of each point.
    centroids : array of shape (n_alphas, n_samples, n_features)
        Fitted centroid of each point.
    gaps : array of shape (n_alphas,)
        Certified relative gaps.
    converged : bool
        Whether every gap is within the tolerance.

    Examples
    --------
    >>> found = ConvexClustering().clusterpath([[0.0], [1.0], [5.0]], alphas=[0.1, 100.0])
    >>> found.n_clusters.tolist()
    [1, 3]
    """

    alphas: Array
    labels: NDArray[np.int64] = field(repr=False)
    centroids: Array = field(repr=False)
    gaps: Array = field(repr=False)
    converged: bool

    @property
    def n_clusters(self) -> NDArray[np.int64]:
        """Number of clusters at each alpha, shape (n_alphas,)."""
        return self.labels.max(axis=1) + 1


@dataclass(eq=False, repr=False)
class ConvexClustering(ClusterMixin, BaseEstimator):
    """Clusters of points by fusing their centroids.

    Minimises sum_i ||w_i - a_i||^2 + alpha sum_e A_e phi(w_head(e) - w_tail(e)) over the centroids
    w_i of the points a_i. Points whose centroids are equal form a cluster. The problem is convex:
    there is one solution, without random starts.

    Parameters
    ----------
    alpha : float, optional
        Strength of the fusion, >= 0. Default: the one with the clearest clusters along the
        clusterpath, see `clusterpath`.
    n_clusters : int, optional
        Instead of alpha: the number of clusters to look for along the clusterpath.
    graph : any graph that `nefele.as_graph` takes, optional
        Which points are pulled together; its ids are row numbers of X. Default: each point and its
        nearest neighbours, plus the shortest links that make the graph connected.
    n_neighbors : int
        Neighbours of each point in the default graph.
    weight : {"exp", "unit", "inverse"}
        Weights of the default graph by the length l of an edge: exp(-l / scale), 1 or 1 / l; none
        below a thousandth of the largest.
    scale : float, optional
        Length at which "exp" falls to 1/e; default the mean length.
    penalty : str or Penalty
        A norm: "l2", "l1", "linf" or `nefele.penalties.Lp`.
    n_alphas : int
        Points of the clusterpath.
    tol : float
        Relative gap to reach.
    verbose : bool or int
        Whether to show progress in one line, as `nefele.solve` does.

    Attributes
    ----------
    labels_ : int array of shape (n_samples,)
    n_clusters_ : int
    cluster_centers_ : array of shape (n_clusters_, n_features)
        Mean of the points of each cluster.
    centroids_ : array of shape (n_samples, n_features)
        The fitted w_i: equal inside a cluster, pulled towards the other clusters.
    alpha_ : float
        The alpha of the solution.
    path_ : ClusterPath or None
        The clusterpath that alpha was chosen on; None when it was given.
    dual_gap_ : float
        Certified relative gap.
    graph_ : Graph
    n_features_in_ : int

    Examples
    --------
    >>> points = [[0.0, 0.0], [0.1, 0.0], [0.0, 0.2], [5.0, 5.0], [5.1, 5.0]]
    >>> model = ConvexClustering().fit(points)
    >>> model.labels_.tolist(), model.n_clusters_
    ([0, 0, 0, 1, 1], 2)
    """

    alpha: float | None = None
    _: KW_ONLY
    n_clusters: int | None = None
    graph: Any = None
    n_neighbors: int = 10
    weight: str = "exp"
    scale: float | None = None
    penalty: Any = "l2"
    n_alphas: int = 50
    tol: float = 1e-6
    verbose: bool | int = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the clusters of the rows of X.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
        y : ignored
        """
        problem, points = self._problem(X)
        if self.alpha is not None and self.n_clusters is not None:
            raise ValueError(
                f"Give alpha or n_clusters, not both; got alpha={self.alpha!r} and "
                f"n_clusters={self.n_clusters!r}."
            )
        middle, k = points.mean(axis=0), 0
        if self.alpha is not None:
            found = self._follow(problem, middle, [check_number(self.alpha, "alpha", low=0.0)])
        elif self.n_clusters is not None:
            found, k = self._by_number(problem, middle)
        else:
            found = self._follow(problem, middle)
            k = _clearest_point(found)
        self.path_ = found if self.alpha is None else None
        self.alpha_ = float(found.alphas[k])
        self.labels_ = found.labels[k]
        self.n_clusters_ = int(found.n_clusters[k])
        self.centroids_ = found.centroids[k]
        self.dual_gap_ = float(found.gaps[k])
        self.graph_ = problem.graph
        size = np.bincount(self.labels_)[:, None]
        sums = [np.bincount(self.labels_, column) for column in points.T]
        self.cluster_centers_ = np.stack(sums, axis=1) / size
        return self

    def clusterpath(self, X: Any, alphas: Any = None) -> ClusterPath:
        """Clusters and centroids for many alphas, from one cluster down to many.

        Parameters
        ----------
        X : array or table of shape (n_samples, n_features)
        alphas : array of shape (n_alphas,), optional
            Default: at most `n_alphas` values, geometric, from where there is one cluster down to
            a millionth of it, or to where nearly no points share a cluster.

        Returns
        -------
        ClusterPath

        Examples
        --------
        >>> found = ConvexClustering().clusterpath([[0.0], [1.0], [5.0]], alphas=[0.1, 100.0])
        >>> found.labels.tolist()
        [[0, 0, 0], [0, 1, 2]]
        """
        if alphas is not None:
            alphas = as_float_array(alphas, "alphas", 1)
            if not len(alphas) or not (np.isfinite(alphas) & (alphas >= 0)).all():
                raise ValueError(f"alphas must be >= 0, at least one; got {alphas.tolist()}.")
        problem, points = self._problem(X)
        return self._follow(problem, points.mean(axis=0), alphas)

    def _problem(self, X: Any) -> tuple[Problem, Array]:
        penalty = as_penalty(self.penalty)
        if not penalty.is_norm:
            raise ValueError(
                f"ConvexClustering needs a norm as penalty: only norms make centroids equal; got "
                f'{penalty!r}. Use "l2", "l1" or "linf".'
            )
        check_number(self.tol, "tol", low=0.0, strict=True)
        check_count(self.n_alphas, "n_alphas", low=1)
        check_verbose(self.verbose)
        points: Array = validate_data(self, X, dtype=np.float64)
        middle = points.mean(axis=0)  # the solution moves with the points: spare the rounding
        loss = _quadratic(points - middle)
        return Problem(self._graph(points), None, loss=loss, penalty=penalty, lam=1.0), points

    def _follow(self, problem: Problem, middle: Array, alphas: Any = None) -> ClusterPath:
        """The clusterpath, descending; by default it ends where nearly nothing is fused."""
        if alphas is not None:
            if len(alphas) == 1 or Merging.pays(problem):
                return self._rise(problem, middle, np.sort(alphas))
            found = whole_path(problem, alphas, tol=self.tol, verbose=self.verbose)
            ended = found.converged
        else:
            top = lam_max(problem)
            if not top > 0:  # all points coincide, or none are joined
                return self._follow(problem, middle, [1.0])
            unit = float(np.ptp(problem.loss.minimise(), axis=0).max())
            alphas = np.geomspace(top, _DEPTH * top, self.n_alphas)
            if Merging.pays(problem):
                return self._rise(problem, middle, alphas[::-1], unit)
            found = whole_path(
                problem,
                alphas,
                tol=self.tol,
                callback=lambda result: _few_fused(result, unit),
                verbose=self.verbose,
            )
            ended = bool((found.gaps <= self.tol).all())
        return ClusterPath(found.lams, found.clusters, found.w + middle, found.gaps, ended)

    def _rise(
        self, problem: Problem, middle: Array, alphas: Array, unit: float | None = None
    ) -> ClusterPath:
        """The clusterpath found upwards, by merging; points below the first with unit are left."""
        if len(alphas) == 1:
            options = {"tol": self.tol, "verbose": self.verbose}
            steps = iter([whole_solve(problem.with_lam(float(alphas[0])), **options)])
        else:
            steps = rising(problem, alphas, self.tol)
        results: list[Result] = []
        with progress(self.verbose if len(alphas) > 1 else False) as line:
            tell = telling(None, line, len(alphas))
            for result in steps:
                if tell is not None:
                    tell(result)
                if results and unit is not None and _few_fused(result, unit):
                    results.clear()
                results.append(result)
        results.reverse()
        apart = spread(problem, local_fits(problem))
        return ClusterPath(
            np.array([result.problem.lam for result in results]),
            np.array([clusters_at(problem.graph, result.w, apart) for result in results]),
            np.stack([result.w for result in results]) + middle,
            np.array([result.gap for result in results]),
            all(result.converged for result in results),
        )

    def _by_number(self, problem: Problem, middle: Array) -> tuple[ClusterPath, int]:
        """The largest alpha of the path, or between its points, with `n_clusters` clusters."""
        wanted = check_count(self.n_clusters, "n_clusters", low=1)
        if wanted > problem.graph.n_nodes:
            raise ValueError(
                f"n_clusters must be at most the number of points ({problem.graph.n_nodes}); "
                f"got {wanted}."
            )
        whole = found = self._follow(problem, middle)
        count = found.n_clusters
        for _ in range(_BISECTIONS):
            below = int(np.argmax(count >= wanted)) if (count >= wanted).any() else len(count)
            if below == len(count):  # the path ends too early: go on downwards
                found = self._follow(problem, middle, found.alphas[-1] * np.array([1.0, 0.1]))
            elif count[below] == wanted:
                return found, below
            elif below == 0:  # more clusters than wanted wherever the search may go
                break
            else:
                pair = found.alphas[below - 1 : below + 1]
                found = self._follow(problem, middle, np.geomspace(pair[0], pair[1], 3))
            count = found.n_clusters
        k = int(np.argmin(np.abs(whole.n_clusters - wanted)))
        warnings.warn(
            f"No alpha was found that gives {wanted} clusters; the nearest gives "
            f"{whole.n_clusters[k]}. {self._why_missed(problem, wanted)}",
            DataWarning,
            stacklevel=3,
        )
        return whole, k

    @staticmethod
    def _why_missed(problem: Problem, wanted: int) -> str:
        parts = int(problem.graph.components.max()) + 1
        if wanted < parts:
            return f"The graph has {parts} components, which no alpha joins: add edges."
        return "Several clusters merge at once: use another graph or penalty."

    def _graph(self, points: Array) -> Graph:
        if self.graph is not None:
            if isinstance(self.graph, Graph):
                self.graph.check_plain("ConvexClustering")
            return as_graph(self.graph, nodes=np.arange(len(points)))
        return neighbour_graph(points, self.n_neighbors, self.weight, self.scale)


def _few_fused(result: Result, unit: float) -> bool:
    """Whether nearly no neighbours are equal any more: the end of a clusterpath."""
    apart = np.abs(result.problem.graph.diff(result.w)).max(axis=1)
    return bool(np.mean(apart <= _SAME * unit) <= _FEW)


def _clearest_point(found: ClusterPath) -> int:
    """Middle of the clearest stretch; without one, the first point with the most clusters."""
    stretch = clearest(found.alphas, found.labels, most=found.labels.shape[1])
    return int(np.argmax(found.n_clusters)) if stretch is None else sum(stretch) // 2


def _quadratic(points: Array) -> BoundQuadratic:
    """L_i(w) = ||w - a_i||^2 as coefficients."""
    n, d = points.shape
    H = np.broadcast_to(2.0 * np.eye(d), (n, d, d)).copy()
    return BoundQuadratic(H, 2.0 * points, (points * points).sum(axis=1))
