"""`nefele fit --epsilon`: the account beside the data, and a folder made of noise alone."""

import csv
import json
import sys

import numpy as np
import pytest

from nefele import load
from nefele.privacy import Budget
from tests.e2e.commands import refused, run
from tests.privacy.data import two_clusters

FIT = ("fit", "rows.csv", "--node", "town", "--target", "y", "--graph", "edges.csv")
NAMED = ("--features", "a,b", "--n-alphas", "4")
PRIVATE = (*FIT, *NAMED, "--epsilon", "1", "--bounds", "bounds.toml")


@pytest.fixture
def place(tmp_path):
    X, y, ids, graph = two_clusters(80, nodes=6, d=2)
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["town", "a", "b", "y"])
        writer.writerows([f"t{i}", *x, t] for i, x, t in zip(ids, X, y, strict=True))
    with (tmp_path / "edges.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        writer.writerows([f"t{i}", f"t{j}"] for i, j in zip(graph.head, graph.tail, strict=True))
    (tmp_path / "bounds.toml").write_text("x = 2.5\ny = [-4, 4]\n")
    return tmp_path


def test_two_runs_on_the_same_data_add_up(place):
    total = ("--total-epsilon", "1.5", "--json")
    first = run(*PRIVATE, *total, "--out", "one", cwd=place)
    assert first.returncode == 0, first.stderr
    facts = json.loads((place / "one" / "run.json").read_text())
    assert facts["privacy"]["mechanism"] == "statistics"
    assert facts["privacy"]["head"] == Budget(path=place / "rows.csv.budget").head
    assert any("epsilon 1, delta 1e-06" in note for note in facts["notes"])
    assert facts["rows"] == 480
    model = load(place / "one" / "model.nefele")
    assert model.privacy_.epsilon == 1.0
    assert np.isfinite(model.coef_).all()
    report = (place / "one" / "report.html").read_text(encoding="utf-8")
    assert "epsilon 1, delta 1e-06" in report
    assert facts["files"]["data"]["sha256"] not in report

    again = run(*PRIVATE, *total, "--out", "one", cwd=place)  # done already: costs nothing
    assert again.returncode == 0, again.stderr
    assert len(Budget(path=place / "rows.csv.budget").releases) == 1

    second = run(*PRIVATE, "--out", "two", "--json", cwd=place)
    assert second.returncode == 0, second.stderr
    account = Budget(path=place / "rows.csv.budget")
    assert len(account.releases) == 2
    assert 1.0 < account.spent < 1.5
    said = refused(*PRIVATE, "--out", "three", cwd=place)
    assert "would bring epsilon to" in said and "or less still fits" in said
    assert len(Budget(path=place / "rows.csv.budget").releases) == 2
    assert not (place / "three").exists()
    assert "must be that of the budget" in refused(
        *PRIVATE, "--total-epsilon", "3", "--out", "three", cwd=place
    )
    assert not (place / "three").exists()
    report = (place / "one" / "report.html").read_bytes()
    refused(*PRIVATE, "--seed", "1", "--force", "--out", "one", cwd=place)
    assert (place / "one" / "report.html").read_bytes() == report
    assert not (place / "one" / ".next").exists()


def test_what_can_never_fit_makes_no_account(place):
    said = refused(*PRIVATE, "--total-epsilon", "0.5", "--out", "one", cwd=place)
    assert "--total-epsilon must be at least --epsilon, 1" in said
    assert not (place / "rows.csv.budget").exists() and not (place / "one").exists()


def test_a_run_that_stopped_goes_on_with_its_release_and_the_newest_account(place, monkeypatch):
    account = place / "rows.csv.budget"
    Budget(1.0, 1e-6, path=account)
    old = {name: (place / name).read_bytes() for name in (account.name, f"{account.name}.head")}

    def stop(self, alphas):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("nefele.runs.private.PrivatePipeline._compare", stop)
        assert run(*PRIVATE, "--out", "one", cwd=place).returncode == 130
    assert len(Budget(path=account).releases) == 1
    new = {name: (place / name).read_bytes() for name in old}
    for name, content in old.items():
        (place / name).write_bytes(content)
    assert "older copy" in refused(*PRIVATE, "--out", "one", cwd=place)
    for name, content in new.items():
        (place / name).write_bytes(content)
    done = run(*PRIVATE, "--out", "one", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    assert len(Budget(path=account).releases) == 1


def test_the_price_is_shown_where_it_is_asked_for(place):
    done = run(*PRIVATE, "--price", "--alpha", "0.5", "--out", "one", "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    report = (place / "one" / "report.html").read_text(encoding="utf-8")
    assert "What does privacy cost?" in report
    facts = json.loads((place / "one" / "run.json").read_text())
    assert "price.svg" in facts["pictures"]
    assert any("It is not private" in note for note in facts["notes"])
    assert len(Budget(path=place / "rows.csv.budget").releases) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((*FIT, *NAMED, "--price"), "price must go with epsilon"),
        ((*FIT, *NAMED, "--bounds", "bounds.toml"), "bounds must go with epsilon"),
        ((*FIT, *NAMED, "--budget", "b"), "budget must go with epsilon"),
        ((*FIT, *NAMED, "--total-epsilon", "1"), "total_epsilon must go with epsilon"),
        ((*FIT, *NAMED, "--unit", "node"), "unit must go with epsilon"),
        ((*FIT, *NAMED, "--delta", "1e-5"), "delta must go with epsilon"),
        ((*FIT, *NAMED, "--epsilon", "1"), "bounds must be declared"),
        ((*FIT, "--epsilon", "1", "--bounds", "bounds.toml"), "--features must name"),
        ((*PRIVATE, "--task", "classification"), "--task regression"),
        ((*PRIVATE, "--penalty", "auto"), "penalty by name"),
        ((*PRIVATE, "--time", "when"), "--time must be left out"),
        ((*PRIVATE, "--delta", "1"), "delta must be"),
        ((*FIT, *NAMED, "--epsilon", "0", "--bounds", "bounds.toml"), "epsilon must be above 0"),
        ((*FIT, *NAMED, "--epsilon", "1", "--bounds", "none.toml"), "cannot be read"),
    ],
)
def test_what_gives_no_guarantee_is_refused(place, arguments, text):
    assert text in " ".join(refused(*arguments, cwd=place).split())
    assert not (place / "rows.csv.budget").exists()


def test_a_file_that_asks_for_privacy_by_halves_is_refused(place):
    lines = 'data = "rows.csv"\nnode = "town"\ntarget = "y"\nbounds = {x = 2.5, y = [-4, 4]}\n'
    (place / "half.toml").write_text(lines)
    said = refused("run", "half.toml", "--out", "one", cwd=place)
    assert "bounds must go with epsilon" in " ".join(said.split())
    assert not (place / "one").exists()


def test_wrong_bounds_leave_no_folder_behind(place):
    good = (place / "bounds.toml").read_text()
    (place / "bounds.toml").write_text("x = [[-2, 2], [-2, 2], [-2, 2]]\ny = [-4, 4]\n")
    assert "each of the 2 features" in " ".join(
        refused(*PRIVATE, "--out", "one", cwd=place).split()
    )
    assert not (place / "one").exists()
    assert not (place / "rows.csv.budget").exists()
    (place / "bounds.toml").write_text(good)
    done = run(*PRIVATE, "--out", "one", "--json", cwd=place)
    assert done.returncode == 0, done.stderr


def test_the_key_of_a_run_does_not_tell_which_data_it_had(place):
    keys = set()
    for out in ("one", "two"):
        options = ("--alpha", "0.5", "--total-epsilon", "2", "--out", out, "--json")
        done = run(*PRIVATE, *options, cwd=place)
        assert done.returncode == 0, done.stderr
        facts = json.loads((place / out / "run.json").read_text())
        given = (place / out / "path.npz").read_bytes()
        assert facts["key"].encode() in given
        assert facts["salt"].encode() not in given
        keys.add(facts["key"])
    assert len(keys) == 2
    again = run(*PRIVATE, *options, cwd=place)  # the same folder is still known
    assert again.returncode == 0, again.stderr
    assert len(Budget(path=place / "rows.csv.budget").releases) == 2


def test_predictions_that_are_noise_are_called_so(place):
    few = (place / "rows.csv").read_text().splitlines()
    (place / "rows.csv").write_text("\n".join([few[0], *few[1::16]]) + "\n")  # five rows each
    noisy = [*PRIVATE, "--out", "noisy", "--json"]
    noisy[noisy.index("--epsilon") + 1] = "0.1"
    done = run(*noisy, cwd=place)
    assert done.returncode == 0, done.stderr
    facts = json.loads((place / "noisy" / "run.json").read_text())
    assert facts["summary"]["scores"]["nefele"] > 16
    assert any("The predictions are noise" in note for note in facts["notes"])


def test_a_missing_package_is_no_internal_error(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    said = refused(*PRIVATE, "--delta", "3e-7", "--out", "one", cwd=place)
    assert 'pip install "nefele[privacy]"' in said and "Internal error" not in said
