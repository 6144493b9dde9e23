"""Saved models come back, hold no pickles, and what is unknown or damaged is refused."""

import json
import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import nefele
from nefele import GTVClassifier, GTVRegressor
from nefele._records import read_record, write_record
from nefele.estimators import MomentsKNN, SpatialKNN, saving
from nefele.losses import Logistic, Squared
from nefele.penalties import HuberPenalty, Penalty, Quadratic
from tests.estimators.data import PLACES, ROADS, towns

X, Y = towns(90)
WHERE = pd.DataFrame(PLACES, index=["lat", "lon"]).T


@pytest.mark.parametrize(
    "model",
    [
        GTVRegressor(ROADS, node="town"),
        GTVRegressor(node="town", penalty=HuberPenalty(0.3), loss=Squared(l2=0.1), couple=["wind"]),
        GTVRegressor(MomentsKNN(k=2), node="town", penalty=Quadratic(np.eye(3)), unseen="pooled"),
        GTVRegressor(SpatialKNN(k=2), node="town", coords=WHERE, unseen="nearest"),
        GTVRegressor(SpatialKNN(k=2, coords=PLACES), node="town", standardize=True),
    ],
    ids=["plain", "objects", "quadratic", "nearest", "spatial"],
)
def test_round_trip(model, tmp_path):
    model.fit(X, Y)
    model.save(tmp_path / "model.nefele")
    again = nefele.load(tmp_path / "model.nefele")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for name in ("nodes_", "coef_", "intercept_", "clusters_", "feature_names_in_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.graph_ == model.graph_ and again.history_ == model.history_
    assert (again.dual_gap_, again.status_) == (model.dual_gap_, model.status_)
    if model.unseen != "raise":
        there = X.assign(town="Kemi")
        np.testing.assert_array_equal(again.predict(there), model.predict(there))
    again.set_params(alpha=0.5).fit(X, Y)
    np.testing.assert_allclose(again.coef_, model.set_params(alpha=0.5).fit(X, Y).coef_, atol=1e-9)


@pytest.mark.parametrize("labels", [["a", "b", "c"], [1, 2, 3], [False, True, True]])
def test_round_trip_of_a_classifier(labels, tmp_path):
    code = np.digitize(Y, np.quantile(Y, [0.3, 0.6]))
    y = np.array(labels)[code]
    model = GTVClassifier(ROADS, node="town", loss=Logistic(l2=0.01), alpha=0.1).fit(X, y)
    model.save(tmp_path / "model")
    again = nefele.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.classes_.dtype == model.classes_.dtype


def test_integer_ids_and_no_names(tmp_path):
    ids = np.arange(90) % 4
    model = GTVRegressor().fit(X[["tmin"]].to_numpy(), Y, node_ids=ids)
    model.save(str(tmp_path / "model"))
    again = nefele.load(str(tmp_path / "model"))
    assert again.nodes_.tolist() == [0, 1, 2, 3] and not hasattr(again, "feature_names_in_")


def test_rows_are_saved_only_on_demand(tmp_path):
    model = GTVRegressor(ROADS, node="town", tol=1e-10).fit(X[:60], Y[:60])
    model.save(tmp_path / "without")
    model.save(tmp_path / "with", rows=True)
    with pytest.raises(ValueError, match="this model was saved without them"):
        nefele.load(tmp_path / "without").partial_fit(X[60:], Y[60:])
    again = nefele.load(tmp_path / "with").partial_fit(X[60:], Y[60:])
    np.testing.assert_allclose(again.coef_, model.partial_fit(X[60:], Y[60:]).coef_, atol=1e-9)


def test_a_good_file_stays_when_writing_fails(tmp_path, monkeypatch):
    model = GTVRegressor(ROADS, node="town").fit(X, Y)
    path = tmp_path / "model"
    model.save(path)
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ValueError, match="No space left on device"):
        model.save(path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["model"]


def test_bad_places(tmp_path):
    model = GTVRegressor(ROADS, node="town").fit(X, Y)
    with pytest.raises(ValueError, match="could not be written"):
        model.save(tmp_path / "no" / "folder")
    with pytest.raises(ValueError, match="No model file"):
        nefele.load(tmp_path / "nothing")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model"
    GTVRegressor(ROADS, node="town").fit(X, Y).save(path)
    return path


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9, 0.99])
def test_truncated_files_are_refused(saved, part):
    whole = saved.read_bytes()
    saved.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(ValueError, match="it is damaged or another kind of file"):
        nefele.load(saved)


