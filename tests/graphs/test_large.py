"""Graphs large enough for compiled passes over their edges: the same as sparse matrices give."""

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from nefele import Graph, graph


@pytest.fixture
def large():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 9_000, (30_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    found = Graph.from_edges(pairs, nodes=np.arange(10_000), merge="max")
    assert found.n_edges >= graph._COMPILED
    return found


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("d", [1, 3])
def test_differences_and_divergence(large, d, order):
    rng = np.random.default_rng(1)
    w = np.asarray(rng.standard_normal((large.n_nodes, d)), order=order)
    u = np.asarray(rng.standard_normal((large.n_edges, d)), order=order)
    np.testing.assert_array_equal(large.diff(w), w[large.head] - w[large.tail])
    np.testing.assert_array_equal(large.div(u), large.incidence_t @ u)


def test_whole_numbers_stay_whole(large):
    assert large.diff(np.arange(large.n_nodes)[:, None]).dtype == int


def test_components_are_numbered_by_their_first_nodes(large):
    labels = connected_components(large.adjacency, directed=False)[1]
    np.testing.assert_array_equal(large.components, labels)
    assert large.components.max() > 1000  # the nodes without edges


def test_groups_of_some_edges(large):
    on = np.random.default_rng(2).random(large.n_edges) < 0.3
    kept = Graph(large.ids, large.head[on], large.tail[on])
    labels = connected_components(kept.adjacency, directed=False)[1]
    np.testing.assert_array_equal(large.joined(on), labels)
