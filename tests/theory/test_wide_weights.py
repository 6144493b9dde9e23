"""The quadratic penalty on graphs with weights of very different size, and in several parts."""

from fractions import Fraction

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem
from nefele.theory import edge_influence, label_sensitivity, spectrum_bounds
from tests.theory.problems import connected_graph, linear_data, random_regression


def smooth(graph, data, lam=1.0):
    return Problem(graph, data, "squared", "squared_l2", lam=lam)


def scalars(labels):
    return LocalData.from_list([None if y is None else ([[1.0]], [y]) for y in labels])


def exactly(problem):
    """The optimum in fractions, by elimination: nothing is rounded; None if it is not unique."""
    graph, data, d = problem.graph, problem.data, problem.d
    n = graph.n_nodes * d
    rows = [[Fraction(0)] * (n + 1) for _ in range(n)]
    for r, i in enumerate(data.row_node.tolist()):
        share = Fraction(1, int(data.ptr[i + 1] - data.ptr[i]))
        x, y = [Fraction(v) for v in data.X[r].tolist()], Fraction(float(data.y[r]))
        for j in range(d):
            for k in range(d):
                rows[i * d + j][i * d + k] += share * x[j] * x[k]
            rows[i * d + j][n] += share * x[j] * y
    for h, t, weight in zip(graph.head, graph.tail, graph.weight.tolist(), strict=True):
        a = Fraction(problem.lam) / 2 * Fraction(weight)
        for j in range(d):
            p, q = int(h) * d + j, int(t) * d + j
            rows[p][p], rows[q][q] = rows[p][p] + a, rows[q][q] + a
            rows[p][q], rows[q][p] = rows[p][q] - a, rows[q][p] - a
    for p in range(n):
        if rows[p][p] == 0:
            return None
        for q in range(n):
            if q != p and rows[q][p] != 0:
                f = rows[q][p] / rows[p][p]
                rows[q] = [b - f * c for b, c in zip(rows[q], rows[p], strict=True)]
    return np.array([float(rows[p][n] / rows[p][p]) for p in range(n)]).reshape(-1, d)


def assert_refits(problem):
    """Every change equals exact solves with and without the edge; returns how many are unique."""
    graph, before, unique = problem.graph, exactly(problem), 0
    found = edge_influence(problem)
    size = max(np.abs(before).max(), 1e-300)
    assert np.abs(found.w - before).max() <= 1e-8 * size
    for e in range(graph.n_edges):
        keep = np.arange(graph.n_edges) != e
        smaller = Graph(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])
        after = exactly(smooth(smaller, problem.data, problem.lam))
        assert np.isnan(found.size[e]) == (after is None)
        if after is not None:
            top = max(size, np.abs(after).max())
            assert np.abs(found.change[e] - (after - before)).max() <= 1e-8 * top
            unique += 1
    return unique


def test_influence_beside_a_light_edge():
    path = Graph.from_edges([(0, 1), (1, 2)], weight=[1e6, 1e-5])
    assert assert_refits(smooth(path, scalars([0.0, 4.0, None]))) == 1


@pytest.mark.parametrize("d", [1, 2])
def test_influence_equals_an_exact_refit_for_any_weights(d):
    unique = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 8))
        base = connected_graph(rng, n, rng.choice([0.0, 0.4]))
        graph = Graph(base.ids, base.head, base.tail, 10 ** rng.uniform(-7, 7, base.n_edges))
        data = linear_data(rng, rng.standard_normal((n, d)), d + 1, missing=0.5)
        unique += assert_refits(smooth(graph, data))
    assert unique > 20


def test_influence_leaves_other_components_alone():
    """Node 2 has no data and no edge: it concerns nobody else."""
    graph = Graph.from_edges([(0, 1)], nodes=[0, 1, 2])
    found = edge_influence(smooth(graph, scalars([0.0, 4.0, None]), lam=2.0))
    assert found.w[:2] == pytest.approx(np.array([[4 / 3], [8 / 3]])) and np.isnan(found.w[2])
    assert found.change[0] == pytest.approx(np.array([[-4 / 3], [4 / 3], [0.0]]))
    assert found.size[0] == pytest.approx(4 / 3 * np.sqrt(2))


def test_influence_of_edges_that_no_data_reach():
    graph = Graph.from_edges([(0, 1), (2, 3)])
    found = edge_influence(smooth(graph, scalars([0.0, 4.0, None, None])))
    assert np.isfinite(found.change[0]).all() and np.isnan(found.change[1]).all()


def test_sensitivity_uses_the_rows_own_component():
    pair = smooth(Graph.from_edges([(0, 1)]), scalars([0.0, 4.0]), lam=2.0)
    alone = label_sensitivity(pair)
    more = smooth(Graph.from_edges([(0, 1)], nodes=[0, 1, 2]), scalars([0.0, 4.0, None]), lam=2.0)
    assert np.isfinite(alone).all() and label_sensitivity(more) == pytest.approx(alone, rel=1e-12)


def test_sensitivity_is_infinite_only_where_nothing_is_unique():
    graph = Graph.from_edges([(0, 1)], nodes=[0, 1, 2])
    X = np.array([[1.0, 1.0]])
    data = LocalData.from_list([(np.eye(2), [1.0, 2.0]), None, (X, [1.0])])
    assert np.isinf(label_sensitivity(smooth(graph, data))).tolist() == [False, False, True]


def test_spectrum_of_several_components():
    """The least bound of the components, each as if it were alone."""
    first, second = (random_regression(seed, "squared_l2", n=5, m=6) for seed in (0, 1))
    graphs = first.graph, second.graph
    graph = Graph(
        np.arange(11),
        np.concatenate([graphs[0].head, graphs[1].head + 5]),
        np.concatenate([graphs[0].tail, graphs[1].tail + 5]),
        np.concatenate([g.weight for g in graphs]),
    )
    lone = LocalData.from_list([(np.eye(2), [1.0, 2.0])])
    parts = [p.data for p in (first, second)] + [lone]
    X, y = np.concatenate([p.X for p in parts]), np.concatenate([p.y for p in parts])
    ptr = np.concatenate([parts[0].ptr, parts[1].ptr[1:] + 30, [62]])
    found = spectrum_bounds(smooth(graph, LocalData(X, y, ptr)))
    each = [spectrum_bounds(p).lower for p in (first, second)]
    assert found.lower == pytest.approx(min(*each, 0.5), rel=1e-12) and found.lower > 0
    assert found.contraction < 1 and np.isfinite(found.iterations(1e-3))
