"""Rows that arrive over time: the fit is updated from its last state and certified again.

Each update multiplies the weights of all earlier rows by `forget` and adds new rows; a node's loss
is the weighted mean over its rows, as ever. For the squared loss only its second moments are kept,
so that time and memory of an update do not grow with the rows seen.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_count, check_finite, check_number
from nefele._ids import as_ids, unknown_ids_message
from nefele.data import LocalData
from nefele.graph import Graph
from nefele.losses import Loss, Squared, as_loss
from nefele.losses.quadratic import BoundQuadratic
from nefele.penalties import penalty_of
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, Result
from nefele.solvers import PrimalDual, solve
from nefele.solvers.choose import as_solver

__all__ = ["Stream"]

_QUICK = 300  # plain iterations of an update
_FORGOTTEN = 1e-6  # weight, relative to the largest, below which a row is dropped


class Stream:
    """A fit over a graph that takes rows as they come, forgets slowly and is always certified.

    Parameters
    ----------
    graph : Graph
        All nodes; those without rows so far are legal.
    d : int
        Number of features.
    loss, penalty, lam
        As for `Problem`; one loss for all nodes.
    forget : float in (0, 1]
        What is left of the weight of all earlier rows at each update; 1 forgets nothing. The rows
        of the last 1 / (1 - forget) updates or so count.
    tol : float
        Relative gap that each update is certified to.

    Attributes
    ----------
    result : Result or None
        Of the last update, with parameters `w` and the certified gap.
    n_updates, n_rows : int
        Updates so far, and rows that are kept: none for the squared loss.

    Examples
    --------
    >>> from nefele.graphs import chain
    >>> stream = Stream(chain(2), d=1, lam=0.1, forget=0.5)
    >>> first = stream.partial_fit([[1.0], [1.0]], [0.0, 4.0], [0, 1])
    >>> later = stream.partial_fit([[1.0]], [3.0], [0])
    >>> later.converged, later.w.round(2).tolist()
    (True, [[2.05], [3.95]])
    """

    def __init__(
        self,
        graph: Graph,
        d: int,
        loss: Any = "squared",
        penalty: Any = "l2",
        *,
        lam: float,
        forget: float = 1.0,
        tol: float = 1e-6,
    ) -> None:
        if not isinstance(graph, Graph):
            raise ValueError(f"graph must be a nefele Graph; got {type(graph).__name__}.")
        self.graph, self.d = graph, check_count(d, "d", low=1)
        self.loss, self.penalty = as_loss(loss), penalty_of(penalty, graph)
        self.lam = check_number(lam, "lam", low=0.0)
        self.forget = _share(forget)
        self.tol = check_number(tol, "tol", low=0.0, strict=True)
        self.result: Result | None = None
        self.n_updates = 0
        moments = type(self.loss) is Squared and not np.any(self.loss.l1)
        self._kept: _Moments | _Rows = _Moments(graph.n_nodes, self.d) if moments else _Rows(self.d)

    def __repr__(self) -> str:
        return (
            f"Stream(n_nodes={self.graph.n_nodes}, d={self.d}, lam={self.lam:g}, "
            f"forget={self.forget:g}, n_updates={self.n_updates})"
        )

    @property
    def n_rows(self) -> int:
        """Rows that are kept."""
        return self._kept.n_rows

    def partial_fit(
        self, X: Any, y: Any, node_ids: Any, *, sample_weight: Any = None, forget: Any = None
    ) -> Result:
        """Take new rows and solve again from the last state.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        y : array of shape (n_rows,)
        node_ids : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
        forget : float in (0, 1], optional
            For this update alone, such as forget ** hours.

        Returns
        -------
        Result
            Of the problem with the weighted rows, with its certified gap.
        """
        rows = LocalData.from_long(X, y, node_ids, self.graph.ids, sample_weight=sample_weight)
        if rows.d != self.d:
            raise ValueError(f"X must have {self.d} columns; got {rows.d}.")
        kept = self._kept.after(rows, self.forget if forget is None else _share(forget))
        problem = Problem(
            self.graph, None, loss=kept.bound(self.loss, self.graph), penalty=self.penalty,
            lam=self.lam,
        )  # fmt: skip
        self.result = self._solved(problem)
        self._kept, self.n_updates = kept, self.n_updates + 1
        return self.result

    def _solved(self, problem: Problem) -> Result:
        """From the last state by some plain iterations, which mostly suffice, then as ever."""
        w, u = (None, None) if self.result is None else (self.result.w, self.result.u)
        if isinstance(as_solver("auto", problem), PrimalDual):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # not the last word
                plain = PrimalDual(polish=False)
                quick = solve(problem, plain, tol=self.tol, max_iter=_QUICK, w0=w, u0=u)
            if quick.converged:
                return quick
            w, u = quick.w, quick.u
        return solve(problem, tol=self.tol, w0=w, u0=u)

    def predict(self, X: Any, node_ids: Any) -> Array:
        """x^T w of each row's node, shape (n_rows,), by the last update.

        Parameters
        ----------
        X : array of shape (n_rows, d)
        node_ids : array of shape (n_rows,)
            Node of each row.
        """
        if self.result is None:
            raise ValueError("predict needs a fit: call partial_fit first.")
        X, keys = as_float_array(X, "X", 2), as_ids(node_ids)
        if len(keys) != len(X):
            raise ValueError(
                f"node_ids must have one entry per row of X ({len(X)}); got {len(keys)}."
            )
        check_finite(X, lambda at: f"X[{at[0]}, {at[1]}]")
        place = self.graph.positions(keys)
        if (place < 0).any():
            raise ValueError(unknown_ids_message(self.graph.ids, keys[place < 0], "the data"))
        if self.result.w.shape[1] != X.shape[1]:
            raise ValueError(f"X must have {self.result.w.shape[1]} columns; got {X.shape[1]}.")
        return np.asarray((X * self.result.w[place]).sum(axis=1))


class _Moments:
    """Weighted sums of x x^T, x y and y^2 over the rows of each node, and of the weights."""

    n_rows = 0

    def __init__(self, n_nodes: int, d: int) -> None:
        self.G, self.b = np.zeros((n_nodes, d, d)), np.zeros((n_nodes, d))
        self.c, self.mass = np.zeros(n_nodes), np.zeros(n_nodes)

    def after(self, rows: LocalData, forget: float) -> _Moments:
        """These sums faded, and those of new rows."""
        new = _Moments(*self.b.shape)
        weight = np.ones(rows.n_rows) if rows.sample_weight is None else rows.sample_weight
        seen = weight[:, None] * rows.X
        new.G = forget * self.G + rows.node_sum(seen[:, :, None] * rows.X[:, None, :])
        new.b = forget * self.b + rows.node_sum(seen * rows.y[:, None])
        new.c = forget * self.c + rows.node_sum(weight * rows.y**2)
        new.mass = forget * self.mass + rows.node_sum(weight)
        return new

    def bound(self, loss: Loss, graph: Graph) -> BoundQuadratic:
        """The mean squared errors, with the loss's ridge."""
        assert isinstance(loss, Squared)
        known = self.mass > 0
        share = np.where(known, 1 / np.where(known, self.mass, 1.0), 0.0)
        d = self.b.shape[1]
        ridge = np.broadcast_to(np.array(loss.l2, dtype=float), (d,))
        H = 2 * share[:, None, None] * self.G
        H = H + np.where(known[:, None, None], 2 * np.diag(ridge), 0.0)
        return BoundQuadratic(H, 2 * share[:, None] * self.b, share * self.c)


