"""`nefele attack`: the table, the exit codes, JSON, and what is refused."""

import json

import polars as pl
import pytest

from tests.e2e.commands import edges, refused, run, weather

BASE = ("attack", "weather.csv", "--node", "station", "--target", "tmax")
BASE += ("--features", "wind,pressure")


@pytest.fixture
def folder(tmp_path):
    weather().write_csv(tmp_path / "weather.csv")
    edges().write_csv(tmp_path / "edges.csv")
    return tmp_path


def facts_of(*args, cwd):
    done = run(*BASE, *args, "--json", cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def test_a_defence_that_holds_and_one_that_does_not(folder):
    args = ("--graph", "edges.csv", "--alpha", "0.05", "--captured", "002,007")
    code, facts = facts_of(*args, "--attacks", "constant,labels flipped", cwd=folder)
    rows = {(row["attack"], row["defence"]): row for row in facts["table"]}
    assert code == 0 and "l2" in facts["holds"] and "none (quadratic)" not in facts["holds"]
    assert facts["captured"] == ["002", "007"] and facts["captured_by"] == "named"
    assert rows["constant", "none (quadratic)"]["success"] == 1.0
    assert rows["constant", "none (quadratic)"]["bound"] is None
    assert 0 < rows["constant", "l2"]["over_bound"] <= 1
    assert rows["constant", "l2"]["bound"] == pytest.approx(facts["bound"]["total"])
    assert set(facts["bound"]["per_node"]) == {f"{i:03d}" for i in range(10)} - {"002", "007"}


def test_no_defence_holds(folder):
    args = ("--graph", "edges.csv", "--alpha", "1", "--attacks", "constant")
    code, facts = facts_of(*args, "--defences", "none (quadratic)", cwd=folder)
    assert code == 1 and facts["holds"] == [] and facts["captured_by"] == "allow most"


def test_strengths_are_chosen_and_graphs_learnt(folder):
    args = ("--graph", "learn", "--n-alphas", "4", "--folds", "2", "--attacks", "labels shifted")
    _, facts = facts_of(*args, "--defences", "l2,clip", cwd=folder)
    assert facts["edges"] > 0 and len({facts["lam"]["l2"], facts["lam"]["squared_l2"]}) == 2


def test_classes(folder):
    table = weather()
    table = table.with_columns((pl.col("tmax") > pl.col("tmax").median()).alias("warm"))
    table.with_columns(pl.col("warm").cast(pl.String)).write_csv(folder / "warm.csv")
    base = ("attack", "warm.csv", "--node", "station", "--target", "warm", "--features",
            "wind,pressure", "--coords", "lat,lon", "--task", "classification")  # fmt: skip
    more = ("--l2", "0.05", "--attacks", "clean label,backdoor", "--defences", "l2")
    facts = json.loads(run(*base, *more, "--alpha", "0.002", "--json", cwd=folder).stdout)
    assert facts["metric"] == "share of wrong rows" and facts["suspects"] is None
    assert all(0 <= row["error"] <= 1 for row in facts["table"])
    # The ridge spares the intercept: a bound from the curvature at the fit.
    assert "curved by at least alpha" in facts["bound"]["reason"]
    assert all(0 <= row["over_bound"] <= 1 for row in facts["table"])
    strong = run(*base, *more, "--alpha", "5", cwd=folder).stdout
    assert "Under l2 no bound is proven. None: at every honest node" in " ".join(strong.split())
    words = refused(*base, "--alpha", "1", "--defences", "huber loss", cwd=folder)
    assert 'The defence "huber loss" is a loss for numbers' in words


def test_robust_losses_are_among_the_defences(folder):
    args = ("--graph", "edges.csv", "--alpha", "0.05", "--captured", "002")
    _, facts = facts_of(*args, "--attacks", "constant", cwd=folder)
    names = {row["defence"] for row in facts["table"]}
    assert {"huber loss", "absolute loss"} <= names
    assert not {"huber loss", "absolute loss"} & set(facts["holds"])  # a bad neighbour is no row


def test_captured_nodes_are_named_or_chosen(folder):
    args = (*BASE, "--graph", "edges.csv", "--alpha", "1")
    words = refused(*args, "--captured", "002", "--worst", "2", cwd=folder)
    assert "--captured and --worst must not go together" in words


def test_words(folder):
    args = (*BASE, "--graph", "edges.csv", "--alpha", "0.05", "--attacks", "constant")
    done = run(*args, "--defences", "l2", cwd=folder)
    assert done.returncode == 0 and "Captured (allow most): " in done.stdout
    assert "Held against all attacks: l2." in done.stdout
    wide = run(*args, "--captured", "003,003", cwd=folder).stdout
    assert "Captured (named): 003.\n" in wide
    line = next(line for line in wide.splitlines() if "constant" in line)
    cells = [cell.strip() for cell in line.strip("│").split("│")]
    assert "…" not in line and all(float(cell.rstrip("*")) > 0 for cell in cells[1:])
    assert cells[1].endswith("*") and len(cells) == 8
    quiet = run(*args, "--defences", "l2", "--quiet", cwd=folder)
    assert "Captured" not in quiet.stdout and "Held against" in quiet.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--captured", "zz"), "Captured nodes must be nodes of the graph; unknown: 'zz'"),
        (("--attacks", "magic"), 'No attack "magic"'),
        (("--defences", "medain"), 'Did you mean "median"?'),
        (("--worst", "0"), "worst must be an integer >= 1"),
        (("--worst", "10"), "worst must leave an honest node of the 10"),
        (("--captured", ",".join(f"{i:03d}" for i in range(10))), "Some node must be honest"),
        (("--attacks", ","), "--attacks must have names, comma between them"),
        (("--attacks", "nobody"), 'No attack "nobody"'),
        (("--attacks", "clean label"), 'No attack "clean label"'),
        (("--graph", "nowhere.csv"), "nowhere.csv"),
        (("--seed", "-1"), "seed"),
        (("--alpha", "-1"), "alpha"),
        (("--target", "nothing"), "nothing"),
    ],
)
def test_bad_input(folder, args, message):
    alpha = () if "--alpha" in args else ("--alpha", "0.1")
    assert message in refused(*BASE, "--graph", "edges.csv", *alpha, *args, cwd=folder)
