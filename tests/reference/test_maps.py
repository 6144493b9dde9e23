"""Couplings by linear maps, against a general cone solver and closed forms."""

import warnings

import cvxpy as cp
import numpy as np
import pytest

from nefele import ConvergenceWarning, Graph, GTVRegressor, LocalData, Problem, path, solve
from nefele.graphs import MappedGraph, chain, grid, mapped, trend
from nefele.losses import (
    Absolute,
    Box,
    Constrained,
    Hinge,
    HuberLoss,
    Logistic,
    Quantile,
    Squared,
    SquaredHinge,
)
from nefele.penalties import (
    ByEdge,
    HuberPenalty,
    L1Norm,
    L2Norm,
    LinfNorm,
    Lp,
    Partial,
    Quadratic,
    SquaredL2,
)
from nefele.robust import influence_bound
from nefele.runtime import split
from nefele.solvers import PrimalDual
from nefele.solvers.loop.fingerprint import fingerprint
from nefele.theory import well_connected
from tests.problems import labels
from tests.reference.oracle import _node_term, edge_term, solved

LOSSES = [Squared(), Logistic(l2=0.05), Absolute(l2=0.05), Squared(l1=0.1)]
PENALTIES = [L1Norm(), L2Norm(), LinfNorm(), SquaredL2(), HuberPenalty(delta=0.3)]


def sheaf(seed, kind="real"):
    """Models of lengths 1 to 4, compared by random maps; some nodes have few rows or none."""
    rng = np.random.default_rng(seed)
    n = 6
    lengths = rng.integers(1, 5, n).tolist()
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if j == i + 1 or rng.random() < 0.4]
    graph = Graph.from_edges(pairs, rng.uniform(0.5, 2, len(pairs)), nodes=range(n))
    maps = {}
    for i, j in pairs:
        rows = int(rng.integers(1, 7))
        maps[i, j] = tuple(rng.normal(size=(rows, lengths[k])) for k in (i, j))
    rows = []
    for i, d in enumerate(lengths):
        X = rng.normal(size=(6 if i == 0 else int(rng.choice([0, 1, 6, 8])), d))
        rows.append((X, labels(kind, X @ rng.normal(size=d), rng)))
    return graph, maps, lengths, rows


def cone_solver(graph, maps, lengths, rows, loss, penalty, lam):
    w = [cp.Variable(d) for d in lengths]
    terms = []
    for i, (X, y) in enumerate(rows):
        if len(y):
            terms.append(_node_term(loss, X, y, np.full(len(y), 1 / len(y)), w[i]))
            terms.append(loss.l2 * cp.sum_squares(w[i]) + loss.l1 * cp.norm1(w[i]))
    for e, (i, j) in enumerate(zip(graph.head.tolist(), graph.tail.tolist(), strict=True)):
        F, G = maps[i, j]
        kind = penalty.penalties[penalty.kind[e]] if isinstance(penalty, ByEdge) else penalty
        terms.append(lam * graph.weight[e] * edge_term(kind, F @ w[i] - G @ w[j]))
    return solved(w[0], terms)[0]


@pytest.mark.parametrize("seed", range(12))
def test_random_maps_of_models_of_different_lengths(seed):
    loss, penalty = LOSSES[seed % 4], PENALTIES[seed % 5]
    kind = "sign" if isinstance(loss, Logistic) else "real"
    graph, maps, lengths, rows = sheaf(seed, kind)
    lam = [0.05, 0.3, 2.0][seed % 3]
    value = cone_solver(graph, maps, lengths, rows, loss, penalty, lam)
    problem = Problem(
        mapped(graph, edges=maps, d=dict(enumerate(lengths))),
        LocalData.from_list(rows, pad=True),
        loss=loss,
        penalty=penalty,
        lam=lam,
    )
    result = solve(problem, tol=1e-7)
    assert result.converged and result.certificate == "dual"
    assert result.objective == pytest.approx(value, rel=2e-6, abs=1e-8)
    assert result.objective - result.gap_abs <= value + 1e-8 * (1 + abs(value))
    for i, d in enumerate(lengths):
        assert (result.w[i, d:] == 0).all()
    few = solve(problem, PrimalDual(), tol=None, max_iter=200)
    assert few.objective - few.gap_abs <= result.objective <= few.objective + result.gap_abs


KINKS = [
    (HuberLoss(delta=0.5), L2Norm()),
    (Quantile(q=0.3, l2=0.02), L2Norm()),
    (Squared(), Lp(3)),
    (Absolute(l2=0.05), Lp(1.5)),
    (SquaredHinge(l2=0.1), L1Norm()),
    (Hinge(l2=0.1), SquaredL2()),
]


