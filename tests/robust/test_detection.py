"""False alarms are as rare as promised, and attackers are found."""

import numpy as np
import pytest
from scipy.stats import beta

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Logistic
from nefele.robust import ShiftLabels, saturation, suspects
from nefele.robust.example import stations
from tests.robust.networks import blocks

LEVEL = 0.05


def alarms(networks, rate, first=0):
    """In how many clean networks some node, and some edge within a cluster, is suspected."""
    nodes = edges = 0
    for seed in range(first, first + networks):
        problem, true, _ = blocks(seed, rows=8)
        found = suspects(problem, LEVEL, rate)
        nodes += bool(found.nodes)
        edges += any((true[i] == true[j]).all() for i, j in found.edges)
    return nodes, edges


def most(networks):
    """Alarms that a rate of LEVEL exceeds with probability 1e-4 only."""
    counts = np.arange(networks)
    return int(counts[beta.ppf(1e-4, counts + 1, networks - counts) <= LEVEL].max()) + 1


def test_false_alarms_are_rare():
    nodes, edges = alarms(20, "family")
    assert max(nodes, edges) <= most(20)


@pytest.mark.slow
@pytest.mark.parametrize("rate", ["family", "discovery"])
def test_false_alarms_on_two_hundred_clean_networks(rate):
    nodes, edges = alarms(200, rate)
    assert nodes <= LEVEL * 200
    if rate == "family":
        assert edges <= most(200)


@pytest.mark.parametrize("rate", ["family", "discovery"])
def test_nodes_with_shifted_labels_are_found(rate):
    problem, _, captured = blocks(0)
    data = LocalData(np.column_stack([problem.data.X, np.ones(problem.data.n_rows)]),
                     problem.data.y, problem.data.ptr)  # fmt: skip
    bad = ShiftLabels(captured, 3.0)(data)
    found = suspects(Problem(problem.graph, bad, lam=0.1), LEVEL, rate)
    assert set(found.nodes) == set(captured)


def test_p_values_of_edges_are_uniform_where_nothing_differs():
    values = []
    for seed in range(60):
        problem, true, _ = blocks(seed, rows=6)
        graph = problem.graph
        e = int(np.flatnonzero((true[graph.head] == true[graph.tail]).all(axis=1))[0])
        values.append(suspects(problem).edge_p[e])
    steps = np.sort(values) - (np.arange(60) + 0.5) / 60
    assert np.abs(steps).max() < 2.23 / np.sqrt(60)  # Kolmogorov's distance, probability 1e-4


def test_edges_without_enough_rows_are_not_tested():
    rows = [([[1.0]], [1.0]), None, ([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.1])]
    graph = Graph.from_edges([(0, 1), (0, 2), (1, 2)])
    found = suspects(Problem(graph, LocalData.from_list(rows), lam=1.0))
    assert np.isnan(found.edge_p).tolist() == [True, False, True]
    assert np.isnan(found.node_p).tolist() == [False, True, False]


def test_a_node_that_differs_saturates_its_edges():
    found = saturation(solve(stations(shifted=[3], lam=0.1)))
    assert found.node[3] == 1.0
    assert {(i, 3) for i in (0, 1, 2, 4, 5)} <= set(found.alone)
    clean = saturation(solve(stations(lam=5.0)))
    assert clean.alone == [] and (clean.edge <= 1 + 1e-9).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: suspects(p, 0.0), "level must be finite and > 0"),
        (lambda p: suspects(p, 1.0), r"level must be in \(0, 1\)"),
        (lambda p: suspects(p, rate="any"), "No rate of false alarms"),
        (lambda p: suspects(p.data), "problem must be a Problem; got LocalData"),
        (lambda p: saturation(p), "result must be what nefele.solve returns; got Problem"),
        (lambda p: saturation(solve(stations(penalty="squared_l2"))), "a norm or Huber"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(stations())


def test_other_losses_are_refused():
    data = LocalData.from_list([([[1.0], [-1.0]], [1.0, -1.0])] * 2)
    problem = Problem(Graph.from_edges([(0, 1)]), data, Logistic(l2=0.1), lam=0.1)
    with pytest.raises(ValueError, match='needs loss="squared"'):
        suspects(problem)


def test_neighbours_that_cannot_be_tested_count_as_agreeing():
    """Two nodes of three rows, at the border of two clusters, cannot be told from each other."""
    edges = [(i, (i + step) % 14) for step in (1, 2) for i in range(14)]
    graph, alarms = Graph.from_edges(edges, nodes=np.arange(14)), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows = []
        for i in range(14):
            m = 3 if i < 2 else 19
            X = np.column_stack([rng.normal(size=(m, 2)), np.ones(m)])
            slope = [3.0, 0.1, 3.0] if i < 7 else [-3.0, 0.1, 9.0]
            rows.append((X, X @ slope + rng.normal(size=len(X))))
        alarms += bool(suspects(Problem(graph, LocalData.from_list(rows), lam=0.1), LEVEL).nodes)
    assert alarms <= most(40)


@pytest.mark.parametrize("other", [(), (9,)])
def test_rounding_raises_no_alarm_where_rows_have_no_noise(other):
    graph = Graph.from_edges([(i, j) for i in range(10) for j in range(i)], nodes=np.arange(10))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        slopes = [[1.0, 2.0, 3.001 if i in other else 3.0] for i in range(10)]
        draws = zip(rng.standard_normal((10, 8, 3)), slopes, strict=True)
        data = LocalData.from_list([(X, X @ slope) for X, slope in draws])
        assert suspects(Problem(graph, data, lam=0.1)).nodes == list(other)
