"""Candidates for alpha: from one model per component down to weak coupling."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_count
from nefele.estimators._design import Design
from nefele.paths.critical import lam_max
from nefele.problem import Problem
from nefele.result import ConvergenceWarning, DataWarning

_DEPTH = 1e-4  # least alpha relative to the one where all is one model
_ROUNDING = 1e-10  # alpha, relative to the pull of the data, that is zero but for rounding


def candidates(design: Design, alphas: Any, n_alphas: Any) -> Array:
    """The alphas as given, or n_alphas that suit the problem; descending."""
    if alphas is not None:
        given = as_float_array(alphas, "alphas", 1)
        if not len(given) or not (np.isfinite(given) & (given >= 0)).all():
            raise ValueError(f"alphas must be finite and >= 0, at least one; got {given.tolist()}.")
        return np.unique(given)[::-1]
    count = check_count(n_alphas, "n_alphas", low=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        top = _top(design)
    if not design.coupled.any() or not design.problem.graph.n_edges:
        return np.zeros(1)  # nothing to couple: one candidate, under which nothing is coupled
    least = _ROUNDING * _strength(design)
    if not top > least:  # the nodes agree: any alpha gives the pooled model
        top = least / _ROUNDING
    return np.geomspace(top, _DEPTH * top, count)


def _top(design: Design) -> float:
    """From which alpha on there is one model per component; about that for partial coupling."""
    if not design.coupled.any():
        return 0.0
    top = lam_max(design.problem)
    if np.isfinite(top):
        return top
    problem = design.problem
    base = getattr(problem.penalty, "penalty", problem.penalty)
    return lam_max(Problem(problem.graph, problem.data, loss=problem.loss, penalty=base, lam=1.0))


def _strength(design: Design) -> float:
    """Pull of the data on an edge when all parameters are zero, 1 when there is none."""
    problem = design.problem
    pull = design.coupled_part(problem.loss.grad(np.zeros((problem.graph.n_nodes, problem.d))))
    size = float(np.linalg.norm(pull, axis=1).max(initial=0.0) / problem.graph.weight.mean())
    return size if np.isfinite(size) and size > 0 else 1.0
