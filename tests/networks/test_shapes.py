"""Rows of any shape, what is coupled, running statistics, early stopping, checkpoints, files."""

import os
import signal
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from nefele import ConvergenceWarning, Graph
from nefele._torch.losses import CLASSIFICATION
from nefele.networks import GTVNetClassifier, GTVNetRegressor
from nefele.networks.coupling import is_coupled
from nefele.networks.features import ArrayFeatures
from nefele.networks.rounds import Rounds
from nefele.networks.rows import Source
from nefele.networks.stack import Stack
from tests.networks.images import CONVOLUTION, IDS, PATH, images

OPTIONS = {"graph": PATH, "rounds": 4, "prox_steps": 2, "batch_size": 5, "random_state": 0}


class Transformer(nn.Module):
    def __init__(self, dropout=0.1):
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.layer(self.words(x)).mean(1))


def same_outputs(model, X, ids):
    """Probabilities are those of each node's own module."""
    found = model.predict_proba(X, node_ids=ids)
    for node in np.unique(ids):
        own = np.array(ids) == node
        with torch.no_grad():
            z = model.network(node)(torch.as_tensor(X[own]))
        np.testing.assert_allclose(found[own], torch.softmax(z, 1).numpy(), atol=1e-5)


def test_images_tokens_and_sequences():
    X, y = images()
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 11, (len(y), 6))
    series = rng.standard_normal((len(y), 5, 2)).astype(np.float32)
    for module, rows, form in (
        (CONVOLUTION(), X, "loop"),
        (Transformer(), tokens, "loop"),
        (nn.Sequential(nn.Flatten(), nn.Linear(10, 3)), series, "stacked"),
    ):
        model = GTVNetClassifier(module, alpha=0.05, **OPTIONS).fit(rows, y, node_ids=IDS)
        assert model._stack().form == form
        same_outputs(model, rows, IDS)
    with pytest.raises(ValueError, match=r"rows of shape \(5, 2\), as in fit; got \(1, 6, 6\)"):
        model.predict(X, node_ids=IDS)


@pytest.mark.parametrize("make", [CONVOLUTION, lambda: Transformer(dropout=0.0)])
def test_both_forms_compute_the_same(make):
    X, y = images()
    if make is not CONVOLUTION:
        X = np.random.default_rng(0).integers(0, 11, (len(y), 6))
    net = make()
    # Plain steps: where gradients are zero, as of the keys' constants, Adam steps by rounding.
    options = OPTIONS | {"dtype": "float64", "optimizer": "sgd", "lr": 0.1}
    ends = [
        GTVNetClassifier(net, alpha=0.05, form=form, **options).fit(X, y, node_ids=IDS).parameters_
        for form in ("stacked", "loop")
    ]
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-7)


class Pooled(nn.Module):
    """Convolutions and pooling; `as_is` takes only images in the usual order."""

    def __init__(self, as_is=False, dropout=0.0):
        super().__init__()
        self.as_is = as_is
        self.body = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(dropout)
        )
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        x = self.body(x)
        return self.head(x.view(len(x), -1) if self.as_is else x.flatten(1))


def test_channels_side_by_side_change_rounding_only(monkeypatch):
    X, y = images()
    torch.manual_seed(0)
    net, usual = Pooled(), Pooled(as_is=True)
    usual.load_state_dict(net.state_dict())
    laid = []
    forward = nn.Conv2d.forward
    monkeypatch.setattr(
        nn.Conv2d, "forward", lambda self, x: (laid.append(x.stride(1)), forward(self, x))[1]
    )
    options = OPTIONS | {"dtype": "float64"}
    ends = []
    for module, stride in ((net, 1), (usual, 36)):  # numbers from one channel to the next
        model = GTVNetClassifier(module, alpha=0.05, **options).fit(X, y, node_ids=IDS)
        ends.append(model.parameters_)
        assert laid.count(stride) > 20
        laid.clear()
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-7)


def test_all_steps_of_a_node_before_the_next_are_the_same_steps(monkeypatch):
    X, y = images()
    net = Pooled(dropout=0.2)
    ends = []
    for alone in (True, False):
        monkeypatch.setattr(Rounds, "alone", alone)
        model = GTVNetClassifier(net, alpha=0.05, **OPTIONS).fit(X, y, node_ids=IDS)
        ends.append((model.parameters_, model.history_[-1].objective))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    assert ends[0][1] == ends[1][1]


def test_many_large_networks_are_trained_one_after_the_other():
    loss = CLASSIFICATION["cross_entropy"]
    forms = []
    for wide in (8, 64):
        net = nn.Sequential(nn.Linear(784, wide), nn.ReLU(), nn.Linear(wide, 10))
        stack = Stack(net, lambda z: z, loss)
        for n_nodes in (20, 50):
            stack.start(n_nodes)
            forms.append(stack.form)
    assert forms == ["stacked", "stacked", "stacked", "loop"]


