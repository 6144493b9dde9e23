"""`nefele audit`: what runs and sites give away."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest

from nefele.sites import Site
from nefele.sites.carriers.memory import Hub
from nefele.sites.example import coast, trial_of
from tests.e2e.commands import FIT, QUICK, edges, refused, run, weather

AUDIT = ("--models", "8")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A run with enough nodes to see information in them."""
    folder = tmp_path_factory.mktemp("audit")
    weather(40).write_csv(folder / "weather.csv")
    edges(40).write_csv(folder / "edges.csv")
    done = run(*FIT, "--graph", "edges.csv", *QUICK, "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_a_run_is_audited(fitted):
    done = run("audit", "run", *AUDIT, cwd=fitted)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "sent: nothing, the run was one process" in said and "no guarantee" in said
    assert "4 answers of FedRelax give X^T X and X^T y of a node" in said
    assert "membership: Members are told from other rows with AUC" in said
    assert "held-out rows: by a small loss alone" in said
    assert "about its mean of wind" in said and "about its mean of pressure" in said
    assert "fitting 9 models" in done.stderr
    assert run("audit", "run", *AUDIT, "--quiet", cwd=fitted).stderr == ""


def test_json_has_the_numbers(fitted):
    done = run("audit", "run", *AUDIT, "--json", "--seed", "1", cwd=fitted)
    found = json.loads(done.stdout)
    assert found["kind"] == "run" and found["sent"]["guarantee"] is None
    assert found["reconstruction"]["asked"] == 40
    assert 0 < found["reconstruction"]["worst_error"] < 1e-12
    assert 0.4 < found["membership"]["auc"] < 0.8 and found["membership"]["auc_error"] > 0
    assert [one["feature"] for one in found["information"]] == ["wind", "pressure"]


def test_pictures_are_written(fitted):
    done = run("audit", "run", *AUDIT, "--pictures", "drawn", "--json", cwd=fitted)
    files = json.loads(done.stdout)["pictures"]
    assert len(files) == 3
    for file in files:
        assert "<svg" in (fitted / file).read_text(encoding="utf-8")[:1000]


def test_few_nodes_classes_and_single_rows(tmp_path):
    data = weather(6).with_columns(
        pl.when(pl.col("tmax") > 7).then(pl.lit("warm")).otherwise(pl.lit("cold")).alias("tmax")
    )
    lone = data.head(1).with_columns(pl.lit("lone").alias("station"))
    pl.concat([data, lone]).write_csv(tmp_path / "weather.csv")
    options = ("--task", "classification", "--alpha", "0.1", "--out", "run")
    done = run(*FIT, "--coords", "lat,lon", *options, cwd=tmp_path)
    assert done.returncode in (0, 1), done.stderr
    done = run("audit", "run", *AUDIT, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "of 1 node with a single row one gradient gives that row" in done.stdout
    assert "information: not measured: the nodes are the trials, and 7 are too few" in done.stdout


def test_the_rows_must_be_those_of_the_run(fitted):
    file = fitted / "weather.csv"
    kept = file.read_bytes()
    try:
        file.write_bytes(kept + b"\n")
        said = refused("audit", "run", cwd=fitted)
        assert "The data file must be there as the run read it" in said
        file.unlink()
        assert "is lost or has changed" in refused("audit", "run", cwd=fitted)
    finally:
        file.write_bytes(kept)


def test_what_is_no_run(tmp_path):
    (tmp_path / "empty").mkdir()
    assert "No run folder 'nowhere'" in refused("audit", "nowhere", cwd=tmp_path)
    assert "must be a run folder of nefele" in refused("audit", "empty", cwd=tmp_path)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "site.toml").write_text("")
    assert "must have a finished run; it has none" in refused("audit", "site", cwd=tmp_path)
    (tmp_path / "site" / "run-1").mkdir()
    (tmp_path / "site" / "run-1" / "run.json").write_text("{}")
    assert "must be a finished run of a site" in refused("audit", "site/run-1", cwd=tmp_path)
    assert "ledger.csv" in refused("audit", "site", cwd=tmp_path)


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Three sites that have learnt together in this process."""
    folder, hub = tmp_path_factory.mktemp("sites"), Hub()
    federation = trial_of(coast(alpha=0.3), folder)

    def learn(name):
        carrier = hub.carrier(name)
        return Site(folder / name, accept=federation.hash, carrier=carrier).run()

    with ThreadPoolExecutor() as pool:
        list(pool.map(learn, ["oulu", "kemi", "inari"]))
    return folder


@pytest.mark.parametrize("where", ["oulu", "oulu/run-1"])
def test_a_site_is_audited_by_its_books(sites, where):
    done = run("audit", where, cwd=sites)
    assert done.returncode == 0, done.stderr
    assert "numbers of parameters to kemi" in done.stdout
    assert "From d + 1 rounds a neighbour can work out gradients" in done.stdout
    assert "membership: not measured here" in done.stdout
    found = json.loads(run("audit", where, "--json", cwd=sites).stdout)
    books = pl.read_csv(sites / "oulu" / "run-1" / "ledger.csv").filter(direction="sent")
    assert sum(one["numbers"] for one in found["sent"]) == books["numbers"].sum()
    assert np.all([one["messages"] > 0 for one in found["sent"]])
    assert found["guarantee"] is None and found["name"] == "oulu"