@pytest.mark.parametrize("seed", range(len(KINKS)))
def test_kinks_of_losses_and_other_norms_take_few_steps(seed):
    loss, penalty = KINKS[seed]
    kind = "sign" if isinstance(loss, Hinge | SquaredHinge) else "real"
    graph, maps, lengths, rows = sheaf(seed, kind)
    value = cone_solver(graph, maps, lengths, rows, loss, penalty, 0.3)
    coupling = mapped(graph, edges=maps, d=dict(enumerate(lengths)))
    result = solve(Problem(coupling, LocalData.from_list(rows, pad=True), loss, penalty, lam=0.3))
    assert result.converged and result.certificate == "dual" and result.n_iter < 100
    assert result.objective == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("penalty", [Partial(L2Norm(), [1]), Partial(SquaredL2(), [0])])
@pytest.mark.parametrize("loss", [Squared(), HuberLoss(delta=0.5), Absolute(l2=0.05)])
def test_some_rows_of_maps_beside_a_node_without_data(loss, penalty):
    graph, maps, _, _ = sheaf(3)
    rng, lengths = np.random.default_rng(3), [2, 3, 4, 2, 3, 4]
    maps = {
        (i, j): tuple(np.eye(lengths[k])[rng.permutation(lengths[k])[:2]] for k in (i, j))
        for i, j in maps
    }
    counts = [6, 6, 0, 6, 6, 6]
    rows = [
        (rng.normal(size=(m, d)), rng.normal(size=m)) for m, d in zip(counts, lengths, strict=True)
    ]
    value = cone_solver(graph, maps, lengths, rows, loss, penalty, 0.3)
    coupling = mapped(graph, edges=maps, d=dict(enumerate(lengths)))
    result = solve(Problem(coupling, LocalData.from_list(rows, pad=True), loss, penalty, lam=0.3))
    assert result.converged and result.n_iter < 100
    assert result.objective == pytest.approx(value, rel=2e-6)


def test_a_solve_over_maps_goes_on_from_a_file(tmp_path):
    graph, maps, lengths, rows = sheaf(1)
    coupling = mapped(graph, edges=maps, d=dict(enumerate(lengths)))
    problem = Problem(coupling, LocalData.from_list(rows, pad=True), penalty="l2", lam=0.3)
    file = tmp_path / "solve.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solve(problem, PrimalDual(), tol=1e-9, max_iter=40, checkpoint=file)
        parts = solve(problem, PrimalDual(), tol=1e-9, max_iter=80, resume=file)
        whole = solve(problem, PrimalDual(), tol=1e-9, max_iter=80)
    np.testing.assert_array_equal(parts.w, whole.w)


def test_a_penalty_per_edge_and_maps_together():
    graph, maps, _, _ = sheaf(3)
    rng, lengths = np.random.default_rng(3), [2, 3, 4, 2, 3, 4]
    maps = {
        (i, j): tuple(np.eye(lengths[k])[rng.permutation(lengths[k])[:2]] for k in (i, j))
        for i, j in maps
    }
    rows = [(rng.normal(size=(6, d)), rng.normal(size=6)) for d in lengths]
    kinds = [L1Norm(), SquaredL2(), Quadratic([[2.0, 1.0], [1.0, 0.5]]), Partial(L2Norm(), [1])]
    penalty = ByEdge(kinds, np.arange(graph.n_edges) % 4)
    value = cone_solver(graph, maps, lengths, rows, Squared(), penalty, 0.3)
    data = LocalData.from_list(rows, pad=True)
    coupling = mapped(graph, edges=maps, d=dict(enumerate(lengths)))
    result = solve(Problem(coupling, data, penalty=penalty, lam=0.3), tol=1e-7)
    assert result.converged and result.objective == pytest.approx(value, rel=2e-6)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_trend_filtering_on_a_chain_is_that_of_signals(order):
    n, lam = 40, 2.0
    y = np.abs(np.arange(n) - 15.0) / 5 + np.random.default_rng(order).normal(size=n)
    rows = trend(chain(n), order)
    signal = np.random.default_rng(0).normal(size=(n, 2))
    np.testing.assert_allclose(
        np.abs(rows.diff(signal)), np.abs(np.diff(signal, order, axis=0)), atol=1e-12
    )
    data = LocalData.from_list([([[1.0]], [v]) for v in y])
    result = solve(Problem(rows, data, penalty="l1", lam=lam), tol=1e-8)
    w = cp.Variable(n)
    value = cp.Problem(cp.Minimize(cp.sum_squares(w - y) + lam * cp.norm1(cp.diff(w, order))))
    assert result.objective == pytest.approx(value.solve(solver=cp.CLARABEL), rel=1e-6)
    np.testing.assert_allclose(result.w[:, 0], w.value, atol=1e-3)


