"""Held-out scores of one graph, and the graphs that others are compared with."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nefele._checks import Array, check_count, type_name
from nefele._ids import IdIndex, as_ids, distinct
from nefele.estimators._design import Rows
from nefele.estimators._folds import Index, Scorer, run_fold
from nefele.estimators.builders import GraphBuilder, TrainingRows
from nefele.graph import Graph
from nefele.graph_learning._base_graph import base_graph
from nefele.graph_learning.embedding import EmbeddingKNN
from nefele.graph_learning.models import LossGraph
from nefele.graph_learning.wasserstein import WassersteinGraph
from nefele.graphs import star

ALONE, CLIQUE = "no edges", "one clique"  # the references

__all__ = ["CliqueGraph", "NoEdges", "ShuffledGraph", "Trial", "run_trial"]


class NoEdges(GraphBuilder):
    """No links at all: every node learns alone.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((2, 1)), np.ones((2, 1)), np.array(["a", "b"]), np.ones(2))
    >>> NoEdges().fit_graph(rows).n_edges
    0
    """

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """A graph of the nodes with rows, without edges."""
        return Graph(distinct(rows.node_ids), [], [])


class CliqueGraph(GraphBuilder):
    """Everyone joined to everyone: shrinkage towards a common model, without structure.

    Parameters
    ----------
    max_complete : int
        Up to this many nodes all pairs are edges. Beyond, every node is joined to one more node
        without rows: n edges in the place of n (n - 1) / 2. Both run from own models to one
        pooled model as the coupling grows; in between they are the same for the squared penalty
        (a star of weight a acts like a complete graph of weight a / n) and similar, not the same,
        for norms.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((3, 1)), np.ones((3, 1)), np.array([0, 1, 2]), np.ones(3))
    >>> CliqueGraph().fit_graph(rows).n_edges, CliqueGraph(2).fit_graph(rows).ids.tolist()
    (3, [3, 0, 1, 2])
    """

    def __init__(self, max_complete: int = 60) -> None:
        self.max_complete = max_complete

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The complete graph of the nodes with rows, or a star around a node without rows."""
        ids = distinct(rows.node_ids)
        if len(ids) <= check_count(self.max_complete, "max_complete", low=0):
            head, tail = np.triu_indices(len(ids), 1)
            return Graph(ids, head, tail)
        return star(len(ids) + 1, nodes=as_ids([_new_id(ids), *ids.tolist()]))


class ShuffledGraph(GraphBuilder):
    """A graph with its node ids permuted: the same shape, none of the meaning.

    Parameters
    ----------
    graph : Graph, object that `as_graph` takes, or builder
    random_state : int

    Examples
    --------
    >>> rows = TrainingRows(np.ones((1, 1)), np.ones((1, 1)), np.array(["a"]), np.ones(1))
    >>> path = Graph(["a", "b", "c", "d"], [0, 1, 2], [1, 2, 3])
    >>> sorted(ShuffledGraph(path).fit_graph(rows).degree.tolist())
    [1, 1, 2, 2]
    """

    def __init__(self, graph: Any = None, random_state: int = 0) -> None:
        self.graph = graph
        self.random_state = random_state

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph with permuted ids."""
        graph = base_graph(self.graph, rows, NoEdges(), "ShuffledGraph")
        place = np.random.default_rng(self.random_state).permutation(graph.n_nodes)
        return Graph(graph.ids, place[graph.head], place[graph.tail], graph.weight)


def _new_id(ids: NDArray[Any]) -> Any:
    """An id that is not there, of the same type."""
    if ids.dtype.kind == "i":
        return int(ids.max()) + 1
    name, known = "common", set(ids.tolist())
    while name in known:
        name += "_"
    return name


@dataclass(frozen=True, eq=False)
class Trial:
    """Scores of one graph at held-out rows.

    Attributes
    ----------
    alpha : float
        Strength of the coupling with the best mean score.
    scores : array of shape (n_folds,)
        Score of each fold, with the strength that is best in the other folds.
    own, pooled : arrays of shape (n_folds,)
        Scores of own models, and of one model for all.
    n_edges : int
        Of the graph of all rows.
    n_missed : int
        Solves that did not reach their tolerance.
    """

    alpha: float
    scores: Array
    own: Array
    pooled: Array
    n_edges: int
    n_missed: int = 0

    @property
    def mean(self) -> float:
        """Mean score."""
        return float(self.scores.mean())


def run_trial(
    search: Any,
    model: Any,
    graph: Any,
    rows: Rows,
    splits: list[tuple[Index, Index]],
    score: Scorer,
) -> Trial:
    """Judge one graph in all folds.

    The strength is chosen for each fold by the others, so that trying many strengths gives no
    graph an advantage over one that has no strength to choose.
    """
    model = copy.copy(model)
    model.graph = graph
    design = model._make_design(rows, model._make_graph(rows))
    alphas = search._grid(design)
    folds = Parallel(n_jobs=search.n_jobs)(
        delayed(run_fold)(model, rows, split, alphas, score) for split in splits
    )
    table = np.stack([fold.scores for fold in folds])
    total = table.sum(axis=0)
    rest = total - table if len(table) > 1 else table
    chosen = table[np.arange(len(table)), rest.argmax(axis=1)]
    return Trial(
        float(alphas[int(total.argmax())]),
        chosen,
        np.array([fold.own for fold in folds]),
        np.array([fold.pooled for fold in folds]),
        design.problem.graph.n_edges,
        sum(fold.n_missed for fold in folds),
    )


def judged_rows(rows: Rows, splits: list[tuple[Index, Index]]) -> list[tuple[Index, Index]]:
    """Splits without held-out rows of nodes that have no training rows: all graphs judge alike."""
    found = []
    for train, test in splits:
        known = IdIndex(distinct(rows.node_ids[train]))
        there = known.positions(rows.node_ids[test]) >= 0
        if there.any():
            found.append((train, test[there]))
    return found


def mean_and_error(values: Array) -> tuple[float, float]:
    """Mean and standard error over folds; NaN with one fold."""
    if len(values) < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


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
