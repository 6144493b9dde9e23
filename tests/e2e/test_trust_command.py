"""`nefele trust`: the table, JSON, model cards, exit codes, and the chapter of the report."""

import json
import shutil

import pytest

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


def test_bad_input(home):
    assert "No run folder" in refused("trust", "nothing", cwd=home)
    assert "run folder of nefele" in refused("trust", ".", cwd=home)
    words = refused("trust", "first", "--card", "card.txt", cwd=home)
    assert "--card must end in .md or .json; got 'card.txt'" in words
    assert not (home / "card.txt").exists()


def test_results_that_were_changed_are_refused(home):
    shutil.copytree(home / "first", home / "changed")
    (home / "changed/path.npz").write_bytes(b"other")
    words = refused("trust", "changed", "--card", "changed.md", cwd=home)
    assert "must be what the run made" in words
    assert not (home / "changed.md").exists()