def test_quadratic_trends_are_a_linear_system():
    """Whittaker and Hodrick-Prescott: (I + lam/2 K^T K) w = y, with signals of length two."""
    y = np.random.default_rng(1).normal(size=(30, 2))
    rows = trend(grid(5, 6), 2, boundary=True)
    data = LocalData.from_list([(np.eye(2), v) for v in y])
    result = solve(Problem(rows, data, penalty="squared_l2", lam=3.0), tol=1e-10)
    K = rows.operator(1).toarray()
    # The loss of a node is the mean over its two rows, of which each sees one parameter.
    answer = np.linalg.solve(np.eye(30) + 3.0 * K.T @ K, y)
    assert result.converged
    np.testing.assert_allclose(result.w, answer, atol=1e-9)


def test_orders_on_other_graphs():
    star = Graph.from_edges([(0, 1), (0, 2), (0, 3)], [1.0, 2.0, 3.0])
    second = trend(star, 2, boundary=True)
    w = np.array([[1.0], [0.0], [0.0], [5.0]])
    np.testing.assert_allclose(second.diff(w).ravel(), [1 + 2 - 12, -1, -2, 12])
    assert trend(star, 2).n_edges == 1 and trend(star, 1) is star
    assert second.neighbors(1) == [0, 2, 3] and second.degree.tolist() == [4, 2, 2, 2]
    with pytest.raises(ValueError, match="No row of order 3 is left"):
        trend(star, 3)
    with pytest.raises(ValueError, match="graph must be a plain Graph"):
        trend(second, 2)


def test_scale_of_the_estimators_is_a_map_of_the_nodes():
    """phi(S^-1/2 (w_i - w_j)): the same fit by the estimator and by maps."""
    rng = np.random.default_rng(0)
    S = np.diag([0.5, 2.0]) ** 2
    node = np.repeat(np.arange(6), 8)
    X = rng.normal(size=(48, 2))
    y = X @ [1.0, -1.0] + 0.1 * node + 0.3 * rng.normal(size=48)
    model = GTVRegressor(
        chain(6), alpha=0.3, scale=[0.5, 2.0], fit_intercept=False, standardize=False, tol=1e-9
    )
    model.fit(X, y, node_ids=node)
    rows = LocalData.from_long(X, y, node)
    root = np.linalg.inv(np.sqrt(S))
    result = solve(Problem(mapped(chain(6), nodes=root), rows, lam=0.3), tol=1e-9)
    np.testing.assert_allclose(result.w, model.coef_, atol=1e-4)


def test_units_subsets_and_shifts():
    """One node measures in feet, one lags by a step; all of them agree at a large lam."""
    rng = np.random.default_rng(2)
    truth = np.array([1.0, -2.0, 0.5])
    shift = np.eye(3)[[1, 2, 0]]  # the second node's first lag is the others' second
    feet = np.diag([0.3048, 1.0, 1.0])
    models = [truth, shift.T @ truth, truth / np.diag(feet), truth[:2]]
    rows = [(X := rng.normal(size=(20, len(m))), X @ m) for m in models]
    maps = {
        (0, 1): (np.eye(3), shift),
        (0, 2): (np.eye(3), feet),
        (0, 3): (np.eye(3)[:2], np.eye(2)),
    }
    star = Graph.from_edges(list(maps), nodes=range(4))
    problem = Problem(mapped(star, edges=maps), LocalData.from_list(rows, pad=True), lam=10.0)
    result = solve(problem, tol=1e-10)
    assert np.abs(problem.graph.diff(result.w)).max() < 1e-6
    for w, m in zip(result.w, models, strict=True):
        np.testing.assert_allclose(w[: len(m)], m, atol=1e-5)


def test_without_a_minimiser_over_maps_it_is_said():
    """Separable labels: parameters run away together, as far as the maps allow."""
    data = LocalData.from_list([([[1.0]], [1.0]), ([[1.0]], [1.0])])
    coupling = mapped(chain(2), nodes={0: [[1.0]], 1: [[2.0]]})
    assert Problem(coupling, data, loss="logistic", lam=1.0).unbounded().all()
    against = mapped(chain(2), nodes={0: [[1.0]], 1: [[-2.0]]})
    assert not Problem(against, data, loss="logistic", lam=1.0).unbounded().any()


@pytest.mark.parametrize("other", [Squared(), Constrained(Squared(), Box(-1, 1))])
def test_over_maps_only_nodes_that_run_away_are_named(other):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 2))
    data = LocalData.from_list([(X, np.where(X[:, 0] > 0, 1.0, -1.0)), (X, X @ [0.5, 0.5])])
    problem = Problem(
        mapped(chain(2), nodes=np.eye(2)),
        data,
        loss={0: Logistic(), 1: other},
        penalty=Partial(L2Norm(), [1]),
        lam=0.1,
    )
    assert problem.unbounded().tolist() == [True, False]


