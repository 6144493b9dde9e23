"""The choice of graph and strength for networks: what it finds, and that it is honest."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from nefele import Graph  # noqa: E402
from nefele.graph_learning import LabelGraph  # noqa: E402
from nefele.networks import GradientGraph, GTVNetClassifierCV, GTVNetRegressorCV  # noqa: E402
from nefele.networks.baselines import Local, PersonalRegressor  # noqa: E402
from nefele.networks.candidates import Candidate  # noqa: E402
from nefele.networks.coupled import (  # noqa: E402
    Coupling,
    train_common,
    train_coupled,
    unit_of_alpha,
)
from nefele.result import DataWarning  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def line(n_features):
    return nn.Linear(n_features, 1, bias=False)


def groups(n_rows=8, noise=0.5, seed=0, n_nodes=8):
    """Nodes of two kinds with few noisy rows; also rows without noise to test."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n_nodes) % 2
    slope = np.where(kind == 0, 1.0, -1.0)

    def draw(count, noise):
        ids = np.repeat(np.arange(n_nodes), count)
        X = rng.standard_normal((len(ids), 3))
        y = slope[ids] * np.tanh(X[:, 0]) + X[:, 1] + noise * rng.standard_normal(len(ids))
        return X, y, ids

    return draw(n_rows, noise), draw(40, 0.0), kind


def steps_of(X, y, ids, module, **options):
    """Plain steps on these rows at their start, and the nodes."""
    plain = {"local_steps": 5, "lr": 0.1, "batch_size": None, "rounds": 20} | options
    model = PersonalRegressor(module, method=Local(), random_state=0, **plain)
    return model._at_start(X, y, np.ones(len(y)), ids, 1)


def test_coupling_over_a_good_graph_is_found_and_helps():
    (X, y, ids), (X_new, y_new, ids_new), kind = groups(seed=1)
    pairs = [(i, j) for i in range(8) for j in range(i) if kind[i] == kind[j]]
    head, tail = np.array(pairs).T
    graphs = {"wrong": Graph(range(8), [0, 2, 4, 6], [1, 3, 5, 7])}
    graphs["right"] = Graph(range(8), head, tail)
    model = GTVNetRegressorCV(graph=graphs, rounds=30, local_steps=5, lr=0.1, random_state=0)
    model.fit(X, y, node_ids=ids)
    assert model.candidate_.graph == "right" and model.alpha_ > 0
    assert model.verdict_.helps in ("yes", "probably") and model.coupling_helps_
    own = PersonalRegressor(method=Local(), rounds=30, local_steps=5, lr=0.1, random_state=0)
    own.fit(X, y, node_ids=ids)
    error, alone = (
        np.mean((m.predict(X_new, node_ids=ids_new) - y_new) ** 2) for m in (model, own)
    )
    assert error < 0.8 * alone
    assert "graph right" in model.summary() and "Coupling" in model.summary()


def test_nodes_that_contradict_each_other_stay_alone():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(6), 60)
    X = rng.standard_normal((len(ids), 2))
    turn = np.linspace(0, 2 * np.pi, 7)[:-1][ids]
    y = np.cos(turn) * X[:, 0] + np.sin(turn) * X[:, 1]
    model = GTVNetRegressorCV(line, rounds=30, local_steps=5, random_state=0).fit(
        X, y, node_ids=ids
    )
    assert model.alpha_ == 0 and model.graph_.n_edges == 0
    assert not model.coupling_helps_
    assert model.baseline_scores_["own"] > model.baseline_scores_["pooled"]


def test_own_rows_only_equals_local_training():
    (X, y, ids), _, _ = groups()
    model = GTVNetRegressorCV(line, rounds=10, random_state=0).fit(X, y, node_ids=ids)
    model.candidate_ = type(model.candidate_)(0.0)
    model.refit(X, y, node_ids=ids)
    own = PersonalRegressor(line, method=Local(), rounds=10, random_state=0)
    own.fit(X, y, node_ids=ids)
    np.testing.assert_array_equal(model.parameters_, own.parameters_)
    assert model.traffic_ == 0 and model.gradients_ == own.gradients_


