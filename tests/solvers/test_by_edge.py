"""Interior-point steps over edges of different kinds, against a general cone solver."""

import warnings

import numpy as np
import pytest

from nefele import DataWarning, Graph, LocalData, Problem, Status, as_graph, solve
from nefele.graphs import chain, grid
from nefele.losses import (
    Absolute,
    Hinge,
    HuberLoss,
    Logistic,
    Multinomial,
    Poisson,
    Squared,
)
from nefele.penalties import (
    ByEdge,
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Penalty,
    Quadratic,
    SquaredL2,
)
from nefele.solvers import Newton, PrimalDual, as_solver
from nefele.solvers.interior_point.edges import Edges
from nefele.solvers.interior_point.forms import forms, norms
from nefele.solvers.primal_dual.polish import polish
from tests.problems import kind_of, random_data, random_graph
from tests.reference.oracle import oracle
from tests.solvers.problems import name, quiet

KINDS = [
    L2Norm(),
    L1Norm(),
    LinfNorm(),
    SquaredL2(),
    HuberPenalty(delta=0.3),
    Quadratic([[2.0, 1.0], [1.0, 0.5]]),
    Lp(1.5),
    Partial(Lp(3.0), [1]),
    Partial(Quadratic([[2.0]]), [0]),
]
LOSSES = [
    Squared(),
    Squared(l2=0.1),
    Squared(l1=0.1),
    Logistic(l2=0.01),
    Multinomial(n_classes=3, l2=0.01),
    Poisson(l2=0.05),
    HuberLoss(delta=0.5),
    Absolute(),
    Hinge(),
]


def stated(seed, loss, lam=0.3):
    """A random problem with all kinds of edges; nodes without data, or with one row."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 9, wide=seed % 2 == 1)
    counts = rng.choice([0, 1, 6, 8], 9)
    counts[0] = 8
    data = random_data(rng, counts, 2, kind_of(loss))
    kinds = KINDS
    if isinstance(loss, Multinomial):  # six parameters
        kinds = [k for k in KINDS if not isinstance(k, Quadratic)] + [Quadratic(np.diag(range(6)))]
    penalty = ByEdge(kinds, rng.permutation(graph.n_edges) % len(kinds))
    return Problem(graph, data, loss=loss, penalty=penalty, lam=lam)


def agrees(problem, loss, tol=1e-7, accuracy=1e-6):
    """Solved by steps alone; no bound above the point of the cone solver."""
    value, point = oracle(problem.graph, problem.data, loss, problem.penalty, problem.lam)
    found = quiet(problem, "auto", tol=tol)
    scale = max(abs(point), 1e-3 * abs(problem.objective_at_zero))
    assert found.converged and found.certificate == "dual" and found.n_iter <= 80
    assert found.objective <= (point if value is None else min(value, point)) + accuracy * scale
    assert found.objective - found.gap_abs <= point + 1e-9 * scale
    return found


@pytest.mark.parametrize("loss", LOSSES, ids=name)
@pytest.mark.parametrize("seed", [0, 1])
def test_all_kinds_of_edges_with_every_loss(seed, loss):
    problem = stated(seed, loss)
    assert isinstance(as_solver("auto", problem), Newton)
    agrees(problem, loss)


@pytest.mark.parametrize("lam", [1e-6, 1e5])
@pytest.mark.parametrize("loss", [Squared(), Absolute(), Poisson(l2=0.05)], ids=name)
def test_tiny_and_huge_lam(loss, lam):
    agrees(stated(4, loss, lam), loss)


def test_columns_of_very_different_units():
    """The primal-dual method ends at a gap of .67 after 5,000 iterations."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((18, 2)) * [1e-4, 1e4]
    data = LocalData(X, rng.standard_normal(18), np.array([0, 6, 12, 18]))
    problem = Problem(chain(3), data, penalty={(0, 1): "l1", None: "l2"}, lam=0.1)
    agrees(problem, Squared())


@pytest.mark.parametrize("kind", KINDS, ids=name)
def test_one_kind_by_edge_is_that_kind_for_all(kind):
    graph = grid(3, 3)
    data = random_data(np.random.default_rng(1), [5] * 9, 2)
    one = Problem(graph, data, loss="huber", penalty=kind, lam=0.2)
    same = ByEdge([L1Norm(), kind], np.ones(graph.n_edges, dtype=int))
    found, plain = quiet(Problem(graph, data, loss="huber", penalty=same, lam=0.2)), quiet(one)
    assert found.objective == pytest.approx(plain.objective, rel=1e-6)
    np.testing.assert_allclose(found.w, plain.w, atol=2e-3)


def test_neighbours_are_fused_by_norms_only():
    """A strong norm makes its ends equal, to the last bit; a spring as strong does not."""
    graph = chain(4)
    data = random_data(np.random.default_rng(2), [6] * 4, 2)
    penalty = {(0, 1): "l2", (1, 2): "squared_l2", (2, 3): "linf"}
    problem = Problem(graph, data, penalty=penalty, lam=50.0)
    w = solve(problem, tol=1e-9).w
    assert norms(problem).tolist() == [True, False, True]
    np.testing.assert_array_equal(w[0], w[1])
    np.testing.assert_array_equal(w[2], w[3])
    assert (w[1] != w[2]).all()


