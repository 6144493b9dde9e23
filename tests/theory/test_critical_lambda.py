"""The critical lam against closed forms, CVXPY and the solver."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, graphs, lam_max, solve
from nefele.losses import Logistic
from nefele.penalties import L1Norm, L2Norm, LinfNorm, Lp, Partial, Penalty, SquaredL2
from nefele.theory import critical_lambda
from tests.theory.problems import connected_graph, linear_data, random_regression

NORMS = ("l2", "l1", "linf")
DUAL = {"l2": 2, "l1": "inf", "linf": 1}


def spread(problem, lam):
    """How far the solution at lam is from its mean."""
    w = solve(problem.with_lam(lam), tol=1e-11).w
    return float(np.abs(w - w.mean(axis=0)).max())


def by_cvxpy(problem, demand):
    """min t subject to D^T u = demand, ||u_e||_dual <= t A_e, written out."""
    graph = problem.graph
    u, t = cp.Variable((graph.n_edges, problem.d)), cp.Variable()
    name = {L2Norm: "l2", L1Norm: "l1", LinfNorm: "linf"}[type(problem.penalty)]
    rows = [graph.incidence_t[1:] @ u == demand[1:]]
    rows.append(cp.norm(u, DUAL[name], axis=1) <= t * graph.weight)
    goal = cp.Problem(cp.Minimize(t), rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        goal.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(t.value)


def assert_proven(problem, found):
    """Both witnesses say what they should."""
    graph, penalty = problem.graph, problem.penalty
    pull = -problem.loss.grad(found.w)
    assert np.allclose(graph.div(found.flow), pull, atol=1e-9 * np.abs(pull).max())
    load = penalty.dual_norm(found.flow) / graph.weight
    assert load.max() == pytest.approx(found.value, rel=1e-12)
    x = found.potential
    cut = (pull * x).sum() / (graph.weight @ penalty.value(graph.diff(x)))
    assert cut == pytest.approx(found.lower, rel=1e-6)
    assert found.lower <= found.value


@pytest.mark.parametrize(("penalty", "value"), [("l2", 16.04144), ("l1", 15.78956)])
def test_the_star_of_the_paper(penalty, value):
    g = np.random.default_rng(0)
    true, X = g.standard_normal((50, 2)), g.standard_normal((50, 5, 2))
    data = LocalData.from_list([(X[i], X[i] @ true[i]) for i in range(50)])
    problem = Problem(graphs.star(50), data, "squared", penalty, lam=1.0)
    found = critical_lambda(problem)
    assert found.value == pytest.approx(value, rel=1e-6) and found.exact
    leaves = problem.penalty.dual_norm(problem.loss.grad(found.w))[1:]
    assert found.value == pytest.approx(leaves.max(), rel=1e-10)
    assert spread(problem, 0.999 * found.value) > 1e-3
    assert spread(problem, 1.001 * found.value) < 1e-6


@pytest.mark.parametrize("penalty", NORMS)
@pytest.mark.parametrize("seed", range(5))
def test_trees_have_a_closed_form(penalty, seed):
    """The largest dual norm of a subtree's summed gradient over the weight of its edge."""
    problem = random_regression(seed, penalty, n=12, d=3, density=0.0)
    found, graph = critical_lambda(problem), problem.graph
    grad = problem.loss.grad(found.w)
    values = []
    for e in range(graph.n_edges):
        rest = np.arange(graph.n_edges) != e
        cut = Graph(graph.ids, graph.head[rest], graph.tail[rest])
        side = cut.components == cut.components[graph.head[e]]
        total = grad[side].sum(axis=0, keepdims=True)
        values.append(problem.penalty.dual_norm(total)[0] / graph.weight[e])
    assert found.value == pytest.approx(max(values), rel=1e-9)
    assert found.lower == found.value
    assert_proven(problem, found)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("penalty", NORMS)
