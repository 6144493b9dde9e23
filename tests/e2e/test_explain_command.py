"""`nefele explain`: sums, JSON, single predictions, pictures, errors."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

import nefele
from tests.e2e.commands import FIT, QUICK, edges, refused, run, weather


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("explain")
    weather().write_csv(place / "weather.csv")
    edges().write_csv(place / "edges.csv")
    done = run(*FIT, "--graph", "edges.csv", *QUICK, "--out", "first", cwd=place)
    assert done.returncode == 0, done.stderr
    return place


def test_parts_add_up_to_the_saved_model(home):
    done = run("explain", "first", "003", "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    model = nefele.load(home / "first/model.nefele")
    at = model.nodes_.tolist().index("003")
    saved = np.append(model.coef_[at], model.intercept_[at])
    whole = np.sum(list(found["parts"].values()), axis=0) + found["common"] + found["pulls"]
    np.testing.assert_allclose(whole, found["optimum"], atol=1e-10)
    np.testing.assert_allclose(whole + found["remainder"], saved, atol=1e-10)
    assert found["parameters"] == ["wind", "pressure", "intercept"]
    assert sum(found["shares"].values()) == pytest.approx(1, abs=1e-8)
    assert len(found["rows"]) == 5 and found["trustworthy"] is True


def test_one_prediction_and_what_would_be_without_a_node(home):
    row = ("--at", "wind=4,pressure=1000", "--without", "004")
    done = run("explain", "first", "003", *row, "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    one = json.loads(done.stdout)["prediction"]
    model = nefele.load(home / "first/model.nefele")
    X = weather().select("station", "wind", "pressure").head(1)
    X = X.with_columns(station=pl.lit("003"), wind=4.0, pressure=1000.0)
    assert one["value"] == pytest.approx(model.predict(X)[0], abs=1e-9)
    adds = sum(part["adds"] + part["curve"] for part in one["features"])
    assert one["base"] + adds == pytest.approx(one["value"], abs=1e-9)
    assert sum(one["nodes"].values()) + one["rest"] == pytest.approx(one["value"], abs=1e-9)
    assert one["without"] != one["value"]
    words = run("explain", "first", "003", *row, cwd=home)
    assert "without 004 it would be" in words.stdout
    for title in (
        "The model of 003, and what it would be without 004",
        "Whose rows it comes from, over however many neighbours",
        "What acts on it directly: own rows, and neighbours' models as they are",
        "Rows that move its predictions most, in units of tmax",
        "The prediction",
        "Own rows most like it, and how far from it",
    ):
        assert f"{title}\n{'-' * min(len(title), 72)}\n  " in words.stdout
    assert "  003 (itself)" in words.stdout and "How far this holds. " in words.stdout
    assert len(one["similar"]) == 5


def test_groups_with_one_model_have_names_and_shares(home):
    found = json.loads(run("explain", "first", "003", "--json", cwd=home).stdout)
    groups = found["clusters"]
    assert sorted(node for one in groups for node in one["nodes"]) == sorted(
        node for node in found["shares"] if node != "(centre)"
    )
    for one in groups:
        total = sum(found["shares"][node] for node in one["nodes"])
        assert one["share"] == pytest.approx(total, abs=1e-12)
    told = run("explain", "first", "003", cwd=home).stdout
    assert ("groups of nodes that share one model" in told) == any(
        len(one["nodes"]) > 1 for one in groups
    )


def test_pictures(home):
    done = run("explain", "first", "003", "--picture", "why.svg", "--quiet", cwd=home)
    assert done.returncode == 0 and (home / "why.svg").read_text().lstrip().startswith("<?xml")
    row = ("--at", "wind=4,pressure=1000")
    assert run("explain", "first", "003", *row, "--picture", "a.png", cwd=home).returncode == 0
    assert (home / "a.png").read_bytes()[:4] == b"\x89PNG"
    report = (home / "first/report.html").read_text(encoding="utf-8")
    assert "Whom does it serve badly?" in report and "What is a model made of?" in report


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("wind=4", "--at must give every feature; missing: pressure."),
        ("wind=4,presure=1000", "is none. Did you mean 'pressure'"),
        ("", "--at must give every feature; missing: wind, pressure."),
    ],
)
def test_a_row_needs_the_features_of_the_run(home, row, message):
    assert message in refused("explain", "first", "003", "--at", row, cwd=home)


def test_bad_input(home):
    assert "No run folder" in refused("explain", "nothing", "003", cwd=home)
    assert "No node 'zz'" in refused("explain", "first", "zz", cwd=home)
    for at, words in (("wind", "feature=value"), ("wind=1,wind=2", "comes again"), ("x=1", "x")):
        assert words in refused("explain", "first", "003", "--at", at, cwd=home)
    words = refused("explain", "first", "003", "--picture", "a.txt", cwd=home)
    assert "--picture must end in .svg or .png" in words
    before = (home / "first/pictures/graph.svg").read_bytes()
    words = refused("explain", "first", "003", "--picture", "first/pictures/graph.svg", cwd=home)
    assert "must not be a file of the run itself" in words
    assert (home / "first/pictures/graph.svg").read_bytes() == before
    assert "must be another one" in refused("explain", "first", "003", "--without", "003", cwd=home)


def test_rows_that_changed_are_refused(home, tmp_path):
    for name in ("weather.csv", "edges.csv"):
        shutil.copy(home / name, tmp_path)
    graph = ("--graph", "edges.csv", *QUICK, "--out", "own", "--quiet")
    assert run(*FIT, *graph, cwd=tmp_path).returncode == 0
    with (tmp_path / "weather.csv").open("a") as file:
        file.write("000,2024-02-01,5,1000,60,20,9\n")
    assert "is lost or has changed" in refused("explain", "own", "003", cwd=tmp_path)


def test_a_private_run_has_no_rows_to_explain_it(home):
    (home / "bounds.toml").write_text(
        "y = [-20, 40]\n[x]\nwind = [0, 12]\npressure = [960, 1040]\n"
    )
    private = ("--graph", "edges.csv", *QUICK, "--epsilon", "1", "--bounds", "bounds.toml")
    assert run(*FIT, *private, "--out", "private", "--quiet", cwd=home).returncode == 0
    words = refused("explain", "private", "003", cwd=home)
    assert "is private: its models were fitted to noisy moments" in words


def test_a_fit_that_missed_its_tolerance_ends_with_1(home):
    options = ("--tol", "1e-17", *QUICK, "--out", "missed", "--quiet")
    assert run(*FIT, "--graph", "edges.csv", *options, cwd=home).returncode == 1
    done = run("explain", "missed", "003", cwd=home)
    assert done.returncode == 1 and "Not trustworthy" in done.stderr


def test_what_is_left_over_counts_nodes_with_rows_only(home):
    found = json.loads(run("explain", "first", "003", "--json", cwd=home).stdout)
    known = sum(share != 0 for share in found["shares"].values())
    words = run("explain", "first", "003", "--count", "2", cwd=home).stdout
    assert f"{known - 2} others" in words
