"""Well-connected clusters against all subsets, and what they promise against the solver."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Logistic
from nefele.penalties import L2Norm, Lp, Partial
from nefele.theory import error_bound, well_connected
from nefele.theory.cluster_slack import Cluster, best_center
from nefele.theory.max_flow import MaxFlow
from tests.theory.problems import connected_graph, linear_data, planted, random_regression

NORMS = ("l2", "l1", "linf")


def random_cluster(rng, k):
    density = rng.choice([0.3, 0.6, 1.0])
    pairs = [(i, j) for i in range(k) for j in range(i + 1, k) if rng.random() < density]
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    if rng.random() < 0.3:  # integers: ties and slacks of exactly zero
        weight, demand = rng.integers(1, 4, len(ends)), rng.integers(0, 2, k)
    else:
        weight = rng.uniform(0.2, 2.0, len(ends))
        demand = rng.choice([0.05, 0.3, 1.0]) * rng.uniform(0, 1, k)
    return Cluster(ends[:, 0], ends[:, 1], weight.astype(float), demand.astype(float))


def all_slacks(cluster):
    """For each i0 the least cut(A) - d(A) over all nonempty A without i0."""
    k = len(cluster.demand)
    inside = ((np.arange(1, 1 << k)[:, None] >> np.arange(k)) & 1).astype(bool)
    cut = (inside[:, cluster.head] != inside[:, cluster.tail]) @ cluster.weight
    value = cut - inside @ cluster.demand
    return np.array([value[~inside[:, i]].min() for i in range(k)])


def test_agrees_with_all_subsets():
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(500):
        cluster = random_cluster(rng, int(rng.integers(2, 13)))
        center, slack, members = best_center(cluster)
        slacks = all_slacks(cluster)
        assert slack == pytest.approx(slacks.max(), abs=1e-9)
        assert slacks[center] == pytest.approx(slack, abs=1e-9)
        assert members and center not in members
        assert cluster.value(members) == pytest.approx(slack, abs=1e-12)
        seen.append(slack > 1e-9)
    assert 100 < sum(seen) < 400


def test_endless_demands():
    cluster = Cluster(np.array([0, 1]), np.array([1, 2]), np.ones(2), np.array([0.1, np.inf, 0.1]))
    center, slack, _ = best_center(cluster)
    assert center == 1 and slack == pytest.approx(0.9)
    none = Cluster(np.array([0]), np.array([1]), np.ones(1), np.array([np.inf, np.inf]))
    assert best_center(none)[1] == -np.inf


def test_max_flow_agrees_with_networkx():
    import networkx as nx

    rng = np.random.default_rng(1)
    for _ in range(30):
        graph = connected_graph(rng, 12, 0.3)
        network = MaxFlow(12, graph.head, graph.tail, graph.weight, negligible=1e-14)
        peer = nx.Graph()
        for i, j, c in zip(graph.head, graph.tail, graph.weight, strict=True):
            peer.add_edge(int(i), int(j), capacity=float(c))
        expected = nx.maximum_flow_value(peer, 0, 11)
        assert network.push(0, {11}) == pytest.approx(expected, abs=1e-12)
        side = np.isin(np.arange(12), network.reached)
        cut = graph.weight[side[graph.head] != side[graph.tail]].sum()
        assert cut == pytest.approx(expected, abs=1e-12)


@pytest.mark.filterwarnings("ignore:.*not connected to any data")
@pytest.mark.parametrize("penalty", NORMS)
def test_well_connected_clusters_have_one_model_within_the_bound(penalty):
    """Theorem 2 on random problems: whenever it says yes, it is so."""
    certain = 0
    for seed in range(24 if penalty == "linf" else 60):
        problem, label = planted(seed, penalty, bridge=10.0 ** -(1 + seed % 3))
        bound = error_bound(problem, label)
        if not bound.proven.any():
            continue
        w = solve(problem, tol=1e-10).w
        for c in np.flatnonzero(bound.proven):
            mine = w[label == c]
            assert np.ptp(mine, axis=0).max() <= 2e-5
            away = problem.penalty.value(mine - bound.optimum[c])
            if np.isfinite(bound.value[c]):
                assert away.max() <= bound.value[c] + 2e-5
                certain += len(mine) > 1
    assert certain > 10


def test_the_bound_can_be_reached():
    """Two nodes and a weak edge: the models move by exactly lam A / alpha."""
    data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [5.0])])
    problem = Problem(Graph.from_edges([(0, 1)], weight=[0.1]), data, lam=0.5)
    bound = error_bound(problem, [0, 1])
    moved = np.abs(solve(problem, tol=1e-12).w - bound.optimum)[:, 0]
    assert moved == pytest.approx(bound.value, rel=1e-5)


def test_each_cluster_counts_for_itself():
    """A well-connected cluster has one model although the other one falls apart."""
    rng = np.random.default_rng(0)
    pairs = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5)]
    graph = Graph.from_edges(pairs, weight=[2.0, 2.0, 2.0, 0.05, 0.01, 0.01])
    true = np.array([[1.0], [1.0], [1.0], [4.0], [-3.0], [8.0]])
    problem = Problem(graph, linear_data(rng, true, 4, noise=0.0), lam=0.5)
    found = well_connected(problem, [0, 0, 0, 1, 1, 1])
    assert found.holds.tolist() == [True, False] and not found.all
    assert set(found.worst[1]) <= {3, 4, 5}
    w = solve(problem, tol=1e-11).w[:, 0]
    assert np.ptp(w[:3]) < 1e-6 and np.ptp(w[3:]) > 1


def test_demands_follow_the_definition():
    problem, label = planted(4, "l2")
    found = well_connected(problem, label, lam=0.7)
    H = problem.loss.hess(np.zeros((len(label), problem.d)))
    optimum = error_bound(problem, label, lam=0.7).optimum
    for i, c in enumerate(label):
        total = np.linalg.eigvalsh(H[label == c].sum(axis=0))[0]
        across = [
            a
            for h, t, a in zip(
                problem.graph.head, problem.graph.tail, problem.graph.weight, strict=True
            )
            if (label[h] != label[t]) and i in (h, t)
        ]
        delta = np.linalg.norm(problem.loss.grad(optimum[label])[i])
        expected = sum(across) + np.linalg.eigvalsh(H[i])[-1] * found.boundary[c] / total
        assert found.demand[i] == pytest.approx(expected + delta / 0.7, rel=1e-9)


def test_labels_of_any_kind_and_ids():
    data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.0, 5.0)], nodes=list("abc"))
    problem = Problem(Graph.from_edges([("a", "b"), ("b", "c")], weight=[1.0, 0.1]), data, lam=1.0)
    found = well_connected(problem, ["x", "x", "y"])
    assert found.labels.tolist() == ["x", "y"] and found.center == ["b", "c"]
    assert found.slack[1] == np.inf and found.worst[1] == []


def test_a_cluster_without_data():
    """No gradients, only what comes over the boundary."""
    rng = np.random.default_rng(0)
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], weight=[1.0, 0.1, 1.0])
    true = np.ones((4, 1))
    data = linear_data(rng, true, 3, noise=0.0).subset(np.array([0, 1]))
    problem = Problem(graph, data, lam=0.5)
    found = error_bound(problem, [0, 0, 1, 1])
    assert found.proven.tolist() == [True, True]
    assert found.value[1] == np.inf
    w = solve(problem, tol=1e-11).w
    assert abs(w[2] - w[3]) < 1e-6


def test_other_losses_and_norms_with_curvature_given():
    rng = np.random.default_rng(0)
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)], weight=[5.0, 0.01, 5.0])
    parts = []
    for sign in (1, 1, -1, -1):
        X = rng.standard_normal((20, 2))
        noisy = X @ np.array([1.0, sign]) + rng.standard_normal(20)
        parts.append((X, np.where(noisy > 0, 1.0, -1.0)))
    ridge = Logistic(l2=0.5)
    problem = Problem(graph, LocalData.from_list(parts), ridge, "l2", lam=0.1)
    with pytest.raises(ValueError, match="Give both alpha"):
        well_connected(problem, [0, 0, 1, 1])
    beta = np.array([np.linalg.norm(X, 2) ** 2 / 80 + 1.0 for X, _ in parts])
    bound = error_bound(problem, [0, 0, 1, 1], alpha=2.0, beta=beta)
    assert bound.proven.all()
    w = solve(problem, tol=1e-11).w
    assert np.linalg.norm(w[0] - w[1]) < 1e-5
    assert np.linalg.norm(w[0] - bound.optimum[0]) <= bound.value[0] + 1e-6


def test_clear_errors():
    problem = random_regression(0, "l2", n=5)
    label = np.zeros(5, dtype=int)
    with pytest.raises(ValueError, match=r"one label per node, shape \(5,\); got shape \(4,\)"):
        well_connected(problem, label[:4])
    with pytest.raises(ValueError, match="must hold labels; got nan"):
        well_connected(problem, [0, 0, 0, 0, np.nan])
    with pytest.raises(ValueError, match="labels of one kind"):
        well_connected(problem, [0, 1, None, 0, 0])
    with pytest.raises(ValueError, match="lam must be finite and > 0; got 0"):
        error_bound(problem, label, lam=0)
    with pytest.raises(ValueError, match="beta must hold one finite number >= 0 per node"):
        well_connected(problem, label, alpha=1.0, beta=[1.0, -1.0])
    for penalty in ("squared_l2", "huber", Partial(L2Norm(), on=[0])):
        with pytest.raises(ValueError, match="needs a penalty that is a norm of all parameters"):
            well_connected(random_regression(0, penalty, n=5), label)
    with pytest.raises(ValueError, match="l1, l2 and linf norms"):
        well_connected(random_regression(0, Lp(3.0), n=5), label)
    with pytest.raises(ValueError, match="needs differentiable losses"):
        well_connected(Problem(problem.graph, problem.data, "absolute", lam=1.0), label)
