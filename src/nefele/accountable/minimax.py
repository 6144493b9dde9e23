"""A fit for the worst-off node: weights of the nodes by multiplicative updates, with a certificate.

The value of the game is V = min_w max_i L_i(w_i) + P(w), L_i the mean training loss of node i and
P the coupling (and ridge terms) over the number of nodes with rows. For weights q of the nodes that
sum to 1, D(q) = min_w sum_i q_i L_i(w_i) + P(w) <= V, and a fit with its certified gap bounds D(q)
from below; every w bounds V from above. The two bounds are the certificate.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nefele._checks import Array, check_count, check_number
from nefele.data import LocalData
from nefele.estimators import GTVClassifier, GTVRegressor
from nefele.estimators.fitting import core_loss, forget_rows, make_design, store, take_rows
from nefele.losses.pointwise import BoundPointwise
from nefele.paths.follow import whole_solve
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, Result, Status, as_relative

_LEAST = 1e-9  # weight below which no node falls: it must not count as one without rows
_PROOFS = ("dual", "strong convexity")
_GROW, _FALL = 1.6, 0.4
_GOLDEN = (3 - 5**0.5) / 2
_CUTS = 12  # of the way between two models
_INNER = 1e-2  # gap of the fits, in units of the tolerance


@dataclass(frozen=True, eq=False)
class Minimax:
    """A fit for the worst-off node, and how far from the best possible it is.

    Attributes
    ----------
    model : GTVRegressor or GTVClassifier
        The fitted model. It does not keep its training rows: its problem is one of weighted nodes.
        Its `tol`, `dual_gap_` and `status_` are those of the game: the tolerance asked for, the
        relative distance of the bounds, and "optimal" if that is within it.
    lower, upper : float
        The value of the game lies between them.
    converged : bool
        Whether the relative distance of the bounds is within the tolerance. It is relative to the
        size of `upper`, or to a millionth of the worst loss of models of zeros if that is more.
    proven : bool
        Whether the lower bound is a proof; with a loss that has no conjugate it is an estimate.
    rounds : int
        Fits that were done.
    nodes : array of shape (n,)
        Ids of the nodes with rows.
    weights : array of shape (n,)
        Weights of the nodes that prove the lower bound; they sum to 1.
    losses : array of shape (n,)
        Mean training loss of each node under the model.
    even_losses : array of shape (n,)
        The same for even weights, the fit with `weighting="nodes"`.

    Examples
    --------
    >>> import nefele
    >>> X, y = np.empty((4, 0)), [0.0, 2.0, 0.0, 8.0]
    >>> model = nefele.GTVRegressor(nefele.graphs.chain(2), penalty="squared_l2", alpha=100.0)
    >>> found = nefele.accountable.fit_minimax(model, X, y, node_ids=[0, 0, 1, 1])
    >>> bool(found.even_losses.max() > found.losses.max()), found.converged
    (True, True)
    """

    model: Any = field(repr=False)
    lower: float
    upper: float
    converged: bool
    proven: bool
    rounds: int
    nodes: NDArray[Any] = field(repr=False)
    weights: Array = field(repr=False)
    losses: Array = field(repr=False)
    even_losses: Array = field(repr=False)


def fit_minimax(
    model: Any,
    X: Any,
    y: Any,
    *,
    node_ids: Any = None,
    rounds: int = 100,
    tol: float = 1e-2,
) -> Minimax:
    """Fit such that the largest mean training loss of a node is as small as the coupling allows.

    Nodes whose loss is large get more weight, by a factor that grows exponentially with it, and
    the model is fitted again from where it was; steps that do not raise the lower bound are
    shortened. It bounds losses at training rows; look at `nefele.fairness` at others.

    Parameters
    ----------
    model : GTVRegressor or GTVClassifier
        Not fitted; it is left as it is. A loss of the rows, such as squared or logistic; its
        `weighting` is not used.
    X, y, node_ids
        See `fit`.
    rounds : int
        Most fits.
    tol : float
        Relative distance of the bounds to stop at, > 0. A fit that does not come so near warns.

    Returns
    -------
    Minimax

    Examples
    --------
    One model for two nodes: even weights give 2.5, the middle of all labels, the worst-off node
    is best served by more of its own.

    >>> import nefele
    >>> X, y = np.empty((4, 0)), [0.0, 2.0, 0.0, 8.0]
    >>> model = nefele.GTVRegressor(nefele.graphs.chain(2), penalty="squared_l2", alpha=1e4)
    >>> found = nefele.accountable.fit_minimax(model, X, y, node_ids=[0, 0, 1, 1], tol=1e-3)
    >>> found.converged, found.model.intercept_.round(1).tolist()
    (True, [4.0, 4.0])
    """
    rounds = check_count(rounds, "rounds", low=1)
    tol = check_number(tol, "tol", low=0.0, strict=True)
    if not isinstance(model, GTVRegressor | GTVClassifier):
        raise ValueError(
            f"model must be a GTVRegressor or GTVClassifier; got {type(model).__name__}."
        )
    out = clone(model).set_params(weighting="nodes", tol=tol)
    rows = take_rows(out, X, y, None, node_ids)
    design = make_design(out, rows)
    game = _Game(design.problem, core_loss(out))
    found = game.play(rounds, tol)
    gap = game.distance(found)
    close = gap <= tol
    store(out, rows, design, _as_result(game, found, gap, close))
    forget_rows(out)
    if not close:
        warnings.warn(
            f"The bounds of the game are {gap:.1e} apart after {found.rounds} rounds, more than "
            f"tol {tol:.1e}. Increase rounds or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Minimax(
        out,
        found.lower,
        found.upper,
        close,
        found.result.certificate in _PROOFS,
        found.rounds,
        np.array(design.problem.graph.ids)[game.on],
        found.q,
        game.losses(found.w),
        found.even,
    )


def _as_result(game: _Game, found: _Best, gap: float, close: bool) -> Result:
    """The best models, with the gap of the game in place of that of one fit."""
    status = found.result.status
    if close or status == Status.OPTIMAL:
        status = Status.OPTIMAL if close else Status.MAX_ITER
    objective = game.posed(found.q).objective(found.w)
    apart = game.n * (found.upper - found.lower)
    return replace(
        found.result, w=found.w, objective=objective, gap_abs=apart, gap=gap, status=status
    )


@dataclass
class _Best:
    """The best bounds so far, and where they come from."""

    q: Array
    w: Array
    result: Result
    lower: float
    upper: float
    even: Array
    rounds: int = 1


class _Game:
    """The nodes' losses and what weights make of them."""

    def __init__(self, problem: Problem, loss: Any) -> None:
        bound = problem.loss
        if not isinstance(bound, BoundPointwise) or problem.data is None:
            raise ValueError("fit_minimax needs a loss that is a sum over rows; got another one.")
        self.problem, self.loss, self.bound = problem, loss, bound
        self.on = np.flatnonzero(bound.labelled)
        self.n = len(self.on)
        zero = self.losses(np.zeros((problem.graph.n_nodes, problem.d)))
        self.at_zero = float(zero.max(initial=0.0))

    def distance(self, best: _Best) -> float:
        """How far the bounds are apart, relative to their size."""
        return float(as_relative(best.upper - best.lower, best.upper, self.at_zero))

    def posed(self, q: Array) -> Problem:
        """The problem with the nodes' losses weighted by n q."""
        data = self.problem.data
        assert data is not None
        weight = np.ones(data.n_nodes)
        weight[self.on] = self.n * q
        again = LocalData(
            data.X,
            data.y,
            data.ptr,
            data.ids,
            sample_weight=data.sample_weight,
            node_weight=weight,
            shrink=data.shrink,
            offset=data.offset,
        )
        problem = self.problem
        return Problem(problem.graph, again, self.loss, problem.penalty, lam=problem.lam)

    def losses(self, w: Array) -> Array:
        """Mean loss of each node with rows, without ridge terms."""
        data, bound = self.bound.data, self.bound
        each = data.row_weight * bound.row_value(bound.predict(w))
        return np.asarray(np.bincount(data.row_node, each, data.n_nodes)[self.on], dtype=float)

    def upper(self, w: Array) -> float:
        """What w costs the worst-off node, with the coupling."""
        losses = self.losses(w)
        coupling = (self.problem.objective(w) - losses.sum()) / self.n
        return float(losses.max() + coupling)

    def fit(self, q: Array, tol: float, start: Result | None = None) -> tuple[Result, float]:
        """The fit with these weights, and the lower bound that it proves."""
        begin = {} if start is None else {"w0": start.w, "u0": start.u}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = whole_solve(self.posed(q), tol=tol, **begin)
        return result, float((result.objective - result.gap_abs) / self.n)

    def between(self, first: Array, second: Array, value: float) -> tuple[float, Array]:
        """The best model on the way from one to another; what it costs is convex along it."""
        low, high = 0.0, 1.0
        away = second - first
        for _ in range(_CUTS):
            one, two = low + (high - low) * _GOLDEN, high - (high - low) * _GOLDEN
            if self.upper(first + one * away) < self.upper(first + two * away):
                high = two
            else:
                low = one
        found = first + (low + high) / 2 * away
        ends = [(value, first), *((self.upper(w), w) for w in (found, second))]
        return min(ends, key=lambda end: end[0])

    def play(self, rounds: int, tol: float) -> _Best:
        """Rounds of weights and fits until the bounds meet."""
        q = np.full(self.n, 1.0 / self.n)
        inner = max(_INNER * tol, 1e-8)
        result, lower = self.fit(q, inner)
        losses = self.losses(result.w)
        best = _Best(q, result.w, result, lower, self.upper(result.w), losses)
        total, count, step = result.w.copy(), 1, 1.0
        size = float(np.ptp(losses))
        while best.rounds < rounds and not self.distance(best) <= tol:
            tried = moved(best.q, losses, step / size if size > 0 else step)
            result, lower = self.fit(tried, inner, result)
            best.rounds += 1
            total, count = total + result.w, count + 1
            for w in (result.w, total / count):
                best.upper, best.w = self.between(best.w, w, best.upper)
            if lower > best.lower:
                best.q, best.lower, best.result = tried, lower, result
                losses, step = self.losses(result.w), step * _GROW
            else:
                step *= _FALL
        return best


def moved(q: Array, losses: Array, step: float) -> Array:
    """Weights after one multiplicative update by exp(step * loss): only differences count.

    Examples
    --------
    >>> moved(np.array([0.5, 0.5]), np.array([-7.0, -8.0]), np.log(3.0)).round(3).tolist()
    [0.75, 0.25]
    """
    raised = q * np.exp(step * (losses - losses.max()))
    kept = np.maximum(raised / raised.sum(), _LEAST)
    return np.asarray(kept / kept.sum())
