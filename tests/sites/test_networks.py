"""Networks between sites: the same parameters as in one process, whoever has which nodes."""

import numpy as np
import pandas as pd
import pytest

from nefele.networks import GTVNetRegressor
from nefele.sites import Federation, learn_together
from nefele.sites.config import SiteConfig
from nefele.sites.consent import consent_of
from nefele.sites.example import coast, some_rows
from nefele.sites.founding import file_of
from nefele.sites.members import Target
from nefele.sites.nets import NetTerms
from nefele.sites.rows import read_rows
from nefele.sites.wire import Kind, Packet, decode, encode
from tests.sites.running import Sites, pilot

TERMS = {"method": "networks", "alpha": 0.3, "rounds": 12, "weighting": "nodes", "check_every": 1}


def nets(wire="float32", **changes):
    terms = NetTerms(hidden=(6,), steps=2, batch_size=5, lr=0.02, wire=wire)
    return coast(**{**TERMS, "network": terms, **changes})


@pytest.mark.parametrize("wire", ["float32", pytest.param("float16", marks=pytest.mark.slow)])
def test_the_same_between_three_processes_and_in_one(tmp_path, wire):
    trial = pilot(tmp_path, nets(wire))
    with Sites(tmp_path, trial) as sites:
        sites.start()
        sites.finish()
        rows = {
            member.name: read_rows(trial, SiteConfig.read(sites.site(member.name)))
            for member in trial.members
        }
        together = learn_together(trial, rows)
        for name, learnt in together.items():
            found = GTVNetRegressor.load(sites.site(name) / "run-1" / "networks.npz")
            assert found.nodes_.tolist() == learnt.nodes
            np.testing.assert_array_equal(found.parameters_, learnt.model.parameters_)
    start = together["kemi"].model.module_
    flat = np.concatenate([p.detach().numpy().ravel() for p in start.parameters()])
    assert np.abs(together["kemi"].parameters[0] - flat).max() > 0.01


@pytest.mark.parametrize("wire", ["float32", "float16"])
def test_one_part_with_all_nodes_computes_the_same(wire):
    """The estimator's rounds, which know of no sites, against the programs of three."""
    federation = nets(wire)
    rows = some_rows(federation)
    together = learn_together(federation, rows)
    whole = federation.graph()
    ids = np.concatenate([rows[m.name].node_ids for m in federation.members])
    X = np.vstack([rows[m.name].X for m in federation.members])
    y = np.concatenate([rows[m.name].y for m in federation.members])
    bounds = np.array([[f.low, f.high] for f in federation.features])
    X = (X - bounds.mean(axis=1)) / (np.diff(bounds).ravel() / 2)
    import torch

    from nefele.networks.layers import Layers

    torch.manual_seed(federation.seed)
    net = Layers((6,), "tanh")(2, 1)
    model = GTVNetRegressor(
        net, graph=whole, alpha=0.3, rounds=12, prox_steps=2, batch_size=5, lr=0.02, wire=wire,
        form="loop", method="algorithm1", penalty="l2",
    )  # fmt: skip
    model.random_state = _Seed(federation.seed)
    model.fit(X, (y + 5) / 45, node_ids=ids)
    for member in federation.members:
        own = whole.positions(np.array(member.nodes))
        np.testing.assert_array_equal(together[member.name].parameters, model.parameters_[own])


class _Seed(np.random.RandomState):
    """Draws the seed that a federation has agreed to."""

    def __init__(self, seed):
        super().__init__(0)
        self.seed_of_all = seed

    def randint(self, *args, **kwargs):
        return self.seed_of_all


def test_errors_and_words():
    federation = nets()
    found = learn_together(federation, some_rows(federation, per_node=30))
    oulu = found["oulu"]
    assert oulu.fitted.rounds == 12 and np.isfinite(oulu.everywhere[0, ::2]).all()
    assert oulu.scores.error.shape == (3, 2) and "not convex" in oulu.fitted.reason
    text = consent_of(federation, "oulu").text()
    assert (
        "all 25 parameters of the network of 1 node at the border, in each round, as float32"
        in (text)
    )
    assert "one network per node: layers of 6 units (tanh), 2 steps of adam in a round" in text
    assert Federation.parse(file_of(federation)) == federation


def test_classes_and_nodes_in_the_units_of_the_data():
    federation = nets(
        task="classification",
        loss="logistic",
        target=Target("warm", classes=("yes", "no")),
    )
    rows = some_rows(coast())
    middle = np.median(np.concatenate([r.y for r in rows.values()]))
    for one in rows.values():
        one.y[:] = np.where(one.y > middle, 1.0, -1.0)  # "no" if above
    found = learn_together(federation, rows)
    model = found["oulu"].model
    assert model.classes_.tolist() == ["no", "yes"]
    own = rows["oulu"]
    table = pd.DataFrame(own.X, columns=["wind", "pressure"])
    right = model.predict(table, node_ids=own.node_ids) == np.where(own.y > 0, "no", "yes")
    assert right.mean() > 0.7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": "auto"}, "needs alpha to be a number"),
        ({"weighting": "rows"}, "needs weighting to be \"nodes\"; got 'rows'"),
        ({"network": None}, r"A table \[network\] must be there"),
        ({"absent": "freeze"}, 'needs absent to be "wait" or "drop"|freeze'),
        ({"method": "algorithm1"}, r"A table \[network\] must be there"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        nets(**changes)
    with pytest.raises(ValueError, match="hidden must be a list of units"):
        NetTerms(hidden=3)
    with pytest.raises(ValueError, match=r'No key "conv".*"predictions" with a model.py'):
        NetTerms.from_dict({"conv": [8]})


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_numbers_of_all_sizes_on_the_wire(kind):
    values = np.arange(6, dtype=kind).reshape(2, 3) / 3
    blob = encode(Packet(Kind.ROWS, "parameters", 0, 7, values), bytes(16))
    found = decode(blob, bytes(16)).values
    assert found.dtype == kind
    np.testing.assert_array_equal(found, values)
    assert len(blob) == len(
        encode(Packet(Kind.ROWS, "sums", 0, 7, np.zeros((2, 0))), bytes(16))
    ) + (6 * values.itemsize)
