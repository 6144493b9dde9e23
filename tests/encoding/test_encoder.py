"""Tables with text, truth values, dates and gaps become numbers, and stay what they were."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import nefele
from nefele import TableEncoder
from nefele.encoding import group_level
from nefele.encoding.kinds import needs_encoding, read_column

N = 120


def columns(seed=0):
    rng = np.random.default_rng(seed)
    days = np.datetime64("2019-03-01") + rng.integers(0, 1200, N)
    gaps, sizes = rng.random(N) < 0.2, rng.normal(size=N)
    size = [None if gap else float(v) for gap, v in zip(gaps, sizes, strict=True)]
    return {
        "town": [f"t{i}" for i in rng.integers(0, 6, N)],
        "size": size,
        "roof": rng.choice(["tin", "tile", "wood"], N, p=[0.6, 0.3, 0.1]).tolist(),
        "open": rng.choice([True, False], N).tolist(),
        "built": [day.item() for day in days],
    }


TABLES = {
    "pandas": lambda data: pd.DataFrame(data),
    "polars": lambda data: pl.DataFrame(data, strict=False),
}
BOTH = pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)


@BOTH
def test_every_kind_of_column(make):
    X = make(columns())
    encoder = TableEncoder(node="town").fit(X)
    out = encoder.transform(X)
    assert type(out) is type(X)
    names = [
        "town", "size", "size (missing)", "roof=tile", "roof=wood", "open",
        "built year", "built sin", "built cos",
    ]  # fmt: skip
    assert list(out.columns) == encoder.get_feature_names_out().tolist() == names
    values = out[names[1:]].to_numpy().astype(float)
    assert np.isfinite(values).all()
    given = columns()
    missing = np.array([v is None for v in given["size"]])
    np.testing.assert_array_equal(values[:, 1], missing)
    median = np.median([v for v in given["size"] if v is not None])
    assert (values[missing, 0] == median).all()
    np.testing.assert_array_equal(values[:, 2], np.array(given["roof"]) == "tile")
    np.testing.assert_array_equal(values[:, 4], given["open"])
    day = given["built"][7]
    year = (day - day.replace(month=1, day=1)).days / (366 if day.year == 2020 else 365)
    assert values[7, 5] == pytest.approx(day.year + year - encoder.parts_[-1].origin)
    np.testing.assert_allclose(values[7, 6:], [np.sin(2 * np.pi * year), np.cos(2 * np.pi * year)])


def test_pandas_and_polars_agree():
    found = [
        TableEncoder(node="town").fit(make(columns())).transform(make(columns()))
        for make in TABLES.values()
    ]
    names = list(found[0].columns)[1:]
    np.testing.assert_array_equal(found[0][names].to_numpy(), found[1][names].to_numpy())


def test_fit_transform_and_transform_agree_and_the_index_stays():
    X = pd.DataFrame(columns(), index=np.arange(N)[::-1])
    encoder = TableEncoder(node="town")
    pd.testing.assert_frame_equal(encoder.fit_transform(X), encoder.transform(X))
    assert clone(encoder).get_params() == encoder.get_params()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", None], "number"),
        (["2024-01-31", "2024-02-01T10:00"], "date"),
        (["2024-01-31", "soon"], "text"),
        (["2024-02-31"], "text"),
        (["1", "A"], "text"),
        ([True, None, False], "boolean"),
        ([None, ""], "empty"),
    ],
)
def test_kinds_of_text(values, kind):
    for series in (pd.Series(values, dtype=object), pl.Series(values, strict=False)):
        assert read_column(series, "x").kind == kind


def test_categories_and_times_with_zones():
    X = pd.DataFrame({"size": pd.Categorical(["s", "l", "s", "s"])})
    X["at"] = pd.to_datetime(["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"], utc=True)
    assert TableEncoder().fit(X).get_feature_names_out().tolist() == ["size=l", "at year"]
    assert TableEncoder().fit(pl.DataFrame({c: X[c].to_list() for c in X})).transform(
        pl.DataFrame({c: X[c].to_list() for c in X})
    )["at year"].to_list() == pytest.approx([-1.0, 0.0, 1.0, 2.0], abs=1.01)


def test_rare_levels_are_taken_together_and_new_ones_with_them():
    X = pd.DataFrame({"roof": ["tin"] * 60 + ["tile"] * 37 + ["wood", "clay", "gold"]})
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["roof=tile", "roof (rare)"]
    new = pd.DataFrame({"roof": ["gold", "brick", "tin", None]})
    out = encoder.transform(new).to_numpy()
    assert out.tolist() == [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    assert any("'brick'" in text for text in encoder.news(new))


def test_new_levels_without_rare_ones_are_an_average_row():
    X = pd.DataFrame({"roof": ["tin"] * 60 + ["tile"] * 30 + ["wood"] * 10})
    encoder = TableEncoder().fit(X)
    assert encoder.transform(pd.DataFrame({"roof": ["brick"]})).to_numpy().tolist() == [[0.3, 0.1]]
    (note,) = encoder.news(pd.DataFrame({"roof": ["brick", "tin"]}))
    assert "1 of 2 rows" in note and "'brick'" in note


def test_levels_that_look_like_numbers_later_are_still_levels():
    X = pd.DataFrame({"code": ["1", "2", "B"] * 10})
    encoder = TableEncoder().fit(X)
    new = pd.DataFrame({"code": [1, 2]})
    text = pd.DataFrame({"code": ["1", "2"]})
    pd.testing.assert_frame_equal(encoder.transform(new), encoder.transform(text))
    assert not encoder.news(new)


def test_most_levels():
    X = pd.DataFrame({"k": [f"k{i % 50:02d}" for i in range(1000)]})
    names = TableEncoder(max_levels=10).fit(X).get_feature_names_out().tolist()
    assert len(names) == 10 and names[-1] == "k (rare)"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([f"p{i}" for i in range(40)], "a text of its own"),
        (["same"] * 40, "one value only"),
        ([None] * 40, "empty"),
        ([f"2024-01-01T10:{i:02d}" for i in range(40)], "within one day.*hour as a number"),
    ],
)
def test_columns_that_say_nothing_are_left_out_with_a_reason(values, why):
    X = pd.DataFrame({"x": np.arange(40.0), "odd": pd.Series(values, dtype=object)})
    encoder = TableEncoder().fit(X)
    assert encoder.get_feature_names_out().tolist() == ["x"]
    assert re.search(why, encoder.left_out_["odd"])
    assert "odd: left out" in encoder.summary()


def test_a_season_needs_a_year():
    X = pd.DataFrame({"d": pd.date_range("2024-01-01", periods=100)})
    assert TableEncoder().fit(X).get_feature_names_out().tolist() == ["d year"]
    X = pd.DataFrame({"d": pd.to_datetime([f"{year}-06-01" for year in range(1990, 2020)])})
    assert TableEncoder().fit(X).get_feature_names_out().tolist() == ["d year"]


def test_group_level_features():
    X = pd.DataFrame(columns())
    X["inhabitants"] = X["town"].map({f"t{i}": 10.0 * i for i in range(6)})
    X["region"] = X["town"].map({f"t{i}": "north" if i < 3 else "south" for i in range(6)})
    encoder = TableEncoder(node="town").fit(X)
    assert encoder.group_level_[0] == "inhabitants" and len(encoder.group_level_) == 2
    again = TableEncoder().fit(X.drop(columns="town"), node_ids=X["town"])
    assert again.group_level_ == encoder.group_level_
    assert not group_level(np.eye(3), np.array(["a", "b", "c"])).any()


def test_errors_say_what_must_hold():
    X = pd.DataFrame(columns())
    encoder = TableEncoder(node="town").fit(X)
    with pytest.raises(ValueError, match='must have the column "roof"; got town, size'):
        encoder.transform(X.drop(columns="roof"))
    with pytest.raises(ValueError, match=r'"size" must hold numbers.*got .tall. in row 0'):
        encoder.transform(X.assign(size="tall"))
    with pytest.raises(ValueError, match=r'"built" must hold dates such as 2026-01-31.*got .3'):
        encoder.transform(X.assign(built=3))
    with pytest.raises(ValueError, match="needs a table of pandas or polars; got"):
        TableEncoder().fit(np.eye(3))
    with pytest.raises(ValueError, match="min_count must be an integer >= 1"):
        TableEncoder(min_count=0).fit(X)
    with pytest.raises(ValueError, match=r'"open" must hold numbers.*it holds list'):
        TableEncoder().fit(X.assign(open=[[1]] * N))
    with pytest.raises(ValueError, match=r'"size \(missing\)" would be there twice'):
        TableEncoder().fit(X.assign(**{"size (missing)": 1.0}))
    with pytest.raises(ValueError, match="at least one row"):
        TableEncoder().fit(X.head(0))


def test_the_state_is_json_and_gives_the_same_encoder_back():
    X = pd.DataFrame(columns())
    encoder = TableEncoder(node="town", min_count=3).fit(X)
    again = TableEncoder.from_state(json.loads(json.dumps(encoder.to_state(), allow_nan=False)))
    pd.testing.assert_frame_equal(again.transform(X), encoder.transform(X))
    assert again.summary() == encoder.summary() and again.group_level_ == encoder.group_level_


@pytest.mark.parametrize(
    "hurt",
    [
        lambda s: s.pop("parts"),
        lambda s: s["parts"][0].update({"is": "eval"}),
        lambda s: s["parts"][0].update(fill=float("nan")),
        lambda s: s["parts"][0].update(fill="1"),
        lambda s: s["parts"][0].update(extra=1),
        lambda s: s["parts"][1].update(shares=[0.1]),
        lambda s: s["parts"][1].update(shares=[2.0, 0.1]),
        lambda s: s["parts"][1].update(levels=["tin", "wood"]),
        lambda s: s["parts"][1].update(rare=True),
        lambda s: s["parts"][3].update(parts=["year", "__class__"]),
        lambda s: s["parts"].append(s["parts"][0]),
        lambda s: s.update(columns=[]),
        lambda s: s.update(min_count=-1),
        lambda s: s.update(left_out=[1]),
    ],
)
def test_hostile_states_are_refused(hurt):
    state = TableEncoder().fit(pd.DataFrame(columns()).drop(columns="town")).to_state()
    hurt(state)
    with pytest.raises(ValueError, match="must be that of a TableEncoder"):
        TableEncoder.from_state(state)


def test_in_a_pipeline():
    X = pd.DataFrame(columns())
    y = np.where(X["roof"] == "tin", 2.0, 0.0) + np.random.default_rng(1).normal(size=N)
    model = make_pipeline(TableEncoder(node="town"), nefele.GTVRegressor(node="town", alpha=0.1))
    direct = nefele.GTVRegressor(node="town", alpha=0.1).fit(X, y)
    np.testing.assert_allclose(model.fit(X, y).predict(X), direct.predict(X), atol=1e-10)


def test_plain_tables_need_nothing():
    assert not needs_encoding(pd.DataFrame({"a": [1, 2], "b": [True, False], "c": ["1", "2.5"]}))
    assert not needs_encoding(pl.DataFrame({"a": [1, 2], "b": [True, False]}))
    for odd in (
        [1.0, None],
        ["a", "b"],
        [np.datetime64("2020-01-01"), np.datetime64("2021-01-01")],
    ):
        assert needs_encoding(pd.DataFrame({"a": odd}))
