"""What users write into their files: times, decimal commas, names, missing values, classes."""

import gzip
import json

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression

from nefele.runs.split import hold_out
from tests.e2e.commands import FIT, QUICK, edges, refused, run, weather

FAST = ("--alpha", "1", "--n-alphas", "2")
NODE = ("--node", "station", "--target", "tmax")


@pytest.fixture
def home(tmp_path):
    weather().write_csv(tmp_path / "weather.csv")
    edges().write_csv(tmp_path / "edges.csv")
    return tmp_path


def test_impossible_times_are_refused_with_row_and_value(home):
    data = weather()
    data[5, "date"] = "2023-13-45"
    data.write_csv(home / "weather.csv")
    text = refused(*FIT, "--time", "date", cwd=home)
    assert "'2023-13-45' at line 7" in text and "ISO 8601" in text


def test_decimal_commas_are_named_by_check_and_fit(home):
    text = weather().drop("date").write_csv(separator=";").replace(".", ",")
    (home / "comma.csv").write_text(text)
    done = run("check", "comma.csv", *NODE, cwd=home)
    assert done.returncode == 2 and "classification" not in done.stdout + done.stderr
    assert 'column "tmax" must hold numbers' in done.stderr
    for more in ((), ("--features", "lon"), ("--task", "classification")):
        said = refused("fit", "comma.csv", *NODE, *more, cwd=home)
        assert "This is a decimal comma" in said and "classification" not in said


def test_texts_of_their_own_are_no_classes(home):
    names = [f"day {i}" for i in range(120)]
    weather().with_columns(pl.Series("tmax", names)).write_csv(home / "weather.csv")
    done = run("check", "weather.csv", *NODE, cwd=home)
    assert done.returncode == 2 and "no classes either" in done.stderr
    said = refused(*FIT, cwd=home)
    assert "no classes either" in said and "--task" not in said
    assert "classes that rows share" in refused(*FIT, "--task", "classification", cwd=home)


def test_one_class_is_refused_with_advice(home):
    weather().with_columns(pl.lit("warm").alias("tmax")).write_csv(home / "weather.csv")
    said = refused(*FIT, "--task", "classification", cwd=home)
    assert "every row has 'warm'. Name another --target" in said and "GTV" not in said


def test_a_feature_called_intercept_is_refused_before_any_work(home):
    weather().rename({"wind": "intercept"}).write_csv(home / "odd.csv")
    assert '"intercept"' in refused("fit", "odd.csv", *NODE, cwd=home)
    assert '"intercept"' in refused("fit", "odd.csv", *NODE, "--features", "intercept", cwd=home)
    assert run("check", "odd.csv", *NODE, cwd=home).returncode == 2
    assert not list(home.glob("nefele-run-*"))


def test_features_called_as_other_columns_are_kept(home):
    names = {"wind": "node", "pressure": "node id"}
    weather().rename(names).write_csv(home / "odd.csv")
    args = ("fit", "odd.csv", *NODE, "--features", "node,node id", "--out", "odd", *FAST)
    assert run(*args, cwd=home).returncode == 0
    columns = pl.read_csv(home / "odd/coef.csv").columns
    assert columns == ["node id id", "node", "node id", "intercept"]


@pytest.mark.parametrize("coords", ["lat,lon,lat", "lat,lon,wind", "lat"])
def test_coordinates_are_two(home, coords):
    assert "two different columns" in refused(*FIT, "--coords", coords, cwd=home)


def test_empty_lists_are_refused(home):
    said = refused("fit", "weather.csv", *NODE, "--features", "", cwd=home)
    assert "--features must have names" in said and "Leave the option out" in said


def test_edges_without_an_end_can_be_dropped(home):
    text = edges().write_csv() + "000,\n"
    (home / "edges.csv").write_text(text)
    args = (*FIT, "--graph", "edges.csv", *FAST)
    assert "use --drop-missing" in refused(*args, cwd=home)
    done = run(*args, "--drop-missing", cwd=home)
    assert done.returncode == 0, done.stderr
    assert "1 of 10 edges of edges.csv are left out" in done.stdout


def test_leaving_a_column_out_is_advised_for_features_only(home):
    data = weather().with_columns(pl.col("tmax", "wind").cast(pl.String))
    data[3, "tmax"] = "calm"
    data.write_csv(home / "odd.csv")
    assert "--features" not in refused("fit", "odd.csv", *FIT[2:], cwd=home)
    links = edges().with_columns(pl.lit("1").alias("weight"))
    links[2, "weight"] = "strong"
    links.write_csv(home / "odd_edges.csv")
    said = refused(*FIT, "--graph", "odd_edges.csv", cwd=home)
    assert "'strong' at line 4" in said and "--features" not in said
    data[3, "wind"] = "calm"
    data.write_csv(home / "odd.csv")
    assert "leave the column out by --features" in refused("fit", "odd.csv", *FIT[2:], cwd=home)


