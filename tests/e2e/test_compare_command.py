"""`nefele fit --compare boosting`: the table, the files, the report, the verdict."""

import json

import numpy as np
import polars as pl
import pytest

from nefele.agnostic import boosted
from tests.e2e.commands import edges, run

FIT = ("fit", "rows.csv", "--node", "shop", "--target", "sales", "--graph", "edges.csv")
FIT += ("--n-alphas", "4", "--folds", "2", "--compare", "boosting")
NAMES = ["own data only", "one model", "nefele", boosted.ONE, boosted.RELAXED]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Sales bend with the price, as no line does."""
    place = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(6), 40)
    price, rain = rng.normal(size=(2, 240))
    sales = 3 * np.abs(price) * np.sign(rain) + shop + 0.1 * rng.normal(size=240)
    ids = [f"{i:03d}" for i in shop]
    table = {"shop": ids, "price": price, "rain": rain, "sales": sales}
    pl.DataFrame(table).write_csv(place / "rows.csv")
    edges(6).write_csv(place / "edges.csv")
    return place


@pytest.fixture(scope="module")
def done(home):
    found = run(*FIT, "--json", "--out", "first", cwd=home)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_json_and_the_verdict_say_that_boosting_is_better(done):
    summary = done["summary"]
    assert list(summary["scores"]) == NAMES
    assert summary["scores"][boosted.ONE] < 0.5 * summary["scores"]["nefele"]
    assert "does better than nefele: its error is" in summary["verdict"]
    assert set(summary["rivals"]) == {boosted.ONE, boosted.RELAXED}
    assert "boosting" in done["timings"]


def test_the_table_of_nodes_and_the_report_have_them(home, done):
    table = pl.read_csv(home / "first/metrics.csv", schema_overrides={"node": pl.String})
    held = table["held_out"]
    for name, column in zip(
        NAMES[3:], ("boosting_one_model_error", "boosting_fedrelax_error"), strict=True
    ):
        mean = (table[column] * held).sum() / held.sum()
        assert mean == pytest.approx(done["summary"]["scores"][name])
    text = (home / "first/report.html").read_text(encoding="utf-8")
    assert all(f"<dt>{name}</dt>" in text for name in NAMES)
    assert "does better than nefele" in text


def test_the_terminal_shows_all_five(home, done):
    again = run(*FIT, "--out", "first", cwd=home)  # finished before: nothing is fitted
    assert again.returncode == 0 and all(name in again.stdout for name in NAMES)


def test_the_fit_is_that_without_the_comparison(home, done):
    assert run(*FIT[:-2], "--quiet", "--out", "plain", cwd=home).returncode == 0
    assert (home / "plain/coef.csv").read_text() == (home / "first/coef.csv").read_text()
    header = (home / "plain/metrics.csv").read_text().splitlines()[0]
    assert "boosting" not in header


def test_an_unknown_method_is_refused_before_any_work(home):
    found = run(*FIT[:-1], "forests", "--out", "none", cwd=home)
    assert found.returncode == 2 and "boosting" in found.stderr
    assert not (home / "none").exists()
