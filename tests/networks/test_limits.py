"""Without coupling networks are trained alone; with the strongest one there is one for all.

Both against plain loops over modules of torch that are given the same batches.
"""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from nefele import Graph
from nefele.graphs import chain
from nefele.networks import GTVNetClassifier, GTVNetRegressor
from nefele.networks.features import ArrayFeatures
from nefele.networks.implicit import Implicit
from nefele.networks.rounds import BETAS
from nefele.networks.rows import Source
from tests.networks.images import CONVOLUTION, IDS, PATH, images

OPTIONS = {"rounds": 12, "prox_steps": 3, "batch_size": 4, "lr": 0.02, "random_state": 7}
COMPLETE = Graph.from_edges([("a", "b"), ("a", "c"), ("b", "c")])


def mlp():
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.Tanh(), nn.Linear(8, 3))


def convolution():
    torch.manual_seed(1)
    return CONVOLUTION()


def optimiser(name, net, lr):
    if name == "sgd":
        return torch.optim.SGD(net.parameters(), lr)
    return torch.optim.Adam(net.parameters(), lr, betas=BETAS, amsgrad=True)


def batches(seed, node, count, size, steps):
    """Rows of one node: every row once before any comes again."""
    rows = np.concatenate(
        [np.random.default_rng([seed, node, e]).permutation(count) for e in range(steps)]
    )
    return [rows[t * size : (t + 1) * size] for t in range(steps)]


def by_hand(net, X, y, optimizer, together):
    """Parameters of the nodes a, b, c, trained alone or as one network by plain loops."""
    seed = int(np.random.RandomState(OPTIONS["random_state"]).randint(2**31 - 1))
    steps, size = OPTIONS["rounds"] * OPTIONS["prox_steps"], OPTIONS["batch_size"]
    nets = [net] * 3 if together else [copy.deepcopy(net) for _ in range(3)]
    found = [optimiser(optimizer, one, OPTIONS["lr"]) for one in nets[: 1 if together else 3]]
    drawn = [batches(seed, i, (np.array(IDS) == n).sum(), size, steps) for i, n in enumerate("abc")]
    for t in range(steps):
        k = t // OPTIONS["prox_steps"]
        for one in found:
            one.param_groups[0]["lr"] = OPTIONS["lr"] * min(1, 2 * (1 - k / OPTIONS["rounds"]))
            one.zero_grad()
        for i, node in enumerate("abc"):
            at = np.flatnonzero(np.array(IDS) == node)[drawn[i][t]]
            z = nets[i](torch.tensor(X[at]))
            loss = nn.functional.cross_entropy(z, torch.tensor(y[at]))
            (loss / 3 if together else loss).backward()
        for one in found:
            one.step()
    flat = [nn.utils.parameters_to_vector(one.parameters()).detach().numpy() for one in nets]
    return np.array(flat)


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("make", [mlp, convolution])
@pytest.mark.parametrize("penalty", ["l2", "squared_l2"])
def test_alpha_zero_is_local_training(make, optimizer, penalty):
    X, y = images()
    model = GTVNetClassifier(
        make(), graph=PATH, alpha=0.0, penalty=penalty, optimizer=optimizer, **OPTIONS
    ).fit(X, y, node_ids=IDS)
    expected = by_hand(make(), X, y, optimizer, together=False)
    np.testing.assert_allclose(model.parameters_, expected, atol=1e-5)
    assert np.abs(expected[0] - expected[1]).max() > 0.01


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
@pytest.mark.parametrize("make", [mlp, convolution])
@pytest.mark.parametrize(("graph", "hub"), [(PATH, 0.0), (COMPLETE, 0.0), (PATH, 0.3), (None, 1.0)])
def test_huge_alpha_is_one_network_for_all(make, optimizer, graph, hub):
    X, y = images()
    model = GTVNetClassifier(
        make(),
        graph=graph,
        hub=hub,
        alpha=1e9,
        penalty="squared_l2",
        optimizer=optimizer,
        **OPTIONS,
    ).fit(X, y, node_ids=IDS)
    expected = by_hand(make(), X, y, optimizer, together=True)
    np.testing.assert_allclose(model.parameters_, expected, atol=1e-5)
    if hub:
        np.testing.assert_allclose(model.centre_, expected[0], atol=1e-5)


