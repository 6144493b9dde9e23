"""What captured nodes can do at most: never more than the bound, and nearly as much."""

import math

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.losses import Logistic
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, LinfNorm, Lp, Partial
from nefele.robust import influence_bound, worst_nodes
from nefele.robust.bounds import steepest
from nefele.theory import label_sensitivity
from tests.robust.ascent import Honest, ascend
from tests.robust.networks import alone, held, small_problem

PENALTIES = ("l2", "l1", "linf", "huber")
FAR = 30.0  # from where a captured node pulls as hard as it can
_TOL = 1e-10


def attack(problem, attackers, seed, steps=3):
    """Captured nodes that go, step by step, where they move the honest ones furthest.

    Returns the changes of all parameters that the steps ended with.
    """
    rng = np.random.default_rng(seed)
    honest = np.setdiff1d(np.arange(problem.graph.n_nodes), attackers)
    base = solve(alone(problem, attackers), tol=_TOL).w
    way = {i: rng.standard_normal(problem.d) for i in attackers}
    changes = []
    for _ in range(steps):
        place = {i: FAR * v / (np.linalg.norm(v) or 1.0) for i, v in way.items()}
        change = solve(held(problem, place), tol=_TOL).w - base
        changes.append(change)
        pulls = problem.graph.adjacency[:, honest] @ change[honest]
        way = {i: pulls[i] if pulls[i].any() else way[i] for i in attackers}
    return changes


def shares(problem, attackers, changes):
    """Largest change over its bound, of a node and of all together."""
    bound = influence_bound(problem, attackers)
    honest = np.setdiff1d(np.arange(problem.graph.n_nodes), attackers)
    most = 0.0
    for change in changes:
        size = np.linalg.norm(change, axis=1)[honest]
        assert bound.covered[honest].all()
        allowed = bound.per_node[honest]
        assert (size <= allowed * (1 + 1e-6) + 1e-5).all()
        assert np.linalg.norm(size) <= bound.total * (1 + 1e-6) + 1e-5
        if bound.total > 1e-2:
            most = max(most, float(np.linalg.norm(size)) / bound.total)
    return most


def check(penalty, problems, attacks):
    """All attacks of some problems by ascent: on all honest nodes, then on one after the other."""
    most = []
    for seed in range(problems):
        problem, attackers = small_problem(seed, penalty)
        honest = Honest(problem, attackers)
        if not len(honest.at):  # nobody hears the captured nodes
            continue
        changes = []
        for k in range(attacks):
            node = None if k % 2 == 0 else k // 2 % len(honest.nodes)
            changes += ascend(honest, np.random.default_rng([seed, k]), node)
        most.append(shares(problem, attackers, [honest.spread(c) for c in changes]))
    assert max(most) > 0.95


@pytest.mark.parametrize("penalty", PENALTIES)
def test_no_attack_exceeds_the_bound(penalty):
    check(penalty, 12, 2)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_thousand_attacks_by_optimisation_never_exceed_the_bound(penalty):
    check(penalty, 50, 20)


def test_gradients_of_the_ascent_are_those_of_differences():
    """One derivative in the direction of the change, against one difference for each force."""
    problem, attackers = small_problem(2, "l2")
    honest = Honest(problem, attackers)
    rng = np.random.default_rng(0)
    force = 0.3 * problem.lam * rng.standard_normal((len(honest.nodes), problem.d))
    change = honest.optimum(force) - honest.base
    slope = (honest.optimum(force - 1e-4 * change) - honest.base - change) / 1e-4

    def half_square(force):
        return 0.5 * ((honest.optimum(force) - honest.base) ** 2).sum()

    for i, j in np.ndindex(*force.shape):
        step = np.zeros_like(force)
        step[i, j] = 1e-4
        difference = (half_square(force + step) - half_square(force - step)) / 2e-4
        assert difference == pytest.approx(-slope[i, j], rel=1e-2, abs=1e-4)


def test_forces_of_the_ascent_are_what_liars_can_do():
    """Captured nodes that hold on to a far point for each neighbour have the flows of an attack."""
    for seed in range(4):
        problem, attackers = small_problem(seed, "l2")
        honest = Honest(problem, attackers)
        n, edges = len(honest.nodes), len(honest.at)
        flows = honest.best(np.random.default_rng(seed).standard_normal((n, problem.d)))
        far = -1e3 * flows / honest.most[:, None]  # a node is pulled towards what it hears
        rows = [(honest.data.X[a:b], honest.data.y[a:b])
                for a, b in zip(honest.data.ptr, honest.data.ptr[1:], strict=False)]  # fmt: skip
        data = LocalData.from_list(rows + [(1e3 * np.eye(problem.d), 1e3 * point) for point in far])
        head, tail = (np.concatenate(ends) for ends in (
            [honest.graph.head, honest.at], [honest.graph.tail, n + np.arange(edges)]))  # fmt: skip
        weight = np.concatenate([honest.graph.weight, honest.most / problem.lam])
        graph = Graph(np.arange(n + edges), head, tail, weight)
        lied = solve(Problem(graph, data, penalty="l2", lam=problem.lam), tol=1e-12).w[:n]
        change = honest.change(flows)
        # From there a node's neighbour is not quite in the direction of the flow any more.
        assert np.abs(lied - honest.base - change).max() < 0.1 * np.abs(change).max()


