"""Inputs that surprised new users: what they get must be right, or an error that says why."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import LeaveOneOut

import nefele
from nefele import (
    DataWarning,
    ForwardWithinNode,
    GraphSignalSmoother,
    GTVClassifier,
    GTVClassifierCV,
    GTVRegressor,
    GTVRegressorCV,
    bootstrap_intervals,
)
from nefele.estimators import MomentsKNN, SpatialKNN
from nefele.losses import Logistic
from tests.estimators.data import ROADS, TOWNS, towns

CHAIN = nefele.graphs.chain(5)


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    ids = np.arange(n) % 5
    return X, 2 * X["a"].to_numpy() + ids + rng.normal(size=n), ids


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("off", [1e5, -1e7])
def test_a_target_far_from_zero_shifts_the_predictions_only(off, loss):
    X, y, ids = table()
    plain = GTVRegressor(CHAIN, alpha=0.5, loss=loss, tol=1e-9).fit(X, y, node_ids=ids)
    moved = GTVRegressor(CHAIN, alpha=0.5, loss=loss).fit(X, y + off, node_ids=ids)
    away = moved.predict(X, node_ids=ids) - off - plain.predict(X, node_ids=ids)
    assert np.abs(away).max() < 1e-2
    with pytest.warns(DataWarning, match="not connected to any data"):
        lost = GTVRegressor(nefele.Graph.from_edges([(0, 1), (8, 9)]), loss=loss).fit(
            X[ids < 2], y[ids < 2] + off, node_ids=ids[ids < 2]
        )
    assert lost.intercept_[lost.graph_.positions(np.array([8, 9]))].tolist() == [0.0, 0.0]


def test_a_target_far_from_zero_with_a_warm_start():
    X, y, ids = table()
    model = GTVRegressor(CHAIN, alpha=0.5, tol=1e-8)
    for part in (slice(0, 30), slice(30, 60)):
        model.partial_fit(X[part], y[part] + 1e6, node_ids=ids[part])
    whole = GTVRegressor(CHAIN, alpha=0.5, tol=1e-8).fit(X, y + 1e6, node_ids=ids)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, atol=1e-3)


@pytest.mark.parametrize("constant", [0.0, 1.0, 0.1, -7e8])
def test_a_constant_column_is_no_obstacle(constant):
    X, y, ids = table()
    plain = GTVRegressor(CHAIN, standardize=True, tol=1e-8).fit(X, y, node_ids=ids)
    more = X.assign(c=constant)
    model = GTVRegressor(CHAIN, standardize=True, tol=1e-8).fit(more, y, node_ids=ids)
    assert model.status_ == "optimal" and (model.coef_[:, 2] == 0).all()
    np.testing.assert_allclose(model.coef_[:, :2], plain.coef_, atol=1e-4)


def test_intervals_ask_for_node_ids_and_take_arrays():
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", alpha=0.1).fit(X, y)
    found = bootstrap_intervals(model, n_boot=5)
    low = found.predict(X[:4])[0]
    with pytest.warns(UserWarning, match="valid feature names"):  # as the model's predict
        np.testing.assert_array_equal(found.predict(X[:4].to_numpy(dtype=object))[0], low)
    plain = X.drop(columns="town")
    model = GTVRegressor(ROADS, alpha=0.1).fit(plain, y, node_ids=X["town"])
    with pytest.raises(ValueError, match="pass the node of each row"):
        bootstrap_intervals(model, n_boot=5).predict(plain[:4])


def test_ordered_categories_are_times():
    months = ["jan", "feb", "mar", "apr", "may"]
    rows = pd.DataFrame({"month": pd.Categorical(months, categories=months, ordered=True)})
    split = list(ForwardWithinNode(2, time="month").split(rows, groups=["a"] * 5))
    assert [(a.tolist(), b.tolist()) for a, b in split] == [([0, 1, 2], [3]), ([0, 1, 2, 3], [4])]
    late = pd.DataFrame({"t": pd.to_timedelta([1, 2, None, 4, 5], unit="h")})
    with pytest.raises(ValueError, match="time must not be missing; it is at row 2"):
        list(ForwardWithinNode(2, time="t").split(late, groups=["a"] * 5))


BOTH = pytest.mark.parametrize("penalty", ["auto", "l2"])


@BOTH
def test_a_scorer_sees_the_rows_themselves(penalty):
    X, y = towns()
    seen = []

    def warm_only(model, X, y):
        seen.append(list(X.columns))
        error = (model.predict(X) - y) ** 2
        again = (model.predict(X.iloc[:3]) - y[:3]) ** 2  # other rows are predicted as well
        np.testing.assert_allclose(again, error[:3])
        return -float(error[X["tmin"].to_numpy() > 0].mean())

    options = {"node": "town", "penalty": penalty, "n_alphas": 2}
    model = GTVRegressorCV(ROADS, cv=2, scoring=warm_only, **options).fit(X, y)
    assert seen[0] == list(X.columns) and np.isfinite(model.best_score_)
    with pytest.raises(ValueError, match="scoring must take sample_weight"):
        GTVRegressorCV(ROADS, scoring=warm_only, **options).fit(X, y, np.full(len(y), 2.0))
    with pytest.raises(ValueError, match="scoring must be one scorer"):
        GTVRegressorCV(ROADS, scoring=["r2"], **options).fit(X, y)
    with (
        pytest.raises(ValueError, match="gave no number in any fold"),
        pytest.warns(UserWarning, match="not well-defined"),
    ):
        GTVRegressorCV(ROADS, cv=LeaveOneOut(), scoring="r2", **options).fit(X, y)


@BOTH
def test_rounding_is_no_gain(penalty):
    X, _, ids = table()
    for y in (np.ones(60), 2 * X["a"] + 1):
        model = GTVRegressorCV(CHAIN, penalty=penalty, n_alphas=4).fit(X, y, node_ids=ids)
        assert not model.coupling_helps_ and "does not help" in model.summary()


@BOTH
def test_one_split_has_no_standard_error(penalty):
    X, y, ids = table()
    split = [(np.arange(40), np.arange(40, 60))]
    model = GTVRegressorCV(CHAIN, penalty=penalty, n_alphas=4, cv=split).fit(X, y, node_ids=ids)
    assert "nan" not in model.summary()


def test_coordinates_beside_latitude_and_longitude_are_refused():
    X, y = towns()
    places = pd.DataFrame({"lat": range(60, 66), "lon": range(20, 26), "height": 1.0}, index=TOWNS)
    with pytest.raises(ValueError, match=r"latitude and longitude alone.*got also height"):
        GTVRegressor(SpatialKNN(1), node="town", coords=places).fit(X, y)


def test_one_value_everywhere_is_one_cluster():
    found = GraphSignalSmoother(ROADS, alpha=4.0).fit(TOWNS[:2], [1.0, 5.0])
    assert np.ptp(found.signal_) < 1e-9 and found.clusters_.max() == 0
    assert GraphSignalSmoother(alpha=0.1).fit(np.eye(3), [1.0, 2.0, 3.0]).predict().shape == (3,)
    with pytest.raises(ValueError, match="alphas must"):
        GraphSignalSmoother(ROADS, alphas=1.0).fit(TOWNS[:2], [1.0, 5.0])
    with pytest.warns(DataWarning, match=r"alpha=0 couples nothing.*Use alpha > 0"):
        GraphSignalSmoother(ROADS, alpha=0.0).fit(TOWNS[:2], [1.0, 5.0])


def test_rows_of_weight_zero_bring_no_class():
    X, y, ids = table()
    labels = np.where(y > 4, "c", np.where(y > 2, "b", "a"))
    loss = Logistic(l2=0.01)
    on = labels != "a"
    weighted = GTVClassifier(CHAIN, loss=loss).fit(X, labels, on * 1.0, node_ids=ids)
    fewer = GTVClassifier(CHAIN, loss=loss).fit(X[on], labels[on], node_ids=ids[on])
    assert weighted.classes_.tolist() == ["b", "c"]
    np.testing.assert_array_equal(weighted.coef_, fewer.coef_)


@BOTH
def test_a_class_that_some_folds_lack_is_held_there_and_judged(penalty):
    X, _, ids = table()
    labels = np.array(["a", "b"] * 30, dtype=object)
    labels[7] = "rare"
    model = GTVClassifierCV(CHAIN, penalty=penalty, n_alphas=2, cv=2)
    model.fit(X, labels.astype(str), node_ids=ids)
    assert model.classes_.tolist() == ["a", "b", "rare"]
    assert (
        np.isfinite(model.cv_results_["mean_test_score"]).all() and np.isfinite(model.coef_).all()
    )


class Strange(MomentsKNN):
    def fit_graph(self, rows):
        return pd.DataFrame()


def test_errors_name_the_cause():
    X, y = towns()
    with pytest.raises(ValueError, match="Did you mean 'Hanko' by 'hanko'"):
        GTVRegressor(ROADS, node="town").fit(X, y).predict(X.replace("Hanko", "hanko"))
    with pytest.raises(ValueError, match="Did you mean 'Hanko' by 'Hanko '"):
        GTVRegressor(ROADS, node="town").fit(X.replace("Hanko", "Hanko "), y)
    with pytest.warns(nefele.DataWarning, match=r'"day" is left out: its times lie within one day'):
        GTVRegressor(ROADS, node="town").fit(X.assign(day=pd.Timestamp("2026-01-01")), y)
    with pytest.raises(ValueError, match=r"fit_graph of Strange must return a nefele\.Graph"):
        GTVRegressor(Strange(), node="town").fit(X, y)
    with pytest.raises(ValueError, match="needs features; X has none"):
        GTVRegressor(MomentsKNN(target=False), node="town").fit(X[["town"]], y)
    with pytest.raises(ValueError, match=r"of one type; got NoneType, str"):
        GTVClassifier(ROADS, node="town").fit(X, [None, *["a"] * (len(y) - 1)])
    model = GTVRegressor(ROADS, node="town").fit(X, y)
    model.set_params(fit_intercept=False).partial_fit(X, y)
    assert (model.intercept_ == 0).all()


def rewritten(path, change):
    """The model file with changed facts and arrays."""
    with np.load(path) as file:
        arrays = dict(file)
    facts = json.loads(bytes(arrays["facts"]).decode())
    change(facts, arrays)
    arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    np.savez(path.with_suffix(".npz"), **arrays)
    return path.with_suffix(".npz")


def halve(facts, arrays):
    name = facts["fitted"]["coef_"]["array"]
    arrays[name] = arrays[name][:3]


def spoil(facts, arrays):
    name = facts["fitted"]["coef_"]["array"]
    arrays[name] = np.full_like(arrays[name], np.nan)


@pytest.mark.parametrize(
    "change",
    [
        halve,
        spoil,
        lambda facts, arrays: facts["fitted"].update(evil_=1.0),
        lambda facts, arrays: facts["params"].update(alpha="x"),
        lambda facts, arrays: facts["fitted"].pop("graph_"),
        lambda facts, arrays: facts["fitted"].pop("intercept_"),
        lambda facts, arrays: facts.update({"class": "GTVClassifier"}),
    ],
)
def test_files_whose_parts_do_not_fit_are_refused(change, tmp_path):
    X, y = towns()
    GTVRegressor(ROADS, node="town").fit(X, y).save(tmp_path / "model.nefele")
    assert nefele.load(rewritten(tmp_path / "model.nefele", lambda facts, arrays: None))
    with pytest.raises(ValueError, match="damaged or another kind of file"):
        nefele.load(rewritten(tmp_path / "model.nefele", change))


def test_saved_files_can_be_read_like_other_files(tmp_path):
    X, y = towns()
    GTVRegressor(ROADS, node="town").fit(X, y).save(tmp_path / "model.nefele")
    (tmp_path / "other").write_text("")
    modes = [os.stat(tmp_path / name).st_mode for name in ("model.nefele", "other")]
    assert modes[0] == modes[1]
