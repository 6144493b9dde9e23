"""Networks coupled by their parameters: against a loop over modules, and against the core."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

from nefele import DataWarning, Graph, LocalData, Problem, solve
from nefele.losses import Multinomial
from nefele.networks import GTVNetClassifier, GTVNetRegressor
from nefele.penalties import as_penalty
from tests.agnostic.data import GRAPH, TOWNS, rows
from tests.agnostic.nets import EXACT, line, small, two_clusters


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks(
    [
        GTVNetRegressor(lr=0.1, rounds=10, prox_steps=3, **EXACT),
        GTVNetClassifier(lr=0.1, rounds=10, prox_steps=2, **EXACT),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- against slower or surer ways -------------------------------------------------------------


def naive(module, data, graph, penalty, alpha, rounds, steps, lr):
    """Algorithm 1 with a loop over modules, Adam with the numbers of the batched one."""
    penalty, scale = as_penalty(penalty), alpha * graph.weight
    nets = [copy.deepcopy(module) for _ in range(graph.n_nodes)]
    adams = [torch.optim.Adam(n.parameters(), lr, (0.5, 0.999), amsgrad=True) for n in nets]
    to_vector = nn.utils.parameters_to_vector
    u = np.zeros((graph.n_edges, sum(p.numel() for p in module.parameters())))
    losses = np.zeros(graph.n_nodes)
    for k in range(rounds):
        w = np.array([to_vector(net.parameters()).detach().numpy() for net in nets])
        push = graph.div(u)
        for i, (net, adam) in enumerate(zip(nets, adams, strict=True)):
            own = slice(data.ptr[i], data.ptr[i + 1])
            X, y = torch.tensor(data.X[own]), torch.tensor(data.y[own])
            centre, force = torch.tensor(w[i]), torch.tensor(push[i])
            adam.param_groups[0]["lr"] = lr * min(1.0, 2 * (1 - k / rounds))
            for _ in range(steps):
                adam.zero_grad()
                at = to_vector(net.parameters())
                loss = ((net(X)[:, 0] - y) ** 2).mean()
                pull = graph.degree[i] / 2 * ((at - centre) ** 2).sum() + force @ at
                (loss + pull).backward()
                adam.step()
            with torch.no_grad():
                losses[i] = ((net(X)[:, 0] - y) ** 2).mean()
        after = np.array([to_vector(net.parameters()).detach().numpy() for net in nets])
        v = u + 0.5 * graph.diff(2 * after - w)
        u = penalty.prox_conjugate(v, scale, np.full(graph.n_edges, 0.5))
    return losses.sum(), after


@pytest.mark.parametrize(("alpha", "penalty"), [(0.0, "l2"), (0.2, "l2"), (0.2, "squared_l2")])
def test_all_networks_at_once_are_a_loop_over_modules(alpha, penalty):
    X, y = rows()
    X = X.iloc[7:]  # unlike numbers of rows: padding
    y = y[7:]
    torch.manual_seed(0)
    net = small(2).double()
    graph = Graph(TOWNS[:5], [0, 1, 2, 3], [1, 2, 3, 4], [1.0, 0.5, 2.0, 1.5])
    model = GTVNetRegressor(
        net,
        graph=graph,
        node="town",
        alpha=alpha,
        penalty=penalty,
        method="algorithm1",
        gamma=1.0,
        rounds=10,
        dtype="float64",
    ).fit(X, y)
    data = LocalData.from_long(X[["a", "b"]].to_numpy(), y, X["town"], graph.ids)
    looped = graph if alpha else Graph(TOWNS[:5], [], [])
    loss, w = naive(net, data, looped, penalty, alpha, 10, 5, 0.01)
    assert model.history_[-1].loss == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(model.parameters_, w, atol=1e-5)
    coupling = alpha * graph.weight @ as_penalty(penalty).value(graph.diff(w))
    assert model.objective_ == pytest.approx(loss + coupling, rel=1e-5)


@pytest.mark.parametrize(
    ("penalty", "optimizer"),
    [("l2", "adam"), ("l1", "adam"), ("squared_l2", "adam"), ("l2", "sgd")],
)
def test_without_hidden_layers_it_is_the_problem_of_the_core(penalty, optimizer):
    """Objective to 1e-6, parameters to 1e-3; Kemi has no rows, and the rows have weights."""
    X, y = rows()
    weight = np.random.default_rng(5).uniform(0.5, 2.0, len(y))
    model = GTVNetRegressor(
        line,
        graph=GRAPH,
        node="town",
        alpha=0.5,
        penalty=penalty,
        optimizer=optimizer,
        lr=0.05,
        rounds=300,
        prox_steps=3,
        **EXACT,
    ).fit(X, y, sample_weight=weight)
    design = np.column_stack([X[["a", "b"]], np.ones(len(X))])
    data = LocalData.from_long(design, y, X["town"], GRAPH.ids, sample_weight=weight)
    best = solve(Problem(GRAPH, data, penalty=penalty, lam=0.5), tol=1e-12)
    assert model.objective_ == pytest.approx(best.objective, rel=1e-6)
    np.testing.assert_allclose(model.parameters_, best.w, atol=1e-3)


def test_a_linear_classifier_is_the_problem_of_the_core():
    X, y = rows(classes=3)
    model = GTVNetClassifier(
        lambda d, k: nn.Linear(d, k, bias=False),
        graph=GRAPH,
        node="town",
        alpha=0.1,
        lr=0.1,
        penalty="squared_l2",
        rounds=120,
        **EXACT,
    ).fit(X, y)
    codes = np.unique(y, return_inverse=True)[1].astype(float)
    data = LocalData.from_long(X[["a", "b"]].to_numpy(), codes, X["town"], GRAPH.ids)
    problem = Problem(GRAPH, data, loss=Multinomial(3), penalty="squared_l2", lam=0.1)
    best = solve(problem, tol=1e-10)
    assert model.objective_ == pytest.approx(best.objective, rel=1e-5)


def test_coupled_networks_beat_local_ones():
    better = 0
    for seed in range(3):
        graph, (X, y, node), (X_test, y_test, node_test) = two_clusters(seed, classes=False)
        off = []
        for alpha in (0.0, 0.05):
            model = GTVNetRegressor(
                small, graph=graph, alpha=alpha, lr=0.03, rounds=60, random_state=0
            ).fit(X, y, node_ids=node)
            found = model.predict(X_test, node_ids=node_test)
            off.append(np.mean((found - y_test) ** 2))
        better += off[1] < 0.9 * off[0]
    assert better == 3


def test_history_ledger_and_status():
    X, y = rows()
    model = GTVNetRegressor(
        small,
        graph=GRAPH,
        node="town",
        alpha=0.2,
        penalty="l2",
        rounds=30,
        lr=0.03,
        random_state=0,
    ).fit(X, y)
    P = 2 * 8 + 8 + 8 + 1
    assert model.status_ == "uncertified" and len(model.history_) == model.rounds_ == 30
    assert model.history_[-1].objective < 0.5 * model.history_[0].objective
    assert model.parameters_.shape == (6, P)
    assert model.ledger_.by_content["parameters"].floats == 2 * GRAPH.n_edges * 30 * P
    assert set(model.ledger_.by_content) == {"parameters"}
    seconds = [record.seconds for record in model.history_]
    assert seconds == sorted(seconds)
    alone = clone(model).set_params(alpha=0.0, graph=Graph(TOWNS[:5], [], [])).fit(X, y)
    assert alone.ledger_.messages == 0 and alone.history_[-1].spread > model.history_[-1].spread


def test_strong_coupling_is_one_network():
    X, y = rows()
    model = GTVNetRegressor(
        small, graph=GRAPH, node="town", alpha=100.0, rounds=200, lr=0.03, random_state=0
    ).fit(X, y)
    assert model.history_[-1].spread < 1e-2 * np.linalg.norm(model.parameters_[0])


def test_networks_go_by_node_id():
    X, y = rows()
    model = GTVNetClassifier(small, graph=GRAPH, node="town", rounds=10, random_state=0)
    model.fit(X, y > 0)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    for town in TOWNS[:5]:
        own = (X["town"] == town).to_numpy()
        net = model.network(town)
        with torch.no_grad():
            z = net(torch.tensor(X.loc[own, ["a", "b"]].to_numpy(), dtype=torch.float32))
        np.testing.assert_allclose(p[own], torch.softmax(z, 1).numpy(), atol=1e-6)
    with pytest.raises(ValueError, match="were not seen in fit: 'Espoo'"):
        model.predict(X.assign(town="Espoo"))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), p)


def test_networks_are_decided_by_their_seed():
    X, y = rows()

    def net(d):
        return nn.Sequential(nn.Linear(d, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))

    model = GTVNetRegressor(net, graph=GRAPH, node="town", rounds=5, batch_size=4, random_state=0)
    state = torch.get_rng_state()
    one, two = (clone(model).fit(X, y).parameters_ for _ in range(2))
    assert torch.equal(state, torch.get_rng_state())
    np.testing.assert_array_equal(one, two)
    other = clone(model).set_params(random_state=1).fit(X, y).parameters_
    assert np.abs(one - other).max() > 1e-3


def test_batches_of_rows_train_as_well():
    X, y = rows(n=200)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ends = [
        GTVNetRegressor(
            line, graph=GRAPH, node="town", alpha=0.5, lr=0.05, batch_size=size, random_state=0
        )
        .fit(X, y, sample_weight=weight)
        .objective_
        for size in (None, 8)
    ]
    assert ends[1] == pytest.approx(ends[0], rel=0.05)


def test_nodes_that_no_data_reach_keep_their_start():
    X, y = rows()
    far = Graph.from_edges([*zip(TOWNS[:-2], TOWNS[1:-1], strict=True), ("Kemi", "Inari")])
    with pytest.warns(DataWarning, match="2 nodes are not connected to any data"):
        model = GTVNetRegressor(small, graph=far, node="town", rounds=3, random_state=0).fit(X, y)
    start = nn.utils.parameters_to_vector(model.module_.parameters()).detach().numpy()
    np.testing.assert_array_equal(model.parameters_[far.position("Inari")], start)
    assert np.abs(model.parameters_[far.position("Oulu")] - start).max() > 1e-3


def test_what_cannot_be_stacked_is_refused():
    X, y = rows()

    with pytest.raises(ValueError, match="must have parameters to train"):
        GTVNetRegressor(nn.AvgPool1d, graph=GRAPH, node="town", rounds=1).fit(X, y)
    for options, message in (
        ({"rounds": 0}, "rounds must be an integer >= 1"),
        ({"alpha": -1.0}, "alpha must be finite and >= 0"),
        ({"penalty": "l3"}, 'No penalty "l3"'),
        ({"gamma": 0.0}, "gamma must be finite and > 0"),
        ({"optimizer": "lbfgs"}, 'No optimizer "lbfgs"'),
        ({"lr": 1e30, "optimizer": "sgd"}, "Training diverged: parameters are NaN or inf"),
    ):
        with pytest.raises(ValueError, match=message):
            GTVNetRegressor(graph=GRAPH, node="town", **options).fit(X, y)


def test_frozen_layers_stay_and_are_not_sent():
    X, y = rows()
    net = small(2)
    net[0].requires_grad_(False)
    model = GTVNetRegressor(net, graph=GRAPH, node="town", rounds=3, random_state=0).fit(X, y)
    assert model.parameters_.shape == (6, 9)
    found = model.network("Oulu")
    assert torch.equal(found[0].weight, net[0].weight)
    assert not torch.equal(found[2].weight, net[2].weight)
