"""Estimators and commands with an engine."""

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import nefele
from nefele import GTVClassifier, GTVRegressor
from nefele.cli._app import app
from nefele.runs.config import RunConfig
from tests.engines.problems import posed, written


def rows_of(problem):
    data = problem.data
    return {"X": data.X, "y": data.y, "node_ids": data.row_node}


# -- estimators -------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["in_process", {"engine": "in_process", "parts": 3}])
def test_a_regressor_fitted_by_parts_is_as_well_proven(engine):
    problem = posed()
    rows = rows_of(problem)
    parted = GTVRegressor(problem.graph, alpha=0.2, engine=engine).fit(**rows)
    alone = GTVRegressor(problem.graph, alpha=0.2).fit(**rows)
    assert parted.status_ == "optimal" and parted.dual_gap_ <= 1e-4
    labelled = problem.data.labelled
    np.testing.assert_allclose(parted.coef_[labelled], alone.coef_[labelled], atol=0.05)


def test_a_classifier_fitted_by_parts(tmp_path):
    problem = posed("logistic")
    rows = rows_of(problem)
    options = {"alpha": 0.2, "loss": nefele.losses.Logistic(l2=0.05), "tol": 1e-3}
    model = GTVClassifier(problem.graph, engine={"engine": "in_process", "parts": 2}, **options)
    model.fit(**rows)
    assert model.status_ == "optimal"
    model.save(tmp_path / "model.nefele")
    assert nefele.load(tmp_path / "model.nefele").engine == {"engine": "in_process", "parts": 2}


@pytest.mark.parametrize("engine", [3, {"parts": 2}, {"engine": "ray", "cores": 2}])
def test_what_is_no_engine_is_refused(engine):
    problem = posed()
    with pytest.raises(ValueError, match='engine must be None, a name such as "ray"'):
        GTVRegressor(problem.graph, engine=engine).fit(**rows_of(problem))


# -- commands ---------------------------------------------------------------------------------


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


NAMES = ("--node", "place", "--target", "y")


def test_from_files_to_parts_to_parameters(tmp_path):
    problem = posed()
    data, edges = written(tmp_path, problem)
    parts, fit = tmp_path / "parts", tmp_path / "fit"
    done = call("partition", data, edges, "--parts", 3, "--out", parts, *NAMES, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["parts"] == 3 and facts["nodes"] == problem.graph.n_nodes
    options = ("--alpha", 0.2, "--out", fit, "--engine", "in_process", "--json")
    done = call("fit-parts", parts, *options)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert facts["status"] == "optimal" and facts["gap"] <= 1e-4
    assert {"compute", "exchange", "sums", "bytes"} <= set(facts["parts"][0])
    found = pl.read_parquet(fit / "part-*.parquet")
    assert sorted(found["place"]) == problem.graph.ids.tolist()


def test_progress_and_a_summary_are_told(tmp_path):
    data, edges = written(tmp_path, posed())
    parts = tmp_path / "parts"
    done = call("partition", data, edges, "--parts", 2, "--out", parts, *NAMES)
    assert "196 nodes" in done.output
    options = ("--alpha", 0.2, "--engine", "in_process", "--tol", 1e-3)
    done = call("fit-parts", parts, "--out", tmp_path / "fit", *options)
    assert "digits/s" in done.output and "bound by" in done.output


def test_a_tolerance_that_is_not_reached_is_no_success(tmp_path):
    data, edges = written(tmp_path, posed())
    parts, kept = tmp_path / "parts", tmp_path / "kept"
    call("partition", data, edges, "--parts", 2, "--out", parts, *NAMES)
    options = ("--alpha", 0.2, "--engine", "in_process", "--tol", 1e-9, "--checkpoint", kept)
    assert (
        call("fit-parts", parts, "--out", tmp_path / "a", "--max-iter", 20, *options).exit_code == 1
    )
    done = call(
        "fit-parts",
        parts,
        "--out",
        tmp_path / "b",
        "--max-iter",
        30,
        "--resume",
        *options,
        "--json",
    )
    facts = json.loads(done.stdout)
    assert done.exit_code == 1 and facts["iterations"] == 30
    assert "solve it there" in facts["advice"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("partition", "a.parquet", "b.parquet", "--parts", 2, "--out", "p", *NAMES), "no file"),
        (("fit-parts", "nowhere", "--out", "f", "--alpha", 1), "index.parquet is missing"),
        (("fit-parts", "p", "--out", "f", "--alpha", 1, "--resume"), "must go with --checkpoint"),
        (("fit-parts", "p", "--out", "f", "--alpha", 1, "--engine", "x"), "engine must be"),
        (("fit", "a.csv", *NAMES, "--engine", "spark"), "engine"),
        (("fit", "a.csv", *NAMES, "--parts", 3), "parts must go with an engine"),
        (("fit", "a.csv", *NAMES, "--engine", "mpi", "--address", "auto"), "address must go with"),
    ],
)
def test_bad_input_of_the_commands(tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    done = call(*arguments)
    assert done.exit_code == 2 and said in " ".join(done.output.split())
    assert not list(tmp_path.iterdir())


def test_fit_with_an_engine(tmp_path):
    data, edges = written(tmp_path, posed(side=6), kind="csv")
    options = ("--graph", edges, "--penalty", "l2", "--alpha", 0.3, "--engine", "in_process")
    out = tmp_path / "run"
    done = call("fit", data, *NAMES, *options, "--parts", 2, "--allow-isolates", "--out", out)
    assert done.exit_code == 0, done.output
    assert nefele.load(out / "model.nefele").engine == {"engine": "in_process", "parts": 2}


def test_too_many_parts_are_refused_before_the_run_begins(tmp_path):
    data, edges = written(tmp_path, posed(side=6), kind="csv")
    options = ("--graph", edges, "--allow-isolates", "--engine", "in_process", "--parts", 99)
    done = call("fit", data, *NAMES, *options, "--out", tmp_path / "run")
    assert done.exit_code == 2 and not (tmp_path / "run").exists()
    assert "parts must be at most the number of nodes, 36; got 99" in " ".join(done.output.split())


def test_parts_that_cannot_be_fitted_leave_no_folder(tmp_path):
    data, edges = written(tmp_path, posed(side=6))
    parts, fit = tmp_path / "parts", tmp_path / "fit"
    call("partition", data, edges, "--parts", 2, "--out", parts, *NAMES)
    options = ("--alpha", 0.2, "--out", fit, "--engine", "in_process")
    done = call("fit-parts", parts, *options, "--loss", "logistic")
    assert done.exit_code == 2 and "Labels of the logistic loss" in done.output
    (parts / "part-00001.parquet").unlink()
    done = call("fit-parts", parts, *options)
    assert done.exit_code == 2 and "Part 1 must be a file" in " ".join(done.output.split())
    assert not fit.exists()


def test_a_private_run_has_no_engine():
    given = {"data": "a.csv", "node": "n", "target": "y", "features": ["x"], "engine": "ray"}
    private = {"epsilon": 1.0, "bounds": {"x": 1.0, "y": 1.0}}
    with pytest.raises(ValueError, match="engine must be left out with epsilon"):
        RunConfig.from_dict(given | private)
