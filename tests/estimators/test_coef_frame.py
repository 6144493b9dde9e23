"""The models of all nodes as a table."""

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

import nefele
from nefele import GTVClassifier, GTVClassifierCV, GTVRegressor, GTVRegressorCV
from tests.estimators.data import ROADS, TOWNS, towns

CENTRE = {"penalty": "squared_l2", "hub": 0.5}


def counts(X, nodes):
    return [int((X["town"] == node).sum()) for node in nodes]


def labels(y, n):
    """Classes 0 to n - 1 of equally many rows."""
    return np.argsort(np.argsort(y)) * n // len(y)


def test_one_row_per_node_with_its_model_and_the_number_of_its_rows():
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", alpha=0.3).fit(X, y)
    table = model.coef_frame()
    assert isinstance(table, pl.DataFrame)
    assert table.columns == ["node", "tmin", "wind", "intercept", "rows"]
    assert table["node"].to_list() == model.nodes_.tolist()
    assert sorted(table["node"]) == sorted(TOWNS)
    np.testing.assert_array_equal(table.select("tmin", "wind").to_numpy(), model.coef_)
    np.testing.assert_array_equal(table["intercept"], model.intercept_)
    assert table["rows"].to_list() == counts(X, model.nodes_)
    assert table["rows"].dtype == pl.Int64


def test_the_centre_is_the_last_row():
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", alpha=0.3, **CENTRE).fit(X, y)
    table = model.coef_frame()
    assert table["node"].to_list() == [*model.nodes_.tolist(), "(centre)"]
    last = table.row(-1, named=True)
    assert [last["tmin"], last["wind"]] == model.centre_coef_.tolist()
    assert (last["intercept"], last["rows"]) == (model.centre_intercept_, 0)


def test_the_centre_has_a_name_of_its_own():
    X, y = towns()
    ids = np.where(X["town"] == "Oulu", "(centre)", X["town"])
    model = GTVRegressor(alpha=0.3, penalty="squared_l2", hub=1.0)
    found = model.fit(X[["tmin", "wind"]], y, node_ids=ids).coef_frame()["node"]
    assert found[-1] == "((centre))" and found.n_unique() == len(found)


def test_ids_that_are_numbers_become_text():
    X, y = towns()
    ids = np.array([TOWNS.index(town) for town in X["town"]])
    model = GTVRegressor(alpha=0.3, penalty="squared_l2", hub=1.0)
    table = model.fit(X[["tmin", "wind"]], y, node_ids=ids).coef_frame()
    assert table["node"].to_list() == ["0", "1", "2", "3", "4", "(centre)"]


def test_arrays_have_numbered_columns_and_weights_are_summed():
    X, y = towns()
    weight = np.linspace(0.5, 2.0, len(y))
    model = GTVRegressor(ROADS, alpha=0.3)
    model.fit(X[["tmin", "wind"]].to_numpy(), y, sample_weight=weight, node_ids=X["town"])
    table = model.coef_frame()
    assert table.columns == ["node", "x0", "x1", "intercept", "rows"]
    expected = [weight[X["town"] == node].sum() for node in model.nodes_]
    np.testing.assert_allclose(table["rows"], expected)


def test_features_with_the_names_of_other_columns_stay_apart():
    X, y = towns()
    X = X.rename(columns={"tmin": "rows", "wind": "intercept"})
    model = GTVRegressor(ROADS, node="town", alpha=0.3).fit(X, y)
    table = model.coef_frame()
    assert table.columns == ["node", "rows_", "intercept_", "intercept", "rows"]
    np.testing.assert_array_equal(table["rows_"], model.coef_[:, 0])
    np.testing.assert_array_equal(table["intercept"], model.intercept_)


def test_two_classes_have_one_row_per_node():
    X, y = towns()
    model = GTVClassifier(ROADS, node="town", alpha=0.3).fit(X, y > np.median(y))
    table = model.coef_frame()
    assert table.columns == ["node", "tmin", "wind", "intercept", "rows"]
    np.testing.assert_array_equal(table["intercept"], model.intercept_)


def test_more_classes_have_one_row_per_node_and_class():
    X, y = towns()
    kinds = np.array(["cold", "mild", "warm"])[labels(y, 3)]
    model = GTVClassifier(ROADS, node="town", alpha=0.3, **CENTRE).fit(X, kinds)
    table = model.coef_frame()
    assert table.columns == ["node", "class", "tmin", "wind", "intercept", "rows"]
    assert table.height == 3 * (len(TOWNS) + 1)
    for i, node in enumerate(model.nodes_):
        part = table.filter(pl.col("node") == node)
        assert part["class"].to_list() == model.classes_.tolist()
        np.testing.assert_array_equal(part.select("tmin", "wind").to_numpy(), model.coef_[i])
        np.testing.assert_array_equal(part["intercept"], model.intercept_[i])
        assert part["rows"].unique().to_list() == counts(X, [node])
    centre = table.filter(pl.col("node") == "(centre)")
    np.testing.assert_array_equal(centre["wind"], model.centre_coef_[:, 1])


@pytest.mark.parametrize("estimator", [GTVRegressorCV, GTVClassifierCV])
def test_the_forms_that_choose_give_the_table_of_their_final_fit(estimator):
    X, y = towns()
    target = y if estimator is GTVRegressorCV else labels(y, 2)
    model = estimator(ROADS, node="town").fit(X, target)
    table = model.coef_frame()
    assert table.equals(model.best_estimator_.coef_frame())
    assert table["node"][-1] == "(centre)"
    np.testing.assert_array_equal(table["tmin"][:-1], model.coef_[:, 0])


def test_a_model_that_was_saved_without_rows_does_not_know_their_number(tmp_path):
    X, y = towns()
    model = GTVRegressor(ROADS, node="town", alpha=0.3, **CENTRE).fit(X, y)
    model.save(tmp_path / "bare")
    model.save(tmp_path / "whole", rows=True)
    bare = nefele.load(tmp_path / "bare").coef_frame()
    assert bare["rows"].dtype == pl.Int64 and bare["rows"].null_count() == bare.height
    assert bare.drop("rows").equals(model.coef_frame().drop("rows"))
    assert nefele.load(tmp_path / "whole").coef_frame().equals(model.coef_frame())


@pytest.mark.parametrize("model", [GTVRegressor(), GTVClassifierCV()])
def test_an_unfitted_model_has_no_table(model):
    with pytest.raises(NotFittedError):
        model.coef_frame()


def test_without_features_there_are_levels():
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(12), 6)
    frame = pl.DataFrame({"g": ids})
    model = nefele.GTVRegressorCV(node="g").fit(frame, rng.normal(size=12)[ids])
    assert model.coef_frame().columns == ["node", "intercept", "rows"]
    assert "intercept_low" in model.coef_frame(level=0.9).columns
