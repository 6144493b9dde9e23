"""Candidates for alpha: from one model per component down to weak coupling."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_count
from nefele.paths.critical import lam_max
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning

_DEPTH = 1e-4  # least alpha relative to the one where all is one model
_ROUNDING = 1e-10  # alpha, relative to the pull of the data, that is zero but for rounding


def alpha_grid(
    problem: Problem, coupled: NDArray[np.int64], alphas: Any = None, n_alphas: Any = 30
) -> Array:
    """The alphas as given, or n_alphas that suit the problem; descending.

    Parameters
    ----------
    problem : Problem
        Its own lam plays no part.
    coupled : int array
        Columns of the parameters that the graph couples.
    alphas : array of shape (n_alphas,), optional
    n_alphas : int

    Examples
    --------
    >>> from nefele import Graph, LocalData
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> alpha_grid(problem, np.array([0]), n_alphas=3).round(4).tolist()
    [4.0, 0.04, 0.0004]
    """
    if alphas is not None:
        given = as_float_array(alphas, "alphas", 1)
        if not len(given) or not (np.isfinite(given) & (given >= 0)).all():
            raise ValueError(f"alphas must be finite and >= 0, at least one; got {given.tolist()}.")
        return np.unique(given)[::-1]
    count = check_count(n_alphas, "n_alphas", low=1)
    if not len(coupled) or not problem.graph.n_edges:
        return np.zeros(1)  # nothing to couple: one candidate, under which nothing is coupled
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        top = _top(problem)
    least = _ROUNDING * _strength(problem, coupled)
    if not top > least:  # the nodes agree: any alpha gives the pooled model
        top = least / _ROUNDING
    return np.geomspace(top, _DEPTH * top, count)


def _top(problem: Problem) -> float:
    """From which alpha on there is one model per component; about that for partial coupling."""
    top = lam_max(problem)
    if np.isfinite(top):
        return top
    base = getattr(problem.penalty, "penalty", problem.penalty)
    return lam_max(Problem(problem.graph, problem.data, loss=problem.loss, penalty=base, lam=1.0))


def _strength(problem: Problem, coupled: NDArray[np.int64]) -> float:
    """Pull of the data on an edge when all parameters are zero, 1 when there is none."""
    pull = problem.loss.grad(np.zeros((problem.graph.n_nodes, problem.d)))[:, coupled]
    size = float(np.linalg.norm(pull, axis=1).max(initial=0.0) / problem.graph.weight.mean())
    return size if np.isfinite(size) and size > 0 else 1.0
