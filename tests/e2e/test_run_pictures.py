"""What theory says of a run, in its facts, its pictures and its report."""

import json
import sys

import numpy as np
import polars as pl
import pytest

from nefele.runs import proofs
from tests.e2e.commands import edges, run

FIT = ("fit", "rows.csv", "--node", "shop", "--target", "sales", "--graph", "edges.csv")
FIT += ("--penalty", "l2", "--n-alphas", "6", "--folds", "2", "--quiet")


def write(home, n=10, rows=15):
    """A chain of shops, two kinds of them."""
    rng = np.random.default_rng(0)
    shop = np.repeat(np.arange(n), rows)
    price = rng.normal(size=n * rows)
    sales = np.where(shop < n // 2, 2.0, -2.0) * price + 0.1 * rng.normal(size=n * rows)
    ids = [f"{i:03d}" for i in shop]
    pl.DataFrame({"shop": ids, "price": price, "sales": sales}).write_csv(home / "rows.csv")
    edges(n).write_csv(home / "edges.csv")


def facts_of(home, name="first"):
    return json.loads((home / name / "run.json").read_text())


ACCOUNTS = ("errors.svg", "sources.svg", "residuals.svg")  # of every run of numbers


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    write(place)
    assert run(*FIT, "--out", "first", cwd=place).returncode == 0
    return place


def test_the_run_keeps_pictures_and_facts(home):
    facts = facts_of(home)
    assert set(facts["pictures"]) == {"graph.svg", "proven.svg", "critical.svg", *ACCOUNTS}
    assert {p.name for p in (home / "first/pictures").iterdir()} == set(facts["pictures"])
    said = dict(facts["theory"])
    assert "of 9 edges join models that differ by at most" in said["proven at the optimum"]
    assert said["proven at the optimum"].endswith("join models that differ; 0 undecided")
    assert "all nodes have one model" in said["critical alpha"]
    assert "clusters of several nodes" in said["well-connected"]


def test_above_the_critical_alpha_all_are_proven_equal(home):
    assert run(*FIT, "--alpha", "50", "--out", "one", cwd=home).returncode == 0
    facts = facts_of(home, "one")
    assert facts["summary"]["clusters"] == 1
    said = dict(facts["theory"])
    assert said["proven at the optimum"].startswith("all 9 edges join equal models")
    assert dict(facts["diagnostics"])["homophily of the parameters"] == "all models are equal"


def test_well_connected_clusters_are_shown(tmp_path):
    write(tmp_path)
    pairs = [(i, j) for i in range(10) for j in range(i) if i // 5 == j // 5]
    ends = [[f"{k:03d}" for k in side] for side in zip(*pairs, (0, 9), strict=True)]
    weight = [1.0] * len(pairs) + [0.01]
    table = pl.DataFrame({"source": ends[0], "target": ends[1], "weight": weight})
    table.write_csv(tmp_path / "edges.csv")
    assert run(*FIT, "--alpha", "1", "--out", "first", cwd=tmp_path).returncode == 0
    facts = facts_of(tmp_path)
    assert "2 of 2 clusters of several nodes" in dict(facts["theory"])["well-connected"]
    assert {"slack.svg", "bound.svg"} <= set(facts["pictures"])
    assert "within" in dict(facts["theory"])["error bound"]


def test_the_critical_alpha_divides_the_path(home):
    words = dict(facts_of(home)["theory"])["critical alpha"]
    critical = float(words.split(":")[0])
    found = np.load(home / "first/path.npz")
    one = found["clusters"].max(axis=1) == 0
    assert one[found["alphas"] > 1.001 * critical].all()
    assert not one[found["alphas"] < 0.999 * critical].any()


def test_the_report_shows_them(home):
    text = (home / "first/report.html").read_text(encoding="utf-8")
    assert text.count('<img src="data:image/svg+xml') == 6
    assert "What it takes to hold neighbours together" in text and "critical alpha" in text


def test_a_picture_of_ones_own_enters_the_report(home):
    own = home / "first/pictures/phase_diagram.svg"
    own.write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (home / "first/pictures/broken.png").write_text("words")
    try:
        assert run("report", "first", cwd=home).returncode == 0
        text = (home / "first/report.html").read_text(encoding="utf-8")
        assert "<h3>phase diagram</h3>" in text
        assert "pictures/broken.png was left out" in text
        assert run(*FIT, "--out", "first", "--force", cwd=home).returncode == 0
        assert own.is_file()  # none of nefele's
    finally:
        own.unlink()
        (home / "first/pictures/broken.png").unlink()


def test_the_same_run_gives_the_same_pictures(home):
    assert run(*FIT, "--out", "again", cwd=home).returncode == 0
    for name in facts_of(home)["pictures"]:
        first, again = (home / f / "pictures" / name for f in ("first", "again"))
        assert first.read_bytes() == again.read_bytes(), name


def test_a_quadratic_penalty_names_the_edge_that_matters(home):
    args = ("--penalty", "squared_l2", "--alpha", "0.1", "--out", "smooth")
    assert run(*FIT, *args, cwd=home).returncode == 0
    facts = facts_of(home, "smooth")
    assert {"influence.svg", "sensitivity.svg", "contraction.svg"} <= set(facts["pictures"])
    assert "critical.svg" not in facts["pictures"]
    # the only edge between the two kinds of shops
    assert "'004' - '005'" in dict(facts["theory"])["edge that matters most"]


def test_without_matplotlib_the_facts_remain(home, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert run(*FIT, "--out", "plain", cwd=home).returncode == 0
    facts = facts_of(home, "plain")
    assert facts["pictures"] == [] and facts["theory"] == facts_of(home)["theory"]
    assert not (home / "plain/pictures").exists()


def test_nothing_is_said_where_theory_is_silent(home, monkeypatch):
    def refuse(*args):
        raise ValueError("needs differentiable losses")

    for name in ("certify_clusters", "critical_lambda", "well_connected"):
        monkeypatch.setattr(proofs, name, refuse)
    assert run(*FIT, "--out", "silent", cwd=home).returncode == 0
    facts = facts_of(home, "silent")
    assert facts["theory"] == [] and facts["pictures"] == ["graph.svg", *ACCOUNTS]


def test_a_graph_without_edges(tmp_path):
    write(tmp_path)
    pl.DataFrame({"source": ["000"], "target": ["001"]}).write_csv(tmp_path / "edges.csv")
    args = ("--allow-isolates", "--out", "first")
    assert run(*FIT, *args, cwd=tmp_path).returncode == 0
    said = dict(facts_of(tmp_path)["theory"])
    assert "each part of the graph has one model" in said["critical alpha"]


def test_classes(tmp_path):
    write(tmp_path)
    rows = pl.read_csv(tmp_path / "rows.csv", schema_overrides={"shop": pl.String})
    rows.with_columns(
        pl.when(pl.col("sales") > 0).then(pl.lit("up")).otherwise(pl.lit("down")).alias("sales")
    ).write_csv(tmp_path / "rows.csv")
    args = ("--task", "classification", "--out", "first")
    assert run(*FIT, *args, cwd=tmp_path).returncode == 0
    facts = facts_of(tmp_path)
    assert "critical.svg" in facts["pictures"] and "slack.svg" not in facts["pictures"]