def test_gzip_is_read(home):
    with gzip.open(home / "packed.csv.gz", "wb") as file:
        file.write((home / "weather.csv").read_bytes())
    args = (*FIT[2:], "--graph", "edges.csv", *FAST)
    assert run("fit", "packed.csv.gz", *args, cwd=home).returncode == 0
    assert run("fit", "weather.csv", *args, cwd=home).returncode == 0
    found = [(home / f"nefele-run-{n}/coef.csv").read_bytes() for n in ("packed", "weather")]
    assert found[0] == found[1]
    (home / "sheet.csv").write_bytes(b"PK\x03\x04 and so on")
    assert "it is a zip or Excel file" in refused("check", "sheet.csv", *NODE, cwd=home)


def test_constant_features_are_noted(home):
    weather().with_columns(pl.lit(3.0).alias("wind")).write_csv(home / "weather.csv")
    done = run(*FIT, *FAST, cwd=home)
    assert done.returncode == 0 and "Columns with one value only: wind" in done.stdout


def test_one_node_has_no_neighbours(home):
    weather().filter(pl.col("station") == "000").write_csv(home / "weather.csv")
    done = run(*FIT, *QUICK, cwd=home)
    assert done.returncode == 0, done.stderr
    assert "There is one node only" in done.stdout and "joined to" not in done.stdout


def test_one_model_is_least_squares_on_all_training_rows(tmp_path):
    """Nodes with 4 to 40 rows: every row counts once, unless every node is to count the same."""
    rng = np.random.default_rng(7)
    ids = np.repeat([f"n{i}" for i in range(5)], [4, 8, 12, 20, 40])
    X = rng.normal(size=(len(ids), 2))
    y = X @ [1.0, -2.0] + np.repeat(np.arange(5.0), [4, 8, 12, 20, 40]) + rng.normal(size=len(ids))
    frame = pl.DataFrame({"id": ids, "a": X[:, 0], "b": X[:, 1], "y": y})
    frame.write_csv(tmp_path / "data.csv")
    args = ("fit", "data.csv", "--node", "id", "--target", "y", "--graph", "learn", *FAST)
    assert run(*args, "--tol", "1e-9", cwd=tmp_path).returncode == 0
    train, test = hold_out(ids, None, seed=0)
    pooled = LinearRegression().fit(X[train], y[train])
    error = (pooled.predict(X[test]) - y[test]) ** 2
    table = pl.read_csv(tmp_path / "nefele-run-data/metrics.csv")
    expected = [error[ids[test] == node].mean() for node in table["node"]]
    assert table["pooled_error"].to_numpy() == pytest.approx(np.array(expected), rel=1e-5)
    done = run(*args, "--weighting", "nodes", "--out", "even", cwd=tmp_path)
    assert done.returncode == 0
    other = pl.read_csv(tmp_path / "even/metrics.csv")["pooled_error"].to_numpy()
    assert np.abs(other / np.array(expected) - 1).max() > 0.01
    assert "every node counts the same" in (tmp_path / "even/report.html").read_text("utf-8")
    assert 'No weighting "row"' in refused(*args, "--weighting", "row", cwd=tmp_path)


def test_the_strongest_coupling_is_one_model_for_the_training_rows_too(home):
    assert run(*FIT, "--graph", "edges.csv", "--out", "one", *FAST, cwd=home).returncode == 0
    path = np.load(home / "one/path.npz")
    assert path["node_error"][0] == pytest.approx(path["pooled_error"], rel=1e-2)
    assert path["clusters"][0].max() == 0


def test_ties_in_time_hold_out_rows_not_times(home):
    """Half of the rows of each node are of its first four days; the last two days have few."""
    days = ["2024-01-01"] * 5 + ["2024-01-02"] * 4 + ["2024-01-03 10:00"] * 2 + ["2024-01-04"]
    weather().with_columns(pl.Series("date", days * 10)).write_csv(home / "weather.csv")
    args = (*FIT, "--graph", "edges.csv", "--time", "date", *FAST, "--json")
    done = run(*args, cwd=home)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["held_out_rows"] == 30
    weather().with_columns(pl.lit("2024").alias("date")).write_csv(home / "weather.csv")
    assert "all rows have the same time" in refused(*args, "--out", "x", cwd=home)


def test_warnings_of_libraries_become_notes(home, monkeypatch):
    import warnings

    from nefele.runs import pipeline

    whole = pipeline.run_fold

    def loud(*args, **kwargs):
        warnings.warn("rare  weather\nahead", RuntimeWarning, stacklevel=1)
        return whole(*args, **kwargs)

    monkeypatch.setattr(pipeline, "run_fold", loud)
    done = run(*FIT, "--graph", "edges.csv", *QUICK, cwd=home)
    assert done.returncode == 0 and done.stderr == ""
    assert done.stdout.count("Note: rare weather ahead") == 1
