"""Solutions along alpha and what they are worth at held-out rows."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from nefele._checks import Array
from nefele.estimators import _design
from nefele.estimators._base import GTVBase
from nefele.estimators._design import Design, Rows
from nefele.estimators._solving import solve
from nefele.graph import Graph
from nefele.paths.critical import consensus
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning, Result

Index = NDArray[np.int64]
Scorer = Callable[..., float]


@dataclass(frozen=True, eq=False)
class Fold:
    """Scores at the held-out rows of one fold.

    Attributes
    ----------
    scores : array of shape (n_alphas,)
    own, pooled : float
        Scores of the models of each node's own rows, and of one model for all rows.
    n_left_out : int
        Held-out rows of nodes that the fold's graph does not know.
    n_missed : int
        Solves that did not reach the tolerance.
    n_judged, n_own : int
        Held-out rows that were judged, and those of them whose node has training rows.
    """

    scores: Array
    own: float
    pooled: float
    n_left_out: int
    n_missed: int
    n_judged: int
    n_own: int


def take(rows: Rows, index: Index) -> Rows:
    """Some of the rows."""
    return Rows(rows.X[index], rows.y[index], rows.node_ids[index], rows.sample_weight[index])


def follow(model: GTVBase, design: Design, alphas: Array) -> Iterator[Result]:
    """Solutions for descending alphas, each started at the one before."""
    start = consensus(design.problem) if design.coupled.any() and alphas[0] > 0 else None
    w, u = (None, None) if start is None else start
    for alpha in alphas:
        problem = design.with_alpha(float(alpha)).problem
        u = problem.inside(u) if u is not None and problem.coupled else None
        with warnings.catch_warnings():
            # counted, or said once by the final fit
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DataWarning)
            result = solve(
                problem, model.solver, tol=model.tol, max_iter=model.max_iter, w0=w, u0=u
            )
        w, u = result.w, result.u
        yield result


def run_fold(
    template: GTVBase,
    rows: Rows,
    split: tuple[Index, Index],
    alphas: Array,
    scorer: Scorer,
    told: Callable[[Result], object] | None = None,
    table: Any = None,
) -> Fold:
    """Fit on the training rows of a split, for all alphas, and judge on the others.

    `told` gets the solution for each alpha, so that progress can be shown. The scorer judges the
    pooled model first, then the models along alpha, then those of the nodes' own rows. It sees the
    held-out rows of `table`, X as the user gave it, or else their numbers.
    """
    model = copy.copy(template)
    part, held = take(rows, split[0]), take(rows, split[1])
    graph = model._make_graph(part)
    design = model._make_design(part, graph)
    w_pooled = _pooled(model, design)
    set_model(model, design, np.repeat(w_pooled, graph.n_nodes, axis=0), fill=False)
    model.pooled_coef_, model.pooled_intercept_ = model.coef_[0], model.intercept_[0]
    known = graph.positions(held.node_ids) >= 0
    left_out, places = 0, split[1]
    if model.unseen == "raise":
        left_out = int((~known).sum())
        held, places = take(held, np.flatnonzero(known)), places[known]
    if not len(held.y):
        empty = np.full(len(alphas), np.nan)
        return Fold(empty, np.nan, np.nan, left_out, 0, 0, 0)
    X = np.arange(len(held.y))[:, None] if table is None else _safe_indexing(table, places)
    pooled = score(model, held, scorer, X)
    scores, missed = np.empty(len(alphas)), 0
    for k, result in enumerate(follow(model, design, alphas)):
        missed += not result.converged
        if told is not None:
            told(result)
        set_model(model, design, result.w)
        scores[k] = score(model, held, scorer, X)
    (own,) = follow(model, design, np.zeros(1))
    bare = ~design.problem.loss.labelled[:, None]
    set_model(model, design, np.where(bare, w_pooled, own.w), fill=False)
    place = graph.positions(held.node_ids)
    n_own = int(((place >= 0) & ~bare[place, 0]).sum())
    own_score = score(model, held, scorer, X)
    return Fold(scores, own_score, pooled, left_out, missed, len(held.y), n_own)


def set_model(model: GTVBase, design: Design, w: Array, *, fill: bool = True) -> None:
    """Give the model the parameters w, without all that a full fit stores."""
    model.graph_ = design.problem.graph
    model.nodes_ = np.array(model.graph_.ids)
    model.coef_, model.intercept_ = model._shaped(*design.to_units(w, fill=fill))


def score(model: GTVBase, held: Rows, scorer: Scorer, X: Any) -> float:
    """The scorer's verdict on validated rows, whose predictions are computed once; it sees X."""
    z = raw(model, held.X, held.node_ids)
    judged: Any = copy.copy(model)

    def known(given: Any, node_ids: Any = None) -> Array:
        return z if given is X else type(model)._raw(judged, given, node_ids)

    judged._raw = known
    weight = held.sample_weight
    extra = {} if (weight == 1.0).all() else {"sample_weight": weight}
    return float(scorer(judged, X, labels(model, held.y), **extra))


def raw(model: GTVBase, X: Array, node_ids: NDArray[Any]) -> Array:
    """x^T w + b with the model of each row's node, for rows that are validated already."""
    place = model.graph_.positions(node_ids)
    coef, intercept = model.coef_, model.intercept_
    if (place < 0).any():
        place, coef, intercept = model._cover(node_ids, place)
    product = "rj,rj->r" if coef.ndim == 2 else "rj,rkj->rk"
    return np.asarray(np.einsum(product, X, coef[place]) + intercept[place])


def labels(model: Any, y: Array) -> NDArray[Any]:
    """The target as the user gave it, from the numbers the core works with."""
    if not hasattr(model, "classes_"):
        return y
    code = (y > 0).astype(np.int64) if model._n_outputs == 1 else y.astype(np.int64)
    return np.asarray(model.classes_[code])


def _pooled(model: GTVBase, design: Design) -> Array:
    """Parameters of one model for all rows, with the same weighting, shape (1, d)."""
    data = design.problem.data
    assert data is not None
    problem = Problem(
        Graph([0], [], []), _design.pooled_data(data), loss=model._core_loss(), lam=0.0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        return solve(problem, tol=model.tol).w
