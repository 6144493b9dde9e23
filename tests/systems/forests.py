"""Random forests and blocks, and their systems written out densely."""

import numpy as np

from nefele import Graph
from nefele._systems.forest import Forest, diagonal_blocks


def random_forest(rng, n, shape="tree"):
    """Random attachments in a random node order; some edges missing in a "forest"."""
    ends = {
        "chain": np.arange(n - 1),
        "star": np.zeros(n - 1, int),
    }.get(shape, np.array([rng.integers(0, k) for k in range(1, n)], int))
    order = rng.permutation(n)
    pairs = np.stack([order[ends], order[1:]], axis=1)
    if shape == "forest":
        pairs = pairs[rng.random(n - 1) < 0.7]
    return Graph.from_edges(pairs, nodes=np.arange(n))


def psd(rng, count, d, rank=None):
    root = rng.standard_normal((count, d, d if rank is None else rank))
    return root @ np.swapaxes(root, 1, 2)


def dense(graph, metric, C):
    """M + D^T C D as one matrix, edge by edge."""
    n, d = metric.shape[:2]
    matrix = np.zeros((n, d, n, d))
    for i in range(n):
        matrix[i, :, i] += metric[i]
    for e, (i, j) in enumerate(zip(graph.head, graph.tail, strict=True)):
        for a, b, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            matrix[a, :, b] += sign * C[e]
    return matrix.reshape(n * d, n * d)


def product(blocks, x):
    return (blocks @ x[..., None])[..., 0]


def tree_solve(graph, metric, give, right):
    """X with (M + D^T C D) x = right over a forest; metric None is zero, `right` then balanced."""
    forest = Forest.of(graph)
    if metric is None:
        return forest.carry(give, right)[0]
    return forest.factorise(metric, diagonal_blocks(give, right.shape[1])).solve(right)[0]
