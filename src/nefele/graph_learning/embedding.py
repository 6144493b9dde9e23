"""Nearest neighbours of node descriptions, plain or embedded (NFL, Sec. VI-D)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from nefele._checks import Array, check_count, check_name, check_number
from nefele._threads import one_thread
from nefele.graph_learning._rows import NodeRows, node_rows, tell_constant, within_units
from nefele.graph_learning.builders import TrainingRows
from nefele.graph_learning.pairwise import PairwiseGraph

_METHODS = ("moments", "pca", "tsne")


class EmbeddingKNN(PairwiseGraph):
    """Join each node to the nearest of its kind in an embedding of node descriptions.

    A node is described by the means, deviations and covariances of its features and target, in
    units of the columns' standard deviations inside the nodes. Edges weigh exp(-distance / scale).

    Parameters
    ----------
    method : {"moments", "pca", "tsne"}
        "moments": distances of the descriptions. "pca": of their first principal components.
        "tsne": of their t-SNE embedding in the plane, which stretches small distances.
    k : int, "auto" or None
        Neighbours of each node; default 4.
    n_components : int
        Of "pca" and "tsne".
    perplexity : float, optional
        Of "tsne"; default 30, or a third of the nodes when these are few.
    target : bool
        Whether the target counts as well as the features.
    random_state : int
        Of "tsne".
    threshold, weight, scale, degree, connect, normalize
        See `graph_from_discrepancy`; scale=1.0 gives the weights exp(-distance) of the paper.

    Examples
    --------
    >>> ids = np.repeat(["a", "b", "c", "d"], 3)
    >>> X = np.array([0, 1, 2, 0, 1, 2.1, 8, 9, 10, 8, 9, 10.1])[:, None]
    >>> y = X * np.repeat([1.0, 1.0, -1.0, -1.0], 3)[:, None]
    >>> EmbeddingKNN(k=1).fit_graph(TrainingRows(X, y, ids, np.ones(12))).neighbors("a")
    ['b']
    """

    def __init__(
        self,
        method: str = "moments",
        k: Any = None,
        *,
        n_components: int = 2,
        perplexity: float | None = None,
        target: bool = True,
        random_state: int = 0,
        threshold: Any = None,
        weight: str = "exp",
        scale: float | None = None,
        degree: float | None = None,
        connect: bool = False,
        normalize: str = "none",
    ) -> None:
        self.method = method
        self.k = k
        self.n_components = n_components
        self.perplexity = perplexity
        self.target = target
        self.random_state = random_state
        self.threshold = threshold
        self.weight = weight
        self.scale = scale
        self.degree = degree
        self.connect = connect
        self.normalize = normalize

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and distances of the embedded nodes, all pairs.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        check_name(self.method, _METHODS, "method")
        nodes = node_rows(rows)
        tell_constant(rows)
        points = self._embed(describe_nodes(nodes, nodes.values(self.target)))
        return nodes.ids, cdist(points, points)

    def _embed(self, points: Array) -> Array:
        if self.method == "moments":
            return points
        size = min(check_count(self.n_components, "n_components", low=1), *points.shape)
        if self.method == "pca":
            apart = points - points.mean(axis=0)
            left, values, _ = np.linalg.svd(apart, full_matrices=False)
            return left[:, :size] * values[:size]
        from sklearn.manifold import TSNE

        n = len(points)
        if n < 4:
            raise ValueError(f'method="tsne" needs at least 4 nodes; got {n}. Use "moments".')
        wide = min(30.0, (n - 1) / 3) if self.perplexity is None else self.perplexity
        wide = check_number(wide, "perplexity", low=0.0, strict=True)
        if wide >= n:
            raise ValueError(f"perplexity must be below the number of nodes ({n}); got {wide}.")
        model = TSNE(
            size,
            perplexity=wide,
            init="random",
            random_state=self.random_state,
            method="exact" if n <= 200 or size > 3 else "barnes_hut",
        )
        with one_thread():  # threads only wait for each other at this size
            return np.asarray(model.fit_transform(points), dtype=np.float64)


def describe_nodes(nodes: NodeRows, values: Array) -> Array:
    """Means, deviations and covariances of each node's rows, shape (n_nodes, q)."""
    scaled = values / within_units(nodes, values)
    mean = nodes.means(scaled)
    apart = scaled - mean[nodes.owner]
    cov = nodes.means(apart[:, :, None] * apart[:, None, :])
    i, j = np.triu_indices(values.shape[1], 1)
    deviation = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
    return np.hstack([mean, deviation, cov[:, i, j]])
