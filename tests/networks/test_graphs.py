"""Graphs learnt by networks find planted groups, and serve wherever a graph does."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from sklearn.base import clone  # noqa: E402

from nefele.graph_learning import LabelGraph  # noqa: E402
from nefele.graph_learning.builders import TrainingRows  # noqa: E402
from nefele.graph_learning.references import CliqueGraph  # noqa: E402
from nefele.networks import (  # noqa: E402
    GainGraph,
    GradientGraph,
    GTVNetClassifier,
    GTVNetClassifierCV,
    PredictionGraph,
)
from nefele.networks.baselines import Local, PersonalClassifier, PersonalRegressor  # noqa: E402

KINDS = np.arange(6) % 2
BUILDERS = [GradientGraph(k=2), PredictionGraph(k=2), GainGraph(k=2)]
QUICK = {"rounds": 20, "random_state": 0}


def names(builder):
    return type(builder).__name__


def planted(classes=False, n_rows=40, seed=0):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(6), n_rows)
    X = rng.standard_normal((len(ids), 3))
    score = np.where(KINDS[ids] == 0, 1.0, -1.0) * X[:, 0]
    y = score + (0.5 if classes else 0.7) * rng.standard_normal(len(ids))
    targets = np.eye(2)[(y > 0).astype(int)] if classes else y[:, None]
    return TrainingRows(X, targets, ids, np.ones(len(ids)))


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("builder", BUILDERS, ids=names)
def test_planted_groups_are_found(builder, classes):
    network = (PersonalClassifier if classes else PersonalRegressor)(method=Local(), **QUICK)
    builder = clone(builder).set_params(network=network)
    graph = builder.fit_graph(planted(classes))
    same = KINDS[graph.ids[graph.head]] == KINDS[graph.ids[graph.tail]]
    assert graph.n_edges >= 4 and same.mean() > 0.8
    again = clone(builder).fit_graph(planted(classes))
    np.testing.assert_array_equal(graph.head, again.head)


def test_gradients_are_those_of_the_common_start():
    rows = planted()
    network = PersonalRegressor(
        lambda d: torch.nn.Linear(d, 1, bias=False), method=Local(), dtype="float64", random_state=3
    )
    ids, found = GradientGraph(network=network).discrepancy(rows)
    torch.manual_seed(0)
    start = network.fit(rows.X, rows.targets[:, 0], node_ids=rows.node_ids).module_
    w = start.weight.detach().numpy()[0]
    g = np.array(
        [
            2 * rows.X[rows.node_ids == i].T @ (rows.X @ w - rows.targets[:, 0])[rows.node_ids == i]
            for i in ids
        ]
    )
    g /= np.linalg.norm(g, axis=1, keepdims=True)
    np.testing.assert_allclose(found, np.clip(1 - g @ g.T, 0, 2), atol=1e-9)


def test_gains_are_what_the_mean_of_two_networks_gains():
    rows = planted(n_rows=12)
    network = PersonalRegressor(
        lambda d: torch.nn.Linear(d, 1), method=Local(), rounds=20, dtype="float64", random_state=0
    )
    gain = GainGraph(network=network).gains(rows)
    from nefele.selection import WithinNodeKFold

    splitter = WithinNodeKFold(4, shuffle=True, random_state=0)
    train, test = next(splitter.split(rows.X, None, rows.node_ids))
    fit = clone(network).fit(rows.X[train], rows.targets[train, 0], node_ids=rows.node_ids[train])
    w, own = fit.parameters_, test[rows.node_ids[test] == 1]

    def loss(v):
        return np.mean((rows.X[own] @ v[:3] + v[3] - rows.targets[own, 0]) ** 2)

    assert gain[1, 4] == pytest.approx(loss(w[1]) - loss((w[1] + w[4]) / 2), rel=1e-6)
    assert np.allclose(np.diagonal(gain), 0)


def test_a_pair_that_helps_nobody_is_never_joined():
    rng = np.random.default_rng(0)
    ids = np.repeat([0, 1], 40)
    X = rng.standard_normal((80, 2))
    y = X[:, :1] * np.where(ids == 0, 1.0, -1.0)[:, None]
    assert GainGraph(k=1).fit_graph(TrainingRows(X, y, ids, np.ones(80))).n_edges == 0


@pytest.mark.parametrize("builder", [*BUILDERS, LabelGraph(k=2), CliqueGraph()], ids=names)
def test_every_graph_serves_as_graph_and_as_a_candidate(builder):
    rows = planted(classes=True, n_rows=12)
    y = rows.targets.argmax(axis=1)
    model = GTVNetClassifier(graph=builder, alpha=0.1, rounds=3, prox_steps=2, random_state=0)
    assert model.fit(rows.X, y, node_ids=rows.node_ids).graph_.n_edges > 0
    chosen = GTVNetClassifierCV(graph={"one": builder}, rounds=4, local_steps=3, cv=1)
    chosen.fit(rows.X, y, node_ids=rows.node_ids)
    assert "one" in chosen.cv_results_["graph"]


def test_shared_rows_are_checked():
    with pytest.raises(ValueError, match="rows of 3 features"):
        PredictionGraph(X_shared=np.zeros((4, 2))).fit_graph(planted())
