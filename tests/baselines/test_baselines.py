"""FedAvg and its kin against closed forms and the core."""

import numpy as np
import pytest

from nefele import Graph, LocalData, Problem, graphs, solve
from nefele.baselines import (
    compare,
    fedavg,
    fedgd,
    fedprox,
    fedsgd,
    gtv,
    ifca,
    local,
    oracle,
    pooled,
)
from nefele.estimators import GTVRegressor
from nefele.losses import Logistic, Squared


def clustered(seed=0, n=8, m=12, d=3, empty=()):
    rng = np.random.default_rng(seed)
    centres = np.array([np.full(d, 2.0), np.full(d, -2.0)])
    rows, labels = [], np.repeat([0, 1], n // 2)
    for i in range(n):
        X = rng.normal(size=(m, d))
        y = X @ centres[labels[i]] + 0.1 * rng.normal(size=m)
        rows.append(None if i in empty else (X, y))
    return LocalData.from_list(rows), labels


def distance(a, b):
    return float(np.abs(a - b).max())


def closed_pooled(data):
    """argmin of the sum of the mean losses, by the normal equations."""
    Q, q = 0.0, 0.0
    for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True):
        if b > a:
            Q = Q + data.X[a:b].T @ data.X[a:b] / (b - a)
            q = q + data.X[a:b].T @ data.y[a:b] / (b - a)
    return np.linalg.solve(Q, q)


def test_local_is_least_squares_and_sends_nothing():
    data, _ = clustered(empty=(2,))
    fit = local(data)
    for i in (0, 7):
        rows = slice(data.ptr[i], data.ptr[i + 1])
        expected = np.linalg.lstsq(data.X[rows], data.y[rows], rcond=None)[0]
        np.testing.assert_allclose(fit.w[i], expected, rtol=1e-9)
    assert fit.w[2].tolist() == [0, 0, 0] and fit.ledger.bytes == 0


@pytest.mark.parametrize("empty", [(), (1, 5)])
def test_pooled_counts_every_node_once(empty):
    rng = np.random.default_rng(1)
    rows = [(rng.normal(size=(m, 2)), rng.normal(size=m)) for m in (3, 30, 7, 12, 5, 9)]
    data = LocalData.from_list([None if i in empty else r for i, r in enumerate(rows)])
    fit = pooled(data)
    np.testing.assert_allclose(fit.w, np.tile(closed_pooled(data), (6, 1)), rtol=1e-8)


def test_oracle_pools_inside_the_groups():
    data, labels = clustered(empty=(3,))
    fit = oracle(data, labels)
    for c in (0, 1):
        inside = data.subset(np.flatnonzero(labels == c))
        np.testing.assert_allclose(fit.w[labels == c], np.tile(closed_pooled(inside), (4, 1)))
    with pytest.raises(ValueError, match=r"shape \(8,\); got \(3,\)"):
        oracle(data, [0, 1, 1])


@pytest.mark.parametrize("loss", ["squared", Logistic(l2=0.05)], ids=repr)
def test_fedavg_with_one_step_converges_to_the_pooled_model(loss):
    data, _ = clustered(empty=(4,))
    if loss != "squared":
        data = LocalData(data.X, np.where(data.y > 0, 1.0, -1.0), data.ptr)
    fit = fedavg(data, loss, rounds=5000)
    assert fit.converged
    assert distance(fit.w, pooled(data, loss).w) < 1e-6
    assert fit.ledger.bytes == fit.rounds * 2 * 7 * 3 * 8


def test_more_local_steps_drift_away():
    rng = np.random.default_rng(2)
    rows = [(rng.normal(size=(6, 3)) * s, rng.normal(size=6)) for s in (0.3, 1.0, 3.0, 1.0)]
    data = LocalData.from_list(rows)
    goal = pooled(data).w
    off = [distance(fedavg(data, steps=s, rounds=20_000).w, goal) for s in (1, 2, 20)]
    assert off[0] < 1e-6 < off[1] < off[2]
    mean = local(data).w.mean(axis=0)
    np.testing.assert_allclose(fedavg(data, steps="exact").w[0], mean, rtol=1e-8)