@pytest.mark.parametrize(("n", "density"), [(6, 0.4), (12, 0.05), (60, 0.03), (60, 0.2)])
def test_random_graphs_agree_with_cvxpy(penalty, d, n, density):
    problem = random_regression(n + d, penalty, n=n, d=d, density=density, missing=0.2)
    found = critical_lambda(problem)
    assert found.exact
    assert_proven(problem, found)
    pull = -problem.loss.grad(found.w)
    assert found.value == pytest.approx(by_cvxpy(problem, pull), rel=1e-5)
    assert found.value <= lam_max(problem) * (1 + 1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("penalty", NORMS)
def test_consensus_above_and_not_below(penalty, d):
    problem = random_regression(d, penalty, n=10, d=d, density=0.3)
    value = critical_lambda(problem).value
    assert spread(problem, 0.99 * value) > 1e-4
    assert spread(problem, 1.01 * value) < 1e-6


def test_logistic_losses():
    rng = np.random.default_rng(0)
    graph = connected_graph(rng, 8, 0.3)
    parts = []
    for _ in range(8):
        X = rng.standard_normal((10, 2))
        parts.append((X, np.where(X @ rng.standard_normal(2) > rng.standard_normal(10), 1.0, -1.0)))
    problem = Problem(graph, LocalData.from_list(parts), Logistic(l2=0.01), "l2", lam=1.0)
    found = critical_lambda(problem)
    assert found.exact
    assert spread(problem, 0.99 * found.value) > 1e-4
    assert spread(problem, 1.01 * found.value) < 1e-5


def test_components_one_by_one():
    problems = [random_regression(seed, "l2", n=6, density=0.3) for seed in (0, 1)]
    first, second = (p.graph for p in problems)
    graph = Graph(
        np.arange(13),
        np.concatenate([first.head, second.head + 6]),
        np.concatenate([first.tail, second.tail + 6]),
        np.concatenate([first.weight, second.weight]),
    )
    rows = [
        (p.data.X[p.data.ptr[i] : p.data.ptr[i + 1]], p.data.y[p.data.ptr[i] : p.data.ptr[i + 1]])
        for p in problems
        for i in range(6)
    ]
    joint = critical_lambda(Problem(graph, LocalData.from_list([*rows, None]), lam=1.0))
    alone = [critical_lambda(p).value for p in problems]
    assert joint.component_values == pytest.approx([*alone, 0.0], rel=1e-8)
    assert joint.value == pytest.approx(max(alone), rel=1e-8)


@pytest.mark.parametrize("penalty", [L2Norm(), L1Norm()])
def test_partial_couples_only_some_entries(penalty):
    problem = random_regression(3, Partial(penalty, on=[0, 2]), n=8, d=3, m=6)
    value = critical_lambda(problem).value
    above = solve(problem.with_lam(1.01 * value), tol=1e-11).w
    below = solve(problem.with_lam(0.97 * value), tol=1e-11).w
    assert np.ptp(above[:, [0, 2]], axis=0).max() < 1e-6
    assert np.ptp(above[:, 1]) > 1e-2
    assert np.ptp(below[:, [0, 2]], axis=0).max() > 1e-4


def test_lp_gets_two_bounds():
    problem = random_regression(2, Lp(3.0), n=10, d=2, density=0.3)
    found = critical_lambda(problem)
    assert 0 < found.lower < found.value
    assert spread(problem, 1.01 * found.value) < 1e-5
    assert spread(problem, 0.99 * found.lower) > 1e-6


def test_lp_of_two_is_l2():
    l2, lp = (random_regression(2, p, n=10, density=0.3) for p in ("l2", Lp(2.0)))
    assert critical_lambda(lp).value == pytest.approx(critical_lambda(l2).value, rel=1e-8)


def test_a_norm_of_ones_own_at_one_parameter():
    class Twice(Penalty):
        is_norm = True

        def value(self, v):
            return 2 * np.abs(v[:, 0])

        def dual_norm(self, u):
            return 0.5 * np.abs(u[:, 0])

        def prox(self, v, step):
            return np.sign(v) * np.maximum(np.abs(v) - 2 * step[:, None], 0.0)

    own, plain = (random_regression(1, p, n=9, d=1, density=0.3) for p in (Twice(), "l1"))
    assert critical_lambda(own).value == pytest.approx(critical_lambda(plain).value / 2, rel=1e-8)


def test_wide_weights_and_scales():
    """Weights over six orders of magnitude, labels of size 1e8 and 1e-8."""
    rng = np.random.default_rng(0)
    base = connected_graph(rng, 20, 0.2)
    graph = Graph(base.ids, base.head, base.tail, 10 ** rng.uniform(-3, 3, base.n_edges))
    data = linear_data(rng, rng.standard_normal((20, 2)), 5)
    plain = critical_lambda(Problem(graph, data, lam=1.0))
    assert plain.exact
    for size in (1e-8, 1e8):
        scaled = LocalData(data.X, size * data.y, data.ptr)
        value = critical_lambda(Problem(graph, scaled, lam=1.0)).value
        assert value == pytest.approx(size * plain.value, rel=1e-6)


def test_light_edges_between_heavy_ones():
    """A heavy pair and a middling one, joined by two light edges: the cut has a closed form."""
    graph = Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)], weight=[1e4, 1e-6, 1e-6, 1.0])
    data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 1.0, 5.0, 2.0)])
    problem = Problem(graph, data, lam=1.0)
    found = critical_lambda(problem)
    assert found.exact and found.value == pytest.approx(3e6, rel=1e-9)
    assert found.lower == pytest.approx(3e6, rel=1e-9)
    assert_proven(problem, found)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("penalty", NORMS)
