"""Ids and names that a spreadsheet would run: guarded in every CSV, the same nodes when read."""

import csv
import json

import polars as pl
import pytest

from tests.e2e.commands import edges, refused, run, weather

IDS = ["=cmd|' /C calc'!A0", "+1+2", "-2-3", "@SUM(A1)", "'quoted'", "-5", "+7", "'ok", "=x", "o"]
WIND = '=HYPERLINK("http://example.org")'
FAST = ("--alpha", "1", "--n-alphas", "2")
FORMULA = ("=", "+", "-", "@", "\t", "\r")


def renamed(frame, *columns):
    new = {f"{i:03d}": name for i, name in enumerate(IDS)}
    return frame.with_columns(pl.col(column).replace_strict(new) for column in columns)


@pytest.fixture
def home(tmp_path):
    data = renamed(weather(), "station").rename({"wind": WIND, "pressure": "-pressure"})
    data = data.with_columns(pl.lit("@note").alias("note"), pl.lit("-3.5").alias("text number"))
    data.write_csv(tmp_path / "weather.csv")
    data.write_parquet(tmp_path / "weather.parquet")
    renamed(edges(), "source", "target").write_csv(tmp_path / "edges.csv")
    return tmp_path


def raw(path):
    """A CSV file as another program sees it."""
    return pl.read_csv(path, infer_schema=False)


def assert_harmless(path):
    frame = raw(path)
    for text in (*frame.columns, *(cell for row in frame.rows() for cell in row)):
        if text and text.startswith(FORMULA):
            float(text)


FIT = ("--node", "station", "--target", "tmax")


@pytest.mark.parametrize("data", ["weather.csv", "weather.parquet"])
def test_tables_are_harmless_and_keep_the_ids(home, data):
    args = ("fit", data, *FIT, "--features", f"{WIND},-pressure", "--graph", "edges.csv", *FAST)
    done = run(*args, "--out", "first", cwd=home)
    assert done.returncode == 0, done.stderr
    for name in ("metrics.csv", "coef.csv"):
        assert_harmless(home / "first" / name)
    found = raw(home / "first/metrics.csv")["node"].to_list()
    kept = ["'quoted'", "-5", "+7", "'ok", "o"]
    assert set(found) == {f"'{name}" for name in IDS if name not in kept} | set(kept)
    with (home / "first/coef.csv").open(newline="") as file:
        header = next(csv.reader(file))
    assert header == ["node", f"'{WIND}", "'-pressure", "intercept"]
    names = json.loads((home / "first/run.json").read_text())["features"]
    assert names == [WIND, "-pressure"]


def test_predictions_are_harmless_and_can_be_read_again(home):
    args = ("fit", "weather.csv", *FIT, "--graph", "edges.csv", *FAST, "--out", "first")
    assert run(*args, cwd=home).returncode == 0
    for data in ("weather.csv", "weather.parquet"):
        args = ("predict", "first", data, "--out", "new.csv", "--force")
        assert run(*args, cwd=home).returncode == 0
        assert_harmless(home / "new.csv")
        assert raw(home / "new.csv")["text number"][0] == "-3.5"
    args = ("predict", "first", "new.csv", "--column", "again", "--out", "again.csv")
    assert run(*args, cwd=home).returncode == 0
    again, new = raw(home / "again.csv"), raw(home / "new.csv")
    assert again.drop("again").equals(new) and again["again"].equals(new["prediction"])
    shown = run("predict", "first", "weather.csv", cwd=home).stdout
    assert shown.replace("\r\n", "\n") == (home / "new.csv").read_text()


def test_an_edge_file_of_the_graph_command_fits_the_data(home):
    args = ("graph", "weather.csv", *FIT, "--try", "losses", "--keep", "losses", "--folds", "2")
    assert run(*args, "--n-alphas", "2", "--out", "learnt.csv", cwd=home).returncode == 0
    assert_harmless(home / "learnt.csv")
    for data in ("weather.csv", "weather.parquet"):
        found = run("check", data, *FIT, "--graph", "learnt.csv", "--json", cwd=home)
        graph = json.loads(found.stdout)["graph"]
        assert graph["only_in_data"] == graph["only_in_graph"] == []
    args = ("fit", "weather.csv", *FIT, "--graph", "learnt.csv", *FAST, "--out", "first")
    assert run(*args, cwd=home).returncode == 0


def test_an_id_in_two_spellings_is_refused_not_merged(home):
    text = (home / "weather.csv").read_text().replace("o,2024", "'=x,2024")
    (home / "both.csv").write_text(text)
    for command in ("check", "fit", "graph"):
        said = refused(command, "both.csv", *FIT, cwd=home)
        assert "'=x'" in said and "apostrophe" in said
