"""One fold: solutions along alpha, own models and one model, and their worth at held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.paths.critical import consensus
from nefele.paths.follow import follow
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning, Result
from nefele.selection.judge import Judge

Told = Callable[[Result], object]


@dataclass(frozen=True, eq=False)
class NodeErrors:
    """Mean errors of the nodes at the held-out rows of one fold.

    Attributes
    ----------
    nodes : array of shape (n,)
    weight : array of shape (n,)
        Weight of their held-out rows.
    with_rows : bool array of shape (n,)
        Whether the node has training rows; `own` is the error of one model where not, and where
        these determine no model.
    own, pooled : arrays of shape (n,)
    coupled : array of shape (n_alphas, n)
    wrong : list of float
        Shares of wrong classes: of one model, along alpha, of own models; empty for a regression.
    """

    nodes: NDArray[Any]
    weight: Array
    with_rows: NDArray[np.bool_]
    own: Array
    pooled: Array
    coupled: Array
    wrong: list[float]


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
    errors : NodeErrors or None
        None with a scorer of the user's, or without held-out rows.
    """

    scores: Array
    own: float = np.nan
    pooled: float = np.nan
    n_left_out: int = 0
    n_missed: int = 0
    n_judged: int = 0
    n_own: int = 0
    errors: NodeErrors | None = None


@dataclass(frozen=True, eq=False)
class Contest:
    """What a fold is about: the problem of the training rows, and the score of its solutions.

    Attributes
    ----------
    problem : Problem
    coupled : bool
        Whether the graph couples any parameter.
    options : dict
        Solver, tol and max_iter.
    one_model : array of shape (1, d)
        Parameters of one model for all training rows.
    judge : Judge
    score : callable
        Parameters of shape (n_nodes, d), and whether to fill in what no data determine -> the
        judge's score.
    n_left_out : int
    """

    problem: Problem
    coupled: bool
    options: dict[str, Any]
    one_model: Array
    judge: Judge
    score: Callable[[Array, bool], float]
    n_left_out: int


def quiet_path(
    problem: Problem, alphas: Array, coupled: bool, options: dict[str, Any]
) -> Iterator[Result]:
    """Solutions for descending alphas; what they warn of is counted, or said by the final fit."""
    start = consensus(problem) if coupled and alphas[0] > 0 else None
    steps = follow(problem, alphas if coupled else np.zeros(len(alphas)), start, **options)
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DataWarning)
            result = next(steps, None)
        if result is None:
            return
        yield result


def run_contest(contest: Contest, alphas: Array, told: Told | None = None) -> Fold:
    """Judge one model, then the models along alpha, then those of the nodes' own rows.

    `told` gets the solution for each alpha, so that progress can be shown.
    """
    judge, problem = contest.judge, contest.problem
    if not judge.n_rows:
        return Fold(np.full(len(alphas), np.nan), n_left_out=contest.n_left_out)
    pooled = contest.score(np.repeat(contest.one_model, problem.graph.n_nodes, axis=0), False)
    scores, missed = np.empty(len(alphas)), 0
    for k, result in enumerate(quiet_path(problem, alphas, contest.coupled, contest.options)):
        missed += not result.converged
        if told is not None:
            told(result)
        scores[k] = contest.score(result.w, True)
    (alone,) = quiet_path(problem, np.zeros(1), contest.coupled, contest.options)
    # Where own rows are missing, or determine no model (one class only), the one for all judges.
    bare = ~problem.loss.labelled | alone.unbounded
    own = contest.score(np.where(bare[:, None], contest.one_model, alone.w), False)
    errors = None
    if judge.errors:
        one, *along, last = judge.errors
        about = (judge.nodes, judge.count, judge.with_rows)
        errors = NodeErrors(*about, last, one, np.stack(along), judge.wrong)
    counts = (contest.n_left_out, missed, judge.n_rows, judge.n_own)
    return Fold(scores, own, pooled, *counts, errors)
