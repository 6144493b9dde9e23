"""Base of the builders that compare nodes pair by pair."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import NDArray

from nefele._checks import Array, check_name
from nefele._ids import distinct
from nefele.estimators.builders import GraphBuilder, TrainingRows
from nefele.graph import Graph
from nefele.graph_learning.refine import check_k, check_options, graph_from_discrepancy

__all__ = ["PairwiseGraph"]


class PairwiseGraph(GraphBuilder):
    """Join nodes of small discrepancy; a subclass gives the discrepancy of all pairs.

    Parameters
    ----------
    k : int, "auto" or None
        Nearest of each node to join; "auto": the best of 2, 4, 8, ... by cross-validation inside
        the training rows, see `choose_by_validation`. None: by the threshold alone, or 4 (or all
        others when they are fewer) when there is none.
    threshold : float, optional
        Largest discrepancy of an edge.
    weight, scale, degree, connect, normalize
        See `graph_from_discrepancy`.

    Examples
    --------
    A discrepancy of your own is one method:

    >>> import numpy as np
    >>> from nefele.estimators.builders import node_moments
    >>> class MeanGraph(PairwiseGraph):
    ...     def discrepancy(self, rows):
    ...         ids, mean, _ = node_moments(rows, rows.targets)
    ...         return ids, np.abs(mean - mean.T)
    >>> y = np.array([[1.0], [1.2], [5.0]])
    >>> rows = TrainingRows(np.ones((3, 1)), y, np.array(["a", "b", "c"]), np.ones(3))
    >>> MeanGraph(threshold=1.0).fit_graph(rows).neighbors("a")
    ['b']
    """

    _threshold = "threshold"  # what the parameter is called

    def __init__(
        self,
        k: Any = None,
        *,
        threshold: float | None = None,
        weight: str = "unit",
        scale: float | None = None,
        degree: float | None = None,
        connect: bool = False,
        normalize: str = "none",
    ) -> None:
        self.k = k
        self.threshold = threshold
        self.weight = weight
        self.scale = scale
        self.degree = degree
        self.connect = connect
        self.normalize = normalize

    @abstractmethod
    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and the symmetric matrix of discrepancies, shapes (n_nodes,), (n_nodes, n_nodes)."""

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the training rows, see the class."""
        limit = getattr(self, self._threshold)
        k = None if isinstance(self.k, str) else self.k
        if k is None and self.k is not None:
            check_name(self.k, ("auto",), "choice of k")
        check_options(
            k, limit, self.weight, self.scale, self.degree, self.normalize, self._threshold
        )
        ids = distinct(rows.node_ids[rows.sample_weight > 0])
        if len(ids) == 1:
            return Graph(ids, [], [])
        if k is not None:
            check_k(k, len(ids))
        if isinstance(self.k, str):
            from nefele.graph_learning.validation import auto_k

            k = auto_k(self, rows, len(ids))
        ids, matrix = self.discrepancy(rows)
        return graph_from_discrepancy(
            ids,
            matrix,
            k=k,
            threshold=limit,
            weight=self.weight,
            scale=self.scale,
            degree=self.degree,
            connect=self.connect,
            normalize=self.normalize,
        )
