"""The graph of NFL, Sec. VI-D: three nearest nodes by their t-SNE pictures."""

from __future__ import annotations

import numpy as np

from nefele._checks import Array
from nefele.experiments.weather import wasserstein
from nefele.graph import Graph

NEIGHBOURS = 3
_MOST = 50  # images per node in the picture
_DIGITS = 6  # decimals of distances


def digit_graph(images: list[Array]) -> Graph:
    """Each node is linked to the three nearest, with weight exp(-distance / median distance).

    Of the training images of each node, shape (m_i, d).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> nodes = [rng.normal(3 * (k > 4), 0.1, (6, 4)) for k in range(10)]
    >>> graph = digit_graph(nodes)
    >>> graph.n_nodes, int((graph.head < 5).sum() - (graph.tail < 5).sum())
    (10, 0)
    """
    rows = [part[:_MOST] for part in images]
    sizes = [len(part) for part in rows]
    dots = np.split(_picture(np.vstack(rows)), np.cumsum(sizes)[:-1])
    distance = np.full((len(rows), len(rows)), np.inf)
    i, j = np.triu_indices(len(rows), 1)
    # Rounded: the last bits must not decide between neighbours that are equally near.
    apart = np.sqrt(np.maximum(wasserstein(dots), 0)).round(_DIGITS)
    distance[i, j] = distance[j, i] = apart
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
    pairs = {(min(a, b), max(a, b)) for a, line in enumerate(nearest.tolist()) for b in line}
    edges = np.array(sorted(pairs))
    length = distance[edges[:, 0], edges[:, 1]]
    weight = np.exp(-length / np.median(length))
    return Graph.from_edges(edges, weight=weight, nodes=np.arange(len(rows)))


def _picture(rows: Array) -> Array:
    """One t-SNE of all images, shape (n, 2), that is the same in every process."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    # Only libraries that are loaded can be limited, so the limit comes after the import. t-SNE
    # magnifies the last bits, and they depend on how a sum is shared among threads.
    with threadpool_limits(limits=1):
        picture = TSNE(
            2,
            method="exact",
            init=_start(rows),
            perplexity=min(30.0, (len(rows) - 1) / 3),
            random_state=0,
        ).fit_transform(rows)
    return np.asarray(picture, dtype=np.float64)


def _start(rows: Array) -> Array:
    """Two principal components with their largest loadings positive, small as t-SNE wants.

    Examples
    --------
    >>> _start(np.array([[0.0, 0.0], [2.0, 1.0], [4.0, -1.0]])).std(axis=0).round(6)[0]
    np.float64(0.0001)
    """
    centred = rows - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, [-1, -2]]
    largest = np.abs(axes).argmax(axis=0)
    picture = centred @ (axes * np.sign(axes[largest, [0, 1]]))
    return np.asarray(picture / picture[:, 0].std() * 1e-4)