@pytest.mark.parametrize("penalty", ["l2", "l1", "linf", HuberPenalty(0.01)])
def test_one_node_with_one_edge_is_tight(penalty):
    data = LocalData.from_list([([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0]), None])
    problem = Problem(Graph.from_edges([(0, 1)]), data, penalty=penalty, lam=0.3)
    bound = influence_bound(problem, [1])
    found = solve(held(problem, {1: [20.0, 20.0 if penalty == "l1" else 0.0]}), tol=_TOL)
    moved = float(np.linalg.norm(found.w[0]))
    assert 0.95 * bound.total < moved <= bound.total * (1 + 1e-6)
    assert bound.per_node[0] == pytest.approx(bound.total)


def test_the_formula_of_the_sum():
    """(lam kappa / alpha) sqrt(sum_i a_i^2), with equal losses and one connected part."""
    data = LocalData.from_list([(2 * np.eye(2), [0.0, 0.0])] * 4)
    graph = Graph.from_edges([(0, 1), (1, 2), (0, 3), (2, 3)], weight=[1.0, 1.0, 2.0, 3.0])
    found = influence_bound(Problem(graph, data, penalty="l1", lam=0.5), [3])
    alpha = 4.0  # 2 X^T X / 2 with X = 2 I
    expected = 0.5 * math.sqrt(2) / alpha * math.sqrt(2.0**2 + 3.0**2)
    assert found.alpha == pytest.approx(alpha)
    assert found.total == pytest.approx(expected)
    assert found.force[:3] == pytest.approx(0.5 * math.sqrt(2) * np.array([2.0, 0.0, 3.0]))
    assert np.isnan(found.per_node[3]) and (found.per_node[:3] <= found.total).all()


def test_parts_that_attackers_do_not_touch_do_not_move():
    data = LocalData.from_list([([[1.0]], [0.0])] * 5)
    graph = Graph.from_edges([(0, 1), (1, 2), (3, 4)])
    found = influence_bound(Problem(graph, data, lam=1.0), [2])
    assert found.per_node[[3, 4]].tolist() == [0.0, 0.0]
    cut = influence_bound(Problem(graph, data, lam=1.0), [1])
    assert cut.per_node[0] == pytest.approx(0.5)  # node 2 moves apart from it


def test_nodes_without_rows_are_not_covered_and_pull_twice():
    """0 - 1 - 2 with node 2 captured and node 1 without rows: 1 may do anything in both fits."""
    data = LocalData.from_list([([[1.0]], [0.0]), None, ([[1.0]], [9.0])])
    graph = Graph.from_edges([(0, 1), (1, 2)], weight=[1.0, 3.0])
    found = influence_bound(Problem(graph, data, lam=0.4), [2])
    assert found.covered.tolist() == [True, False, False]
    assert found.per_node[0] == pytest.approx(2 * 0.4 / 2.0)
    assert np.isinf(found.per_node[1]) and "Not covered: 1" in found.reason


def test_nodes_without_rows_out_of_reach_do_not_widen_the_bound():
    data = LocalData.from_list([None, ([[1.0]], [0.0]), ([[1.0]], [9.0])])
    found = influence_bound(Problem(Graph.from_edges([(0, 1), (1, 2)]), data, lam=0.4), [2])
    assert found.per_node[1] == pytest.approx(0.4 / 2.0)


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_holds_where_rows_are_missing(seed):
    problem, attackers = small_problem(seed, "l2")
    data, n = problem.data, problem.graph.n_nodes
    empty = next(i for i in range(n) if i not in attackers)
    rows = [None if i == empty else (data.X[a:b], data.y[a:b])
            for i, (a, b) in enumerate(zip(data.ptr, data.ptr[1:], strict=False))]  # fmt: skip
    problem = Problem(problem.graph, LocalData.from_list(rows), lam=problem.lam)
    bound = influence_bound(problem, attackers)
    with pytest.warns() if _lonely(problem, attackers) else _quiet():
        changes = attack(problem, attackers, seed)
    for change in changes:
        size = np.linalg.norm(change, axis=1)
        ok = bound.covered
        assert (size[ok] <= bound.per_node[ok] * (1 + 1e-6) + 1e-5).all()


def _lonely(problem, attackers):
    """Whether without the attackers' edges some part has no rows, which a solve warns of."""
    return bool(alone(problem, attackers).undetermined.any())


def _quiet():
    import contextlib

    return contextlib.nullcontext()


