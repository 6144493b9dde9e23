"""The graph of NFL, Sec. VI-D: three nearest nodes by their t-SNE pictures."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.experiments.weather import wasserstein
from nefele.graph import Graph

NEIGHBOURS = 3
_MOST = 50  # images per node in the picture


def digit_graph(images: list[Array], seed: int) -> Graph:
    """Each node is linked to the three nearest, with weight exp(-distance / median distance).

    Parameters
    ----------
    images : list of arrays of shape (m_i, d)
        Training images of each node.
    seed : int
        Of t-SNE.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> nodes = [rng.normal(3 * (k > 4), 0.1, (6, 4)) for k in range(10)]
    >>> graph = digit_graph(nodes, seed=0)
    >>> graph.n_nodes, int((graph.head < 5).sum() - (graph.tail < 5).sum())
    (10, 0)
    """
    from sklearn.manifold import TSNE

    rows = [part[:_MOST] for part in images]
    sizes = [len(part) for part in rows]
    total = sum(sizes)
    picture = TSNE(
        2, init="pca", perplexity=min(30.0, (total - 1) / 3), random_state=seed
    ).fit_transform(np.vstack(rows))
    dots = np.split(picture.astype(np.float64), np.cumsum(sizes)[:-1])
    distance = np.full((len(rows), len(rows)), np.inf)
    i, j = np.triu_indices(len(rows), 1)
    distance[i, j] = distance[j, i] = np.sqrt(np.maximum(wasserstein(dots), 0))
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
    pairs = {(min(a, b), max(a, b)) for a, line in enumerate(nearest.tolist()) for b in line}
    edges = np.array(sorted(pairs))
    length = distance[edges[:, 0], edges[:, 1]]
    weight = np.exp(-length / np.median(length))
    return Graph.from_edges(edges, weight=weight, nodes=np.arange(len(rows)))
