"""The CV estimators with `penalty="auto"`: a coupling is chosen, judged and fitted."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import delayed

from nefele._progress import Line, progress
from nefele.estimators import auto, fitting
from nefele.estimators.design import Rows
from nefele.estimators.telling import run_folds
from nefele.graph import Graph
from nefele.losses import Absolute, Constrained, Hinge, HuberLoss, Quantile, SquaredHinge


def check(search: Any) -> None:
    """Raise ValueError for parameters of a search that go with a penalty by name only."""
    if search.alphas is not None:
        raise ValueError(
            'alphas must go with a penalty by name, such as penalty="l2"; the coupling that '
            'penalty="auto" chooses has a strength of its own.'
        )
    loss = search.loss
    by_column = any(np.ndim(getattr(loss, name, 0)) for name in ("l2", "l1"))
    if by_column or isinstance(loss, Constrained):
        raise ValueError(
            "Constrained losses, and l2 and l1 by column, must go with a penalty by name, such as "
            f'"l2"; got loss={loss!r} with penalty="auto".'
        )
    if isinstance(search.graph, Graph):
        search.graph.check_plain('penalty="auto"')
    coupled = search.couple is None and search.couple_intercept
    if search.scale is not None or search.hub or not coupled:
        raise ValueError(
            "scale, hub, couple and couple_intercept must go with a penalty by name, such as "
            '"squared_l2"; penalty="auto" chooses what is personal and how far.'
        )


def refuse_signals() -> None:
    """Raise ValueError: a likelihood knows labels only."""
    raise ValueError(
        'signal must go with a penalty by name, such as penalty="l2"; the coupling that '
        'penalty="auto" chooses is estimated by likelihood, and signals are no observations.'
    )


def fit(search: Any, model: Any, rows: Rows, given: tuple[Any, ...]) -> bool:
    """Choose a coupling, judge it and fit with it; see `nefele.estimators.auto`.

    False where the data are too large for that, or no member of the family has a fit.
    `given` is what the user gave: X, y, sample_weight, node_ids and groups.
    """
    graph, curves = auto.graph_of(model, rows), search.features in ("auto", "spline")
    model._check_labels(rows, graph)
    if auto.too_large(rows, graph):
        return False
    try:
        with progress(search.verbose) as line:
            choice = auto.choose_coupling(model, rows, graph, curves=curves, told=_counted(line))
    except np.linalg.LinAlgError:
        return False
    unlike = Absolute | Quantile | Hinge | SquaredHinge | HuberLoss  # their losses are no scores
    known = choice.judged and not isinstance(model._core_loss(), unlike)
    if search.cv is None and search.scoring is None and known:
        _record(search, choice, rows, graph)
    else:
        scorer, table = search._scoring(model, given[0], given[2])
        splits = search._splits(*given, rows)

        def tasks(told: Any) -> Iterator[Any]:
            for split in splits:
                yield delayed(auto.run_fold)(model, rows, split, curves, scorer, table)

        tried = run_folds(tasks, len(splits), search.verbose, search.n_jobs)
        search.alphas_ = np.array([choice.alpha])
        search._record([fold for fold in tried if np.isfinite(fold.scores).all()], tried)
    auto.apply(model, choice, rows.X.shape[1])
    design = model._make_design(rows, graph)
    start = auto.start_of(choice, design)
    search.best_estimator_ = fitting.fit_design(model, rows, design, start)
    search.clearest_alpha_ = search.clearest_clusters_ = search._steady = None
    search.cv_results_["n_clusters"] = np.array([int(model.clusters_.max()) + 1])
    auto.remember(model, choice, rows)
    search.scale_, search.hub_ = model.scale, model.hub
    search._copy(model)
    return True


def _counted(line: Line) -> auto.Told:
    """Shows the couplings that are tried."""
    numbers = itertools.count(1)
    return lambda words: line.show(f"coupling {next(numbers)}: {words}")


def _record(search: Any, choice: auto.Choice, rows: Rows, graph: Graph) -> None:
    """Scores at rows left out one by one."""
    search.alphas_ = np.array([choice.alpha])
    search.alpha_ = search.best_alpha_ = choice.alpha
    search.best_index_, search.n_left_out_ = 0, 0
    means = {
        name: -float(np.average(errors, weights=rows.sample_weight))
        for name, errors in choice.errors.items()
    }
    search.best_score_ = means["coupled"]
    search.cv_results_ = {
        "alpha": search.alphas_.copy(),
        "mean_test_score": np.array([search.best_score_]),
        "std_test_score": np.zeros(1),
        "rank_test_score": np.ones(1, dtype=np.int64),
    }
    search._n_judged = search._n_own = len(rows.y)
    search.baseline_scores_ = {"own": means["own"], "pooled": means["pooled"]}
    search._take_verdict(auto.verdict_of(choice, rows, graph))
