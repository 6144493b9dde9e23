"""Poisoned rows, false members and curious ones, between sites as in one process."""

import numpy as np
import pytest

from nefele import LocalData
from nefele.estimators.design import Rows
from nefele.robust import (
    Backdoor,
    CleanLabel,
    Constant,
    Curious,
    FlipLabels,
    PoisonFeatures,
    ShiftLabels,
    Sybil,
)
from nefele.sites import learn_together
from nefele.sites.attacked import poisoned, with_sybils
from nefele.sites.example import coast, some_rows
from nefele.sites.learning import Learner
from tests.sites.together import by_sites

HOW = {"alpha": 0.3, "rounds": 40, "check_every": 20, "tol": 1e-12}
ON_ROWS = [
    FlipLabels(["oulu-2"]),
    ShiftLabels(["oulu-2", "kemi"], 5.0),
    PoisonFeatures(["kemi"], 2.0, seed=3),
    CleanLabel(["kemi"], target=[3.0, 1000.0], label=1.0),
    Backdoor(["kemi"], trigger=[40.0, 0.0], label=30.0),
]


def learners(federation, rows):
    return {name: Learner(federation, name, own).run() for name, own in rows.items()}


def nobody(federation, rows):
    """Rows of false members: none."""
    empty = Rows(np.zeros((0, 2)), np.zeros(0), np.zeros(0, dtype="<U8"), np.zeros(0))
    return {m.name: rows.get(m.name, empty) for m in federation.members}


def equal(one, other):
    return all(np.array_equal(one[q].part.w1, other[q].part.w1) for q in one)


def labels_one(rows):
    """Some labels of kemi are 1: those that a clean-label attack may use."""
    rows["kemi"].y[:5] = 1.0
    return rows


@pytest.mark.parametrize("attack", ON_ROWS, ids=lambda a: type(a).__name__)
def test_poisoned_rows_do_between_sites_what_they_do_in_one_process(tmp_path, attack):
    federation = coast(**HOW)
    rows = labels_one(some_rows(federation))
    bad = poisoned(rows, attack)
    caught = [str(node) for node in attack.nodes]
    for name, own in rows.items():
        changed = (bad[name].X != own.X).any(axis=1) | (bad[name].y != own.y)
        assert not changed[~np.isin(own.node_ids, caught)].any()
        assert changed.any() == bool(np.isin(own.node_ids, caught).any())
    here = learn_together(federation, bad)
    there, _ = by_sites(federation, learners(federation, bad), tmp_path)
    assert equal(here, there) and not equal(here, learn_together(federation, rows))


def test_the_rows_of_a_member_are_those_of_the_attack_on_local_data_in_any_order():
    rows = some_rows(coast())["oulu"]
    mixed = rows.take(np.random.default_rng(0).permutation(len(rows.y)))
    attack = PoisonFeatures(["oulu-1"], 2.0, seed=1)
    found = poisoned({"oulu": mixed}, attack)["oulu"]
    order = np.argsort(mixed.node_ids, kind="stable")
    data = LocalData(mixed.X[order], mixed.y[order], [0, 12, 24], ["oulu-1", "oulu-2"])
    assert np.array_equal(found.X[order], attack(data).X)
    assert np.array_equal(found.node_ids, mixed.node_ids)


def test_false_members_do_between_sites_what_they_do_in_one_process(tmp_path):
    federation, attack = coast(**HOW), Sybil(["kemi"], count=2, degree=2, seed=1)
    attacked = with_sybils(federation, attack)
    new = attack(federation.graph())
    assert attacked.graph().ids.tolist() == new.ids.tolist()
    assert np.array_equal(attacked.graph().adjacency.toarray(), new.adjacency.toarray())
    assert attacked.hash != federation.hash
    rows, liars = nobody(attacked, some_rows(federation)), ["kemi", "sybil-0", "sybil-1"]
    says = {name: Constant(1e3) for name in liars}
    here = learn_together(attacked, rows, wrap=says)
    programs = learners(attacked, rows)
    programs |= {name: says[name](programs[name]) for name in liars}
    there, _ = by_sites(attacked, programs, tmp_path)
    assert equal(here, there)
    clean = learn_together(federation, some_rows(federation))
    assert not np.array_equal(here["oulu"].part.w1, clean["oulu"].part.w1)


def test_a_curious_member_between_sites_has_the_models_of_its_neighbours(tmp_path):
    federation = coast(**HOW | {"rounds": 200})
    rows, spy = some_rows(federation), Curious()
    programs = learners(federation, rows)
    there, _ = by_sites(federation, programs | {"kemi": spy(programs["kemi"])}, tmp_path)
    assert equal(there, learn_together(federation, rows))
    model = spy.models()["inari"][0]
    np.testing.assert_allclose(model, there["inari"].part.w1[0], atol=1e-3)


def test_bad_input():
    federation = coast()
    rows = some_rows(federation)
    with pytest.raises(ValueError, match="Captured nodes must be nodes with rows; unknown: 'x'"):
        poisoned(rows, FlipLabels(["x"]))
    with pytest.raises(ValueError, match="attack must be one on data, such as FlipLabels"):
        poisoned(rows, Constant(1.0))
    with pytest.raises(ValueError, match="attack must be a Sybil; got FlipLabels"):
        with_sybils(federation, FlipLabels(["kemi"]))
    with pytest.raises(ValueError, match="unknown: 'x'"):
        with_sybils(federation, Sybil(["x"]))