def test_datasets_per_node_are_the_same_rows():
    X, y = images()
    ids = np.array(IDS)
    whole = GTVNetClassifier(CONVOLUTION(), alpha=0.1, **OPTIONS)
    torch.manual_seed(3)
    whole.set_params(module=CONVOLUTION()).fit(X, y, node_ids=IDS)
    sets = {
        node: torch.utils.data.TensorDataset(
            torch.tensor(X[ids == node]), torch.tensor(y[ids == node])
        )
        for node in "abc"
    }
    model = clone(whole).set_params(module=whole.module).fit(sets)
    np.testing.assert_array_equal(model.parameters_, whole.parameters_)
    np.testing.assert_array_equal(model.predict(sets), whole.predict(X, node_ids=IDS))
    numbered = clone(whole).set_params(graph=Graph(range(3), [0, 1], [1, 2]), module=whole.module)
    numbered.fit(list(sets.values()))
    np.testing.assert_array_equal(numbered.parameters_, whole.parameters_)
    with pytest.raises(ValueError, match="leave out y and"):
        clone(whole).fit(sets, y)
    with pytest.raises(ValueError, match=r"Items of a dataset must be pairs \(features, target\)"):
        clone(whole).fit({"a": torch.utils.data.TensorDataset(torch.zeros(2, 1, 6, 6))})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda X, y: (torch.full_like(X, torch.nan), y), "NaN or inf; got one in item 0 of node"),
        (lambda X, y: (X[:, :, :4], y), r"one shape, \(1, 6, 6\) as the first; got \(1, 4, 6\)"),
    ],
)
def test_bad_items_of_datasets_are_named(change, says):
    X, y = (torch.tensor(one) for one in images())
    ids = np.array(IDS)
    sets = {n: torch.utils.data.TensorDataset(X[ids == n], y[ids == n]) for n in "ab"}
    sets["c"] = torch.utils.data.TensorDataset(*change(X[ids == "c"], y[ids == "c"]))
    with pytest.raises(ValueError, match=says):
        GTVNetClassifier(CONVOLUTION(), alpha=0.05, **OPTIONS).fit(sets)


def test_a_missing_target_and_batches_of_one_row_are_refused():
    X, y = images()
    with pytest.raises(ValueError, match="target of each row; got None"):
        GTVNetClassifier(CONVOLUTION(), **OPTIONS).fit(X, None, node_ids=IDS)
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    ids = ["a"] + ["b"] * (len(y) - 1)
    with pytest.raises(ValueError, match="BatchNorm needs two rows or more at once; node 'a'"):
        GTVNetClassifier(net, **OPTIONS).fit(X, y, node_ids=ids)


def test_tokens_without_an_entry_are_named():
    X, y = images()
    tokens = np.random.default_rng(0).integers(0, 11, (len(y), 6))
    tokens[3, 2] = 11
    with pytest.raises(ValueError, match="tokens must be 0 to 10; got 11 in row 3 of X"):
        GTVNetClassifier(Transformer(), **OPTIONS).fit(tokens, y, node_ids=IDS)
    nested = GTVNetClassifier(CONVOLUTION(), **OPTIONS).fit(X.tolist(), y, node_ids=IDS)
    assert nested.predict(X, node_ids=IDS).shape == y.shape


def test_all_rows_go_in_parts_of_about_one_length():
    """A rest of one row would have no variance."""
    counts = np.array([257, 0, 256, 600, 1])
    features = ArrayFeatures(np.zeros((counts.sum(), 1)), torch.float32)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    y, places = np.zeros(len(features)), np.arange(len(features))
    source = Source(features, places, ptr, y, np.ones(len(y)), "float32")
    seen = {i: [] for i in range(5)}
    for batch in source.chunks():
        for i, own in zip(batch.nodes, np.split(batch.at, np.cumsum(batch.counts)), strict=False):
            seen[i].append(own)
    assert [[len(own) for own in parts] for parts in seen.values()] == [
        [128, 129],
        [],
        [256],
        [200, 200, 200],
        [1],
    ]
    together = np.concatenate([own for parts in seen.values() for own in parts])
    np.testing.assert_array_equal(together, places)


