"""Folders and files that commands write: what is there is not lost, what is lost is said."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest

from nefele.runs import results
from nefele.solvers import Solver
from tests.e2e.commands import FIT, START, edges, refused, run, weather

FAST = ("--alpha", "1", "--n-alphas", "2")
FIRST = (*FIT, "--graph", "edges.csv", "--out", "first", *FAST)


@pytest.fixture
def home(tmp_path):
    """A folder with data, edges and one finished run."""
    weather().write_csv(tmp_path / "weather.csv")
    edges().write_csv(tmp_path / "edges.csv")
    assert run(*FIRST, cwd=tmp_path).returncode == 0
    return tmp_path


def content(folder):
    files = (p for p in folder.rglob("*") if p.is_file() and ".next" not in p.parts)
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


# -- replacing ------------------------------------------------------------------------------------


def test_a_failed_replacement_leaves_the_earlier_run(home, monkeypatch):
    before = content(home / "first")

    def broken(found):
        raise RuntimeError("no such luck")

    with monkeypatch.context() as patched:
        patched.setattr(results, "coef_table", broken)
        done = run(*FIRST, "--force", "--l2", "1", cwd=home)
        assert done.returncode == 3 and "Internal error: no such luck" in done.stderr
        assert content(home / "first") == before
        fresh = run(*FIRST[:-5], "new", *FAST, cwd=home)
        assert fresh.returncode == 3
    assert "is not finished (status: failed)" in refused("report", "new", cwd=home)
    assert run("report", "first", cwd=home).returncode == 0
    assert run(*FIRST, "--force", "--l2", "1", cwd=home).returncode == 0
    after = content(home / "first")
    assert after["coef.csv"] != before["coef.csv"] and b"l2 = 1.0" in after["config.toml"]
    assert sorted(after) == sorted(before) and ".next" not in os.listdir(home / "first")


def test_a_stopped_replacement_goes_on_with_the_same_command(home, monkeypatch):
    from nefele.runs import pipeline

    before = content(home / "first")
    args = (*FIRST[:-4], "--n-alphas", "2", "--folds", "2", "--force")
    whole, calls = pipeline.run_fold, []

    def stopped(*given, **options):
        calls.append(1)
        if len(calls) == 2:
            raise SystemExit(130)
        return whole(*given, **options)

    with monkeypatch.context() as patched:
        patched.setattr(pipeline, "run_fold", stopped)
        done = run(*args, cwd=home)
    assert done.returncode == 130 and "--force" in done.stderr.partition("Go on with:")[2]
    assert content(home / "first") == before
    monkeypatch.setattr(pipeline, "run_fold", lambda *a, **o: calls.append(1) or whole(*a, **o))
    assert run(*args, cwd=home).returncode == 0
    assert len(calls) == 2 + 2  # the first fold was kept
    assert content(home / "first")["metrics.csv"] != before["metrics.csv"]


# -- lost files -----------------------------------------------------------------------------------


def test_lost_tables_are_written_again(home):
    before = content(home / "first")
    for name in ("coef.csv", "metrics.csv", "history.jsonl", "report.html"):
        (home / "first" / name).unlink()
    done = run(*FIRST, cwd=home)
    assert done.returncode == 0 and "finished before" in done.stdout
    assert content(home / "first") == before


@pytest.mark.parametrize("name", ["model.nefele", "path.npz"])
def test_what_cannot_be_written_again_is_named(home, name):
    (home / "first" / name).unlink()
    said = refused(*FIRST, cwd=home)
    assert f"has lost {name}" in said and "--force" in said
    assert run(*FIRST, "--force", cwd=home).returncode == 0


def test_a_run_without_its_configuration(home):
    (home / "first/config.toml").unlink()
    for args in (("report", "first"), ("predict", "first", "weather.csv"), ("run", "first")):
        said = refused(*args, cwd=home)
        assert "has lost its config.toml" in said and "nefele init" not in said
        assert "nefele fit weather.csv" in said and "--force" in said


# -- predict and path -----------------------------------------------------------------------------


def test_predict_writes_only_where_it_may(home):
    before = (home / "weather.csv").read_bytes()
    (home / "place").mkdir()
    args = ("predict", "first", "weather.csv", "--out")
    assert "'place' is a folder" in refused(*args, "place", cwd=home)
    assert "must end in .csv or .parquet" in refused(*args, "p.xlsx", cwd=home)
    assert "another file than the data" in refused(*args, "./weather.csv", cwd=home)
    assert (home / "weather.csv").read_bytes() == before
    assert run(*args, "weather.csv", "--force", cwd=home).returncode == 0
    assert "prediction" in pl.read_csv(home / "weather.csv").columns
    assert "is a folder" in refused("path", "first", "--out", "place", cwd=home)


def test_predict_does_not_overwrite_columns(home):
    data = weather().with_columns(
        pl.when(pl.col("tmax") > 8).then(pl.lit("warm")).otherwise(pl.lit("cold")).alias("kind")
    )
    data.write_csv(home / "kinds.csv")
    args = ("fit", "kinds.csv", "--node", "station", "--target", "kind", "--features", "wind")
    args += ("--graph", "edges.csv", "--task", "classification", "--out", "kinds", *FAST)
    assert run(*args, cwd=home).returncode == 0
    data.with_columns(pl.lit(1.0).alias("probability_cold")).write_csv(home / "new.csv")
    said = refused("predict", "kinds", "new.csv", cwd=home)
    assert 'must not have a column "probability_cold"' in said


def test_predict_does_not_advise_to_leave_features_out(home):
    data = weather().with_columns(pl.col("wind").cast(pl.String))
    data[1, "wind"] = "calm"
    data.write_csv(home / "new.csv")
    said = refused("predict", "first", "new.csv", cwd=home)
    assert "'calm' at line 3" in said and "--features" not in said


# -- ends -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_an_out_of_reach_tolerance_is_exit_code_1(home, penalty, monkeypatch):
    # A gap may be zero to the last digit, by luck; two iterations do not have that luck.
    monkeypatch.setattr(Solver, "max_iter", 2)
    args = (*FIRST[:-5], "strict", *FAST, "--tol", "1e-300", "--penalty", penalty)
    done = run(*args, cwd=home)
    assert done.returncode == 1 and "Warning: not trustworthy" in done.stderr
    assert "0.0e+00" not in done.stdout + done.stderr
    again = run(*args, cwd=home)
    assert again.returncode == 1 and "finished before" in again.stdout


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_early_interrupt_is_said(home):
    script = (
        "import os, signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import nefele.runs.run as run\n"
        "run.read_inputs = lambda *args: os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script + START[-1], *FIRST[:-5], "early", *FAST],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Interrupted.\n")


# -- demos ----------------------------------------------------------------------------------------


def test_demos_keep_each_other(tmp_path):
    done = run("demo", "star", "--out", "mine", "--quiet", cwd=tmp_path)
    assert done.returncode == 0
    facts = json.loads((tmp_path / "mine/run.json").read_text())
    assert facts["command"] == "nefele demo star --out mine --quiet"
    before = content(tmp_path / "mine")
    said = refused("demo", "chain", "--out", "mine", cwd=tmp_path)
    assert "holds another demo (nefele demo star" in said and "--force" in said
    assert content(tmp_path / "mine") == before
    assert run("demo", "star", "--out", "mine", cwd=tmp_path).returncode == 0
    assert run("demo", "chain", "--out", "mine", "--force", cwd=tmp_path).returncode == 0
    assert "chain-00" in (tmp_path / "mine/coef.csv").read_text()


def test_options_of_the_states_are_refused_elsewhere(tmp_path):
    for option in ("--seeds", "--lam", "--tol"):
        assert f"{option} is an option of" in refused("demo", "sbm", option, "3", cwd=tmp_path)
