"""The compiled iteration and its NumPy twin."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, solve
from nefele.graphs import grid
from nefele.penalties import HuberPenalty, L1Norm, L2Norm, LinfNorm, SquaredL2
from nefele.solvers import PrimalDual
from nefele.solvers.primal_dual import fused
from nefele.solvers.primal_dual.fused import Fused, Layout, Turns, good_order
from tests.waiting import LONG

PENALTIES = [L2Norm(), L1Norm(), SquaredL2(), HuberPenalty(0.3)]


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


def irregular(longest, n=900, seed=2, shuffle=False):
    """A graph with edges of at most this length; every tenth node is isolated."""
    rng = np.random.default_rng(seed)
    head = rng.integers(0, n, 4 * n)
    edges = np.stack([head, (head + rng.integers(1, longest, 4 * n)) % n], axis=1)
    edges = edges[(edges % 10 != 0).all(axis=1) & (np.abs(edges[:, 0] - edges[:, 1]) < longest)]
    edges = np.unique(np.sort(edges, axis=1), axis=0)
    if shuffle:
        edges = rng.permutation(n)[edges]
    return Graph.from_edges(edges, weight=rng.uniform(0.1, 2.0, len(edges)), nodes=np.arange(n))


GRAPHS = {
    "short edges": irregular(10),
    "long edges": irregular(900),
    "shuffled": irregular(10, shuffle=True),
    "unit weights": grid(45, 30),
}


def after_steps(target, compiled, steps=12):
    """Relaxed and plain iterates after a few steps, all in graph order, and the state."""
    solver = PrimalDual(polish=False, compiled=compiled)
    n, E, d = target.graph.n_nodes, target.graph.n_edges, target.d
    state = solver.init(target, np.zeros((n, d)), np.zeros((E, d)))
    for _ in range(steps):
        solver.step(target, state)
    if not compiled:
        plain = state.iteration
        return [plain.w, plain.u, plain.w1, *plain.next()], state
    fused = state.iteration
    w, u = fused.layout.nodes_out(fused.w).copy(), fused.layout.flow_out(fused.u).copy()
    done = fused.unrelaxed(solver.relax)[0]
    return [w, u, done, *fused.unrelaxed()], state


@pytest.fixture
def run(monkeypatch):
    """Run the compiled iteration in one of its ways, reordered where that helps."""
    from nefele._kernels import threads

    def run(target, way):
        monkeypatch.setattr(fused, "_LARGE", 0)
        monkeypatch.setattr(fused, "_SHORT", 0)
        monkeypatch.setattr(fused, "_LEAST_PARALLEL", 10**9 if way == "serial" else 0)
        monkeypatch.setattr(threads, "usable", lambda: 3)
        both = {"blocks": lambda self, serial, parallel: serial()}
        both["parallel"] = lambda self, serial, parallel: parallel()
        monkeypatch.setattr(Turns, "run", both.get(way))
        return after_steps(target, compiled=True)

    return run


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 17])
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
def test_compiled_steps_equal_numpy_steps(penalty, d, graph, run):
    target = problem(penalty, d, graph=GRAPHS[graph])
    assert Fused.fits(target)
    expected, _ = after_steps(target, compiled=False)
    found = {}
    for way in ("serial", "blocks", "parallel"):
        found[way], state = run(target, way)
        for x, y in zip(found[way], expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
        fast = state.iteration
        assert (len(fast.schedule[3]) > 1) == (way != "serial" and graph != "long edges")
        assert (fast.layout.order is not None) == (graph == "shuffled")
        assert (len(fast.scale) == 1) == (graph == "unit weights")
    for x, y in zip(found["blocks"], found["parallel"], strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("d", [1, 3])
def test_without_coupling_the_flow_is_zero(penalty, d, run):
    target = problem(penalty, d, graph=GRAPHS["unit weights"], lam=0.0)
    with np.errstate(divide="ignore"):
        expected, _ = after_steps(target, compiled=False)
    found, _ = run(target, "serial")
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=0, atol=1e-12)
    assert not found[-1].any()


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
    layout = Layout(graph, good_order(graph))
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


@pytest.mark.parametrize("chunk", [1, 7, 32])
@pytest.mark.parametrize("graph", GRAPHS)
def test_blocks_may_run_side_by_side(graph, chunk):
    """In either phase no node is touched by the edges or proxes of two blocks."""
    layout = Layout(GRAPHS[graph], good_order(GRAPHS[graph]))
    n = GRAPHS[graph].n_nodes
    reach = layout.reach(chunk)
    bounds, cuts = layout.blocks(reach, chunk, 16)
    assert bounds[0] == 0 and bounds[-1] == len(reach) == -(-n // chunk) and cuts[-1] == len(reach)
    head = np.repeat(np.arange(n), np.diff(layout.ptr))
    assert (layout.tail < reach[head // chunk]).all()
    block = np.searchsorted(bounds, np.arange(n) // chunk, side="right") - 1
    late = head // chunk >= cuts[block[head]]
    assert (block[head] == block[layout.tail])[~late].all()
    touched = np.concatenate([head[late], layout.tail[late]])
    by = np.concatenate([block[head[late]]] * 2)
    for k in range(len(cuts)):
        assert not np.isin(touched[by == k], touched[by != k]).any()


def test_threads_are_used_only_while_they_are_faster(monkeypatch):
    now, calls = [0.0], []
    monkeypatch.setattr(fused.time, "perf_counter", lambda: now[0])

    def work(name, seconds):
        calls.append(name)
        now[0] += seconds

    turns = Turns()
    for busy in [False] * 20 + [True] * 100:
        turns.run(lambda: work("s", 1.0), lambda busy=busy: work("p", 5.0 if busy else 0.6))
    assert "".join(calls[:20]) == "s" * 2 + "p" * 18
    assert calls[20:].count("p") == 4  # tried again after 8, 16 and 32 turns


def test_only_the_main_thread_of_the_main_process_uses_threads():
    from nefele._kernels import threads

    found = []
    other = threading.Thread(target=lambda: found.append(threads.usable()))
    other.start()
    other.join()
    assert found == [1]


FORK = """
import os, sys
import numpy as np
from nefele import LocalData, Problem
from nefele._kernels import primal_dual, threads
from nefele.graphs import chain
from nefele.solvers import PrimalDual
from nefele.solvers.primal_dual import fused

fused._LEAST_PARALLEL = 0
fused.Turns.run = lambda self, serial, parallel: parallel()
n = 3000
data = LocalData(np.ones((n, 1)), np.arange(n) % 7.0, np.arange(n + 1))
problem, solver = Problem(chain(n), data, penalty="l1", lam=0.1), PrimalDual()

def step():
    state = solver.init(problem, np.zeros((n, 1)), np.zeros((n - 1, 1)))
    solver.step(problem, state)
    return state.iteration.w.copy()

before = step()
child = os.fork()
if child == 0:
    os._exit(0 if threads.usable() == 1 and (step() == before).all() else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_goes_on_alone():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], check=True, timeout=LONG)
