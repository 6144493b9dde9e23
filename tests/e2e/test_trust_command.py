"""`nefele trust`: the table, JSON, model cards, exit codes, and the chapter of the report."""

import json
import shutil

import numpy as np
import polars as pl
import pytest

from nefele import GTVClassifier, GTVRegressor, load
from nefele.losses import Logistic
from nefele.robust import worst_nodes
from nefele.runs.config import read_config
from tests.e2e.commands import FIT, QUICK, edges, refused, run, weather


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    place = tmp_path_factory.mktemp("trust")
    weather().write_csv(place / "weather.csv")
    edges().write_csv(place / "edges.csv")
    done = run(*FIT, "--graph", "edges.csv", *QUICK, "--out", "first", cwd=place)
    assert done.returncode == 0, done.stderr
    return place


def test_seven_rows_in_words_and_as_json(home):
    words = run("trust", "first", cwd=home)
    assert words.returncode == 0 and words.stderr == ""
    assert words.stdout.count("to do:") == 7
    done = run("trust", "first", "--json", cwd=home)
    found = json.loads(done.stdout)
    assert found["trustworthy"] is True and found["card"] is None
    assert len(found["requirements"]) == 7
    for row in found["requirements"]:
        assert row["requirement"] in words.stdout and row["to_do"]
        for entry in row["entries"]:
            assert (entry["mark"] == "not covered") or isinstance(entry["number"], float)
    facts = json.loads((home / "first/run.json").read_text())
    numbers = {e["text"]: e["number"] for row in found["requirements"] for e in row["entries"]}
    assert numbers["processor seconds"] == facts["cpu_seconds"] > 0
    assert numbers["relative distance of the fit from the optimum, at most"] == facts["gap"]


def test_the_report_has_the_chapter(home):
    text = (home / "first/report.html").read_text(encoding="utf-8")
    assert "Seven requirements" in text and "Privacy and data governance" in text
    assert "processor seconds; about" in text
    assert "not measured: an assumption of 15 W for a busy core" in text


def test_model_cards(home):
    done = run("trust", "first", "--card", "card.md", cwd=home)
    assert done.returncode == 0 and "Model card: card.md" in done.stdout
    text = (home / "card.md").read_text(encoding="utf-8")
    assert text.startswith("# tmax by station") and "## Seven requirements" in text
    assert run("trust", "first", "--card", "card.json", "--quiet", cwd=home).returncode == 0
    card = json.loads((home / "card.json").read_text(encoding="utf-8"))
    facts = json.loads((home / "first/run.json").read_text())
    assert card["errors"]["nefele"] == facts["summary"]["scores"]["nefele"]
    assert card["data"]["sha256"] == facts["files"]["data"]["sha256"]
    assert len(card["worst_nodes"]) == 1 and card["model"]["nodes"] == 10


def test_a_fit_that_missed_its_tolerance_ends_with_1(home):
    options = ("--tol", "1e-17", *QUICK, "--out", "missed", "--quiet")
    assert run(*FIT, "--graph", "edges.csv", *options, cwd=home).returncode == 1
    done = run("trust", "missed", "--json", cwd=home)
    assert done.returncode == 1 and "Not trustworthy" in done.stderr
    assert json.loads(done.stdout)["trustworthy"] is False


def statements(home, folder):
    """The entries of a run by their text."""
    done = run("trust", folder, "--json", cwd=home)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["requirements"]
    return {entry["text"]: entry for row in rows for entry in row["entries"]}


def test_the_bound_on_captured_nodes_is_that_of_the_fit(home):
    """From a run as the command makes it: the same number as from the model by hand."""
    problem = load(home / "first/model.nefele")
    facts = json.loads((home / "first/run.json").read_text())
    frame = weather()
    model = GTVRegressor(
        problem.graph_, node="station", penalty="l2", alpha=facts["summary"]["alpha"]
    )
    X = frame.select("station", "wind", "pressure")
    model.fit(X, frame["tmax"].to_numpy())
    worst = worst_nodes(model.solution()[0], 1)
    found = next(e for t, e in statements(home, "first").items() if "one captured node" in t)
    assert found["mark"] == "proven"
    assert found["number"] == pytest.approx(worst.bound.total, rel=1e-6)
    assert f"the worst one, {worst.nodes[0]}" in found["text"]


