"""A private fit rehearsed on made-up rows: what is wrong with it is said before it is paid for.

It uses what is public anyway: the parameters, the graph, the bounds, the ids, and the numbers of
rows and of features.
"""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from nefele.estimators.design import Design, Rows
from nefele.estimators.released import Index, Released, release_cells
from nefele.privacy.bounds import Box
from nefele.solvers import solve

_QUIET = 1e-3  # noise in units of the sensitivity: there is nothing to hide


def rehearse(model: Any, rows: Rows, fold: Index) -> tuple[Released, Design]:
    """A release of made-up rows and the problem of it; ValueError where the fit would raise one."""
    box = model.privacy.bounds.fixed(rows.X.shape[1], model._names())
    found = release_cells(model.privacy, box, _made_up(rows, box), fold, _QUIET)
    shown = found.rows(np.ones(len(found.names), dtype=bool))
    trial = copy.copy(model)
    options = {"tol": model.tol, "max_iter": model.max_iter}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made-up rows need no advice
        design = trial._make_design(shown, trial._make_graph(shown))
        solve(design.problem, model.solver, callback=lambda record: True, **options)
    return found, design


def _made_up(rows: Rows, box: Box) -> Rows:
    """As many rows, evenly inside the bounds."""
    rng = np.random.default_rng(0)
    m, d = rows.X.shape
    X = rng.uniform(-0.9, 0.9, (m, d)) / np.sqrt(max(d, 1))
    y = box.middle + box.half * rng.uniform(-0.9, 0.9, m)
    return replace(rows, X=box.centre + box.width * X, y=np.asarray(y))
