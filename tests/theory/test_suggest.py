"""Which nodes to ask next: against brute force, and against random choices on block models."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.graphs import chain, grid, sbm
from nefele.theory import error_bound, suggest_nodes, well_connected

SIZES = (30, 20, 30, 20)
FIRST, ASKED, LAM = 0, 8, 0.03


def scene(seed, inside=0.4, between=0.01):
    """A block model with one model per block; rows of every node, should they be asked."""
    graph = sbm(list(SIZES), inside, between, seed=seed)
    block = np.repeat(np.arange(4), SIZES)
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(4, 2))[block]
    rows = [(X := rng.normal(size=(10, 2)), X @ w + 0.2 * rng.normal(size=10)) for w in truth]
    return graph, block, truth, rows


def problem_of(graph, rows, asked):
    data = [row if i in asked else None for i, row in enumerate(rows)]
    return Problem(graph, LocalData.from_list(data, nodes=graph.ids), lam=LAM)


def error(graph, truth, rows, asked):
    w = solve(problem_of(graph, rows, {FIRST, *asked}), tol=1e-4).w
    return np.sqrt(((w - truth) ** 2).sum(axis=1)).mean()


def error_by_chance(graph, truth, rows, count, seed):
    draw = np.random.default_rng(100 + seed)
    others = [draw.choice(np.arange(1, 100), count, replace=False) for _ in range(6)]
    return np.mean([error(graph, truth, rows, asked.tolist()) for asked in others])


@pytest.mark.parametrize(
    ("links", "count"),
    [pytest.param((0.4, 0.01), 40, marks=pytest.mark.slow), ((0.3, 0.1), ASKED)],
    ids=["many", "mixed"],
)
def test_where_chance_does_nearly_as_well(links, count):
    """The page on the theory says so: many nodes are asked, or groups are hardly apart."""
    ratios = []
    for seed in range(4):
        graph, block, truth, rows = scene(seed, *links)
        found = suggest_nodes(problem_of(graph, rows, {FIRST}), count, block).nodes
        by_chance = error_by_chance(graph, truth, rows, count, seed)
        ratios.append(error(graph, truth, rows, found) / by_chance)
    assert 0.8 < np.mean(ratios) < 1.2


@pytest.mark.parametrize("seed", range(4))
def test_suggested_nodes_beat_random_ones_on_block_models(seed):
    graph, block, truth, rows = scene(seed)
    first = problem_of(graph, rows, {FIRST})
    by_chance = error_by_chance(graph, truth, rows, ASKED, seed)
    known = suggest_nodes(first, ASKED, block)
    unknown = suggest_nodes(first, ASKED)
    assert error(graph, truth, rows, known.nodes) < 0.6 * by_chance
    assert error(graph, truth, rows, unknown.nodes) < 0.7 * by_chance
    for found in (known, unknown):
        assert len(set(found.nodes)) == ASKED and FIRST not in found.nodes
        assert len({int(block[i]) for i in (FIRST, *found.nodes)}) == 4  # no block is left out
        finite = found.bound[np.isfinite(found.bound)]
        assert (np.diff(finite) < 0).all()


def test_variances_by_brute_force():
    graph = grid(3, 4)
    data = LocalData.from_list([([[2.0]], [1.0]) if i == 5 else None for i in range(12)])
    problem = Problem(graph, data, penalty="squared_l2", lam=0.7)
    found = suggest_nodes(problem, 3, curvature=3.0)
    L = np.diag(graph.weighted_degree) - graph.adjacency.toarray()
    own = np.zeros(12)
    own[5] = 8.0

    def total(own):
        return np.trace(np.linalg.inv(np.diag(own) + 0.7 * L + 0.7e-6 * np.eye(12))) / 12

    assert found.bound[0] == pytest.approx(total(own), rel=1e-6)
    for node, bound in zip(found.nodes, found.bound[1:], strict=True):
        tries = [total(own + 3.0 * np.eye(12)[i]) if own[i] == 0 else np.inf for i in range(12)]
        assert min(tries) == pytest.approx(tries[node], rel=1e-9)
        own[node] = 3.0
        assert bound == pytest.approx(total(own), rel=1e-6)


def test_the_bound_of_clusters_is_the_error_bound():
    graph, block = chain(8), np.repeat([0, 1], 4)
    rows = [([[1.0]], [float(b)]) for b in block]
    some = {1, 5}
    data = LocalData.from_list([row if i in some else None for i, row in enumerate(rows)])
    found = suggest_nodes(Problem(graph, data, lam=0.2), 2, block)
    more = some | set(found.nodes)
    full = LocalData.from_list([row if i in more else None for i, row in enumerate(rows)])
    after = Problem(graph, full, lam=0.2)
    assert found.bound[-1] == pytest.approx(error_bound(after, block).value.mean())
    assert found.bound[0] == pytest.approx(
        error_bound(Problem(graph, data, lam=0.2), block).value.mean()
    )
    assert {int(block[i]) for i in found.nodes} == {0, 1}
    # With exact labels the demand is all that the condition asks for.
    slack = well_connected(after, block).slack
    assert slack[block[found.nodes[-1]]] == pytest.approx(found.slack[-1])


def test_what_it_refuses():
    data = LocalData.from_list([([[1.0]], [0.0]), None, None])
    problem = Problem(chain(3), data, lam=1.0)
    assert suggest_nodes(problem, 1, candidates=[0, 1]).nodes == [1]
    with pytest.raises(ValueError, match="at most the 2 nodes that may be asked; got 3"):
        suggest_nodes(problem, 3)
    with pytest.raises(ValueError, match="needs lam > 0"):
        suggest_nodes(problem.with_lam(0.0), 1)
    with pytest.raises(ValueError, match="unknown"):
        suggest_nodes(problem, 1, candidates=[7])
    with pytest.raises(ValueError, match="curvature must be finite and > 0"):
        suggest_nodes(problem, 1, curvature=0.0)
    alone = Problem(Graph.from_edges([(0, 1)], nodes=range(3)), data, lam=1.0)
    assert suggest_nodes(alone, 1, [0, 0, 1]).nodes == [2]