def test_the_bound_on_one_label_holds_for_a_refit(home):
    facts = json.loads((home / "first/run.json").read_text())
    bound = facts["robustness"]["one_label"]["number"]
    graph = load(home / "first/model.nefele").graph_
    X = weather().select("station", "wind", "pressure")
    points = []
    for change in (0.0, 5.0):
        y = weather()["tmax"].to_numpy().copy()
        y[7] += change
        model = GTVRegressor(
            graph, node="station", penalty="l2", alpha=facts["summary"]["alpha"], tol=1e-10
        )
        points.append(model.fit(X, y).solution()[1])
    offset = np.zeros(3)
    offset[-1] = 5.0 / len(y)  # the core's targets are about their mean
    moved = np.linalg.norm(points[1] - points[0] + offset)
    assert 0 < moved <= 5.0 * bound


def test_a_quadratic_penalty_has_no_bound_on_captured_nodes(home):
    chain = ("--graph", "edges.csv", *QUICK)
    done = run(*FIT[:-1], "squared_l2", *chain, "--out", "squared", "--quiet", cwd=home)
    assert done.returncode == 0, done.stderr
    found = statements(home, "squared")
    name = next(text for text in found if text.startswith("how far a captured node"))
    assert found[name]["mark"] == "not covered" and "none, because the quadratic" in name
    label = next(e for t, e in found.items() if "one training label" in t)
    assert label["mark"] == "proven" and label["number"] > 0


def test_a_private_run_proves_what_it_promises_and_no_more(home):
    (home / "bounds.toml").write_text(
        "y = [-20, 40]\n[x]\nwind = [0, 12]\npressure = [960, 1040]\n"
    )
    private = ("--graph", "edges.csv", *QUICK, "--epsilon", "1", "--bounds", "bounds.toml")
    done = run(*FIT, *private, "--price", "--out", "private", "--quiet", cwd=home)
    assert done.returncode == 0, done.stderr
    found = statements(home, "private")
    spent = json.loads((home / "private/run.json").read_text())["privacy"]
    epsilon = found["epsilon of differential privacy, one record replaced"]
    assert (epsilon["mark"], epsilon["number"]) == ("proven", spent["epsilon"])
    delta = found["delta of differential privacy, one record replaced"]
    assert (delta["mark"], delta["number"]) == ("proven", spent["delta"])
    for text in (
        "privacy of the picture of its price, drawn from raw rows",
        "other releases of the same rows: see the account beside them",
        "errors by node: a private run keeps them back",
        "how far one wrong label can move the models: none, because the fit saw noisy moments, "
        "no labels",
    ):
        assert found[text]["mark"] == "not covered"
    noisy = "estimated from the noisy release"
    for text in (
        "error over all held-out rows (mean squared error)",
        "nodes whose prediction was judged",
    ):
        assert found[f"{text}, {noisy}"]["mark"] == "not covered"
    assert not any(text.startswith("error on") and noisy not in text for text in found)
    assert run("trust", "private", "--card", "private.json", cwd=home).returncode == 0
    card = json.loads((home / "private.json").read_text(encoding="utf-8"))
    assert card["data"]["sha256"] == "kept back" and card["worst_nodes"] == []
    assert card["errors"]["metric"].endswith(noisy) and noisy in card["verdict"]


def test_a_run_that_is_not_finished_is_refused(home, monkeypatch):
    def stop(self, alphas):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("nefele.runs.pipeline.Pipeline._compare", stop)
        graph = ("--graph", "edges.csv", *QUICK, "--out", "stopped", "--quiet")
        assert run(*FIT, *graph, cwd=home).returncode == 130
    assert "is not finished (status: interrupted)" in refused("trust", "stopped", cwd=home)


def test_bad_input(home):
    assert "No run folder" in refused("trust", "nothing", cwd=home)
    assert "run folder of nefele" in refused("trust", ".", cwd=home)
    assert "is a file" in refused("trust", "weather.csv", cwd=home)
    words = refused("trust", "first", "--card", "card.txt", cwd=home)
    assert "--card must end in .md or .json; got 'card.txt'" in words
    assert not (home / "card.txt").exists()