class _Rows:
    """Rows with faded weights; those that hardly count any more are dropped."""

    def __init__(self, d: int) -> None:
        self.X, self.y = np.zeros((0, d)), np.zeros(0)
        self.owner, self.weight = np.zeros(0, dtype=np.int64), np.zeros(0)

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def after(self, rows: LocalData, forget: float) -> _Rows:
        """These rows with less weight, and new ones."""
        new = _Rows.__new__(_Rows)
        weight = np.ones(rows.n_rows) if rows.sample_weight is None else rows.sample_weight
        faded = np.concatenate([forget * self.weight, weight])
        keep = faded > _FORGOTTEN * faded.max(initial=0.0)
        new.X = np.concatenate([self.X, rows.X])[keep]
        new.y = np.concatenate([self.y, rows.y])[keep]
        new.owner = np.concatenate([self.owner, rows.row_node])[keep]
        new.weight = faded[keep]
        return new

    def bound(self, loss: Loss, graph: Graph) -> Any:
        """The loss bound to the rows that are left."""
        ids = graph.ids
        data = LocalData.from_long(self.X, self.y, ids[self.owner], ids, sample_weight=self.weight)
        return loss.bind(data)


def _share(forget: Any) -> float:
    value = check_number(forget, "forget")
    if not 0 < value <= 1:
        raise ValueError(f"forget must be in (0, 1]; got {forget!r}. Use 1 to forget nothing.")
    return value