def test_every_row_comes_once_before_any_comes_again():
    counts = [3, 10, 7]
    ptr = np.concatenate([[0], np.cumsum(counts)])
    X = np.zeros((20, 1))
    rows = ArrayFeatures(X, torch.float32), np.arange(20), ptr
    source = Source(*rows, X[:, 0], np.ones(20), "float32", seed=5)
    drawn = [source.batch(4) for _ in range(35)]
    rows = np.concatenate([batch.at for batch in drawn])
    for i, m in enumerate(counts):
        own = rows[(rows >= ptr[i]) & (rows < ptr[i + 1])]
        for epoch in range(len(own) // m):
            assert len(np.unique(own[epoch * m : (epoch + 1) * m])) == m
    assert drawn[0].counts.tolist() == [3, 4, 4]
    X, _, weight = drawn[0].padded()
    assert X.shape == (3, 4, 1) and weight.sum(dim=1).tolist() == pytest.approx([1, 1, 1])
    one = ArrayFeatures(np.zeros((10, 1)), torch.float32), np.arange(10), np.array([0, 10])
    alone = Source(*one, np.zeros(10), np.ones(10), "float32", 5, np.array([1]))
    np.testing.assert_array_equal(alone.batch(4).at + 3, drawn[0].at[3:7])
    held = source.held_out(0.3)
    assert held[1].counts.tolist() == [1, 3, 2] and held[0].counts.tolist() == [2, 7, 5]
    assert not set(held[0].places) & set(held[1].places)


def test_what_is_coupled():
    X, y = images()
    names = [name for name, _ in CONVOLUTION().named_parameters()]
    assert is_coupled("head", names) == [False, False, True, True]
    ends = {}
    for couple in ("all", "body", "head", ["first"], lambda name: name.startswith("head")):
        model = GTVNetClassifier(
            CONVOLUTION(), couple=couple, alpha=1e8, penalty="squared_l2", **OPTIONS
        ).fit(X, y, node_ids=IDS)
        apart = np.ptp(model.parameters_, axis=0)  # 40 parameters of the body, 195 of the head
        name = couple if isinstance(couple, str) else str(type(couple))
        ends[name] = apart[:40].max() < 1e-5, apart[40:].max() < 1e-5
    assert ends == {
        "all": (True, True),
        "body": (True, False),
        "head": (False, True),
        "<class 'list'>": (True, False),
        "<class 'function'>": (False, True),
    }
    model = GTVNetClassifier(CONVOLUTION(), couple="body", alpha=0.1, penalty="l2", **OPTIONS)
    model.fit(X, y, node_ids=IDS)
    assert model.flow_.shape == (2, 40) and model.coupled_.sum() == 40
    assert model.history_[0].bytes == 2 * 2 * 40 * 4
    for couple, message in (
        ("foot", 'No couple "foot"'),
        (["nose"], "couple names 'nose', with which no parameter begins"),
        (3, "couple must be"),
        (lambda name: 1, "couple must give True or False for 'first.weight'"),
    ):
        with pytest.raises(ValueError, match=message):
            GTVNetClassifier(CONVOLUTION(), couple=couple, **OPTIONS).fit(X, y, node_ids=IDS)


def test_running_statistics_are_personal():
    X, y = images()
    X[:9] += 5.0
    torch.manual_seed(0)
    net = CONVOLUTION(norm=True)
    model = GTVNetClassifier(net, alpha=1e8, penalty="squared_l2", **OPTIONS).fit(
        X, y, node_ids=IDS
    )
    assert np.abs(model.parameters_ - model.parameters_[0]).max() < 1e-5
    means = model.statistics_["norm.running_mean"]
    assert means.shape == (3, 4) and np.abs(means[0] - means[1]).max() > 0.1
    np.testing.assert_array_equal(model.network("a").norm.running_mean.numpy(), means[0])
    assert int(model.network("b").norm.num_batches_tracked) == 8
    same_outputs(model, X, IDS)
    with pytest.raises(ValueError, match="pads the rows of nodes, which BatchNorm would count"):
        GTVNetClassifier(net, form="stacked", **OPTIONS).fit(X, y, node_ids=IDS)


def test_early_stopping_keeps_the_best_round():
    rng = np.random.default_rng(0)
    X, ids = rng.uniform(-1, 1, (60, 2)), np.array(list("abc") * 20)
    y = X[:, 0] + rng.standard_normal(60)
    model = GTVNetRegressor(
        graph=PATH, alpha=0.0, rounds=300, lr=0.05, early_stop=10, validation=0.3, random_state=0
    ).fit(X, y, node_ids=ids)
    held = [record.held_out for record in model.history_]
    assert model.status_ == "stopped" and model.rounds_ < 300
    assert held[model.best_round_ - 1] == min(held)
    assert model.rounds_ <= model.best_round_ + 10
    kept = clone(model).set_params(rounds=model.best_round_, early_stop=None)
    assert model.objective_ == model.history_[model.best_round_ - 1].objective
    assert kept.rounds == model.best_round_


@pytest.mark.parametrize("method", ["algorithm1", "implicit"])
@pytest.mark.parametrize("form", ["stacked", "loop"])
def test_a_resumed_fit_has_the_same_bits(tmp_path, method, form):
    X, y = images()
    file = tmp_path / "nets.npz"
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 5), nn.Dropout(0.3), nn.Linear(5, 3))
    options = OPTIONS | {"alpha": 0.1, "penalty": "squared_l2", "method": method, "form": form}
    options |= {"rounds": 7, "early_stop": 50, "validation": 0.2}
    whole = GTVNetClassifier(net, **options).fit(X, y, node_ids=IDS)
    first = GTVNetClassifier(net, checkpoint=file, checkpoint_every=3, **options)
    first.fit(X, y, node_ids=IDS)  # the last file is of round 6
    again = clone(first).set_params(resume=True, module=net).fit(X, y, node_ids=IDS)
    np.testing.assert_array_equal(again.parameters_, whole.parameters_)
    assert [r[:4] for r in again.history_] == [r[:4] for r in whole.history_]
    with pytest.raises(ValueError, match="must be of the same rows, graph, network and parameters"):
        clone(again).set_params(alpha=0.2, module=net).fit(X, y, node_ids=IDS)
    with pytest.raises(ValueError, match="must be of the same rows"):
        clone(again).set_params(module=net).fit(X + 1e-3, y, node_ids=IDS)
    file.write_bytes(file.read_bytes()[:-200])
    with pytest.raises(ValueError, match="must be as it was written"):
        clone(again).set_params(module=net).fit(X, y, node_ids=IDS)
    with pytest.raises(ValueError, match="there is no such file"):
        clone(again).set_params(checkpoint=tmp_path / "other").fit(X, y, node_ids=IDS)