def test_a_fraction_of_the_clients_is_random_but_seeded():
    data, _ = clustered()
    fits = [fedavg(data, client_fraction=0.5, rounds=50, seed=s) for s in (0, 0, 1)]
    assert (fits[0].w == fits[1].w).all() and (fits[0].w != fits[2].w).any()
    assert fits[0].ledger.messages == 50 * 2 * 4
    with pytest.raises(ValueError, match=r"client_fraction must be in \(0, 1\]"):
        fedavg(data, client_fraction=0.0)


@pytest.mark.parametrize("rho", [0.5, 5.0])
def test_fedprox_reaches_the_centre_of_the_star(rho):
    data, _ = clustered(n=4)
    fit = fedprox(data, rho=rho, rounds=20_000)
    star = graphs.star(5)
    centre = int(np.argmax(star.degree))
    blocks = [(data.X[a:b], data.y[a:b]) for a, b in zip(data.ptr[:-1], data.ptr[1:], strict=True)]
    rows = [*blocks[:centre], None, *blocks[centre:]]
    problem = Problem(star, LocalData.from_list(rows), penalty="squared_l2", lam=2 * rho)
    exact = solve(problem, tol=1e-12).w[centre]
    np.testing.assert_allclose(fit.w[0], exact, atol=1e-6)
    assert distance(fit.w, pooled(data).w) > 1e-3


def test_fedprox_nears_the_pooled_model_as_rho_grows():
    data, _ = clustered(n=4)
    goal = pooled(data).w
    off = [distance(fedprox(data, rho=r, rounds=50_000).w, goal) for r in (1.0, 10.0, 100.0)]
    assert off[0] > 5 * off[1] > 25 * off[2]


@pytest.mark.parametrize("lam", [0.1, 2.0])
def test_fedgd_minimises_gtv_with_the_squared_penalty(lam):
    data, _ = clustered(empty=(3,))
    graph = graphs.chain(8)
    fit = fedgd(data, graph, lam=lam, rounds=20_000)
    exact = solve(Problem(graph, data, penalty="squared_l2", lam=lam), tol=1e-12)
    assert fit.converged and distance(fit.w, exact.w) < 1e-6


def test_projected_fedgd_is_fedavg_with_one_step():
    data, _ = clustered()
    once = fedgd(data, graphs.chain(8), project=True, rounds=40, tol=0.0)
    again = fedavg(data, rounds=40, tol=0.0)
    np.testing.assert_allclose(once.w, again.w, rtol=1e-12)
    assert once.ledger.bytes == again.ledger.bytes


def test_noise_and_batches_end_near_the_solution():
    data, _ = clustered()
    graph = graphs.chain(8)
    exact = solve(Problem(graph, data, penalty="squared_l2", lam=0.5), tol=1e-12).w
    noisy = fedgd(data, graph, lam=0.5, noise=0.1, rounds=3000)
    some = fedsgd(data, graph, lam=0.5, batch=4, rounds=3000)
    assert 0 < distance(noisy.w, exact) < 0.2 and 0 < distance(some.w, exact) < 0.3
    assert (fedsgd(data, graph, lam=0.5, batch=4, rounds=50).w != noisy.w).any()


def test_sequential_batches_with_a_constant_step_are_the_exercise_written_as_a_loop():
    rng = np.random.default_rng(1)
    rows = [(rng.normal(size=(m, 2)), rng.normal(size=m)) for m in (5, 4, 2)]
    data, graph = LocalData.from_list(rows), graphs.chain(3)
    start, lr, lam, batch = np.array([1.0, -2.0]), 0.01, 0.3, 2
    fit = fedsgd(
        data,
        graph,
        lam=lam,
        batch=batch,
        lr=lr,
        decay=False,
        order="sequential",
        start=start,
        rounds=7,
    )
    w = np.array([start] * 3)
    for k in range(7):
        slope = np.zeros_like(w)
        for i, (X, y) in enumerate(rows):
            batches = [slice(a, a + batch) for a in range(0, len(y), batch)]
            part = batches[k % len(batches)]
            slope[i] = 2 * X[part].T @ (X[part] @ w[i] - y[part]) / len(y[part])
        for i, j in ((0, 1), (1, 2)):
            slope[i] += lam * (w[i] - w[j])
            slope[j] += lam * (w[j] - w[i])
        w = w - lr * slope
    np.testing.assert_allclose(fit.w, w, rtol=1e-12)


