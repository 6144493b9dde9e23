"""Which columns of a file a run uses: row numbers and empty ones not, text and dates yes."""

import numpy as np
import polars as pl
import pytest

from nefele.runs.checks import examine
from nefele.runs.config import RunConfig
from nefele.runs.inputs import read_inputs

N = 60


def mixed(**more):
    rng = np.random.default_rng(0)
    node = np.array([f"n{i:02d}" for i in range(6)])[np.arange(N) % 6]
    columns = {"id": node, "x": rng.normal(size=N), "y": rng.normal(size=N), **more}
    return pl.DataFrame(columns, strict=False)


def read(tmp_path, frame, **options):
    path = tmp_path / "data.csv"
    frame.write_csv(path)
    return read_inputs(RunConfig(str(path), "id", "y", **options))


def checked(tmp_path, frame):
    path = tmp_path / "data.csv"
    frame.write_csv(path)
    return examine(path, "id", "y", None)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rownames", np.arange(1, N + 1)),
        ("Unnamed: 0", np.arange(N)),
        ("", np.arange(1, N + 1)),
        ("observation", np.arange(N)),
        ("rownames", np.sort(np.random.default_rng(1).permutation(1000)[:N])),
    ],
)
def test_columns_that_number_the_rows_are_no_features(tmp_path, name, values):
    frame = mixed().insert_column(0, pl.Series(name, values))
    found = read(tmp_path, frame)
    assert found.features == ("x",)
    assert any("numbers the rows" in note for note in found.notes)
    check = checked(tmp_path, frame)
    assert check.facts["features"] == ["x"]
    assert any("numbers the rows" in text for text in check.warnings)


def test_naming_such_a_column_keeps_it(tmp_path):
    frame = mixed(rownames=np.arange(N))
    assert read(tmp_path, frame, features=("x", "rownames")).features == ("x", "rownames")


@pytest.mark.parametrize(
    "values", [np.arange(N)[::-1], np.arange(N) * 2, np.arange(N) // 2, np.arange(N) + 0.5]
)
def test_other_whole_numbers_are_features(tmp_path, values):
    assert read(tmp_path, mixed(k=values)).features == ("x", "k")


def test_row_numbers_do_not_learn_the_graph(tmp_path):
    from nefele.estimators.fitting import make_graph
    from nefele.runs.pipeline import Pipeline

    plain, numbered = (
        Pipeline(
            config := RunConfig(str(tmp_path / "data.csv"), "id", "y", k=2),
            read(tmp_path, frame, k=config.k),
        )
        for frame in (mixed(), mixed(rownames=np.arange(N)))
    )
    graphs = [make_graph(p.model, p.rows) for p in (plain, numbered)]
    assert graphs[0] == graphs[1]


def test_all_kinds_of_columns(tmp_path):
    rng = np.random.default_rng(2)
    days = pl.Series(np.datetime64("2020-01-01") + rng.integers(0, 900, N)).cast(pl.Date)
    size = np.where(rng.random(N) < 0.2, None, rng.integers(10, 99, N)).tolist()
    frame = mixed(
        roof=rng.choice(["tin", "tile"], N), day=days, size=size,
        shut=rng.choice(["TRUE", "false"], N), name=[f"p{i}" for i in range(N)],
    )  # fmt: skip
    found = read(tmp_path, frame)
    assert found.features == ("x", "roof", "day", "size", "shut")
    kinds = {part.name: part.kind for part in found.parts}
    assert kinds == {
        "x": "number", "roof": "text", "day": "date", "size": "number", "shut": "boolean",
    }  # fmt: skip
    assert "size (missing)" in found.parameters and "day sin" in found.parameters
    assert found.uses.left_out == {"name": "almost every row has a text of its own"}
    parquet = tmp_path / "data.parquet"
    frame.with_columns(pl.col("shut").str.to_lowercase() == "true").write_parquet(parquet)
    same = read_inputs(RunConfig(str(parquet), "id", "y"))
    assert same.parameters == found.parameters


def test_a_fit_repeats_every_warning_of_a_check(tmp_path):
    frame = mixed(
        rownames=np.arange(N), one=np.ones(N), lat=(np.arange(N) % 6) * 1.0,
        height=(np.arange(N) % 6) * 2.0, gap=[1.5 * k if k % 7 else None for k in range(N)],
        who=[f"p{i}" for i in range(N)],
    )  # fmt: skip
    warned = checked(tmp_path, frame).warnings
    said = read(tmp_path, frame).notes
    assert len(warned) >= 5 and set(warned) <= set(said)
    assert any("Coordinates are used as features: lat" in text for text in said)
    edges = tmp_path / "edges.csv"
    edges.write_text("source,target\nn00,n01\nn02,n03\nn04,n05\nn05,far\n")
    warned = examine(tmp_path / "data.csv", "id", "y", edges).warnings
    said = read_inputs(RunConfig(str(tmp_path / "data.csv"), "id", "y", graph=str(edges))).notes
    assert any("separate parts" in text for text in warned) and set(warned) <= set(said)


def test_named_coordinates_are_no_features_and_not_warned_of(tmp_path):
    frame = mixed(lat=(np.arange(N) % 6) * 1.0, lon=(np.arange(N) % 6) * 2.0)
    found = read(tmp_path, frame, coords=("lat", "lon"), k=2)
    assert found.features == ("x",) and not any("Coordinates" in note for note in found.notes)


def test_a_feature_that_cannot_be_one_is_refused_when_named(tmp_path):
    frame = mixed(at=[f"2024-01-01T10:{i:02d}" for i in range(N)])
    with pytest.raises(ValueError, match=r'"at" cannot be a feature: its times.*hour as a number'):
        read(tmp_path, frame, features=("x", "at"))
    assert read(tmp_path, frame).features == ("x",)
