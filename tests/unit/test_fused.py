"""The compiled iteration and its NumPy twin."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.graphs import grid
from nefele.penalties import Huber, L1Norm, L2Norm, LinfNorm, SquaredL2
from nefele.solvers import PrimalDual
from nefele.solvers.fused import Fused, Layout

PENALTIES = [L2Norm(), L1Norm(), SquaredL2(), Huber(0.3)]


def shuffled_grid(side, seed=0):
    """A grid whose nodes are numbered at random: poor locality."""
    rng = np.random.default_rng(seed)
    plain = grid(side, side)
    name = rng.permutation(plain.n_nodes)
    edges = np.stack([name[plain.head], name[plain.tail]], axis=1)
    return Graph.from_edges(edges, weight=rng.uniform(0.1, 2.0, plain.n_edges))


def problem(penalty, d=3, side=30, graph=None, lam=0.2):
    rng = np.random.default_rng(1)
    graph = shuffled_grid(side) if graph is None else graph
    counts = rng.integers(0, 5, graph.n_nodes)
    X = rng.standard_normal((counts.sum(), d))
    y = X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(len(X))
    ptr = np.concatenate([[0], np.cumsum(counts)])
    return Problem(graph, LocalData(X, y, ptr), penalty=penalty, lam=lam)


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_compiled_steps_equal_numpy_steps(penalty, d):
    target = problem(penalty, d, side=40)
    assert Fused.fits(target)
    states = []
    for compiled in (True, False):
        solver = PrimalDual(compiled=compiled, polish=False)
        result = solve(target, solver, tol=None, max_iter=40)
        states.append(result.w)
    np.testing.assert_allclose(states[0], states[1], rtol=0, atol=1e-11)


def test_printed_steps_are_compiled_too():
    target = problem(L2Norm())
    fast = solve(target, PrimalDual(relax=1.0, polish=False, printed=True), tol=None, max_iter=25)
    slow = solve(
        target,
        PrimalDual(relax=1.0, polish=False, printed=True, compiled=False),
        tol=None,
        max_iter=25,
    )
    np.testing.assert_allclose(fast.w, slow.w, rtol=0, atol=1e-12)


def test_small_or_unknown_problems_are_not_compiled():
    assert not Fused.fits(problem(LinfNorm()))
    assert not Fused.fits(problem(L2Norm(), side=3))
    assert not Fused.fits(Problem(grid(30, 30), problem(L2Norm()).data, loss="huber", lam=0.1))


def test_layout_shortens_edges_of_a_badly_numbered_grid_and_is_invisible():
    graph = shuffled_grid(150)
    layout = Layout(graph)
    assert layout.order is not None
    head = np.repeat(np.arange(graph.n_nodes), np.diff(layout.ptr))
    assert (head < layout.tail).all()
    assert np.abs(head - layout.tail).mean() < 0.1 * np.abs(graph.head - graph.tail).mean()
    rng = np.random.default_rng(0)
    w, u = rng.standard_normal((graph.n_nodes, 2)), rng.standard_normal((graph.n_edges, 2))
    np.testing.assert_array_equal(layout.nodes_out(layout.nodes_in(w)), w)
    np.testing.assert_array_equal(layout.flow_out(layout.flow_in(u)), u)
    # D^T u is the same in either numbering.
    inside = np.zeros_like(w)
    np.add.at(inside, head, layout.flow_in(u))
    np.add.at(inside, layout.tail, -layout.flow_in(u))
    np.testing.assert_allclose(layout.nodes_out(inside), graph.div(u), atol=1e-12)


def test_reordered_iteration_equals_numpy():
    target = problem(L2Norm(), d=2, graph=shuffled_grid(150))
    fast = solve(target, PrimalDual(polish=False), tol=None, max_iter=10)
    slow = solve(target, PrimalDual(polish=False, compiled=False), tol=None, max_iter=10)
    np.testing.assert_allclose(fast.w, slow.w, rtol=0, atol=1e-11)