def test_gradient_descent_from_a_start_has_that_start_and_a_falling_step_if_asked():
    data, _ = clustered()
    graph = graphs.chain(8)
    exact = solve(Problem(graph, data, penalty="squared_l2", lam=0.5), tol=1e-12).w
    there = fedgd(data, graph, lam=0.5, start=exact, rounds=1)
    assert distance(there.w, exact) < 1e-6
    falling = fedgd(data, graph, lam=0.5, decay=True, rounds=20).w
    assert (falling != fedgd(data, graph, lam=0.5, rounds=20).w).any()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"start": [1.0]}, "start must be finite"),
        ({"start": [[np.nan] * 3] * 8}, "start must be finite"),
        ({"order": "sorted"}, "order"),
        ({"decay": "no"}, "decay"),
    ],
)
def test_wrong_options_of_gradient_descent(options, words):
    data, _ = clustered()
    with pytest.raises(ValueError, match=words):
        fedgd(data, graphs.chain(8), batch=2, **options)


@pytest.mark.parametrize("exact", [False, True])
def test_ifca_recovers_planted_clusters_from_a_good_start(exact):
    data, labels = clustered(empty=(2,))
    fit = ifca(data, k=2, init=[[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0]], exact=exact, rounds=5000)
    assert fit.clusters.tolist() == [0, 0, -1, 0, 1, 1, 1, 1]
    known = fit.clusters >= 0
    assert distance(fit.w[known], oracle(data, labels).w[known]) < 1e-6
    assert (ifca(data, k=2).clusters[known] != fit.clusters[known]).sum() in (0, 7)


def test_ifca_from_a_poor_start_stays_there():
    data, _ = clustered()
    fit = ifca(data, k=2, init=[[0.0, 0.0, 0.0], [99.0, 99.0, 99.0]], rounds=200)
    assert set(fit.clusters.tolist()) == {0}


def test_gtv_counts_messages_and_agrees_with_solve():
    data, labels = clustered(empty=(1,))
    graph = graphs.chain(8)
    fit = gtv(data, graph, lam=0.5, tol=1e-8)
    exact = solve(Problem(graph, data, lam=0.5), tol=1e-10)
    assert fit.converged and distance(fit.w, exact.w) < 1e-3
    assert fit.ledger.bytes == fit.rounds * 2 * graph.n_edges * 3 * 8
    assert len(set(fit.clusters[labels == 0])) == 1


def test_compare_ranks_the_methods_of_a_clustered_problem():
    rng = np.random.default_rng(3)
    data, labels = clustered(n=20, m=4, seed=3)
    inside = labels[:, None] == labels[None, :]
    pairs = np.argwhere(np.triu((rng.random((20, 20)) < 0.5) & inside, 1))
    graph = Graph.from_edges([*map(tuple, pairs.tolist()), (0, 19)], nodes=range(20))
    methods = {
        "local": lambda train, graph: local(train),
        "pooled": lambda train, graph: pooled(train),
        "oracle": lambda train, graph: oracle(train, labels),
        "gtv": lambda train, graph: gtv(train, graph, lam=0.2),
        "estimator": GTVRegressor(graph, alpha=0.2, fit_intercept=False, tol=1e-6),
    }
    found = compare(methods, data, graph, n_splits=3)
    error = {row.name: row.error for row in found.rows}
    assert error["oracle"] <= error["gtv"] < min(error["local"], error["pooled"])
    assert error["estimator"] == pytest.approx(error["gtv"], rel=1e-2)
    assert found["pooled"].worst > found["pooled"].error
    assert found["gtv"].bytes > 0 == found["local"].bytes
    lines = str(found).splitlines()
    assert len(lines) == 6 and "worst decile" in lines[0] and lines[4].startswith("gtv")
    again = compare(methods, data, graph, n_splits=3)
    assert all((found.errors[k] == again.errors[k]).all() for k in methods)


@pytest.mark.parametrize("loss", [Logistic(l2=0.1), Squared()], ids=repr)
def test_compare_by_name_runs_everything(loss):
    data, _ = clustered()
    if isinstance(loss, Logistic):
        data = LocalData(data.X, np.where(data.y > 0, 1.0, -1.0), data.ptr)
    names = ["local", "pooled", "gtv", "fedavg", "fedprox", "fedgd", "ifca"]
    found = compare(names, data, graphs.chain(8), loss=loss, n_splits=1)
    assert [row.name for row in found.rows] == names
    assert all(np.isfinite(row.error) for row in found.rows)
    if isinstance(loss, Logistic):
        assert "wrong labels" in str(found) and all(row.error <= 1 for row in found.rows)


