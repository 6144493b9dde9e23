"""One graph judged at held-out rows, beside others at the same rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import Array, type_name
from nefele._ids import IdIndex, distinct
from nefele.estimators import fitting
from nefele.estimators.design import Rows
from nefele.graph_learning.embedding import EmbeddingKNN
from nefele.graph_learning.models import LossGraph
from nefele.graph_learning.references import ALONE, CLIQUE
from nefele.graph_learning.wasserstein import WassersteinGraph
from nefele.selection.choice import choose, choose_by_others, judged
from nefele.selection.verdict import Verdict

Splits = list[tuple[fitting.Index, fitting.Index]]


@dataclass(frozen=True, eq=False)
class Trial:
    """Scores of one graph at held-out rows.

    `alpha` is the strength of the coupling that the search chooses; the score of each fold and the
    errors of the verdict are those of the strength that the other folds choose. `n_edges` is that
    of the graph of all rows; `n_missed` solves did not reach their tolerance.
    """

    alpha: float
    scores: Array
    verdict: Verdict
    n_edges: int
    n_missed: int = 0

    @property
    def mean(self) -> float:
        """Mean score."""
        return float(self.scores.mean())


def run_trial(
    search: Any, model: Any, graph: Any, rows: Rows, splits: Splits, scoring: Any, told: Any = None
) -> Trial:
    """Judge one graph in all folds, with the alphas and the rule of a search."""
    model = copy.copy(model)
    model.graph = graph
    design = fitting.make_design(model, rows)
    alphas = search._grid(design)
    tried = search._folds(model, rows, splits, alphas, scoring, told)
    folds = [fold for fold in tried if np.isfinite(fold.scores).all()]
    if not folds:
        raise ValueError(
            "The score is no number in any fold; such as R^2 of one row, or an AUC of one class. "
            "Use fewer folds, or another score."
        )
    table = np.stack([fold.scores for fold in folds])
    chosen = choose_by_others(table, search.one_se)
    return Trial(
        float(alphas[choose(table, search.one_se)[1]]),
        table[np.arange(len(table)), chosen],
        judged(folds, search.one_se),
        design.problem.graph.n_edges,
        sum(fold.n_missed for fold in folds),
    )


def judged_rows(rows: Rows, splits: Splits) -> Splits:
    """Splits without held-out rows of nodes that have no training rows: all graphs judge alike."""
    found = []
    for train, test in splits:
        known = IdIndex(distinct(rows.node_ids[train]))
        there = known.positions(rows.node_ids[test]) >= 0
        if there.any():
            found.append((train, test[there]))
    return found


def named_graphs(graphs: Any) -> dict[str, Any]:
    """Candidates by name."""
    if graphs is None:
        return {
            "loss": LossGraph(),
            "wasserstein": WassersteinGraph(shrinkage=0.1),
            "moments": EmbeddingKNN(),
        }
    if isinstance(graphs, Mapping):
        found = {str(name): graph for name, graph in graphs.items()}
    elif isinstance(graphs, list | tuple):
        found = {}
        for graph in graphs:
            name, number = type(graph).__name__, 2
            while name in found:
                name, number = f"{type(graph).__name__} {number}", number + 1
            found[name] = graph
    else:
        raise ValueError(
            f"graphs must be a dict {{name: graph or builder}} or a list; got {type_name(graphs)}."
        )
    if not found:
        raise ValueError("graphs must hold at least one candidate; got none.")
    taken = {ALONE, CLIQUE} & set(found)
    if taken:
        raise ValueError(f'The name "{taken.pop()}" is that of a reference: choose another.')
    return found
