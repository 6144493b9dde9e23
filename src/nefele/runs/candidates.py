"""Graphs that a data file allows for: how each joins the nodes, and what it needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nefele._checks import check_name
from nefele.estimators.builders import GraphBuilder, MomentsKNN, SpatialKNN, TrainingRows
from nefele.graph import Graph
from nefele.graph_learning import (
    DelaunayGraph,
    EmbeddingKNN,
    GradientGraph,
    LabelGraph,
    LossGraph,
    PoolingGainGraph,
    WassersteinGraph,
)
from nefele.graph_learning._compare import CLIQUE
from nefele.runs.config import LEARN, RunConfig

GIVEN = "given"


@dataclass(frozen=True)
class Kind:
    """A way to make a graph: from k and the places of the nodes, how it joins them, its needs."""

    make: Callable[[int, dict[str, Any]], Any]
    words: str
    needs: str = ""
    usual: bool = True
    learnt: bool = True
    pairs: bool = True


KINDS = {
    GIVEN: Kind(lambda k, at: None, "the edges of --graph", "--graph", learnt=False, pairs=False),
    "nearest": Kind(
        lambda k, at: SpatialKNN(k, **at), "near in space", "--coords", learnt=False, pairs=False
    ),
    "delaunay": Kind(
        lambda k, at: DelaunayGraph(**at), "cells touch", "--coords", learnt=False, pairs=False
    ),
    "moments": Kind(lambda k, at: MomentsKNN(k), "similar means and deviations", pairs=False),
    "wasserstein": Kind(
        lambda k, at: WassersteinGraph(k=k, shrinkage=0.1, standardize=True),
        "similar Gaussian fits",
    ),
    "losses": Kind(lambda k, at: LossGraph(k), "models do well on each other's rows"),
    "labels": Kind(
        lambda k, at: LabelGraph(k=k), "similar shares of the classes", "--task classification"
    ),
    "covariances": Kind(
        lambda k, at: EmbeddingKNN(k=k), "similar means, deviations and covariances", usual=False
    ),
    "gradients": Kind(lambda k, at: GradientGraph(k), "pull one model the same way", usual=False),
    "pooling": Kind(lambda k, at: PoolingGainGraph(k), "gain by pooling their rows", usual=False),
}


class Remembered(GraphBuilder):
    """A builder that keeps its graphs: the shuffled copies and the file need the same ones.

    Parameters
    ----------
    builder : builder

    Examples
    --------
    >>> rows = TrainingRows(np.eye(3), np.eye(3), np.array(["a", "b", "c"]), np.ones(3))
    >>> builder = Remembered(MomentsKNN(1))
    >>> builder.fit_graph(rows) is builder.fit_graph(rows)
    True
    """

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self._graphs: dict[bytes, Graph] = {}

    def __sklearn_clone__(self) -> Remembered:
        return self  # a copy would remember nothing

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the builder for these rows."""
        sign = hashlib.sha256()
        for part in (rows.X, rows.targets, rows.node_ids):
            sign.update(np.ascontiguousarray(part).tobytes())
        key = sign.digest()
        if key not in self._graphs:
            self._graphs[key] = self.builder.fit_graph(rows)
        return self._graphs[key]


def choose_kinds(
    config: RunConfig, names: Iterable[str] | None, keep: str | None
) -> tuple[list[str], dict[str, str]]:
    """Names of the candidates, and why others are left out; a ValueError for impossible ones."""
    if config.graph == LEARN:
        raise ValueError(
            '--graph must be an edge file; "learn" makes the graph that is called "moments" here, '
            "and that is tried anyway. Leave it out."
        )
    met = {
        "": True,
        "--graph": config.graph is not None,
        "--coords": config.coords is not None,
        "--task classification": config.task == "classification",
    }
    if names is None:
        usual = [name for name, kind in KINDS.items() if kind.usual]
        if keep in KINDS and keep not in usual:
            usual.append(keep)
        found = [name for name in usual if met[KINDS[name].needs]]
        far = [name for name in usual if KINDS[name].needs == "--coords" and name not in found]
        left_out = dict.fromkeys(far, "needs --coords, two columns with the place of each node.")
    else:
        found = [check_name(name, KINDS, "graph") for name in dict.fromkeys(names)]
        left_out = {}
        if config.graph is not None and GIVEN not in found:
            found.insert(0, GIVEN)
    for name in [*found, *([keep] if keep in KINDS else [])]:
        if not met[KINDS[name].needs]:
            raise ValueError(f'The graph "{name}" needs {KINDS[name].needs}. Add it.')
    if keep is not None and keep not in found:
        check_name(keep, [*found, CLIQUE], "graph to keep")
    return found, left_out
