"""The dual at d = 1 as a minimum-cost flow, against linear programmes written out by hand."""

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Absolute, Hinge, HuberLoss, Squared
from nefele.theory import min_cost_flow
from tests.theory.problems import connected_graph

QUADRATIC = (
    Squared(),
    Squared(l2=0.3),
    Squared(l1=0.2),
    Squared(l2=0.1, l1=0.1),
    HuberLoss(delta=0.5),
    HuberLoss(delta=0.5, l2=0.2),
    HuberLoss(delta=0.7, l1=0.05),
)


def random_line(seed, loss, *, whole=False):
    """One parameter per node; some features are zero, some nodes have no rows."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 9))
    graph = connected_graph(rng, n, 0.3)
    if whole:
        graph = Graph(graph.ids, graph.head, graph.tail, rng.integers(1, 5, graph.n_edges))
    parts = []
    for i in range(n):
        m = int(rng.integers(1, 5))
        X = np.ones((m, 1)) if whole else rng.standard_normal((m, 1)) * (rng.random((m, 1)) > 0.1)
        y = rng.integers(-5, 6, m).astype(float) if whole else rng.standard_normal(m)
        y = np.where(y >= 0, 1.0, -1.0) if isinstance(loss, Hinge) else y
        parts.append(None if i and rng.random() < 0.2 else (X, y))
    lam = 1.0 if whole else float(rng.uniform(0.02, 0.5))
    return Problem(graph, LocalData.from_list(parts), loss, "l1", lam=lam)


def by_linear_programme(problem):
    """min sum c_r r_r + lam sum A_e t_e with r_r, t_e above the absolute values or hinges."""
    data, graph = problem.loss.data, problem.graph
    n, rows, edges = graph.n_nodes, data.n_rows, graph.n_edges
    cost = np.concatenate([np.zeros(n), data.row_weight, problem.scale])
    A, b = [], []
    for r in range(rows):
        signs = (-data.y[r],) if isinstance(problem.loss.loss, Hinge) else (1.0, -1.0)
        for s in signs:
            line = np.zeros(n + rows + edges)
            line[data.row_node[r]], line[n + r] = s * data.X[r, 0], -1.0
            A.append(line)
            b.append(-1.0 if isinstance(problem.loss.loss, Hinge) else s * data.y[r])
    for e in range(edges):
        for s in (1.0, -1.0):
            line = np.zeros(n + rows + edges)
            line[graph.head[e]], line[graph.tail[e]], line[n + rows + e] = s, -s, -1.0
            A.append(line)
            b.append(0.0)
    bounds = [(None, None)] * n + [(0, None)] * (rows + edges)
    return linprog(cost, A_ub=np.array(A), b_ub=np.array(b), bounds=bounds).fun


@pytest.mark.parametrize("loss", [Absolute(), Hinge()], ids=str)
def test_linear_costs_agree_with_the_primal_linear_programme(loss):
    for seed in range(50):
        problem = random_line(seed, loss)
        network = min_cost_flow(problem)
        found = network.solve()
        expected = by_linear_programme(problem)
        assert network.is_linear
        assert found.optimum == pytest.approx(expected, abs=1e-7)
        assert problem.objective(found.w) == pytest.approx(expected, abs=1e-6)
        assert np.abs(network.excess(found.flow)).max() < 1e-8


def test_integer_networks_agree_with_networkx():
    """Absolute loss with unit features: a textbook transport problem in whole numbers."""
    for seed in range(50):
        problem = random_line(seed, Absolute(), whole=True)
        network = min_cost_flow(problem)
        peer, size = nx.MultiDiGraph(), 60  # row capacities 1/m become whole for m <= 4
        for a in range(network.n_arcs):
            i, j = int(network.tail[a]), int(network.head[a])
            cost = round(network.linear[a])
            peer.add_edge(i, j, capacity=round(size * network.upper[a]), weight=cost)
            peer.add_edge(j, i, capacity=round(-size * network.lower[a]), weight=-cost)
        expected = nx.network_simplex(peer)[0] / size
        assert network.solve().cost == pytest.approx(expected, abs=1e-7)
        if seed < 15:
            assert solve(problem, tol=1e-9).objective == pytest.approx(-expected, abs=1e-6)


@pytest.mark.parametrize("loss", QUADRATIC, ids=str)
def test_quadratic_costs_are_minus_the_optimum(loss):
    for seed in range(5):
        problem = random_line(seed, loss)
        network = min_cost_flow(problem)
        result = solve(problem, tol=1e-12)
        flow = network.flow_of(result)
        assert not network.is_linear
        assert np.abs(network.excess(flow)).max() < 1e-4
        assert (flow <= network.upper + 1e-9).all() and (flow >= network.lower - 1e-9).all()
        assert network.constant - network.cost(flow) == pytest.approx(result.objective, abs=1e-5)


@pytest.mark.parametrize("loss", [Squared(l2=0.1), HuberLoss(delta=0.5), Squared(l1=0.2)], ids=str)
def test_no_flow_costs_less(loss):
    """Circulations around the optimal flow, within the capacities, only cost more."""
    rng = np.random.default_rng(0)
    for seed in range(5):
        problem = random_line(seed, loss)
        network = min_cost_flow(problem)
        flow = network.flow_of(solve(problem, tol=1e-12))
        least = network.cost(flow)
        balance = np.zeros((network.n_nodes, network.n_arcs))
        arcs = np.arange(network.n_arcs)
        balance[network.tail, arcs] += 1
        balance[network.head, arcs] -= 1
        around = np.linalg.svd(balance)[2][np.linalg.matrix_rank(balance) :]
        for _ in range(50):
            other = flow + 0.05 * rng.standard_normal(len(around)) @ around
            if ((other <= network.upper) & (other >= network.lower)).all():
                assert network.cost(other) >= least - 1e-5


def test_absolute_flow_of_a_result():
    for seed in range(6):
        problem = random_line(seed, Absolute())
        network, result = min_cost_flow(problem), solve(problem, tol=1e-10)
        flow = network.flow_of(result)
        assert network.cost(flow) == pytest.approx(network.solve().cost, abs=1e-5)


def test_a_flow_belongs_to_its_own_problem():
    problem = random_line(0, Squared())
    network, result = min_cost_flow(problem), solve(problem, tol=1e-9)
    y = problem.data.y + 1.0
    others = (
        random_line(1, Squared()),
        problem.with_lam(2 * problem.lam),
        Problem(problem.graph, LocalData(problem.data.X, y, problem.data.ptr), lam=problem.lam),
    )
    for other in others:
        with pytest.raises(ValueError, match="result must belong to the problem of this network"):
            network.flow_of(solve(other, tol=1e-3))
    for wrong in (problem, result.w):
        with pytest.raises(ValueError, match="result must be a Result; got"):
            network.flow_of(wrong)
    again = Problem(problem.graph, problem.data, Squared(), "l1", lam=problem.lam)
    assert np.array_equal(min_cost_flow(again).flow_of(result), network.flow_of(result))


def test_zero_losses_only_have_edges():
    graph = Graph.from_edges([(0, 1)])
    data = LocalData.from_list([([[1.0]], [2.0]), None])
    network = min_cost_flow(Problem(graph, data, "zero", lam=1.0))
    assert network.n_arcs == 1 and network.solve().optimum == 0.0


def test_clear_errors():
    rng = np.random.default_rng(0)
    graph = connected_graph(rng, 3, 1.0)
    wide = LocalData.from_list([(rng.standard_normal((4, 2)), rng.standard_normal(4))] * 3)
    with pytest.raises(ValueError, match=r"one parameter per node \(d = 1\); got d=2"):
        min_cost_flow(Problem(graph, wide, lam=1.0))
    line = LocalData.from_list([(rng.standard_normal((4, 1)), np.ones(4))] * 3)
    with pytest.raises(ValueError, match="needs a norm penalty; got SquaredL2"):
        min_cost_flow(Problem(graph, line, "squared", "squared_l2", lam=1.0))
    with pytest.raises(ValueError, match="got Logistic: its conjugate is not quadratic"):
        min_cost_flow(Problem(graph, line, "logistic", lam=1.0))
    with pytest.raises(ValueError, match="needs one kind of loss over rows"):
        min_cost_flow(Problem(graph, line, {0: "squared", 1: "huber", 2: "squared"}, lam=1.0))
    with pytest.raises(ValueError, match="solve needs linear costs"):
        min_cost_flow(Problem(graph, line, lam=1.0)).solve()