def test_exact_for_weights_of_twelve_orders_of_magnitude(penalty, d):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        base = connected_graph(rng, int(rng.integers(3, 41)), rng.choice([0.05, 0.3]))
        graph = Graph(base.ids, base.head, base.tail, 10 ** rng.uniform(-6, 6, base.n_edges))
        data = linear_data(rng, rng.standard_normal((graph.n_nodes, d)), 5)
        problem = Problem(graph, data, "squared", penalty, lam=1.0)
        found = critical_lambda(problem)
        assert found.exact
        assert_proven(problem, found)


@pytest.mark.parametrize("p", [1.5, 3.0, 7.0])
def test_the_potential_of_an_lp_norm_proves_the_bound_on_a_tree(p):
    problem = random_regression(4, Lp(p), n=9, d=3, density=0.0)
    found = critical_lambda(problem)
    assert found.lower == found.value
    assert_proven(problem, found)


def test_no_pull_means_zero():
    problem = random_regression(0, "l2", n=5)
    rng = np.random.default_rng(0)
    same = linear_data(rng, np.ones((5, 2)), 4, noise=0.0)
    assert critical_lambda(Problem(problem.graph, same, lam=1.0)).value < 1e-12
    lone = Problem(Graph.from_edges([], nodes=[0]), linear_data(rng, np.ones((1, 2)), 4), lam=1.0)
    found = critical_lambda(lone)
    assert found.value == 0.0 and found.exact and found.flow.shape == (0, 2)


@pytest.mark.parametrize("penalty", ["squared_l2", "huber", Partial(SquaredL2(), on=[0])])
def test_smooth_penalties_never_fuse(penalty):
    found = critical_lambda(random_regression(0, penalty, n=5))
    assert found.value == found.lower == np.inf and found.flow is None


def test_clear_errors():
    problem = random_regression(0, "l2", n=5)
    with pytest.raises(ValueError, match="must be a Problem; got Graph"):
        critical_lambda(problem.graph)
    with pytest.raises(ValueError, match="needs differentiable losses"):
        critical_lambda(Problem(problem.graph, problem.data, "absolute", lam=1.0))
    X = np.array([[1.0], [-1.0]])
    data = LocalData.from_list([(X, np.array([1.0, -1.0]))] * 2)
    with pytest.raises(ValueError, match="separable labels, or"):
        critical_lambda(Problem(Graph.from_edges([(0, 1)]), data, "logistic", lam=1.0))
    signs = LocalData.from_list([(np.eye(2), np.array([1.0, -1.0]))] * 5)
    partly = Problem(problem.graph, signs, Logistic(l2=0.1), Partial(L2Norm(), on=[0]), lam=1.0)
    with pytest.raises(ValueError, match="Partial needs quadratic losses"):
        critical_lambda(partly)


def test_large_graph_by_the_sparse_system():
    """More unknowns than the dense Newton system takes."""
    problem = random_regression(0, "l2", n=450, d=2, density=0.004)
    found = critical_lambda(problem)
    assert found.exact
    assert_proven(problem, found)