def test_errors_say_what_to_do():
    data, _ = clustered()
    with pytest.raises(ValueError, match="data must be a LocalData; got list"):
        fedavg([1])
    with pytest.raises(ValueError, match=r'method.*"fedavg"'):
        compare(["fedavgg"], data, graphs.chain(8))
    with pytest.raises(ValueError, match="graph must be a Graph"):
        fedgd(data, None)
    with pytest.raises(ValueError, match="step is too long"):
        fedavg(data, lr=1e6)
    with pytest.raises(ValueError, match="k must be at most 8"):
        ifca(data, k=9)
    with pytest.raises(ValueError, match="every node is empty"):
        local(LocalData(np.zeros((0, 2)), np.zeros(0), [0, 0]))


def test_counts_are_predicted_as_counts():
    rng = np.random.default_rng(0)
    rows = [(np.ones((60, 1)), rng.poisson(7.0, 60).astype(float)) for _ in "ab"]
    data = LocalData.from_list(rows)
    found = compare(["pooled", "fedavg"], data, graphs.chain(2), loss="poisson", n_splits=2)
    assert 4 < found["pooled"].error < 13  # the variance is 7, the square of the mean is 49
    assert found["fedavg"].error == pytest.approx(found["pooled"].error, rel=1e-3)
    many = LocalData.from_list([(np.ones((3, 1)), [100.0, 90.0, 120.0])])
    assert distance(fedavg(many, "poisson").w, pooled(many, "poisson").w) < 1e-6


def test_a_sample_of_clients_never_converges():
    data = LocalData.from_list([([[1.0]], [float(v)]) for v in range(10)])
    fits = [fedavg(data, client_fraction=0.1, seed=s, rounds=60) for s in range(4)]
    assert all(fit.rounds == 60 and not fit.converged for fit in fits)


def test_the_worst_decile_is_a_tenth_of_the_nodes():
    data, _ = clustered(n=20, m=6, seed=5)
    found = compare(["local"], data, graphs.chain(20), n_splits=1)
    errors = np.sort(found.errors["local"][0])
    assert found["local"].worst == pytest.approx(errors[-2:].mean())


def test_compare_refuses_models_that_make_no_sense():
    data, _ = clustered()
    chain = graphs.chain(8)
    for w in (np.full((8, 3), np.nan), np.zeros((9, 3)), np.zeros((8, 6))):
        with pytest.raises(ValueError, match=r"Method 'odd' must give finite parameters of shape"):
            compare({"odd": lambda train, graph, w=w: w}, data, chain)
    with pytest.raises(ValueError, match="at least one method"):
        compare({}, data, chain)
    with pytest.raises(ValueError, match="No node has a row to hold out"):
        compare(["local"], LocalData.from_list([([[1.0]], [1.0])]), Graph([0], [], []))
    with pytest.raises(KeyError, match="there are local"):
        compare(["local"], data, chain)["gtv"]


def test_compare_keeps_weights_and_judges_by_the_loss():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    data = LocalData(
        X,
        y,
        [0, 20, 40],
        sample_weight=rng.random(40) + 0.1,
        node_weight=[1.0, 3.0],
    )
    seen = []
    methods = {
        "spy": lambda train, graph: seen.append(train.node_weight) or local(train),
        "estimator": GTVRegressor(graphs.chain(2), alpha=0.0, fit_intercept=False),
    }
    found = compare(methods, data, graphs.chain(2), n_splits=2)
    assert seen[0].tolist() == [1.0, 3.0]
    assert found["estimator"].error == pytest.approx(found["spy"].error, rel=1e-6)
    assert str(found).splitlines()[2].split()[-3:-1] == ["-", "-"]  # keeps no books
    ones = LocalData.from_list([(np.ones((4, 1)), [1.0] * 4), (np.ones((1, 1)), [2.0])])
    always = {"third": lambda train, graph: np.tile([0.0, 0.0, 5.0], (2, 1))}
    judged = compare(always, ones, graphs.chain(2), loss="multinomial", n_splits=1)
    assert judged["third"].error == 1.0
