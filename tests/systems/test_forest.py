"""Elimination over forests against dense solves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nefele import Graph
from nefele._systems.forest import Forest, diagonal_blocks, unrolled
from nefele.graphs import chain, grid, star
from tests.systems.forests import dense, product, psd, random_forest, tree_solve

FEW = settings(derandomize=True, deadline=None, max_examples=60, database=None)
SHAPES = st.sampled_from(["tree", "chain", "star", "forest"])


@FEW
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 5), SHAPES)
def test_elimination_equals_a_dense_solve(seed, n, d, shape):
    rng = np.random.default_rng(seed)
    graph = random_forest(rng, n, shape)
    metric, C = psd(rng, n, d), psd(rng, graph.n_edges, d)
    right = rng.standard_normal((n, d))
    x, change, flow = Forest.of(graph).factorise(metric, C).solve(right)
    matrix = dense(graph, metric, C)
    size = np.linalg.cond(matrix) * np.abs(x).max()
    expected = np.linalg.solve(matrix, right.ravel()).reshape(n, d)
    np.testing.assert_allclose(x, expected, atol=1e-13 * size)
    np.testing.assert_allclose(change, graph.diff(x), atol=1e-13 * size)
    np.testing.assert_allclose(flow, product(C, graph.diff(x)), atol=1e-12 * size)


@FEW
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 4))
def test_few_nodes_with_data_are_enough(seed, n, d):
    """All but one node have no or singular blocks; the tree connects them."""
    rng = np.random.default_rng(seed)
    graph = random_forest(rng, n)
    metric = psd(rng, n, d, rank=1) * rng.integers(0, 2, n)[:, None, None]
    metric[rng.integers(n)] += np.eye(d)
    C = psd(rng, n - 1, d) + 0.1 * np.eye(d)
    right = rng.standard_normal((n, d))
    x, _, flow = Forest.of(graph).factorise(metric, C).solve(right)
    error = product(metric, x) + graph.div(flow) - right
    assert np.abs(error).max() <= 1e-10 * max(1.0, np.abs(x).max())


@pytest.mark.parametrize("dims", [(), (0, 0)])
def test_stiff_and_slack_edges_lose_no_digits(dims, monkeypatch):
    """Differences over edges of weight 1e12 are 1e-12, and their flow is still accurate."""
    monkeypatch.setattr("nefele._systems.forest.unrolled", lambda d, count: dims)
    rng = np.random.default_rng(0)
    graph = random_forest(rng, 300)
    metric = psd(rng, 300, 2) + np.eye(2)
    give = 10 ** rng.uniform(-12, 12, (299, 1))
    right = rng.standard_normal((300, 2))
    x, change, flow = Forest.of(graph).factorise(metric, diagonal_blocks(give, 2)).solve(right)
    assert np.abs(product(metric, x) + graph.div(flow) - right).max() <= 1e-12
    np.testing.assert_allclose(give * change, flow, rtol=1e-6, atol=1e-12)


def test_a_component_that_nothing_holds_keeps_its_root_at_zero():
    graph = Graph.from_edges([(0, 1), (2, 3)], nodes=np.arange(5))
    metric = np.zeros((5, 1, 1))
    metric[0] = 2.0
    right = np.array([[2.0], [0.0], [1.0], [-1.0], [0.0]])
    x = tree_solve(graph, metric, np.full((2, 1), 0.5), right)
    np.testing.assert_allclose(x[:, 0], [1.0, 1.0, 0.0, -2.0, 0.0])


@pytest.mark.parametrize("width", [1, 3])
def test_without_metric_only_the_flow_counts(width):
    rng = np.random.default_rng(1)
    graph = random_forest(rng, 40, "forest")
    right = rng.standard_normal((40, 3))
    for part in range(graph.components.max() + 1):
        right[graph.components == part] -= right[graph.components == part].mean(axis=0)
    give = 10 ** rng.uniform(-3, 3, (graph.n_edges, width))
    x = tree_solve(graph, None, give, right)
    np.testing.assert_allclose(graph.div(give * graph.diff(x)), right, atol=1e-9)
    _, flow = Forest.of(graph).carry(give, right)
    np.testing.assert_allclose(graph.div(flow), right, atol=1e-12)
    roots = Forest.of(graph).parent < 0
    assert (x[roots] == 0).all() and roots.sum() == graph.components.max() + 1


def test_an_edge_without_weight_carries_no_difference():
    x, flow = Forest.of(chain(2)).carry(
        np.array([[0.0, 1.0]]), np.array([[1.0, 1.0], [-1.0, -1.0]])
    )
    assert np.abs(np.diff(x, axis=0)).tolist() == [[0.0, 1.0]] and np.isfinite(flow).all()


@pytest.mark.parametrize("give", [np.ones((4, 1)), np.arange(1.0, 9.0).reshape(4, 2)])
def test_weights_per_edge_or_per_entry(give):
    rng = np.random.default_rng(2)
    graph = random_forest(rng, 5)
    metric, right = psd(rng, 5, 2), rng.standard_normal((5, 2))
    matrix = dense(graph, metric, np.broadcast_to(give, (4, 2))[:, :, None] * np.eye(2))
    expected = np.linalg.solve(matrix, right.ravel()).reshape(5, 2)
    np.testing.assert_allclose(tree_solve(graph, metric, give, right), expected, atol=1e-10)


@pytest.mark.parametrize("shape", ["tree", "chain", "star", "forest"])
def test_children_come_before_parents(shape):
    graph = random_forest(np.random.default_rng(3), 50, shape)
    forest = Forest.of(graph)
    rank = np.argsort(forest.order)
    inner = np.flatnonzero(forest.parent >= 0)
    assert (rank[inner] < rank[forest.parent[inner]]).all()
    ends = np.sort(np.stack([inner, forest.parent[inner]]), axis=0)
    np.testing.assert_array_equal(graph.head[forest.edge[inner]], ends[0])
    np.testing.assert_array_equal(graph.tail[forest.edge[inner]], ends[1])
    assert sorted(forest.edge[inner].tolist()) == list(range(graph.n_edges))
    assert (forest.edge[forest.parent < 0] == -1).all()


def test_a_hub_and_a_long_chain():
    for graph in (star(10_000), chain(20_000)):
        rng = np.random.default_rng(4)
        metric, right = psd(rng, graph.n_nodes, 2), rng.standard_normal((graph.n_nodes, 2))
        x = tree_solve(graph, metric, np.ones((graph.n_edges, 1)), right)
        error = product(metric, x) + graph.div(graph.diff(x)) - right
        assert np.abs(error).max() <= 1e-9


def test_known_once_per_graph():
    graph, ring = chain(4), grid(2, 2)
    assert Forest.of(graph) is Forest.of(graph)
    assert Forest.of(ring) is None and Forest.of(ring) is None
    alone = Forest.of(Graph(range(3), [], []))
    assert alone.parent.tolist() == [-1] * 3 and len(alone.order) == 3


def test_cycles_are_refused():
    assert Forest.of(grid(3, 3)) is None


def test_only_large_problems_compile_for_their_own_d():
    assert unrolled(2, 10_000) == (0, 0)
    assert unrolled(2, 100) == () and unrolled(30, 10_000) == ()
