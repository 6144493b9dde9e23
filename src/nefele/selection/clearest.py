"""Which point of a path shows the clearest clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.paths.path import clusters_at

_ALIKE = 0.9  # adjusted Rand index from which two partitions count as the same


def clearest(alphas: Array, labels: NDArray[Any], most: int) -> tuple[int, int] | None:
    """First and last point of the longest stretch of alpha, on a log scale, with one partition.

    Two partitions count as the same when their adjusted Rand index is at least 0.9: a single node
    that leaves a large cluster does not end a stretch. Partitions into one cluster, or into `most`
    and more, say nothing and do not count. Of equally long stretches the one with the larger
    alpha wins.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
        Positive, descending.
    labels : int array of shape (n_alphas, n_nodes)
        Cluster of each node at each alpha.
    most : int
        Number of clusters that is no clustering: that of the nodes with data.

    Returns
    -------
    (first, last), or None when no point counts

    Examples
    --------
    >>> labels = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], [0, 1, 2, 3]])
    >>> clearest(np.array([8.0, 4.0, 2.0, 1.0]), labels, most=4)
    (1, 2)
    """
    from sklearn.metrics import adjusted_rand_score

    count = np.array([len(np.unique(row)) for row in labels])
    good = (count > 1) & (count < most)
    # each point stands for the stretch halfway to its neighbours
    logs = np.log(alphas)
    edge = np.concatenate([logs[:1], (logs[1:] + logs[:-1]) / 2, logs[-1:]])
    best: tuple[int, int] | None = None
    longest = -1.0
    for first in np.flatnonzero(good):
        last = int(first)
        while (
            last + 1 < len(labels)
            and good[last + 1]
            and adjusted_rand_score(labels[first], labels[last + 1]) >= _ALIKE
        ):
            last += 1
        length = float(edge[first] - edge[last + 1])
        if length > longest * (1 + 1e-9):
            best, longest = (int(first), last), length
    return best


def clearest_stretch(alphas: Array, labels: NDArray[Any], most: int) -> tuple[int, int] | None:
    """The clearest stretch among descending alphas >= 0; None when none lasts.

    A partition that is there at a single point of a path is not steady: it does not count.
    """
    on = alphas > 0
    stretch = clearest(alphas[on], labels[on], most) if on.any() else None
    return None if stretch is None or stretch[0] == stretch[1] else stretch


def clearest_point(alphas: Array, labels: NDArray[Any], most: int) -> int | None:
    """Middle of the clearest stretch, as a place among descending alphas >= 0; None without one."""
    stretch = clearest_stretch(alphas, labels, most)
    return None if stretch is None else sum(stretch) // 2


def cluster_table(
    graph: Graph, apart: Array, points: list[Array], labelled: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Cluster of each node at each point of a path, shape (n_alphas, n_nodes).

    Equal is measured by the spread of `apart`, such as the nodes' own fits of the coupled
    parameters: one scale along the whole path. `labelled` marks the nodes with data.
    """
    unit = float(np.ptp(apart[labelled], axis=0).max(initial=0.0))
    return np.stack([clusters_at(graph, part, unit) for part in points])
