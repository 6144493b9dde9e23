"""Estimators, cross-validation, files and commands on the states data, after a plain install."""

import json

import numpy as np
import polars as pl
import pytest

import nefele
from nefele import GTVClassifier, GTVRegressor, GTVRegressorCV
from tests.e2e.commands import run

STATES = nefele.datasets.load_states()
X, NODES = STATES.X[:, :4], STATES.node_ids


def rows():
    """The panel as a table of polars."""
    columns = dict(zip(STATES.feature_names[:4], X.T, strict=True))
    return pl.DataFrame({"state": NODES.tolist(), **columns, "product": STATES.y})


def borders():
    graph = STATES.graph
    ends = {"source": graph.ids[graph.head].tolist(), "target": graph.ids[graph.tail].tolist()}
    return pl.DataFrame(ends)


def test_cross_validation_chooses_an_alpha_and_says_what_it_is_worth():
    model = GTVRegressorCV(STATES.graph, penalty="l2", alphas=[1e-4, 1e-3, 1e-2], cv=2)
    model.fit(X, STATES.y, node_ids=NODES)
    assert model.alpha_ in (1e-4, 1e-3, 1e-2) and model.dual_gap_ <= model.tol
    assert model.score(X, STATES.y, node_ids=NODES) > 0.9
    assert "alpha" in model.summary()


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
def test_a_model_comes_back_from_its_file(loss, tmp_path):
    model = GTVRegressor(borders(), node="state", loss=loss, alpha=1e-2)
    table = rows().drop("product")
    model.fit(table, STATES.y)
    model.save(tmp_path / "model.nefele")
    again = nefele.load(tmp_path / "model.nefele")
    np.testing.assert_array_equal(again.predict(table), model.predict(table))


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_classes(loss):
    rich = STATES.y > np.median(STATES.y)
    model = GTVClassifier(STATES.graph, loss=loss, alpha=1e-2).fit(X, rich, node_ids=NODES)
    assert model.score(X, rich, node_ids=NODES) > 0.9


def test_fit_predict_and_report(tmp_path):
    rows().write_csv(tmp_path / "states.csv")
    borders().write_csv(tmp_path / "borders.csv")
    words = ("--node", "state", "--target", "product", "--graph", "borders.csv", "--out", "run")
    fit = run("fit", "states.csv", *words, "--n-alphas", "4", "--folds", "2", cwd=tmp_path)
    assert fit.returncode == 0, fit.stderr
    facts = json.loads((tmp_path / "run/run.json").read_text(encoding="utf-8"))
    assert facts["status"] == "done" and facts["gap"] <= facts["tol"]
    predict = run("predict", "run", "states.csv", "--out", "out.csv", cwd=tmp_path)
    assert predict.returncode == 0, predict.stderr
    assert pl.read_csv(tmp_path / "out.csv").height == len(X)
    (tmp_path / "run/report.html").unlink()
    report = run("report", "run", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert "New Hampshire" in (tmp_path / "run/report.html").read_text(encoding="utf-8")
