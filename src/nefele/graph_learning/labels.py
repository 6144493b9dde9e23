"""Nodes with similar labels, for classification."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from nefele._checks import Array, check_name
from nefele.graph_learning._rows import node_rows
from nefele.graph_learning.builders import TrainingRows
from nefele.graph_learning.pairwise import PairwiseGraph


class LabelGraph(PairwiseGraph):
    """Join nodes with similar labels; for classifiers.

    Parameters
    ----------
    similarity : {"distribution", "overlap"}
        "distribution": Hellinger distance of the shares of the classes. "overlap": one minus the
        Jaccard index of the sets of classes that occur.
    k, threshold, weight, scale, degree, connect, normalize
        See `PairwiseGraph`. Both discrepancies lie in [0, 1].

    Examples
    --------
    >>> classes = np.eye(3)[[0, 1, 0, 1, 2, 2]]
    >>> rows = TrainingRows(np.zeros((6, 1)), classes, np.repeat(["a", "b", "c"], 2), np.ones(6))
    >>> LabelGraph(threshold=0.5).fit_graph(rows).neighbors("a")
    ['b']
    """

    def __init__(
        self,
        similarity: str = "distribution",
        k: Any = None,
        *,
        threshold: Any = None,
        weight: str = "unit",
        scale: float | None = None,
        degree: float | None = None,
        connect: bool = False,
        normalize: str = "none",
    ) -> None:
        super().__init__(
            k,
            threshold=threshold,
            weight=weight,
            scale=scale,
            degree=degree,
            connect=connect,
            normalize=normalize,
        )
        self.similarity = similarity

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and discrepancies of the labels, all pairs.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_name(self.similarity, ("distribution", "overlap"), "similarity")
        if rows.targets.shape[1] < 2:
            raise ValueError(
                "LabelGraph needs classes, one indicator column each; got a single target. Use it "
                "with GTVClassifier, or WassersteinGraph for numbers."
            )
        nodes = node_rows(rows)
        share = nodes.means(nodes.targets)
        if self.similarity == "distribution":
            root = np.sqrt(share)
            return nodes.ids, cdist(root, root) / np.sqrt(2.0)
        there = (share > 0).astype(np.float64)
        both = there @ there.T
        size = there.sum(axis=1)
        return nodes.ids, 1.0 - both / (size[:, None] + size - both)