def test_paths_checkpoints_and_copies(tmp_path):
    import copy
    import pickle

    data = LocalData.from_list([([[1.0]], [float(v)]) for v in (0, 1, 5, 4, 4, 9)])
    first, other = trend(chain(6), 2), trend(chain(6), 3)
    assert pickle.loads(pickle.dumps(first)) == first == copy.deepcopy(first) != other
    assert len({first, other, chain(6)}) == 3 and isinstance(first, MappedGraph)
    problem = Problem(first, data, penalty="l1", lam=1.0)
    assert fingerprint(problem) != fingerprint(Problem(other, data, penalty="l1", lam=1.0))
    found = path(problem, n_lams=5)
    assert all(result.converged for result in found.results)
    file = tmp_path / "half.npz"
    solve(problem, tol=None, max_iter=2, checkpoint=file)
    assert solve(problem, tol=1e-7, resume=file).converged


def test_what_maps_refuse():
    graph, data = chain(3), LocalData.from_list([([[1.0, 2.0]], [1.0])] * 3)
    coupling = mapped(graph, nodes=np.eye(2))
    for solver in ("admm", "spdhg", "fedrelax", "pd_gradient"):
        with pytest.raises(ValueError, match="takes no couplings by linear maps"):
            solve(Problem(coupling, data, penalty="squared_l2", lam=1.0), solver)
    with pytest.raises(ValueError, match="An engine takes no couplings by linear maps"):
        solve(Problem(coupling, data, lam=1.0), engine="in_process", parts=2)
    with pytest.raises(ValueError, match=r"nefele\.theory takes no couplings by linear maps"):
        well_connected(Problem(coupling, data, lam=1.0), [0, 0, 0])
    with pytest.raises(ValueError, match=r"nefele\.robust takes no couplings by linear maps"):
        influence_bound(Problem(coupling, data, lam=1.0), [0])
    with pytest.raises(ValueError, match="A network of parts takes no couplings by linear maps"):
        split(Problem(coupling, data, lam=1.0))
    with pytest.raises(ValueError, match="equally many rows; got 1 and 2 at edge 0"):
        mapped(graph, nodes={0: [[1.0, 0.0]]})
    with pytest.raises(ValueError, match="node 1 must have equally many columns; got 2 and 3"):
        mapped(graph, nodes={1: np.eye(2)}, edges={(0, 1): (np.eye(3), np.eye(3))})
    with pytest.raises(ValueError, match="is no edge of the graph"):
        mapped(graph, edges={(0, 2): (np.eye(2), np.eye(2))})
    with pytest.raises(ValueError, match="must not be zero"):
        mapped(graph, nodes=np.zeros((1, 2)))
    with pytest.raises(ValueError, match="The maps are for 3 parameters; the loss has 2"):
        Problem(mapped(graph, nodes=np.eye(3)), data, lam=1.0)
    with pytest.raises(TypeError, match="no adjacency"):
        _ = coupling.adjacency


@pytest.mark.parametrize("loss", [Absolute(), HuberLoss(delta=0.5), Squared()], ids=str)
@pytest.mark.parametrize("penalty", ["l2", "l1", "linf"])
@pytest.mark.parametrize("lam", [1e4, 1e8])
def test_huge_weights_over_rows_whose_flows_may_cancel(lam, penalty, loss):
    """Second differences on a grid: strong balls are exact, and all nodes equal."""
    rows, rng = trend(grid(5, 6), 2), np.random.default_rng(2)
    counts = rng.choice([0, 2, 6], 30)
    data = LocalData.from_list(
        [(rng.normal(size=(m, 2)), rng.normal(size=m)) if m else None for m in counts]
    )
    assert np.linalg.matrix_rank(rows.operator(1).toarray()) == 29  # constants, and one cycle
    w = cp.Variable(2)
    off = data.X @ w - data.y
    fits = {Squared: cp.square(off), Absolute: cp.abs(off), HuberLoss: cp.huber(off, 0.5) / 2}
    value = cp.Problem(cp.Minimize(data.row_weight @ fits[type(loss)])).solve(solver=cp.CLARABEL)
    result = solve(Problem(rows, data, loss=loss, penalty=penalty, lam=lam), tol=1e-6)
    assert result.converged and result.n_iter < 150
    assert result.objective == pytest.approx(value, rel=2e-6)
    assert result.objective - result.gap_abs <= value * (1 + 1e-7)


@pytest.mark.parametrize("order", [2, 3])
def test_the_least_stretch_of_a_coupling(order):
    K = trend(grid(4, 5), order)
    values = np.linalg.svd(K.operator(1).toarray(), compute_uv=False)
    assert K.stretch == pytest.approx(values[values > 1e-9].min(), rel=1e-6)
    assert trend(chain(700), 2).stretch == 0.0  # not asked for