def test_a_classifier_chooses_and_says_what_it_sends():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(8), 12)
    y = (rng.integers(0, 2, len(ids)) + 2 * (ids % 2)).astype(int)  # two classes at each node
    X = np.eye(4)[y] + 0.7 * rng.standard_normal((len(ids), 4))
    model = GTVNetClassifierCV(
        rounds=8, local_steps=3, cv=1, random_state=0, graph={"labels": LabelGraph(k=2)}
    )
    model.fit(X, y, node_ids=ids)
    table = model.cv_results_
    assert len(table["coupling"]) == len(table["mean_test_score"])
    assert len(set(table["coupling"])) == len(table["coupling"])
    best = int(np.argmax(table["mean_test_score"]))
    assert table["coupling"][best] == model.coupling_ and table["rank_test_score"][best] == 1
    assert model.predict_proba(X, node_ids=ids).shape == (len(X), 4)
    again = GTVNetClassifierCV(
        rounds=8, local_steps=3, cv=1, random_state=0, graph={"labels": LabelGraph(k=2)}
    )
    np.testing.assert_array_equal(model.parameters_, again.fit(X, y, node_ids=ids).parameters_)
    assert model.refit(X, y, node_ids=ids).coupling_ == again.coupling_
    np.testing.assert_array_equal(model.parameters_, again.parameters_)


def test_the_held_out_rows_are_not_trained_on():
    """Targets of held-out rows change no network of the choice, only what it is worth."""
    (X, y, ids), _, _ = groups(n_rows=12)
    model = GTVNetRegressorCV(line, rounds=10, cv=1, random_state=0)
    model.fit(X, y, node_ids=ids)
    from nefele.selection import WithinNodeKFold

    splitter = WithinNodeKFold(4, shuffle=True, random_state=0)
    _, test = next(splitter.split(X, None, ids))
    other = y.copy()
    other[test] = 0.0
    changed = GTVNetRegressorCV(line, rounds=10, cv=1, random_state=0).fit(X, other, node_ids=ids)
    k = changed.cv_results_["coupling"].index("own rows only")
    train = np.setdiff1d(np.arange(len(y)), test)
    own = PersonalRegressor(line, method=Local(), rounds=6, random_state=0)
    own.fit(X[train], y[train], node_ids=ids[train])
    expected = -np.mean(own.predict(X[test], node_ids=ids[test]) ** 2)
    assert changed.cv_results_["split0_test_score"][k] == pytest.approx(expected, rel=1e-5)


# -- the training ---------------------------------------------------------------------------------


def quadratic(alpha, couple="all", rounds=300, lr=0.05):
    (X, y, ids), _, _ = groups(n_nodes=4)
    graph = Graph(range(4), [0, 1, 2], [1, 2, 3], [1.0, 2.0, 0.5])
    steps, _ = steps_of(
        X, y, ids, line, lr=lr, rounds=rounds, local_steps=2, falling=False, dtype="float64"
    )
    w = train_coupled(steps, steps.start(), Coupling(graph, alpha, couple), rounds)
    return w.numpy(), (X, y, ids), graph, steps


@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.0])
def test_rounds_end_at_the_minimum_of_the_objective(alpha):
    w, (X, y, ids), graph, _ = quadratic(alpha)
    size = 4 * 3
    A, b = np.zeros((size, size)), np.zeros(size)
    for i in range(4):
        rows, at = X[ids == i], slice(3 * i, 3 * i + 3)
        A[at, at] += 2 * rows.T @ rows / len(rows)
        b[at] += 2 * rows.T @ y[ids == i] / len(rows)
    for i, j, weight in zip(graph.head, graph.tail, graph.weight, strict=True):
        for p, q, sign in ((i, i, 1), (j, j, 1), (i, j, -1), (j, i, -1)):
            A[3 * p : 3 * p + 3, 3 * q : 3 * q + 3] += sign * alpha * weight * np.eye(3)
    best = np.linalg.solve(A, b).reshape(4, 3)
    # local steps go on from what neighbours said before the round: the error is of order lr
    np.testing.assert_allclose(w, best, rtol=0.03, atol=0.02)


def test_no_strength_is_too_large_and_a_huge_one_makes_one_network():
    w, *_ = quadratic(1e6, rounds=400)
    assert np.isfinite(w).all()
    np.testing.assert_allclose(w, np.tile(w.mean(axis=0), (4, 1)), atol=1e-4)


def test_common_rounds_are_federated_averaging_with_own_intercepts():
    (X, y, ids), _, _ = groups(n_nodes=4)
    steps, _ = steps_of(X, y + 5.0 * (ids == 3), ids, lambda d: nn.Linear(d, 1), rounds=30)
    w = train_common(steps, steps.start(), 30, intercept=True).numpy()
    np.testing.assert_array_equal(w[:, :3], np.tile(w[0, :3], (4, 1)))
    assert w[3, 3] > w[:3, 3].max() + 2.0
    assert steps.moved == 30 * 2 * 4 * 3


