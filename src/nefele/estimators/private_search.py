"""The choice of alpha with a guarantee.

With "statistics" every fold releases its own moments. Folds share no rows, so that together they
cost what one release of all rows costs; the noise of their sum grows with the root of their
number. A whole node is in all folds: with unit "node" each of them is paid for. With "updates"
the choice sees raw rows, and is listed as outside the accountant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import check_count
from nefele.estimators import private
from nefele.estimators.design import Rows
from nefele.estimators.rehearsal import rehearse
from nefele.selection import WithinNodeKFold

_FOLDS = 2  # the fewest: each more costs noise


def fit(search: Any, model: Any, rows: Rows, given: tuple[Any, ...]) -> Any:
    """Charge, release, choose and fit."""
    mechanism = private.check(model, rows)
    model._account = private.account_of(search)  # of an earlier fit, which it must know
    if model.privacy.refit:
        raise ValueError("refit=True goes with a fixed alpha: choose it first, then fit with it.")
    if search.scale is not None and isinstance(search.scale, str):
        raise ValueError("scale must be numbers or None for a private choice of alpha.")
    if mechanism == "statistics":
        return _by_statistics(search, model, rows, given[4])
    return _by_updates(search, model, rows, given)


def _by_statistics(search: Any, model: Any, rows: Rows, groups: Any) -> Any:
    if search.scoring is not None or groups is not None:
        raise ValueError(
            "scoring and groups must be left out with privacy: held-out rows are seen as noisy "
            "moments only, which tell squared errors."
        )
    count = _FOLDS if search.cv is None else check_count(search.cv, "cv with privacy", low=2)
    fold = np.zeros(len(rows.y), dtype=np.int64)
    splitter = WithinNodeKFold(count)  # in row order, whatever the rows hold
    for k, (_, held) in enumerate(splitter.split(rows.X, None, rows.node_ids)):
        fold[held] = k
    rehearsed, design = rehearse(model, rows, fold)
    rehearsed.folds()
    search._grid(design)
    found = private.released(model, rows, fold)
    shown = found.rows(np.ones(len(found.names), dtype=bool))
    bank, splits = found.folds()
    privacy, model.privacy = model.privacy, None  # what follows sees nothing but the release
    design, points = search._search(model, bank, splits, (None, None), shown)
    model.privacy = privacy
    search._finish(model, shown, design, points)
    return search


def _by_updates(search: Any, model: Any, rows: Rows, given: tuple[Any, ...]) -> Any:
    outside = [
        "alpha was chosen by cross-validation on raw rows",
        "what the search tells (alphas_, cv_results_, best_score_, baseline_scores_, verdict_ and "
        "other scores, gains and clusters) was computed from raw rows",
    ]
    privacy = model.privacy
    privacy.check_outside(outside)
    model.privacy = None
    splits, scoring = search._splits(*given, rows), search._scoring(model, given[0], given[2])
    search._search(model, rows, splits, scoring, rows)
    model.set_params(alpha=search.alpha_)
    model.privacy = privacy
    search.best_estimator_ = private.fit_updates(model, rows, outside)
    search._copy(model)
    return search