@pytest.mark.parametrize("name", ["first/run.json", "notes.md", "other.json"])
def test_a_card_replaces_nothing_but_a_card(home, name):
    (home / "notes.md").write_text("# what I learnt\n")
    (home / "other.json").write_text('{"requirements": []}')
    before = (home / name).read_bytes()
    words = refused("trust", "first", "--card", name, cwd=home)
    assert "--card must be a new file or an earlier model card" in words
    assert (home / name).read_bytes() == before
    for card in ("first/again.md", "first/again.json"):
        for _ in range(2):
            assert run("trust", "first", "--card", card, "--quiet", cwd=home).returncode == 0


def test_files_that_were_lost_or_changed_since_are_said(home):
    shutil.copytree(home / "first", home / "edited")
    table = (home / "edited/coef.csv").read_text()
    (home / "edited/coef.csv").write_text(table.replace("0", "1", 1))
    for name in ("metrics.csv", "history.jsonl", "report.html", "config.toml"):
        (home / "edited" / name).unlink()
    found, whole = statements(home, "edited"), statements(home, "first")
    text = "linear models that can be read in coef.csv"
    assert whole[text]["mark"] == "measured" and whole[text]["number"] == 10
    assert found[f"{text}: it is not what the run wrote"]["mark"] == "not covered"
    for name in ("metrics.csv", "history.jsonl", "report.html", "config.toml"):
        assert found[f"{name}: it is lost"]["mark"] == "not covered"
    text = "other files that are there (tables and settings as the run wrote them)"
    assert whole[text]["number"] - found[text]["number"] == 5


def test_a_card_names_the_coupling_that_was_chosen(home):
    done = run(*FIT[:-2], "--graph", "edges.csv", "--out", "chosen", "--quiet", cwd=home)
    assert done.returncode == 0, done.stderr
    assert run("trust", "chosen", "--card", "chosen.md", cwd=home).returncode == 0
    assert run("trust", "chosen", "--card", "chosen.json", cwd=home).returncode == 0
    facts = json.loads((home / "chosen/run.json").read_text())
    card = json.loads((home / "chosen.json").read_text(encoding="utf-8"))
    assert card["model"]["coupling"] == facts["summary"]["coupling"]
    assert card["model"]["penalty"] == load(home / "chosen/model.nefele").penalty
    text = (home / "chosen.md").read_text(encoding="utf-8")
    assert f"| coupling | {facts['summary']['coupling']} |" in text
    assert "| penalty, alpha | auto" not in text


def test_a_run_of_classes_has_a_bound_on_captured_nodes(home):
    """By the curvature at the fit: the same number as from the model by hand."""
    frame = weather().with_columns(warm=pl.col("tmax") > pl.col("tmax").median()).drop("tmax")
    frame.write_csv(home / "classes.csv")
    options = ("--task", "classification", "--penalty", "l2", "--alpha", "0.002")
    done = run(
        "fit", "classes.csv", "--node", "station", "--target", "warm", "--features",
        "wind,pressure", "--graph", "edges.csv", *options, "--out", "classes", "--quiet", cwd=home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = next(e for t, e in statements(home, "classes").items() if "one captured node" in t)
    graph = load(home / "classes/model.nefele").graph_
    loss = Logistic(l2=read_config(home / "classes/config.toml").ridge)
    model = GTVClassifier(graph, node="station", penalty="l2", alpha=0.002, loss=loss)
    model.fit(frame.select("station", "wind", "pressure"), frame["warm"].to_numpy())
    worst = worst_nodes(model.solution()[0], 1)
    assert found["mark"] == "proven"
    assert found["number"] == pytest.approx(worst.bound.total, rel=1e-3)
    assert f"the one that pulls hardest, {worst.nodes[0]}" in found["text"]


def test_results_that_were_changed_are_refused(home):
    shutil.copytree(home / "first", home / "changed")
    (home / "changed/path.npz").write_bytes(b"other")
    words = refused("trust", "changed", "--card", "changed.md", cwd=home)
    assert "must be what the run made" in words
    assert not (home / "changed.md").exists()