def test_directions_of_all_kinds_are_those_of_each_alone():
    problem = stated(3, Squared())
    graph, rng = problem.graph, np.random.default_rng(0)
    w, dw = rng.standard_normal((2, graph.n_nodes, 2))
    u = np.zeros((graph.n_edges, 2))
    edges = Edges(problem, w, u, 0.1, problem.scale)
    C, pull = edges.scale(), edges.aim(0.05, 0.7, 0.0)
    change = graph.diff(dw)
    flow = (C @ change[..., None])[..., 0]
    edges.direct(change, flow, 0.7)
    ahead = edges.ahead_flow(1.0) - edges.flow
    np.testing.assert_allclose(ahead, flow + pull, atol=1e-9 * np.abs(flow).max())
    assert sorted(np.concatenate([f.edges for f in forms(problem)])) == list(range(graph.n_edges))
    for form in forms(problem):
        off = np.setdiff1d(np.arange(2), form.on)
        assert not C[np.ix_(form.edges, off)].any() and not pull[np.ix_(form.edges, off)].any()


def test_resumed_in_the_middle_it_goes_on_as_before(tmp_path):
    problem, path = stated(5, Absolute()), tmp_path / "half"
    whole = quiet(problem, tol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        solve(problem, Newton(), tol=1e-8, max_iter=5, checkpoint=path)
        again = solve(problem, Newton(), tol=1e-8, resume=path)
    np.testing.assert_array_equal(again.w, whole.w)
    assert again.n_iter == whole.n_iter


class Own(Penalty):
    """A norm that nobody has cones for."""

    is_norm = True

    def value(self, v):
        return np.abs(v).sum(axis=1)

    def dual_norm(self, u):
        return np.abs(u).max(axis=1)

    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - step[:, None], 0.0)


def test_a_kind_without_cones_rests_on_the_prox():
    data = random_data(np.random.default_rng(0), [5, 0, 5], 2)
    problem = Problem(chain(3), data, penalty={(0, 1): Own(), None: L2Norm()}, lam=0.1)
    assert isinstance(as_solver("auto", problem), PrimalDual)
    with pytest.raises(ValueError, match="Newton needs one of nefele's penalties"):
        solve(problem, Newton())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        known = Problem(chain(3), data, penalty={(0, 1): "l1", None: "l2"}, lam=0.1)
        assert solve(problem).objective == pytest.approx(solve(known).objective, rel=1e-5)


def test_a_node_that_edges_compare_in_part():
    """No data and a coupling of one entry: the other entry stays where nothing pulls it."""
    graph = as_graph(Graph.from_edges([(0, 1), (1, 2)]))
    data = LocalData.from_list([(np.eye(2), [1.0, 2.0]), (np.eye(2), [3.0, 5.0]), None])
    penalty = {(0, 1): "l2", (1, 2): Partial(SquaredL2(), [0])}
    problem = Problem(graph, data, penalty=penalty, lam=0.1)
    found = quiet(problem, "auto", tol=1e-9)
    assert found.converged and np.isfinite(found.w).all()
    assert found.w[2, 0] == pytest.approx(found.w[1, 0], rel=1e-6)


def separable(penalty, n=3):
    """Logistic nodes: the last one's second feature separates its labels for ever."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8 * n, 2))
    y = np.where(rng.random(8 * n) < 0.5, 1.0, -1.0)
    X[-8:, 1] = y[-8:] * (1 + rng.random(8))
    data = LocalData(X, y, np.arange(0, 8 * n + 1, 8))
    return Problem(chain(n), data, loss="logistic", penalty=penalty, lam=0.1)


def test_who_runs_away_depends_on_the_edges_of_a_node():
    """An entry that is coupled elsewhere only does not hold a node."""
    some = Partial(L2Norm(), [0])
    assert separable({(0, 1): "l2", (1, 2): some}).unbounded().tolist() == [False, False, True]
    assert not separable({(0, 1): some, (1, 2): "l2"}).unbounded().any()
    assert not separable({(0, 1): "l1", (1, 2): "l2"}).unbounded().any()
    found = quiet(separable({(0, 1): "l2", (1, 2): some}), "auto", tol=1e-8)
    assert found.status is Status.HELD and found.unbounded.tolist() == [False, False, True]


def test_a_kind_without_edges_couples_nothing():
    one = ByEdge([Partial(L2Norm(), [0]), L2Norm()], [0, 0])
    np.testing.assert_allclose(np.abs(one.personal(2)), [[0.0], [1.0]], atol=1e-12)


def test_reduced_solves_ask_some_edges_only():
    """Smooth kinds, of which some edges are alike at the point: the curvature of the others."""
    kinds = ByEdge([SquaredL2(), HuberPenalty(delta=0.5)], [0, 1, 0])
    graph, data = chain(4), random_data(np.random.default_rng(0), [5] * 4, 2, "sign")
    problem = Problem(graph, data, loss="logistic", penalty=kinds, lam=0.1)
    w, fused = np.zeros((4, 2)), np.array([[True, True], [False, False], [False, False]])
    better = polish(problem, w, np.zeros((3, 2)), fused)
    assert better is not None and problem.objective(better.w) < problem.objective(w)
    np.testing.assert_array_equal(better.w[0], better.w[1])
