"""The commands on files: as processes where that matters, otherwise called in this one."""

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import nefele
from tests.e2e.commands import FIT, QUICK, START, edges, process, refused, run, weather


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with data, edges and one finished run."""
    folder = tmp_path_factory.mktemp("home")
    weather().write_csv(folder / "weather.csv")
    edges().write_csv(folder / "edges.csv")
    done = process(*FIT, "--graph", "edges.csv", "--out", "first", *QUICK, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "first.txt").write_text(done.stdout, encoding="utf-8")
    assert done.stderr == ""
    return folder


# -- fit ------------------------------------------------------------------------------------------


def test_fit_prints_the_three_methods_and_the_verdict(home):
    text = (home / "first.txt").read_text(encoding="utf-8")
    for words in ("own data only", "one model", "nefele", "certified", "Report:"):
        assert words in text
    assert "Coupling probably helps" in text and " ± " in text  # the gain is 1.3 standard errors
    assert "\x1b" not in text and "\r" not in text


def test_fit_leaves_a_whole_run_folder(home):
    pictures = ["pictures"] if importlib.util.find_spec("matplotlib") else []
    assert sorted(p.name for p in (home / "first").iterdir()) == [
        "coef.csv",
        "config.toml",
        "history.jsonl",
        "metrics.csv",
        "model.nefele",
        "path.npz",
        *pictures,
        "report.html",
        "run.json",
    ]
    facts = json.loads((home / "first/run.json").read_text())
    assert facts["status"] == "done" and facts["gap"] <= facts["tol"]
    assert {"nefele", "numpy", "scipy", "numba", "python"} <= set(facts["versions"])
    assert len(facts["files"]["data"]["sha256"]) == 64 and "graph" in facts["files"]
    assert {"reading", "cross-validation", "path and fit", "report"} <= set(facts["timings"])
    for line in (home / "first/history.jsonl").read_text().splitlines():
        assert json.loads(line).keys() == {"iteration", "objective", "gap", "seconds"}


def test_the_errors_are_those_of_models_fitted_by_hand(home):
    """Held-out errors of a node alone, and of one model, by least squares on the training rows."""
    from nefele.runs.split import hold_out

    data = weather()
    ids = data["station"].to_numpy().astype(str)
    X = np.column_stack([data["wind"], data["pressure"], np.ones(len(ids))])
    y = data["tmax"].to_numpy()
    train, test = hold_out(ids, None, seed=0)
    table = pl.read_csv(home / "first/metrics.csv", schema_overrides={"node": pl.String})
    assert table["node"].to_list() == sorted(set(ids)) and table["held_out"].to_list() == [3] * 10
    pooled = np.linalg.lstsq(X[train], y[train], rcond=None)[0]
    for row in table.iter_rows(named=True):
        mine, held = (part[ids[part] == row["node"]] for part in (train, test))
        own = np.linalg.lstsq(X[mine], y[mine], rcond=None)[0]
        assert row["own_error"] == pytest.approx(((X[held] @ own - y[held]) ** 2).mean(), rel=1e-5)
        expected = ((X[held] @ pooled - y[held]) ** 2).mean()
        assert row["pooled_error"] == pytest.approx(expected, rel=1e-3)
        assert row["gain"] == pytest.approx(row["own_error"] - row["nefele_error"])


def test_the_model_is_that_of_the_estimator(home):
    facts = json.loads((home / "first/run.json").read_text())
    data = weather()
    graph = nefele.as_graph(edges())
    model = nefele.GTVRegressor(
        graph, node="station", alpha=facts["summary"]["alpha"], standardize=True, tol=1e-9
    ).fit(data.select("station", "wind", "pressure"), data["tmax"].to_numpy())
    coef = pl.read_csv(home / "first/coef.csv", schema_overrides={"node": pl.String})
    assert coef["node"].to_list() == model.nodes_.tolist()
    found = coef.select("wind", "pressure").to_numpy()
    assert found == pytest.approx(model.coef_, abs=0.02)


def test_same_numbers_from_its_own_config(home):
    done = run("run", "first/config.toml", "--out", "again", "--quiet", cwd=home)
    assert done.returncode == 0, done.stderr
    for name in ("metrics.csv", "coef.csv"):
        assert (home / "again" / name).read_bytes() == (home / "first" / name).read_bytes()


def test_a_finished_run_is_not_repeated(home):
    before = (home / "first/run.json").stat().st_mtime_ns
    done = run(*FIT, "--graph", "edges.csv", "--out", "first", *QUICK, cwd=home)
    assert done.returncode == 0 and "finished before" in done.stdout
    assert (home / "first/run.json").stat().st_mtime_ns == before


def test_json_parses_and_quiet_prints_the_table_only(home):
    args = (*FIT, "--graph", "edges.csv", "--out", "first", *QUICK)
    found = json.loads(run(*args, "--json", cwd=home).stdout)
    assert found["summary"]["scores"].keys() == {"own data only", "one model", "nefele"}
    quiet = run(*args, "--quiet", cwd=home)
    assert "own data only" in quiet.stdout and "Coupling" not in quiet.stdout
    assert quiet.stderr == ""


def test_parquet_gives_the_same_numbers(home):
    weather().write_parquet(home / "weather.parquet")
    args = ["fit", "weather.parquet", *FIT[2:], "--graph", "edges.csv", "--out", "parquet"]
    assert run(*args, *QUICK, "--quiet", cwd=home).returncode == 0
    same = [(home / folder / "metrics.csv").read_bytes() for folder in ("first", "parquet")]
    assert same[0] == same[1]


def test_time_holds_out_the_latest_rows_and_coordinates_give_a_graph(home):
    done = run(
        "fit", "weather.csv", "--node", "station", "--target", "tmax", "--coords", "lat,lon",
        "--k", "2", "--time", "date", "--out", "forward", *QUICK, "--json", cwd=home,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["features"] == ["wind", "pressure"]
    assert found["graph"]["source"] == "2 nearest by lat, lon"
    path = np.load(home / "forward/path.npz")
    assert path["geographic"] and path["positions"][0].tolist() == [20.0, 60.0]
    data = weather()
    late = data.filter(pl.col("date") >= "2024-01-10")
    early = data.filter((pl.col("date") < "2024-01-10") & (pl.col("station") == "000"))
    A, b = (np.column_stack([t["wind"], t["pressure"], np.ones(len(t))]) for t in (early, late))
    own = np.linalg.lstsq(A, early["tmax"].to_numpy(), rcond=None)[0]
    mine = (late["station"] == "000").to_numpy()
    expected = ((b[mine] @ own - late["tmax"].to_numpy()[mine]) ** 2).mean()
    table = pl.read_csv(home / "forward/metrics.csv")
    assert table["own_error"][0] == pytest.approx(expected, rel=1e-5)


def test_learned_graph_says_so(home):
    done = run(*FIT, "--out", "learned", *QUICK, "--alpha", "0.5", cwd=home)
    assert done.returncode == 0, done.stderr
    assert (
        "The graph was learnt from the data (no --graph and no --coords was given)" in done.stdout
    )
    assert "learnt from the data" in (home / "learned/report.html").read_text(encoding="utf-8")


def test_classification(home):
    data = weather(n_rows=20)
    warm = data["tmax"] > data["tmax"].median()
    kinds = pl.Series("kind", np.where(warm, "warm", "cold"))
    data.drop("tmax").with_columns(kinds).write_csv(home / "kinds.csv")
    args = ("fit", "kinds.csv", "--node", "station", "--target", "kind", "--graph", "edges.csv")
    args += ("--features", "wind,pressure", "--task", "classification", "--out", "kinds")
    done = run(*args, *QUICK, cwd=home)
    assert done.returncode == 0, done.stderr
    assert "log loss" in done.stdout and "wrong" in done.stdout
    found = run("predict", "kinds", "kinds.csv", cwd=home)
    table = pl.read_csv(found.stdout.encode())
    assert table["prediction"].is_in(["cold", "warm"]).all()
    assert (table["probability_cold"] + table["probability_warm"]).to_numpy() == pytest.approx(1.0)
    assert (table["prediction"] == table["kind"]).mean() > 0.8


def test_three_classes_have_parameters_for_each(home):
    data = weather(n_rows=16)
    third = np.searchsorted(np.quantile(data["tmax"], [1 / 3, 2 / 3]), data["tmax"])
    kinds = pl.Series("kind", np.array(["low", "mid", "top"])[third])
    data.drop("tmax").with_columns(kinds).write_csv(home / "three.csv")
    args = ("fit", "three.csv", "--node", "station", "--target", "kind", "--graph", "edges.csv")
    args += ("--features", "wind", "--task", "classification", "--out", "three", "--alpha", "0.1")
    done = run(*args, "--n-alphas", "3", "--quiet", cwd=home)
    assert done.returncode == 0, done.stderr
    columns = pl.read_csv(home / "three/coef.csv").columns
    assert columns[:3] == ["node", "wind [low]", "intercept [low]"] and len(columns) == 7


def test_it_says_when_coupling_does_not_help(tmp_path):
    """Neighbours with opposite models and many rows: nothing to share."""
    rng = np.random.default_rng(3)
    owner = np.repeat(np.arange(6), 60)
    x = rng.normal(size=360)
    y = np.where(owner % 2 == 0, 3.0, -3.0) * x + 0.1 * rng.normal(size=360)
    data = pl.DataFrame({"id": [f"n{i}" for i in owner], "x": x, "y": y})
    data.write_csv(tmp_path / "data.csv")
    links = pl.DataFrame(
        {"source": [f"n{i}" for i in range(5)], "target": [f"n{i}" for i in range(1, 6)]}
    )
    links.write_csv(tmp_path / "edges.csv")
    args = ("fit", "data.csv", "--node", "id", "--target", "y", "--graph", "edges.csv", *QUICK)
    done = run(*args, "--alpha", "0.5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Coupling does not help here: own data only does better" in done.stdout
    chosen = run(*args, "--penalty", "l2", "--out", "chosen", cwd=tmp_path)
    assert "Coupling does not" in chosen.stdout


def test_without_a_penalty_the_coupling_is_chosen(home):
    rows = ("fit", "weather.csv", "--node", "station", "--target", "tmax", "--graph", "edges.csv")
    assert run(*rows, "--out", "default", "--quiet", cwd=home).returncode == 0
    facts = json.loads((home / "default/run.json").read_text())
    assert 'penalty = "auto"' in (home / "default/config.toml").read_text()
    assert "coupling" in dict(facts["theory"]) and facts["gap"] <= facts["tol"]
    assert run(*rows, "--alpha", "0.1", "--out", "number", "--quiet", cwd=home).returncode == 0
    assert 'penalty = "l2"' in (home / "number/config.toml").read_text()
    both = refused(*rows, "--alpha", "0.1", "--penalty", "auto", "--out", "both", cwd=home)
    assert "Name a penalty, such as l2" in both


def test_not_converged_is_exit_code_1(home):
    args = (*FIT, "--graph", "edges.csv", "--out", "strict", "--alpha", "0.1", "--n-alphas", "2")
    done = run(*args, "--tol", "1e-300", "--penalty", "huber", cwd=home)
    assert done.returncode == 1, done.stderr
    assert "Warning: not trustworthy" in done.stderr
    assert json.loads((home / "strict/run.json").read_text())["status"] == "not converged"


# -- bad input ------------------------------------------------------------------------------------


def test_wrong_column_name(home):
    text = refused(
        "fit", "weather.csv", "--node", "staton", "--target", "tmax", cwd=home, command=process
    )
    assert 'No column "staton" in weather.csv. Did you mean "station"?' in text
    assert not (home / "nefele-run-weather").exists()


def test_text_in_a_numeric_column(home):
    data = weather().with_columns(pl.col("wind").cast(pl.String))
    data[4, "wind"] = "calm"
    data.write_csv(home / "calm.csv")
    args = ("fit", "calm.csv", "--node", "station", "--target", "tmax")
    text = refused(*args, cwd=home, command=process)
    assert "column \"wind\" must hold numbers; got 'calm' at line 6" in text


def test_edges_with_unknown_ids(home):
    edges(8).write_csv(home / "short.csv")
    pl.DataFrame({"source": ["000"], "target": ["8"]}).write_csv(home / "other.csv")
    text = refused(*FIT, "--graph", "short.csv", "--out", "x", cwd=home, command=process)
    assert "2 of 10 are not: '008', '009'" in text and "--allow-isolates" in text
    text = refused(*FIT, "--graph", "other.csv", "--out", "x", cwd=home)
    assert "'008' is not '8'" in text


def test_edge_columns_are_named(home):
    pl.DataFrame({"from": ["000"], "to": ["001"]}).write_csv(home / "renamed.csv")
    text = refused(*FIT, "--graph", "renamed.csv", "--out", "x", cwd=home)
    assert "Rename 'from' to 'source', 'to' to 'target'" in text


def test_missing_values_are_named_and_can_be_dropped(home):
    data = weather().with_columns(pl.col("wind").cast(pl.String))
    data[3, "wind"] = ""
    data[7, "wind"] = "NA"
    data.write_csv(home / "gaps.csv")
    args = ("fit", "gaps.csv", *FIT[2:], "--graph", "edges.csv", "--out", "gaps", "--alpha", "1")
    args += ("--n-alphas", "3")
    done = run(*args, cwd=home)
    assert done.returncode == 0 and "Missing values: wind (2)" in done.stdout
    assert "wind: numbers; missing ones filled in by" in done.stdout
    args = tuple("dropped" if word == "gaps" else word for word in args)
    done = run(*args, "--drop-missing", cwd=home)
    assert done.returncode == 0 and "2 of 120 rows are left out for missing values" in done.stdout


def test_what_the_fit_would_refuse_leaves_no_folder(home):
    weather().with_columns(pl.lit("warm").alias("kind")).write_csv(home / "warm.csv")
    args = ("fit", "warm.csv", "--node", "station", "--target", "kind", "--out", "warm")
    assert "at least 2 classes" in refused(*args, "--task", "classification", cwd=home)
    assert "for a regression; got 'warm' at line 2" in refused(*args, cwd=home)
    assert not (home / "warm").exists()


def test_an_exact_fit_is_no_gain(tmp_path):
    data = weather(n_nodes=4).with_columns(pl.lit(0.1).alias("tmax"))
    data.write_csv(tmp_path / "weather.csv")
    done = run(*FIT, "--alpha", "1", "--n-alphas", "2", cwd=tmp_path)
    assert done.returncode == 0 and "Coupling does not help here" in done.stdout


def test_an_unwritable_folder_is_refused_before_any_work(home):
    (home / "file").write_text("not a folder")
    args = ("fit", "no-such.csv", "--node", "a", "--target", "b", "--out", "file/run")
    text = refused(*args, cwd=home, command=process)
    assert "--out must be a folder that can be written" in text


def test_a_folder_with_something_else_is_refused(home):
    (home / "mine").mkdir()
    (home / "mine/letter.txt").write_text("dear")
    args = (*FIT, "--graph", "edges.csv", "--out", "mine", "--alpha", "1", "--n-alphas", "3")
    assert "holds letter.txt" in refused(*args, cwd=home)
    assert run(*args, "--force", cwd=home).returncode == 0
    assert (home / "mine/letter.txt").read_text() == "dear"
    text = refused(*args[:-1], "4", cwd=home)
    assert "holds another run: there n_alphas is 3, here 4" in text


def test_nothing_to_resume(home):
    text = refused(*FIT, "--graph", "edges.csv", "--out", "nowhere", "--resume", cwd=home)
    assert "Nothing to resume" in text
    assert not (home / "nowhere").exists()


# -- interrupted ----------------------------------------------------------------------------------

SLOW = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from nefele.runs import pipeline
whole = pipeline.run_fold
calls = []
def run_fold(*args, **kwargs):
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGINT)
    return whole(*args, **kwargs)
pipeline.run_fold = run_fold
from nefele.cli import main
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_interrupted_fit_goes_on_where_it_stopped(home):
    args = [*FIT, "--graph", "edges.csv", "--out", "broken", *QUICK]
    stopped = subprocess.run(
        [sys.executable, "-c", SLOW, *args], cwd=home, capture_output=True, text=True, check=False
    )
    assert stopped.returncode == 130, stopped.stderr
    assert "Go on with: nefele run" in stopped.stderr and "Traceback" not in stopped.stderr
    kept = sorted(p.name for p in (home / "broken/.stages").iterdir())
    assert kept == ["fold-0.npz", "grid.npz"]
    assert json.loads((home / "broken/run.json").read_text())["status"] == "interrupted"
    times = {p: p.stat().st_mtime_ns for p in (home / "broken/.stages").iterdir()}
    assert "is not finished" in refused("report", "broken", cwd=home)
    assert {p: p.stat().st_mtime_ns for p in times} == times
    done = run(*args, "--resume", cwd=home)
    assert done.returncode == 0, done.stderr
    for name in ("metrics.csv", "coef.csv"):
        assert (home / "broken" / name).read_bytes() == (home / "first" / name).read_bytes()
    assert not (home / "broken/.stages").exists()
    assert "finished before" in run("run", "broken", cwd=home).stdout


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_progress_is_for_terminals(home):
    """Standard error is a terminal here, elsewhere it is not and stays empty."""
    ours, theirs = os.openpty()
    args = (*FIT, "--graph", "edges.csv", "--out", "shown", "--alpha", "1", "--n-alphas", "3")
    with subprocess.Popen(
        [*START, *args], cwd=home, stdout=subprocess.PIPE, stderr=theirs, text=True
    ) as child:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # how a pseudo-terminal says that it was closed
            while part := os.read(ours, 4096):
                seen += part
        printed = child.stdout.read()
    os.close(ours)
    assert child.returncode == 0
    assert b"gap" in seen and b"time left" in seen
    assert "own data only" in printed and "time left" not in printed


def test_changed_data_is_noticed(home):
    weather(seed=1).write_csv(home / "moving.csv")
    args = ("fit", "moving.csv", *FIT[2:], "--graph", "edges.csv", "--out", "moving")
    args += ("--alpha", "1", "--n-alphas", "3")
    assert run(*args, cwd=home).returncode == 0
    weather(seed=2).write_csv(home / "moving.csv")
    assert "the data file has changed since then" in refused(*args, cwd=home)


# -- the other commands ---------------------------------------------------------------------------


def test_check_names_what_is_odd(home):
    done = run("check", "weather.csv", "--node", "station", "--target", "tmax", cwd=home)
    assert done.returncode == 0
    assert "nodes: 10, rows per node 12 to 12" in done.stdout
    edges(8).write_csv(home / "short.csv")
    done = run("check", "weather.csv", "--node", "station", "--graph", "short.csv", cwd=home)
    assert done.returncode == 2 and "'008', '009'" in done.stderr
    args = ("check", "weather.csv", "--node", "station", "--graph", "edges.csv", "--json")
    facts = json.loads(run(*args, cwd=home).stdout)
    assert facts["graph"]["components"] == 1 and facts["errors"] == []


def test_predict_adds_a_column(home):
    done = run("predict", "first", "weather.csv", "--out", "new/out.csv", cwd=home)
    assert done.returncode == 0, done.stderr
    found = pl.read_csv(home / "new/out.csv", schema_overrides={"station": pl.String})
    assert found["station"].to_list() == weather()["station"].to_list()
    model = nefele.load(home / "first/model.nefele")
    expected = model.predict(weather().select("wind", "pressure", "station"))
    assert found["prediction"].to_numpy() == pytest.approx(expected)


def test_predict_does_not_replace_what_the_run_was_made_of(home):
    shutil.copy(home / "weather.csv", home / "other.csv")
    before = (home / "weather.csv").read_bytes()
    text = refused("predict", "first", "other.csv", "--out", "weather.csv", cwd=home)
    assert "another file than the data and those of the run" in text
    assert (home / "weather.csv").read_bytes() == before


def test_predict_names_unknown_ids(home):
    strange = weather().with_columns(pl.lit("7").alias("station"))
    strange.write_csv(home / "strange.csv")
    text = refused("predict", "first", "strange.csv", cwd=home)
    assert "1 id(s) of strange.csv have no model: '7'" in text and "--unseen pooled" in text
    done = run("predict", "first", "strange.csv", "--unseen", "pooled", "--json", cwd=home)
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["predictions"]) == 120


def test_path(home):
    assert "certified gap" in run("path", "first", cwd=home).stdout
    rows = json.loads(run("path", "first", "--json", cwd=home).stdout)
    assert len(rows) == 5 and rows[0]["clusters"] == 1
    assert [row["alpha"] for row in rows] == sorted((row["alpha"] for row in rows), reverse=True)
    best = min(rows, key=lambda row: row["cv_error"])
    assert best["chosen"] and sum(row["chosen"] for row in rows) == 1
    assert run("path", "first", "--out", "path.csv", cwd=home).returncode == 0
    assert pl.read_csv(home / "path.csv")["alpha"].to_list() == [row["alpha"] for row in rows]


def test_report_is_rebuilt_from_the_folder(home):
    before = (home / "first/report.html").read_bytes()
    (home / "first/report.html").unlink()
    done = run("report", "first", cwd=home)
    assert done.returncode == 0 and "report.html" in done.stdout
    assert (home / "first/report.html").read_bytes() == before
    assert "No run folder" in refused("report", "nothing", cwd=home)


def test_init_then_run(tmp_path):
    weather().write_csv(tmp_path / "data.csv")
    done = run("init", cwd=tmp_path)
    assert done.returncode == 0 and "nefele run nefele.toml" in done.stdout
    assert "is there already" in refused("init", cwd=tmp_path)
    file = tmp_path / "nefele.toml"
    text = file.read_text(encoding="utf-8").replace("n_alphas = 30", "n_alphas = 4")
    file.write_text(text.replace("folds = 5", "folds = 2"), encoding="utf-8")
    done = run("run", "nefele.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "nefele-run-data/report.html").is_file()
    file.write_text(text.replace("penalty", "penality"), encoding="utf-8")
    assert 'No key "penality"' in refused("run", "nefele.toml", cwd=tmp_path)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("sbm", "Coupling helps"), ("chain", "Coupling helps"), ("star", "Coupling probably helps")],
)
def test_generated_demos(name, verdict, tmp_path):
    done = run("demo", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert verdict in done.stdout and done.stderr == ""
    assert (tmp_path / f"nefele-demo-{name}/report.html").is_file()


def test_a_demo_does_not_touch_other_folders(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/data.csv").write_text("precious")
    text = refused("demo", "star", "--out", "mine", cwd=tmp_path)
    assert "new or empty folder" in text
    assert (tmp_path / "mine/data.csv").read_text() == "precious"
    assert 'Did you mean "chain"?' in refused("demo", "chian", cwd=tmp_path)


# -- learnt graphs --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["moments", "wasserstein", "losses", "gradients", "pooling"])
def test_a_graph_can_be_learnt_by_name(home, name):
    args = ("--graph", f"learn:{name}", "--alpha", "0.1", "--n-alphas", "2", "--json")
    done = run(*FIT, *args, "--out", f"learnt-{name}", cwd=home)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["graph"]["source"] == f"learnt from the data ({name})"
    assert facts["graph"]["n_edges"] >= 10
    again = run("run", f"learnt-{name}/config.toml", "--out", f"again-{name}", cwd=home)
    assert again.returncode == 0
    coef = [(home / f"{kind}-{name}/coef.csv").read_bytes() for kind in ("learnt", "again")]
    assert coef[0] == coef[1]


def test_a_learnt_graph_sees_no_held_out_row(home, monkeypatch):
    from nefele.graph_learning import LossGraph

    whole, seen = LossGraph.fit_graph, []

    def watched(self, rows):
        seen.append(len(rows.X))
        return whole(self, rows)

    monkeypatch.setattr(LossGraph, "fit_graph", watched)
    args = ("--graph", "learn:losses", "--n-alphas", "2", "--folds", "2", "--json")
    facts = json.loads(run(*FIT, *args, "--out", "watched", cwd=home).stdout)
    training = facts["rows"] - facts["held_out_rows"]
    assert set(seen) >= {facts["rows"], training}  # the final fit, and the comparison
    assert min(seen) < 0.6 * training  # the folds


@pytest.mark.parametrize(
    ("graph", "words"),
    [("learn:loses", 'Did you mean "losses"?'), ("learn:labels", "needs --task classification")],
)
def test_learnt_graphs_that_cannot_be(home, graph, words):
    assert words in refused(*FIT, "--graph", graph, "--out", "never", cwd=home)
    assert not (home / "never").exists()


def test_held_out_labels_change_nothing_but_their_own_errors(tmp_path):
    from nefele.runs.split import hold_out

    rows = weather()
    edges().write_csv(tmp_path / "edges.csv")
    late = int(hold_out(rows["station"].to_numpy().astype(str), None, 0)[1][0])
    found = []
    for name, label in (("plain", None), ("wild", 1e6)):
        y = rows["tmax"].to_numpy().copy()
        y[late] = y[late] if label is None else label
        rows.with_columns(tmax=y).write_csv(tmp_path / "weather.csv")
        args = ("--graph", "edges.csv", *QUICK, "--out", name, "--quiet")
        assert run(*FIT, *args, cwd=tmp_path).returncode == 0
        table = pl.read_csv(tmp_path / name / "metrics.csv", schema_overrides={"node": pl.String})
        others = table.filter(pl.col("node") != rows["station"][late])
        alphas = np.load(tmp_path / name / "path.npz")["alphas"]
        found.append((alphas.tolist(), others["nefele_error"].to_list()))
    assert found[0] == found[1]


def test_help_by_its_short_name_and_completion_of_commands(tmp_path, monkeypatch):
    for words in (["-h"], ["fit", "-h"], ["site", "run", "-h"]):
        assert "Usage: nefele" in run(*words, cwd=tmp_path).stdout
    monkeypatch.setenv("_NEFELE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "nefele rep")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert run(cwd=tmp_path).stdout.split() == ["report", "reproduce"]