def spread_at(ratio, width, depth, n_rows):
    """How far networks are apart at this strength, relative to none."""
    (X, y, ids), _, _ = groups(n_rows=n_rows, seed=2)

    def net(d):
        layers = [nn.Linear(d, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        return nn.Sequential(*layers, nn.Linear(width, 1))

    graph = Graph(range(8), *np.triu_indices(8, 1))
    found = []
    for strength in (0.0, ratio):
        steps, _ = steps_of(X, y, ids, net)
        coupling = Coupling(graph, strength * unit_of_alpha(steps, graph, steps.rounds))
        w = train_coupled(steps, steps.start(), coupling, steps.rounds)
        found.append(float((w - w.mean(dim=0)).norm()))
    return found[1] / found[0]


@pytest.mark.parametrize(
    ("width", "depth", "n_rows"), [(8, 1, 8), (64, 1, 8), (8, 3, 8), (8, 1, 100)]
)
def test_the_useful_range_of_strengths_is_the_same_for_all_networks(width, depth, n_rows):
    weak, middle, strong = (spread_at(r, width, depth, n_rows) for r in (0.02, 1.0, 50.0))
    assert weak > 0.9
    assert 0.3 < middle < 0.85
    assert strong < 0.25


# -- what may come ---------------------------------------------------------------------------------


def test_images_and_a_network_with_convolutions(tmp_path):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(3), 8)
    y = rng.integers(0, 2, 24)
    X = rng.standard_normal((24, 1, 4, 4)).astype(np.float32) + y[:, None, None, None]

    def net(shape, n_outputs):
        return nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, n_outputs)
        )

    module = net((1, 4, 4), 2)
    model = GTVNetClassifierCV(module, rounds=6, cv=1, random_state=0).fit(X, y, node_ids=ids)
    assert model.predict(X, node_ids=ids).shape == (24,)
    model.save(tmp_path / "nets.npz")
    again = GTVNetClassifierCV.load(tmp_path / "nets.npz", module)
    np.testing.assert_array_equal(
        again.predict_proba(X, node_ids=ids), model.predict_proba(X, node_ids=ids)
    )
    assert again.summary() == model.summary().splitlines()[0]


def test_graphs_of_images_are_by_the_same_network():
    """The gradients of the convolutions at their start, not of another network."""
    rng = np.random.default_rng(0)
    ids, X = np.repeat(np.arange(4), 8), rng.standard_normal((32, 1, 4, 4)).astype(np.float32)
    y = rng.integers(0, 2, 32)
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
    model = GTVNetClassifierCV(module, rounds=4, cv=1, graph=GradientGraph(k=1), random_state=0)
    model.fit(X, y, node_ids=ids)
    assert set(model.cv_results_["graph"]) == {"", "given"}
    model.candidate_ = Candidate(0.25, "given", 1.0)
    found = model.refit(X, y, node_ids=ids).graph_
    gradients = []
    for i in range(4):
        own = torch.tensor(X[ids == i]), torch.tensor(y[ids == i])
        loss = nn.functional.cross_entropy(module(own[0]), own[1])
        parts = torch.autograd.grad(loss, list(module.parameters()))
        gradients.append(torch.cat([part.reshape(-1) for part in parts]))
    alike = torch.nn.functional.cosine_similarity(
        torch.stack(gradients)[:, None], torch.stack(gradients)[None], dim=2
    )
    nearest = alike.fill_diagonal_(-2.0).argmax(dim=1).tolist()
    assert all(j in found.neighbors(i) for i, j in enumerate(nearest))
    sets = [
        torch.utils.data.TensorDataset(torch.tensor(X[ids == i]), torch.tensor(y[ids == i]))
        for i in range(4)
    ]
    with pytest.raises(ValueError, match="GradientGraph needs features in memory"):
        model.fit(sets)


def test_few_rows_are_said():
    X, y = np.arange(4.0)[:, None], np.arange(4.0)
    with pytest.warns(DataWarning, match="too few rows"):
        model = GTVNetRegressorCV(rounds=2).fit(X, y, node_ids=[0, 0, 1, 1])
    assert model.alpha_ == 0 and model.coupling_ == "own rows only"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"common": 1.5}, "common must be shares"),
        ({"common": []}, "common must be shares"),
        ({"held_out": 0.9}, "held_out must be at most 1/2"),
        ({"share": 2.0}, "share must be at most 1"),
        ({"couple": "some"}, "couple"),
        ({"alphas": [-1.0]}, "alphas"),
        ({"alphas": [np.nan]}, "alphas must be finite"),
        ({"graph": {}}, "at least one candidate"),
        ({"graph": Graph([0, 9], [0], [1])}, "nodes without rows"),
        ({"cv": 0}, "cv"),
        ({"optimizer": "adam"}, "optimizer"),
    ],
)
def test_bad_input_is_refused(options, says):
    (X, y, ids), _, _ = groups()
    with pytest.raises(ValueError, match=says):
        GTVNetRegressorCV(rounds=2, **options).fit(X, y, node_ids=ids)