def test_flipped_bytes_are_refused_or_harmless(saved):
    whole = saved.read_bytes()
    good = nefele.load(saved).predict(X)
    for at in range(0, len(whole), max(len(whole) // 60, 1)):
        saved.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        try:
            found = nefele.load(saved).predict(X)
        except ValueError:
            continue
        np.testing.assert_array_equal(found, good)


def rewrite(path, change):
    """Change what a file holds; its hash is right again."""
    facts, arrays = read_record(path, saving.FORMAT, saving.VERSION)
    change(facts, arrays)
    write_record(path, facts.pop("format"), facts.pop("version"), facts, arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda facts, _: facts.update(version=99), "must have format version 2; .* has 99"),
        (lambda facts, _: facts.update({"class": "Spline"}), "holds a 'Spline'"),
        (lambda facts, _: facts.update({"class": "load"}), "holds a 'load'"),
        (lambda facts, _: facts.update({"class": "KeepNode"}), "holds a 'KeepNode'"),
        (lambda facts, _: facts.update(format="other"), "damaged or another kind"),
        (lambda facts, _: facts["params"].update(strange=1), "damaged or another kind"),
        (lambda facts, _: facts["fitted"].update(predict=1), "damaged or another kind"),
        (lambda facts, _: facts["fitted"].update(__class__=1), "damaged or another kind"),
        (lambda facts, _: facts["fitted"].update(coupling_="by graph"), "damaged or another kind"),
        (lambda facts, _: facts["fitted"].update(candidates_={"list": [1]}), "damaged or another"),
        (
            lambda facts, _: facts["params"].update(penalty={"penalty": "Odd", "of": {}}),
            "needs a 'Odd'",
        ),
        (
            lambda facts, _: facts["params"].update(loss={"loss": "as_bound_loss", "of": {}}),
            "needs a 'as_bound_loss'",
        ),
        (lambda _, arrays: arrays.pop("a0"), "damaged or another kind"),
    ],
)
def test_unknown_content_is_refused(saved, change, message):
    rewrite(saved, change)
    with pytest.raises(ValueError, match=message):
        nefele.load(saved)


def test_pickles_are_refused(saved):
    with np.load(saved) as file:
        arrays = dict(file)
    arrays["a0"] = np.array([{"a": 1}], dtype=object)
    with saved.open("wb") as out:
        np.savez(out, **arrays)
    with pytest.raises(ValueError, match="damaged or another kind"):
        nefele.load(saved)


class Own(Penalty):
    def value(self, v):
        return np.abs(v).sum(axis=1)


class OwnBuilder(MomentsKNN):
    pass


def test_own_classes_are_refused_with_advice(tmp_path):
    model = GTVRegressor(ROADS, node="town").fit(X, Y)
    with pytest.raises(ValueError, match=r"penalty must be saved without pickle.*Use joblib"):
        model.set_params(penalty=Own()).save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"graph must be a builder of nefele"):
        model.set_params(penalty="l2", graph=OwnBuilder()).save(tmp_path / "model")
    with pytest.raises(NotFittedError):
        GTVRegressor().save(tmp_path / "model")


@pytest.fixture
def full(tmp_path):
    """A file with every part that a model can have."""
    path = tmp_path / "full"
    y = np.array(["low", "mid", "high"])[np.digitize(Y, np.quantile(Y, [0.3, 0.6]))]
    model = GTVClassifier(ROADS, node="town", loss=Logistic(l2=0.01), unseen="pooled", tol=1e-3)
    model.fit(X, y).save(path, rows=True)
    return path


def spoil(name, value):
    """Put something else in the place of an array of a fitted part."""

    def change(facts, arrays):
        part = facts["fitted"][name]
        if name == "_rows":
            part = part["rows"]["X"]
        arrays[part["array"]] = value(arrays[part["array"]])

    return change


