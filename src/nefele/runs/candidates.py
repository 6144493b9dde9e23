"""Graphs that a data file allows for: how each joins the nodes, and what it needs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import check_name
from nefele._ids import distinct
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
from nefele.graph_learning.builders import GraphBuilder, MomentsKNN, SpatialKNN, TrainingRows
from nefele.graph_learning.references import CLIQUE
from nefele.runs.config import RunConfig

GIVEN = "given"


@dataclass(frozen=True)
class Kind:
    """A way to make a graph, from k and the places of the nodes, and what it needs.

    `needs` is an option that must be given; `usual` kinds are tried by default; `pairs` says
    whether all pairs of nodes are compared.
    """

    make: Callable[[int, dict[str, Any]], Any]
    needs: str = ""
    usual: bool = True
    pairs: bool = True


KINDS = {
    GIVEN: Kind(lambda k, at: None, "--graph", pairs=False),
    "nearest": Kind(lambda k, at: SpatialKNN(k, **at), "--coords", pairs=False),
    "delaunay": Kind(lambda k, at: DelaunayGraph(**at), "--coords", pairs=False),
    "moments": Kind(lambda k, at: MomentsKNN(k), pairs=False),
    "wasserstein": Kind(lambda k, at: WassersteinGraph(k=k, shrinkage=0.1, standardize=True)),
    "losses": Kind(lambda k, at: LossGraph(k)),
    "labels": Kind(lambda k, at: LabelGraph(k=k), "--task classification"),
    "covariances": Kind(lambda k, at: EmbeddingKNN(k=k), usual=False),
    "gradients": Kind(lambda k, at: GradientGraph(k), usual=False),
    "pooling": Kind(lambda k, at: PoolingGainGraph(k), usual=False),
}


def most_neighbours(k: int, parts: Iterable[NDArray[Any]]) -> int:
    """k, or fewer where the ids of some part of the rows are too few for it.

    Examples
    --------
    >>> most_neighbours(5, [np.array(["a", "b", "c"]), np.array(["a", "b"])])
    1
    """
    return max(1, min(k, *(len(distinct(ids)) - 1 for ids in parts)))


class Remembered(GraphBuilder):
    """A builder that keeps its graphs: the shuffled copies and the file need the same ones.

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
    if config.graph is not None and config.learns:
        raise ValueError(
            f"--graph must be an edge file here; got {config.graph!r}. Name learnt graphs by "
            f"--try {config.learner}."
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