def test_logistic_losses_are_covered_by_their_ridge_only():
    data = LocalData.from_list([([[1.0], [-1.0]], [1.0, -1.0])] * 2)
    graph = Graph.from_edges([(0, 1)])
    plain = influence_bound(Problem(graph, data, Logistic(), lam=0.1), [1])
    assert not plain.certified and plain.reason.startswith("None: at every honest node")
    ridge = influence_bound(Problem(graph, data, Logistic(l2=0.5), lam=0.1), [1])
    assert ridge.total == pytest.approx(0.1 / 1.0)


def test_the_quadratic_penalty_has_no_bound():
    problem, attackers = small_problem(1, "squared_l2")
    found = influence_bound(problem, attackers)
    assert not found.certified and np.isinf(found.total)
    assert found.reason.startswith("None: the quadratic penalty pulls the harder")
    rows = np.isin(problem.data.row_node, attackers)
    assert found.per_label == label_sensitivity(problem)[rows].max()
    near = solve(held(problem, dict.fromkeys(attackers, np.ones(problem.d))), tol=_TOL).w
    far = solve(held(problem, dict.fromkeys(attackers, 1e3 * np.ones(problem.d))), tol=_TOL).w
    honest = np.setdiff1d(np.arange(problem.graph.n_nodes), attackers)
    assert np.abs((far - near)[honest]).max() > 10


@pytest.mark.parametrize(
    ("penalty", "slope"),
    [(L2Norm(), 1), (LinfNorm(), 1), (L1Norm(), 2), (Lp(1.5), 4 ** (1 / 6)), (Lp(3), 1),
     (Partial(L1Norm(), [0, 1]), math.sqrt(2)), (HuberPenalty(0.1), 1)],
)  # fmt: skip
def test_slopes_are_the_largest_over_many_directions(penalty, slope):
    assert steepest(penalty, 4) == pytest.approx(slope)
    v = np.random.default_rng(0).standard_normal((20_000, 4))
    v = np.vstack([v, np.eye(4), np.ones((1, 4))]) * 1e3
    v = np.vstack([v, np.eye(4)[:2].sum(axis=0) * 1e3])
    found = (penalty.value(v) / np.linalg.norm(v, axis=1)).max()
    assert found <= slope * (1 + 1e-9) and found > 0.99 * slope


def test_worst_nodes_are_the_worst_of_all_sets():
    problem, _ = small_problem(3, "l2")
    n = problem.graph.n_nodes
    for k in (1, 2):
        found = worst_nodes(problem, k)
        sets = [[i] for i in range(n)] if k == 1 else [[i, j] for i in range(n) for j in range(i)]
        most = max(influence_bound(problem, nodes).total for nodes in sets)
        assert found.exact and found.bound.total == pytest.approx(most)


def test_many_nodes_are_chosen_one_after_the_other():
    data = LocalData.from_list([([[1.0]], [0.0])] * 60)
    hubs = [(0, i) for i in range(3, 20)] + [(1, i) for i in range(20, 40)]
    graph = Graph.from_edges([*hubs, *((2, i) for i in range(40, 60))], nodes=np.arange(60))
    found = worst_nodes(Problem(graph, data, lam=1.0), 3)
    assert found.nodes == [0, 1, 2] and not found.exact


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: influence_bound(p, ["x"]), "Captured nodes must be nodes of the graph"),
        (lambda p: influence_bound(p, []), "one captured node at least"),
        (lambda p: influence_bound(p, p.graph.ids), "Some node must be honest"),
        (lambda p: influence_bound(p.graph, [0]), "problem must be a Problem; got Graph"),
        (lambda p: worst_nodes(p, 0), "k must be an integer >= 1"),
        (lambda p: worst_nodes(p, 99), "k must leave an honest node"),
        (lambda p: worst_nodes(None), "problem must be a Problem"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call(small_problem(0)[0])


def test_worst_nodes_of_the_quadratic_penalty_says_why_not():
    with pytest.raises(ValueError, match=r"needs a bound\. None: the quadratic"):
        worst_nodes(small_problem(0, "squared_l2")[0])


def test_nodes_that_move_without_a_limit_count_more_than_any_sum():
    """Only the first of a chain has rows: whoever has it leads all others anywhere."""
    data = LocalData.from_list([([[1.0]], [1.0]), None, None, None])
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    found = worst_nodes(Problem(graph, data, lam=1.0), 1)
    assert found.nodes == [0] and not found.bound.certified and found.exact
    # A star around 0 with two leaves without rows, and a heavy edge of two that have some.
    rows = [([[1.0]], [0.0])] + [None, None] + [([[1.0]], [0.0])] * 2
    edges = [(0, 1), (0, 2), (0, 3), (3, 4)]
    graph = Graph.from_edges(edges, [1.0, 1.0, 1.0, 50.0])
    assert worst_nodes(Problem(graph, LocalData.from_list(rows), lam=1.0), 1).nodes == [0]
