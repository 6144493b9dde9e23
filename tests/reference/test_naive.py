"""The vectorised path against explicit loops over nodes and edges, written as the paper reads."""

import math

import numpy as np
import pytest

from nefele import Problem, solve
from nefele.losses import HuberLoss, Logistic, Squared
from nefele.penalties import HuberPenalty
from tests.problems import chain_problem, random_parts, random_problem

PENALTIES = {
    "l2": lambda v: math.sqrt(sum(x * x for x in v)),
    "l1": lambda v: sum(abs(x) for x in v),
    "linf": lambda v: max(abs(x) for x in v),
    "squared_l2": lambda v: 0.5 * sum(x * x for x in v),
}


def naive_node(loss, X, y, w):
    """(1/m) sum_r f(x_r^T w, y_r) + l2 ||w||^2 + l1 ||w||_1, row by row."""
    total = 0.0
    for x, label in zip(X, y, strict=True):
        z = sum(a * b for a, b in zip(x, w, strict=True))
        if isinstance(loss, Squared):
            total += (label - z) ** 2
        elif isinstance(loss, Logistic):
            total += math.log(1 + math.exp(-label * z))
        else:
            r = abs(label - z)
            total += r * r / 2 if r <= loss.delta else loss.delta * (r - loss.delta / 2)
    ridge = loss.l2 * sum(a * a for a in w) + loss.l1 * sum(abs(a) for a in w)
    return total / len(y) + ridge


def naive_objective(problem, loss, phi, w):
    """NFL, Eq. (16)."""
    data, graph = problem.data, problem.graph
    total = 0.0
    for i in range(graph.n_nodes):
        rows = slice(data.ptr[i], data.ptr[i + 1])
        if rows.start < rows.stop:
            total += naive_node(loss, data.X[rows], data.y[rows], w[i])
    for e in range(graph.n_edges):
        v = [w[graph.head[e]][j] - w[graph.tail[e]][j] for j in range(problem.d)]
        total += problem.lam * graph.weight[e] * phi(v)
    return total


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(
    "loss", [Squared(), Squared(l2=0.2, l1=0.1), Logistic(), HuberLoss(0.4)], ids=repr
)
@pytest.mark.parametrize("seed", range(3))
def test_objective(seed, loss, penalty):
    problem = random_problem(seed, loss, penalty)
    w = np.random.default_rng(seed).standard_normal((problem.graph.n_nodes, problem.d))
    expected = naive_objective(problem, loss, PENALTIES[penalty], w)
    assert problem.objective(w) == pytest.approx(expected, rel=1e-12)


def primal_update(data, i, v, tau):
    """NFL, Eq. (32) for the squared loss: (I + 2 tau Q)^-1 (v + 2 tau q)."""
    rows = slice(data.ptr[i], data.ptr[i + 1])
    X, y = data.X[rows], data.y[rows]
    if not len(y):
        return v
    Q, q = X.T @ X / len(y), X.T @ y / len(y)
    return np.linalg.solve(np.eye(data.d) + 2 * tau * Q, v + 2 * tau * q)


def onto_l1_ball(v, radius):
    """Soft threshold found by bisection."""
    if np.abs(v).sum() <= radius:
        return v
    low, high = 0.0, np.abs(v).max()
    for _ in range(200):
        cut = 0.5 * (low + high)
        if np.maximum(np.abs(v) - cut, 0).sum() > radius:
            low = cut
        else:
            high = cut
    return np.sign(v) * np.maximum(np.abs(v) - high, 0)


def dual_update(name, v, scale, sigma):
    """NFL, Sec. IV, for one edge."""
    size = np.linalg.norm(v)
    if name == "l2":
        return v if size <= scale else scale * v / size
    if name == "l1":
        return np.array([min(max(x, -scale), scale) for x in v])
    if name == "linf":
        return onto_l1_ball(v, scale)
    if name == "squared_l2":
        return v / (1 + sigma / scale)
    shrunk = v / (1 + sigma * 0.3 / scale)  # HuberPenalty(0.3)
    size = np.linalg.norm(shrunk)
    return shrunk if size <= scale else scale * shrunk / size


def algorithm_1(problem, name, rounds):
    """NFL, Algorithm 1, from zero; a node without edges stays at its own minimiser."""
    graph, data, d = problem.graph, problem.data, problem.d
    n = graph.n_nodes
    edges = list(zip(graph.head.tolist(), graph.tail.tolist(), strict=True))
    degree = [sum(i in edge for edge in edges) for i in range(n)]
    w, u = np.zeros((n, d)), np.zeros((len(edges), d))
    for i in range(n):
        if degree[i] == 0:
            rows = slice(data.ptr[i], data.ptr[i + 1])
            if rows.start < rows.stop:
                w[i] = np.linalg.lstsq(data.X[rows], data.y[rows])[0]
    for _ in range(rounds):
        new = w.copy()
        for i in range(n):
            if degree[i] == 0:
                continue
            flow = np.zeros(d)
            for e, (head, tail) in enumerate(edges):
                flow += u[e] if head == i else -u[e] if tail == i else 0.0
            new[i] = primal_update(data, i, w[i] - flow / degree[i], 1 / degree[i])
        after = u.copy()
        for e, (head, tail) in enumerate(edges):
            ahead = 2 * new - w
            v = u[e] + 0.5 * (ahead[head] - ahead[tail])
            after[e] = dual_update(name, v, problem.lam * graph.weight[e], 0.5)
        w, u = new, after
    return w, u


@pytest.mark.parametrize("rounds", [1, 2, 25])
@pytest.mark.parametrize("name", ["l2", "l1", "linf", "squared_l2", "huber"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore::nefele.DataWarning")
def test_algorithm_1_as_printed(seed, name, rounds):
    graph, data, lam = random_parts(seed, d=2)
    penalty = HuberPenalty(0.3) if name == "huber" else name
    problem = Problem(graph, data, penalty=penalty, lam=lam)
    w, _ = algorithm_1(problem, name, rounds)
    result = solve(problem, "algorithm1", tol=None, max_iter=rounds)
    assert result.n_iter == rounds and result.status == "finished"
    np.testing.assert_allclose(result.w, w, rtol=0, atol=1e-12 * max(1, np.abs(w).max()))


def test_algorithm_1_agrees_with_the_solution_in_the_limit():
    problem = chain_problem(penalty="squared_l2")
    w, _ = algorithm_1(problem, "squared_l2", 400)
    assert problem.objective(w) == pytest.approx(solve(problem, tol=1e-10).objective, rel=1e-6)