PARTS = {
    "nan in coef_": spoil("coef_", lambda a: np.where(a > 0, np.nan, a)),
    "inf in intercept_": spoil("intercept_", lambda a: a + np.inf),
    "nan in pooled_coef_": spoil("pooled_coef_", lambda a: a * np.nan),
    "coef_ of integers": spoil("coef_", lambda a: a.astype(int)),
    "coef_ of too few nodes": spoil("coef_", lambda a: a[1:]),
    "coef_ as text": spoil("coef_", lambda a: a.astype(str)),
    "other nodes_": spoil("nodes_", lambda a: a[::-1].copy()),
    "clusters_ out of range": spoil("clusters_", lambda a: a + 10**6),
    "negative clusters_": spoil("clusters_", lambda a: a - 5),
    "a flow of another graph": spoil("_flow", lambda a: a[1:]),
    "nan in the flow": spoil("_flow", lambda a: a * np.nan),
    "nan in the rows": spoil("_rows", lambda a: a * np.nan),
    "rows of other features": spoil("_rows", lambda a: a[:, 1:].copy()),
    "a class twice": spoil("classes_", lambda a: a[[0, 0, 1]]),
    "one class": spoil("classes_", lambda a: a[:1]),
    "features by the million": lambda f, _: f["fitted"].update(n_features_in_=10**12),
    "half a feature": lambda f, _: f["fitted"].update(n_features_in_=1.5),
    "a negative tolerance": lambda f, _: f["params"].update(tol=-1.0),
    "a tolerance beyond all": lambda f, _: f["params"].update(tol=10**400),
    "a column far away": lambda f, _: f["fitted"].update(_node_at=10**400),
    "no gap": lambda f, _: f["fitted"].update(dual_gap_=float("nan")),
    "a negative gap": lambda f, _: f["fitted"].update(dual_gap_=-1.0),
    "an unknown status": lambda f, _: f["fitted"].update(status_="splendid"),
    "history of nothing": lambda f, _: f["fitted"].update(history_={"list": [1]}),
    "records of text": lambda f, _: f["fitted"].update(
        history_={"list": [{"record": ["a", 1.0, 1.0, 1.0, 1.0, 1.0]}]}
    ),
    "no graph_": lambda f, _: f["fitted"].pop("graph_"),
    "no coef_": lambda f, _: f["fitted"].pop("coef_"),
    "a graph_ that is none": lambda f, _: f["fitted"].update(graph_=3),
    "fitted things in a list": lambda f, _: f.update(fitted=[1]),
    "parameters in a list": lambda f, _: f.update(params=[1]),
    "lists in lists in lists": lambda f, _: f["fitted"].update(
        history_=json.loads('{"list": [' * 300 + "1" + "]}" * 300)
    ),
    "an array by no name": lambda f, _: f["fitted"]["coef_"].update(array=["a"]),
    "names that are none": lambda f, _: f["fitted"].update(feature_names_in_={"objects": [1, 2]}),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_that_do_not_fit_are_refused(full, name):
    assert nefele.load(full).predict(X).shape == (90,)
    rewrite(full, PARTS[name])
    with pytest.raises(ValueError, match="it is damaged or another kind of file"):
        nefele.load(full)


@pytest.mark.parametrize("name", [None, 5, "", "a\0b", "a" * 300])
def test_names_that_no_file_can_have(name):
    with pytest.raises(ValueError, match=r"must be the name of a file|No model file"):
        nefele.load(name)
    if name != "a" * 300:
        with pytest.raises(ValueError, match="must be the name of a file"):
            GTVRegressor(ROADS, node="town").fit(X, Y).save(name)


def test_who_may_read_a_file_stays_the_same_and_links_stay_links(tmp_path):
    model = GTVRegressor(ROADS, node="town").fit(X, Y)
    model.save(tmp_path / "private")
    (tmp_path / "private").chmod(0o600)
    (tmp_path / "link").symlink_to(tmp_path / "private")
    model.save(tmp_path / "link", rows=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    assert nefele.load(tmp_path / "private")._rows is not None


def test_a_claimed_gap_is_computed_again_from_the_rows(full):
    honest = nefele.load(full).dual_gap_

    def boast(facts, arrays):
        facts["fitted"]["dual_gap_"] = 0.0
        part = facts["fitted"]["coef_"]["array"]
        arrays[part] = arrays[part] + 1.0

    rewrite(full, boast)
    again = nefele.load(full)
    assert again.dual_gap_ > 0.01 > honest and again.status_ == "uncertified"


def test_a_small_file_does_not_become_large_in_memory(tmp_path, saved):
    with np.load(saved) as file:
        arrays = dict(file)
    arrays["a0"] = np.zeros(10**8)
    bomb = tmp_path / "bomb"
    with bomb.open("wb") as out:
        np.savez_compressed(out, **arrays)
    assert bomb.stat().st_size < 10**6
    tracemalloc.start()
    with pytest.raises(ValueError, match="it is damaged or another kind of file"):
        nefele.load(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**7