@pytest.fixture
def interrupts():
    """Ctrl-C as in a script: processes of a test run may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_ctrl_c_ends_after_the_round(tmp_path):
    X, y = images()
    calls = []

    def loss(z, target):
        calls.append(1)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return nn.functional.cross_entropy(z, target, reduction="none")

    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    file = tmp_path / "nets.npz"
    model = GTVNetClassifier(net, loss=loss, alpha=0.1, checkpoint=file, **OPTIONS)
    with pytest.warns(ConvergenceWarning, match="Stopped by Ctrl-C after round 2 of 4"):
        model.fit(X, y, node_ids=IDS)
    assert model.status_ == "interrupted" and model.rounds_ == 2 and file.exists()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_warm_start_goes_on(capsys):
    X, y = images()
    model = GTVNetClassifier(CONVOLUTION(), alpha=0.1, warm_start=True, verbose=2, **OPTIONS)
    first = model.fit(X, y, node_ids=IDS).history_[-1].loss
    assert "round 4 of 4: objective" in capsys.readouterr().err
    assert model.fit(X, y, node_ids=IDS).history_[0].loss < first
    with pytest.raises(ValueError, match="warm_start needs the nodes and the network"):
        model.set_params(graph=Graph.from_edges([*zip("abc", "bcd", strict=True)])).fit(
            X, y, node_ids=IDS
        )


def test_saved_networks_come_back(tmp_path):
    X, y = images()
    net = CONVOLUTION(norm=True)
    labels = np.array(["cat", "dog", "owl"])[y]
    model = GTVNetClassifier(net, alpha=0.1, hub=0.2, **OPTIONS).fit(X, labels, node_ids=IDS)
    model.save(tmp_path / "nets.npz")
    again = GTVNetClassifier.load(tmp_path / "nets.npz", CONVOLUTION(norm=True))
    np.testing.assert_array_equal(
        again.predict_proba(X, node_ids=IDS), model.predict_proba(X, node_ids=IDS)
    )
    assert again.predict(X[:1], node_ids=["a"]) == model.predict(X[:1], node_ids=["a"])
    assert repr(again.history_) == repr(model.history_) and again.graph_ == model.graph_
    assert again.get_params()["alpha"] == 0.1
    with pytest.raises(ValueError, match="needs the network that was saved"):
        GTVNetClassifier.load(tmp_path / "nets.npz", CONVOLUTION())
    with pytest.raises(ValueError, match="holds networks of a GTVNetClassifier"):
        GTVNetRegressor.load(tmp_path / "nets.npz", CONVOLUTION(norm=True))
    (tmp_path / "nets.npz").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="must be as it was written"):
        GTVNetClassifier.load(tmp_path / "nets.npz", CONVOLUTION(norm=True))


def test_memory_is_that_of_batches():
    """One long node among short ones: no tensor of all nodes times the longest is made."""
    counts = [20_000, 2, 2, 2]
    ids = np.repeat(list("abcd"), counts)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((len(ids), 4))
    largest = []

    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            largest.append(x.shape[0])
            return self.layer(x)

    graph = Graph.from_edges([*zip("abc", "bcd", strict=True)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GTVNetRegressor(Watched(), graph=graph, rounds=1, prox_steps=1, random_state=0).fit(
            X, X[:, 0], node_ids=ids
        )
    assert 128 < max(largest) <= 256
