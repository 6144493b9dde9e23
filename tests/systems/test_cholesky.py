"""Cholesky factors by fronts against dense solves."""

import numpy as np
import pytest

from nefele import Graph
from nefele._systems.cholesky import Fronts
from nefele.graphs import chain, grid, knn, sbm


def apart() -> Graph:
    """Two triangles, a pair and a node for itself."""
    edges = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (6, 7)]
    return Graph.from_edges(edges, nodes=range(9))


GRAPHS = {
    "grid": lambda: grid(9, 11),
    "chain": lambda: chain(30),
    "neighbours": lambda: knn(np.random.default_rng(0).standard_normal((80, 2)), 5),
    "crowded": lambda: sbm([25, 25], 0.6, 0.1, seed=0),
    "apart": apart,
}


def blocks_of(graph: Graph, d: int, rng: np.random.Generator):
    """Diagonal and edge blocks of a random positive matrix, and the matrix itself."""
    n = graph.n_nodes
    nodes = rng.standard_normal((n, d, d))
    nodes = nodes @ nodes.transpose(0, 2, 1) + 0.1 * np.eye(d)
    edges = rng.standard_normal((graph.n_edges, d, d))
    matrix = np.zeros((n, d, n, d))
    for e, (i, j) in enumerate(zip(graph.head, graph.tail, strict=True)):
        matrix[i, :, j, :], matrix[j, :, i, :] = edges[e], edges[e].T
        nodes[i] += edges[e] @ edges[e].T + np.eye(d)
        nodes[j] += np.eye(d)
    for i in range(n):
        matrix[i, :, i, :] = nodes[i]
    return np.concatenate([nodes, edges]), matrix.reshape(n * d, n * d)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("d", [1, 3, 7])
def test_solves_as_dense_ones(name, d):
    graph, rng = GRAPHS[name](), np.random.default_rng(1)
    blocks, matrix = blocks_of(graph, d, rng)
    assert np.linalg.eigvalsh(matrix).min() > 0
    before = blocks.copy()
    apply = Fronts.of(graph).factorise(blocks, 0.0)
    right = rng.standard_normal(len(matrix))
    given = right.copy()
    np.testing.assert_allclose(apply(right), np.linalg.solve(matrix, right), rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(blocks, before)
    np.testing.assert_array_equal(right, given)


def test_a_ridge_is_added_to_the_diagonal():
    graph, rng = grid(4, 4), np.random.default_rng(0)
    blocks, matrix = blocks_of(graph, 2, rng)
    right = rng.standard_normal(len(matrix))
    apply = Fronts.of(graph).factorise(blocks, 0.5)
    expected = np.linalg.solve(matrix + 0.5 * np.eye(len(matrix)), right)
    np.testing.assert_allclose(apply(right), expected, rtol=1e-10)


@pytest.mark.parametrize("value", [-1.0, 0.0, np.nan, np.inf])
def test_what_is_not_positive_definite_is_refused(value):
    graph = grid(5, 5)
    blocks = np.concatenate([np.tile(4.0 * np.eye(2), (25, 1, 1)), -np.ones((40, 2, 2)) / 4])
    blocks[7, 0, 0] = value
    with pytest.raises(np.linalg.LinAlgError):
        Fronts.of(graph).factorise(blocks, 0.0)
