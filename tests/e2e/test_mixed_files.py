"""A CSV with text, dates, truth values and gaps: from nothing to a report, and new rows."""

import json

import numpy as np
import polars as pl
import pytest

from tests.e2e.commands import QUICK, run

N = 240
FIT = ("fit", "houses.csv", "--node", "town", "--target", "price", *QUICK, "--out", "first")


def houses(seed=0):
    rng = np.random.default_rng(seed)
    area = rng.normal(100.0, 20.0, N).round(1)
    roof = rng.choice(["tin", "tile", "wood"], N, p=[0.5, 0.3, 0.2])
    day = np.datetime64("2019-01-01") + rng.integers(0, 1400, N)
    town = np.array(["Oulu", "Kemi", "Pori", "Turku", "Vaasa", "Hanko"])[np.arange(N) % 6]
    garden = rng.choice(["true", "false"], N)
    noise = rng.normal(0.0, 3.0, N)
    price = 2.0 * area + 40.0 * (roof == "tile") + 25.0 * (garden == "true") + noise
    gap = rng.random(N) < 0.1
    return pl.DataFrame(
        {
            "": np.arange(1, N + 1),
            "town": town,
            "area": [None if lost else value for lost, value in zip(gap, area, strict=True)],
            "roof": [None if k % 31 == 0 else text for k, text in enumerate(roof)],
            "sold": [str(moment) for moment in day],
            "garden": garden,
            "owner": [f"person {k}" for k in range(N)],
            "price": price.round(2),
        }
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with the data and a finished run."""
    folder = tmp_path_factory.mktemp("mixed")
    houses().write_csv(folder / "houses.csv")
    done = run(*FIT, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "said.txt").write_text(done.stdout, encoding="utf-8")
    return folder


def test_check_says_what_a_fit_would_use(home):
    done = run("check", "houses.csv", "--node", "town", "--target", "price", cwd=home)
    assert done.returncode == 0
    for text in ("roof: text, 3 levels", "sold: dates", "garden: truth values", "numbers the rows"):
        assert text in done.stdout


def test_the_fit_says_which_columns_it_used_and_how(home):
    said = (home / "said.txt").read_text(encoding="utf-8")
    assert "area: numbers; missing ones filled in by" in said
    assert "roof: text, 3 levels against 'tin'; missing is a level" in said
    assert "sold: dates as years since 2021 and season (sine and cosine)" in said
    assert "garden: truth values as 0 and 1" in said
    assert "owner (almost every row has a text of its own)" in said
    assert "(it only numbers the rows)" in said


def test_the_run_has_a_report_and_plain_tables(home):
    facts = json.loads((home / "first" / "run.json").read_text(encoding="utf-8"))
    assert facts["features"] == ["area", "roof", "sold", "garden"]
    coef = pl.read_csv(home / "first" / "coef.csv")
    assert {"area", "area (missing)", "roof=tile", "roof (missing)", "sold sin"} <= set(
        coef.columns
    )
    assert coef["roof=tile"].mean() == pytest.approx(40.0, abs=8.0)
    report = (home / "first" / "report.html").read_text(encoding="utf-8")
    assert "roof=tile" in report and "truth values as 0 and 1" in report


def predicted(home, frame, *options):
    frame.write_csv(home / "new.csv")
    args = ("predict", "first", "new.csv", "--out", "out.csv", "--force", *options)
    return run(*args, cwd=home)


def test_known_rows_are_predicted_well(home):
    done = predicted(home, houses(1))
    assert done.returncode == 0, done.stderr
    out = pl.read_csv(home / "out.csv").drop_nulls("area")
    error = (out["prediction"] - out["price"]).to_numpy()
    assert np.sqrt((error**2).mean()) < 12.0


def test_a_new_level_is_an_average_and_said(home):
    rows = houses().head(6)
    done = predicted(home, rows.with_columns(roof=pl.lit("gold")))
    assert done.returncode == 0
    assert "'gold'" in done.stderr and "average of its levels" in done.stderr
    found = pl.read_csv(home / "out.csv")["prediction"].to_numpy()
    each = []
    for roof in ("tin", "tile"):
        predicted(home, rows.with_columns(roof=pl.lit(roof)))
        each.append(pl.read_csv(home / "out.csv")["prediction"].to_numpy())
    assert (np.minimum(*each) < found).all() and (found < np.maximum(*each)).all()


def test_a_new_group_follows_the_rule_for_unseen_ids(home):
    rows = houses().head(6).with_columns(town=pl.lit("Lahti"))
    done = predicted(home, rows)
    assert done.returncode == 2 and "'Lahti'" in done.stderr and "--unseen pooled" in done.stderr
    done = predicted(home, rows, "--unseen", "pooled")
    assert done.returncode == 0 and "predicted by the model of all rows" in done.stderr
    assert np.isfinite(pl.read_csv(home / "out.csv")["prediction"].to_numpy()).all()


def test_a_missing_column_is_an_error_and_empty_cells_are_not(home):
    done = predicted(home, houses().head(6).drop("roof"))
    assert done.returncode == 2 and 'No column "roof" in new.csv' in done.stderr
    assert "It is a feature of the run: add it" in " ".join(done.stderr.split())
    empty = houses().head(6).with_columns(roof=pl.lit(None), area=pl.lit(None), sold=pl.lit(None))
    done = predicted(home, empty)
    assert done.returncode == 0, done.stderr
    assert '6 of 6 rows have no value in column "area"' in done.stderr
    done = predicted(home, houses().head(6).drop("owner", ""))
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("area", "large", "column \"area\" must hold numbers; got 'large' at line 2"),
        ("garden", "maybe", "column \"garden\" must hold true or false; got 'maybe' at line 2"),
        ("sold", "soon", 'Column "sold" must hold dates'),
    ],
)
def test_values_of_another_kind_are_an_error(home, column, value, message):
    done = predicted(home, houses().head(6).with_columns(pl.lit(value).alias(column)))
    assert done.returncode == 2 and message in done.stderr


def test_classes(home):
    rows = houses().with_columns(
        price=pl.when(pl.col("price") > 240).then(pl.lit("dear")).otherwise(pl.lit("cheap"))
    )
    rows.write_csv(home / "classes.csv")
    args = ("fit", "classes.csv", "--node", "town", "--target", "price", *QUICK)
    done = run(*args, "--task", "classification", "--out", "second", cwd=home)
    assert done.returncode == 0, done.stderr
    done = run("predict", "second", "classes.csv", "--out", "probable.csv", cwd=home)
    found = pl.read_csv(home / "probable.csv")
    assert (found["prediction"] == found["price"]).mean() > 0.8


def test_graph_compares_with_the_same_columns(home):
    args = ("graph", "houses.csv", "--node", "town", "--target", "price", "--try", "moments")
    done = run(*args, "--n-alphas", "3", "--folds", "2", "--k", "2", "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["features"] == ["area", "roof", "sold", "garden"]


def test_rows_with_gaps_can_be_left_out(home):
    done = run(*FIT[:-1], "dropped", "--drop-missing", cwd=home)
    assert done.returncode == 0 and "rows are left out for missing values" in done.stdout
    coef = pl.read_csv(home / "dropped" / "coef.csv")
    assert "area (missing)" not in coef.columns
