"""The bound of logistic losses whose ridge spares the intercept: against an oracle."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Logistic, Multinomial, Poisson
from nefele.robust import influence_bound, worst_nodes

RIDGE = 1e-3


def classes(seed, n=4, rows=30, lam=0.01, penalty="l2", empty=()):
    """A connected network with two classes, three columns, the last of which is constant."""
    rng = np.random.default_rng(seed)
    local = []
    for i in range(n):
        X = np.column_stack([rng.standard_normal((rows, 2)), np.ones(rows)])
        p = 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.3]))
        y = np.where(rng.random(rows) < p, 1.0, -1.0)
        local.append(None if i in empty else (X, y))
    data = LocalData.from_list(local)
    data = LocalData(data.X, data.y, data.ptr, shrink=[1.0, 1.0, 0.0])
    pairs = [(i, j) for i in range(n) for j in range(i)]
    graph = Graph.from_edges(pairs, rng.uniform(0.5, 1.5, len(pairs)))
    return Problem(graph, data, Logistic(l2=RIDGE), penalty, lam=lam)


def apart(problem, attacker):
    """The fit without the attacker's edges."""
    graph = problem.graph
    kept = (graph.head != attacker) & (graph.tail != attacker)
    smaller = Graph(graph.ids, graph.head[kept], graph.tail[kept], graph.weight[kept])
    left = Problem(smaller, problem.data, problem.loss.loss, problem.penalty, lam=problem.lam)
    return solve(left, tol=1e-10).w


class Oracle:
    """The honest optimum under forces, by CVXPY; the last node is the captured one."""

    def __init__(self, problem):
        graph, data, n = problem.graph, problem.data, problem.graph.n_nodes - 1
        self.w, self.force = cp.Variable((n, problem.d)), cp.Parameter((n, problem.d))
        goal = cp.sum(cp.multiply(self.force, self.w))
        for i in range(n):
            own = slice(data.ptr[i], data.ptr[i + 1])
            z = cp.multiply(-data.y[own], data.X[own] @ self.w[i])
            goal += cp.sum(cp.logistic(z)) / len(data.y[own])
            goal += RIDGE * cp.sum_squares(self.w[i, :2])
        self.most = np.zeros(n)
        for i, j, a in zip(graph.head, graph.tail, graph.weight, strict=True):
            if n in (i, j):
                self.most[min(i, j)] += problem.lam * a
            else:
                goal += problem.lam * a * cp.norm(self.w[i] - self.w[j])
        self.goal = cp.Problem(cp.Minimize(goal))

    def at(self, way):
        """The optimum under the strongest forces in these directions."""
        size = np.linalg.norm(way, axis=1, keepdims=True)
        self.force.value = -self.most[:, None] * way / np.where(size > 0, size, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": to 5e-5
            self.goal.solve(solver=cp.CLARABEL)
        return self.w.value.copy()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lam", [0.002, 0.02])
def test_no_force_moves_further_than_the_bound(seed, lam):
    problem = classes(seed, lam=lam)
    bound, oracle = influence_bound(problem, [3]), Oracle(problem)
    assert bound.certified and bound.covered.tolist() == [True, True, True, False]
    base = oracle.at(np.zeros((3, 3)))
    assert np.abs(base - apart(problem, 3)[:3]).max() < 1e-4
    rng, most = np.random.default_rng(seed), 0.0
    for _ in range(3):
        way = rng.standard_normal((3, 3))
        for _ in range(4):  # where it moves furthest is where it has moved
            change = oracle.at(way) - base
            size = np.linalg.norm(change, axis=1)
            assert (size <= bound.per_node[:3] + 1e-4).all()
            assert np.linalg.norm(change) <= bound.total + 1e-4
            most, way = max(most, np.linalg.norm(change) / bound.total), change
    assert most > (0.5 if lam < 0.01 else 0.1)  # it says something, the more the weaker the pull


def test_one_node_under_a_weak_force_is_nearly_tight():
    """For a small force the loss is a parabola: the bound is force over curvature."""
    data = LocalData.from_list([([[1.0], [1.0], [1.0]], [1.0, -1.0, -1.0])] * 2)
    data = LocalData(data.X, data.y, data.ptr, shrink=[0.0])
    problem = Problem(Graph.from_edges([(0, 1)]), data, Logistic(), lam=1e-3)
    exact = abs(np.log((1 / 3 + 1e-3) / (2 / 3 - 1e-3)) - np.log(1 / 2))  # sigma(w) = 1/3 + lam
    found = influence_bound(problem, [1])
    assert exact <= found.total <= 1.05 * exact
    assert "curved by at least alpha = 0.2222" in found.reason


def test_a_pull_that_the_loss_cannot_resist_has_no_bound_and_says_why():
    problem = classes(0, lam=5.0)
    found = influence_bound(problem, [3])
    assert not found.certified and np.isinf(found.total)
    assert found.reason.startswith("None: at every honest node a loss without a ridge term")
    assert "Use a smaller lam" in found.reason


def test_nodes_that_cannot_resist_are_named_and_the_others_hold():
    """A node without rows goes where it is pulled."""
    problem = classes(1, lam=0.004, empty=(1,))
    found = influence_bound(problem, [3])
    assert found.covered.tolist() == [True, False, True, False]
    assert "Not covered: 1: a loss without a ridge term" in found.reason
    everywhere = influence_bound(classes(1, lam=0.004), [3])
    assert found.per_node[0] > everywhere.per_node[0]  # the node between counts as free


def test_poisson_losses_have_one_too():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((60, 1)), np.ones(60)])
    y = rng.poisson(np.exp(X @ [0.5, 1.0])).astype(float)
    data = LocalData(X, y, [0, 30, 60], shrink=[1.0, 0.0])
    problem = Problem(Graph.from_edges([(0, 1)]), data, Poisson(l2=1e-3), lam=0.05)
    found = influence_bound(problem, [1])
    base = apart(problem, 1)[0]
    for angle in np.linspace(0, 2 * np.pi, 24):
        lift = 0.05 * np.array([np.cos(angle), np.sin(angle)])
        moved = _poisson(X[:30], y[:30], lift) - base
        assert np.linalg.norm(moved) <= found.total + 1e-6


def _poisson(X, y, force):
    """argmin of one node's loss plus <force, w>, by Newton."""
    w, ridge = np.zeros(2), 2e-3 * np.diag([1.0, 0.0])
    for _ in range(100):
        mean = np.exp(X @ w)
        grad = X.T @ (mean - y) / len(y) + ridge @ w + force
        w = w - np.linalg.solve(X.T @ (mean[:, None] * X) / len(y) + ridge, grad)
    return w


def test_several_classes_have_none():
    """All intercepts may move together without any cost."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal((60, 1)), np.ones(60)])
    data = LocalData(X, rng.integers(0, 3, 60).astype(float), [0, 30, 60], shrink=[1.0, 0.0])
    loss = Multinomial(n_classes=3, l2=0.1)
    found = influence_bound(Problem(Graph.from_edges([(0, 1)]), data, loss, lam=0.01), [1])
    assert not found.certified and found.reason.startswith("None: no honest loss")


def test_worst_nodes_are_those_that_pull_hardest():
    problem = classes(0, n=5)
    pulls = [np.linalg.norm(np.delete(problem.graph.adjacency.toarray()[i], i)) for i in range(5)]
    found = worst_nodes(problem, 1)
    assert found.nodes == [int(np.argmax(pulls))] and not found.exact
    assert found.bound.certified
