"""Estimators on tables as people have them: text, truth values, dates, gaps."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import nefele
from nefele.estimators import fitting
from nefele.estimators.design import Rows

N = 240


def houses(seed=0):
    rng = np.random.default_rng(seed)
    area = rng.normal(size=N)
    roof = rng.choice(["tin", "tile", "wood"], N)
    days = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1400, N), unit="D")
    towns = rng.choice(list("abcdef"), N)
    X = pd.DataFrame({"town": towns, "area": area, "roof": roof, "sold": days})
    X["garden"] = rng.choice([True, False], N)
    X["coast"] = X["town"].map(dict(zip("abcdef", [1.0, 0, 1, 0, 0, 1], strict=True)))
    X.loc[rng.random(N) < 0.15, "area"] = np.nan
    y = area + 2.0 * (roof == "tile") + X["garden"] + 0.1 * rng.normal(size=N)
    return X, y.to_numpy()


def as_polars(X):
    return pl.DataFrame({name: X[name].tolist() for name in X.columns}, nan_to_null=True)


FEATURES = [
    "area", "area (missing)", "roof=tin", "roof=tile", "roof=wood", "sold year", "sold sin",
    "sold cos", "garden", "coast",
]  # fmt: skip


@pytest.mark.parametrize("convert", [lambda X: X, as_polars], ids=["pandas", "polars"])
def test_fit_save_load_and_predict(convert, tmp_path):
    X, y = houses()
    X = convert(X)
    model = nefele.GTVRegressor(node="town", alpha=0.1).fit(X, y)
    reference = {"roof=tin", "roof=tile", "roof=wood"} - set(model.feature_names_in_)
    assert len(reference) == 1  # the commonest
    assert {*model.feature_names_in_, *reference} == set(FEATURES)
    assert model.coef_.shape == (6, 9)
    assert model.group_level_ == ["coast"] == model.encoder_.group_level_
    assert model.score(X, y) > 0.6
    model.save(tmp_path / "m.nefele", rows=True)
    again = nefele.load(tmp_path / "m.nefele")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.encoder_.summary() == model.encoder_.summary()
    assert again.group_level_ == ["coast"]
    np.testing.assert_array_equal(again._rows.gaps, model._rows.gaps)
    more = again.partial_fit(X, y)
    np.testing.assert_allclose(more.predict(X), model.predict(X), atol=0.05)


def test_a_plain_table_is_fitted_as_before():
    X, y = houses()
    X = X[["town", "garden", "coast"]].assign(area=np.arange(N) / N)
    model = nefele.GTVRegressor(node="town", alpha=0.1).fit(X, y)
    assert not hasattr(model, "encoder_")
    plain = nefele.GTVRegressor(alpha=0.1).set_params(graph=model.graph_)
    plain.fit(X.drop(columns="town").to_numpy(float), y, node_ids=X["town"])
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    assert model.group_level_ == ["coast"] and plain.group_level_ == [1]


def test_a_model_forgets_the_encoder_of_an_earlier_fit():
    X, y = houses()
    model = nefele.GTVRegressor(node="town", alpha=0.1).fit(X, y)
    model.fit(X[["town", "garden"]], y)
    assert not hasattr(model, "encoder_") and model.coef_.shape == (6, 1)


@pytest.mark.parametrize("penalty", ["auto", "l2"])
def test_classes_and_cross_validation(penalty):
    X, y = houses()
    options = {"n_alphas": 3, "cv": 2, "loss": nefele.losses.Logistic(0.01)}
    model = nefele.GTVClassifierCV(node="town", penalty=penalty, **options)
    model.fit(X, np.where(y > 1, "dear", "cheap"))
    assert model.predict(X).tolist()[:3] == model.best_estimator_.predict(X).tolist()[:3]
    assert model.encoder_.get_feature_names_out().tolist() == model.feature_names_in_.tolist()
    assert model.group_level_ == ["coast"]


def test_what_is_left_out_is_said():
    X, y = houses()
    X["owner"] = [f"p{i}" for i in range(N)]
    with pytest.warns(nefele.DataWarning, match='"owner" is left out: almost every row'):
        model = nefele.GTVRegressor(node="town", alpha=0.1).fit(X, y)
    assert not any("owner" in name for name in model.feature_names_in_)


def test_new_levels_new_nodes_and_lost_columns():
    X, y = houses()
    model = nefele.GTVRegressor(node="town", alpha=0.1, unseen="pooled").fit(X, y)
    one = X.head(1).assign(roof="gold")
    each = [model.predict(one.assign(roof=roof))[0] for roof in ("tin", "tile", "wood")]
    assert min(each) < model.predict(one)[0] < max(each)
    assert np.isfinite(model.predict(one.assign(town="z"))).all()
    with pytest.raises(ValueError, match='must have the column "roof"'):
        model.predict(X.drop(columns="roof"))
    with pytest.raises(ValueError, match="needs one to predict; got"):
        model.predict(X.drop(columns="town").to_numpy(), node_ids=X["town"])
    with pytest.raises(ValueError, match='"area" must hold numbers'):
        model.predict(X.assign(area="large"))
    assert model.predict(X.assign(unknown=1.0)).shape == (N,)


def test_infinite_numbers_are_refused_as_before():
    X, y = houses()
    X.loc[3, "area"] = np.inf
    with pytest.raises(ValueError, match="must not contain NaN or inf; got inf in column 'area'"):
        nefele.GTVRegressor(node="town").fit(X, y)


def test_gaps_are_filled_inside_the_folds():
    """A value that only held-out rows have must not reach the training rows through a fill."""
    X = np.array([[1.0], [3.0], [0.0], [1000.0], [0.0]])
    gaps = np.array([[False], [False], [True], [False], [True]])
    rows = Rows(X, np.zeros(5), np.array(list("aabab")), np.ones(5), gaps)
    train, held = rows.take(np.array([0, 1, 2])), rows.take(np.array([3, 4]))
    assert train.filled_by(train).X.ravel().tolist() == [1.0, 3.0, 2.0]
    assert held.filled_by(train).X.ravel().tolist() == [1000.0, 2.0]
    assert rows.X[2, 0] == 0.0


def test_held_out_values_do_not_change_the_folds_models():
    X, y = houses()
    train, test = np.arange(0, N, 2), np.arange(1, N, 2)
    found = []
    for shift in (0.0, 1e3):
        moved, seen = X.copy(), []
        moved.loc[test, "area"] += shift
        graph = nefele.Graph(list("abcdef"), range(5), range(1, 6))
        model = nefele.GTVRegressor(graph, node="town")
        rows = fitting.take_rows(model, moved, y)
        fitting.run_fold(model, rows, (train, test), np.array([0.1]), told=seen.append)
        found.append(seen[0].w)
    np.testing.assert_allclose(found[1], found[0], atol=1e-8)


def test_a_file_with_another_encoder_is_refused(tmp_path):
    X, y = houses()
    model = nefele.GTVRegressor(node="town", alpha=0.1).fit(X, y)
    model.encoder_ = nefele.TableEncoder().fit(X[["roof"]])
    model.save(tmp_path / "m.nefele")
    with pytest.raises(ValueError, match="damaged or another kind"):
        nefele.load(tmp_path / "m.nefele")
