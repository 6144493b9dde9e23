"""Graph signal recovery: values at some nodes of a graph, wanted at all (NFL, Sec. III)."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import KFold
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from nefele._checks import Array, as_float_array, check_count, check_number
from nefele._ids import as_ids, describe, unknown_ids_message
from nefele._progress import Line, check_verbose, progress
from nefele.estimators.point_graph import neighbour_graph
from nefele.graph import Graph, Index
from nefele.graphs import as_graph
from nefele.losses.quadratic import BoundQuadratic
from nefele.paths.critical import lam_max
from nefele.paths.follow import whole_solve
from nefele.paths.path import whole_path
from nefele.penalties import as_penalty
from nefele.problem import Problem
from nefele.result import DataWarning, Result, equal_groups


@dataclass(eq=False, repr=False)
class GraphSignalSmoother(RegressorMixin, BaseEstimator):
    """Smooth the values at the nodes of a graph and fill in the missing ones.

    Minimises sum over observed i of ||w_i - y_i||^2 + alpha sum_e A_e phi(w_head(e) - w_tail(e)).
    "l2" and "l1" give signals that are constant on clusters and jump between them, "squared_l2"
    gives smooth ones. Several signals are columns; "l2" and "linf" let them jump together.

    Parameters
    ----------
    graph : any graph that `nefele.as_graph` takes, optional
        X then holds node ids. None: X holds coordinates, its distinct rows are the nodes, each
        joined to its nearest, and a prediction is the value of the nearest node.
    alpha : float, optional
        Strength of the coupling, >= 0. Default: by cross-validation over the observed nodes.
    penalty : str or Penalty
    n_neighbors : int
        Neighbours of each node when `graph` is None.
    alphas : array, optional
        Candidates for alpha; default `n_alphas` values, geometric, from where each component is
        constant down to a ten-thousandth of it.
    n_alphas : int
    cv : int
        Folds of the cross-validation: each holds out a part of the observed nodes.
    random_state : int, RandomState or None
        For drawing the folds.
    tol : float
        Relative gap to reach.
    verbose : bool or int
        Whether to show progress in one line, as `nefele.solve` does.

    Attributes
    ----------
    nodes_ : array of shape (n_nodes,)
        Node ids, or row numbers of `points_`.
    signal_ : array of shape (n_nodes,) or (n_nodes, n_signals)
        Fitted values; NaN in components without an observed node.
    observed_ : bool array of the shape of signal_
        Where values were given.
    clusters_ : int array of shape (n_nodes,)
        Groups of connected nodes with equal values.
    alpha_ : float
    cv_errors_ : array of shape (n_alphas,) or None
        Mean squared error at held-out nodes for each of `alphas_`, when alpha was chosen.
    alphas_ : array of shape (n_alphas,) or None
    dual_gap_ : float
        Certified relative gap.
    graph_ : Graph
    points_ : array of shape (n_nodes, n_features)
        Coordinates of the nodes, when `graph` is None.

    Examples
    --------
    >>> import nefele
    >>> roads = nefele.Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")])
    >>> smoother = GraphSignalSmoother(roads, alpha=0.1).fit(["a", "d"], [1.0, 5.0])
    >>> smoother.predict(["a", "d"]).round(3).tolist(), smoother.observed_.tolist()
    ([1.05, 4.95], [True, False, False, True])
    """

    graph: Any = None
    _: KW_ONLY
    alpha: float | None = None
    penalty: Any = "l2"
    n_neighbors: int = 5
    alphas: Any = None
    n_alphas: int = 30
    cv: int = 5
    random_state: Any = 0
    tol: float = 1e-4
    verbose: bool | int = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the signal to the values that are there.

        Parameters
        ----------
        X : node ids, shape (n_samples,) or (n_samples, 1), or coordinates when `graph` is None
            None: y has one row per node, in graph order. An id may stand more than once: its
            values are averaged, each node counting once.
        y : array of shape (n_samples,) or (n_samples, n_signals)
            Values; NaN where they are missing.
        """
        check_number(self.tol, "tol", low=0.0, strict=True)
        check_verbose(self.verbose)
        if self.alpha is not None:
            check_number(self.alpha, "alpha", low=0.0)
        owner = self._nodes(X)
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        values = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
        )
        check_consistent_length(owner, values)
        self._flat = values.ndim == 1
        target, seen = _means(owner, values.reshape(len(values), -1), self.graph_.n_nodes)
        if not seen.any(axis=0).all():
            raise ValueError("y must have a value at one node at least, for each signal; got none.")
        self._reach = _reached(self.graph_, seen)
        self._centre = np.array([target[on, j].mean() for j, on in enumerate(seen.T)])
        target = np.where(seen, target - self._centre, 0.0)
        with progress(self.verbose) as line:
            self._choose(target, seen, line)
        result = self._solve(target, seen, self.alpha_)
        self._keep(result, seen)
        self._say()
        return self

    def _nodes(self, X: Any) -> Index:
        """The graph of this fit, and the position of each row's node in it."""
        if self.graph is not None:
            self.graph_ = as_graph(self.graph)
            self.nodes_ = self.graph_.ids
            self.n_features_in_ = 1
            return self._positions(X)
        points = validate_data(self, X, dtype=np.float64)
        self.points_, owner = np.unique(points, axis=0, return_inverse=True)
        self.graph_ = neighbour_graph(self.points_, self.n_neighbors, "unit", None)
        self.nodes_ = self.graph_.ids
        return np.asarray(owner, dtype=np.int64).ravel()

    def _positions(self, X: Any) -> Index:
        if X is None:
            return np.arange(self.graph_.n_nodes)
        values = X.to_numpy() if hasattr(X, "to_numpy") else X
        if isinstance(values, np.ndarray) and values.ndim == 2:
            if values.shape[1] != 1:
                raise ValueError(
                    f"X must hold node ids in one column; got {values.shape[1]} columns. "
                    "Leave out graph to use coordinates."
                )
            values = values[:, 0]
        ids = as_ids(values)
        place = self.graph_.positions(ids)
        if (place < 0).any():
            raise ValueError(unknown_ids_message(self.graph_.ids, ids[place < 0], "the data"))
        return place

    def _choose(self, target: Array, seen: NDArray[np.bool_], line: Line) -> None:
        """Set alpha_: the given one, or the best at held-out nodes."""
        self.alphas_, self.cv_errors_ = None, None
        if self.alpha is not None:
            self.alpha_ = float(self.alpha)
            return
        folds = check_count(self.cv, "cv", low=2)
        given = np.flatnonzero(seen.any(axis=1))
        alphas = self._candidates(target, seen)
        if len(given) < 2 or len(alphas) == 1:
            self.alpha_ = float(alphas[0])
            return
        errors, count = np.zeros(len(alphas)), 0
        splitter = KFold(min(folds, len(given)), shuffle=True, random_state=self.random_state)
        for k, (_, test) in enumerate(splitter.split(given), 1):
            line.show(f"fold {k} of {splitter.n_splits}")
            out = given[test]
            part = seen.copy()
            part[out] = False
            judged = seen[out] & _reached(self.graph_, part)[out]
            if not judged.any():
                continue
            count += int(judged.sum())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # judged where there are values only
                found = whole_path(self._problem(target, part), alphas, tol=self.tol)
            errors += (((found.w[:, out] - target[out]) ** 2) * judged).sum(axis=(1, 2))
        if not count:
            self.alpha_ = float(alphas[0])
            return
        self.alphas_, self.cv_errors_ = alphas, errors / count
        self.alpha_ = float(alphas[np.argmin(errors)])

    def _candidates(self, target: Array, seen: NDArray[np.bool_]) -> Array:
        if self.alphas is not None:
            alphas = as_float_array(self.alphas, "alphas", 1)
            if not len(alphas) or not (np.isfinite(alphas) & (alphas >= 0)).all():
                raise ValueError(f"alphas must be >= 0, at least one; got {alphas.tolist()}.")
            return np.sort(alphas)[::-1]
        count = check_count(self.n_alphas, "n_alphas", low=1)
        top = lam_max(self._problem(target, seen))
        return np.geomspace(top, 1e-4 * top, count) if top > 0 else np.ones(1)

    def _problem(self, target: Array, seen: NDArray[np.bool_]) -> Problem:
        d = target.shape[1]
        H = 2.0 * seen[:, :, None] * np.eye(d)
        b = 2.0 * np.where(seen, target, 0.0)
        loss = BoundQuadratic(H, b, (b * b).sum(axis=1) / 4.0)
        return Problem(self.graph_, None, loss=loss, penalty=as_penalty(self.penalty), lam=1.0)

    def _solve(self, target: Array, seen: NDArray[np.bool_], alpha: float) -> Result:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # replaced by one that names the nodes
            return whole_solve(
                self._problem(target, seen).with_lam(alpha), tol=self.tol, verbose=self.verbose
            )

    def _keep(self, result: Result, seen: NDArray[np.bool_]) -> None:
        reach = self._reach if self.alpha_ > 0 else seen
        signal = np.where(reach, result.w + self._centre, np.nan)
        self.signal_ = signal[:, 0] if self._flat else signal
        self.observed_ = seen[:, 0] if self._flat else seen
        self.clusters_ = equal_groups(self.graph_, result.w + self._centre)
        self.dual_gap_ = result.gap

    def _say(self) -> None:
        """Warn about nodes that no value reaches."""
        lost = np.isnan(self.signal_.reshape(self.graph_.n_nodes, -1)).any(axis=1)
        if lost.any():
            parts = len(np.unique(self.graph_.components[lost]))
            where = f"in {parts} component(s) of the graph have no observed node to learn from"
            advice = "Add edges or values."
            if self.alpha_ == 0:
                where, advice = "have no value, and alpha=0 couples nothing", "Use alpha > 0."
            warnings.warn(
                f"{int(lost.sum())} node(s) {where}: {describe(self.graph_.ids[lost])}. Their "
                f"signal is NaN. {advice}",
                DataWarning,
                stacklevel=3,
            )

    def predict(self, X: Any = None) -> Array:
        """Signal at nodes given by id, or at the nodes nearest to given coordinates.

        Parameters
        ----------
        X : as in `fit`
            None: all nodes, in the order of `nodes_`.

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_signals)
        """
        check_is_fitted(self)
        if X is None:
            return self.signal_.copy()
        if self.graph is not None:
            return self.signal_[self._positions(X)]
        points = validate_data(self, X, dtype=np.float64, reset=False)
        return self.signal_[cKDTree(self.points_).query(points)[1]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def _means(owner: Index, values: Array, n: int) -> tuple[Array, NDArray[np.bool_]]:
    """Mean of the values given for each node, and where there are any, shapes (n_nodes, d)."""
    there = ~np.isnan(values)
    total, count = np.zeros((n, values.shape[1])), np.zeros((n, values.shape[1]))
    np.add.at(total, owner, np.where(there, values, 0.0))
    np.add.at(count, owner, there)
    return total / np.maximum(count, 1.0), count > 0


def _reached(graph: Graph, seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Nodes whose component has a value, for each signal, shape (n_nodes, d)."""
    parts = graph.components
    return np.stack([np.bincount(parts, column) > 0 for column in seen.T], axis=1)[parts]