def test_a_star_without_data_at_its_centre_is_a_complete_graph():
    """Squared differences to a free centre are those of all pairs, over the number of nodes."""
    X, y = images()
    found = [
        GTVNetClassifier(
            mlp(), graph=graph, hub=hub, alpha=alpha, penalty="squared_l2", **OPTIONS
        ).fit(X, y, node_ids=IDS)
        for graph, hub, alpha in ((None, 1.0, 0.6), (COMPLETE, 0.0, 0.2))
    ]
    np.testing.assert_allclose(found[0].parameters_, found[1].parameters_, atol=1e-6)
    middle = found[0].parameters_.mean(axis=0)
    np.testing.assert_allclose(found[0].centre_, middle, atol=1e-6)
    assert found[0].objective_ == pytest.approx(found[1].objective_, rel=1e-5)


@pytest.mark.parametrize("alpha", [0.01, 1e3])
def test_steps_stay_stable_and_the_spread_falls_with_alpha(alpha):
    X, y = images()
    model = GTVNetClassifier(
        mlp(), graph=PATH, alpha=alpha, penalty="squared_l2", **(OPTIONS | {"rounds": 40})
    ).fit(X, y, node_ids=IDS)
    assert model.history_[-1].loss < 0.6 * 3 * np.log(3)
    weaker = GTVNetClassifier(
        mlp(), graph=PATH, alpha=alpha / 10, penalty="squared_l2", **(OPTIONS | {"rounds": 40})
    ).fit(X, y, node_ids=IDS)
    assert model.history_[-1].spread < weaker.history_[-1].spread


def test_many_nodes_with_few_edges_are_kept_sparse():
    """The same steps as with full matrices: nodes far apart hardly feel each other."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(40), 3)
    X = rng.standard_normal((120, 2))
    model = GTVNetRegressor(
        graph=chain(40), alpha=0.001, rounds=3, prox_steps=2, random_state=0
    ).fit(X, X[:, 0], node_ids=ids)
    task = model._task(model._stack(), _source(X, ids), model.graph_)
    rounds = Implicit(task)
    assert rounds.smooth.is_sparse_csr and rounds.pull.is_sparse_csr
    full = [matrix.to_dense().double().numpy() for matrix in (rounds.smooth, rounds.pull)]
    K = 0.001 * (np.diag(chain(40).weighted_degree) - chain(40).adjacency.toarray())
    np.testing.assert_allclose(full[1], K, atol=1e-7)
    assert rounds.once
    np.testing.assert_allclose(
        full[0] + np.eye(40), np.linalg.inv(np.eye(40) + 10.0 * K), atol=1e-6
    )


@pytest.mark.parametrize(("alpha", "once"), [(0.1, True), (50.0, False)])
@pytest.mark.parametrize("couple", ["all", "head", ["0.bias", "2.bias"]])
def test_a_step_goes_along_the_smoothed_gradient(alpha, once, couple):
    """S (g + K w) of the coupled columns, by one product or two, and g of the others."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(12), 3)
    X = rng.standard_normal((36, 2))
    graph = chain(12)
    model = GTVNetRegressor(
        graph=graph, alpha=alpha, couple=couple, rounds=1, optimizer="sgd", lr=1.0, random_state=0
    ).fit(X, X[:, 0], node_ids=ids)
    rounds = Implicit(model._task(model._stack(), _source(X, ids), model.graph_))
    assert rounds.once == once
    rounds.w.copy_(torch.tensor(rng.standard_normal(rounds.w.shape)))
    g = torch.tensor(rng.standard_normal(rounds.w.shape), dtype=torch.float32)
    w, before = rounds.w.double().numpy().copy(), g.double().numpy().copy()
    rounds.move(g)
    K = alpha * (np.diag(graph.weighted_degree) - graph.adjacency.toarray())
    S = np.linalg.inv(np.eye(12) + 10.0 * K)
    on = rounds.task.columns.on
    expected = np.where(on, S @ (before + K @ w), before)
    np.testing.assert_allclose(w - rounds.w.double().numpy(), expected, atol=2e-5 * (1 + alpha))


def _source(X, ids):
    ptr = np.concatenate([[0], np.cumsum(np.bincount(ids))])
    features = ArrayFeatures(X, torch.float32)
    return Source(features, np.arange(len(X)), ptr, X[:, 0], np.ones(len(X)), "float32")
