"""Runs that choose the coupling themselves."""

import numpy as np
import polars as pl
import pytest

import nefele
from nefele.runs.config import RunConfig
from nefele.runs.run import execute


def files(folder, task="regression", n=20, rows=15):
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(n), rows)
    x, kind = rng.normal(size=len(ids)), rng.choice(["tin", "tile"], len(ids))
    y = x * (1 + rng.normal(size=n)[ids]) + np.cumsum(rng.normal(size=n))[ids]
    y = y + (kind == "tin") + rng.normal(size=len(ids))
    names = [f"n{i}" for i in range(n)]
    target = np.where(y > np.median(y), "high", "low").tolist() if task != "regression" else y
    table = {"id": [names[i] for i in ids], "x": x, "roof": kind.tolist(), "y": target}
    pl.DataFrame(table).write_csv(folder / "data.csv")
    pl.DataFrame({"source": names[:-1], "target": names[1:]}).write_csv(folder / "edges.csv")


def run(folder, *, graph=False, **options):
    config = RunConfig(
        str(folder / "data.csv"),
        "id",
        "y",
        graph=str(folder / "edges.csv") if graph else None,
        penalty="auto",
        out=str(folder / "run"),
        **options,
    )
    return execute(config, "nefele fit")


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_without_a_graph_the_centre_joins_the_nodes(tmp_path, task):
    files(tmp_path, task)
    folder, facts = run(tmp_path, task=task)
    assert facts["converged"] and facts["graph"]["n_edges"] == 0
    assert "centre" in facts["graph"]["source"]
    assert not any("The graph has no part" in note for note in facts["notes"])
    assert dict(facts["theory"])["coupling"].startswith("personal")
    assert any(label.startswith("compared: one model") for label, _ in facts["theory"])
    scores = facts["summary"]["scores"]
    assert scores["nefele"] < 1.1 * min(scores["own data only"], scores["one model"])
    model = nefele.load(folder.file("model.nefele"))
    compared = {f"compared: {one['coupling']}" for one in model.candidates_}
    assert model.coupling_ == dict(facts["theory"])["coupling"]
    assert compared == {label for label, _ in facts["theory"] if label.startswith("compared: ")}
    new = pl.DataFrame({"id": ["n3"], "x": [0.5], "roof": ["tin"]})
    assert len(model.predict(new)) == 1
    assert folder.file("report.html").stat().st_size > 10_000


def test_with_a_graph_it_may_share_the_coupling(tmp_path):
    files(tmp_path)
    folder, facts = run(tmp_path, graph=True)
    assert facts["graph"]["n_edges"] == 19
    assert "graph" in dict(facts["theory"])["coupling"]
    found = folder.load_path()
    assert found["coef"].shape[1] == 20 and len(found["nodes"]) == 20
    assert not any("The graph has no part" in note for note in facts["notes"])


def test_a_graph_without_a_part_in_the_coupling_is_named(tmp_path):
    files(tmp_path)
    names = np.random.default_rng(1).permutation([f"n{i}" for i in range(21)]).tolist()
    pl.DataFrame({"source": names[:-1], "target": names[1:]}).write_csv(tmp_path / "edges.csv")
    _, facts = run(tmp_path, graph=True)
    assert "graph" not in facts["summary"]["coupling"]
    notes = " ".join(facts["notes"])
    assert "The graph has no part in the models" in notes
    assert "get their model from the nodes that they are coupled to: 'n20'" in notes


def test_a_finished_run_is_not_repeated_and_a_lost_model_is_missed(tmp_path):
    files(tmp_path)
    first, facts = run(tmp_path)
    _, again = run(tmp_path)
    assert again["finished"] == facts["finished"]
    assert first.file("coef.csv").is_file()


def test_a_strength_of_the_users_needs_a_penalty_by_name(tmp_path):
    files(tmp_path)
    with pytest.raises(ValueError, match="has a strength of its own"):
        run(tmp_path, alpha=0.5)


@pytest.mark.parametrize("rows", [2, 3])
def test_the_final_model_is_chosen_from_all_rows_with_its_own_strength(tmp_path, rows):
    """Few rows per node: what is left of them after the comparison says little of the noise."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(100), rows)
    x = rng.normal(size=len(ids))
    y = 2 * rng.normal(size=100)[ids] + x + rng.normal(size=len(ids))
    table = pl.DataFrame({"id": [f"n{i}" for i in ids], "x": x, "y": y})
    table.write_csv(tmp_path / "data.csv")
    folder, facts = run(tmp_path)
    whole = nefele.GTVRegressorCV(node="id").fit(table.select("id", "x"), y)
    assert facts["summary"]["alpha"] == pytest.approx(whole.alpha_)
    assert facts["summary"]["coupling"] == whole.coupling_
    model = nefele.load(folder.file("model.nefele"))
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-6)
    assert facts["summary"]["helps"] in ("yes", "probably")
    assert facts["held_out_rows"] == pytest.approx(len(y) / 4, abs=1)


def test_what_curves_are_worth_is_not_said_of_the_coupling(tmp_path):
    rng = np.random.default_rng(0)
    ids, x = np.repeat(np.arange(30), 15), rng.normal(size=450)
    table = pl.DataFrame({"id": ids, "x": x, "y": x**2 + 0.3 * rng.normal(size=450)})
    table.write_csv(tmp_path / "data.csv")
    _, facts = run(tmp_path)
    assert facts["summary"]["coupling"] == "one model, common curves"
    assert facts["summary"]["helps"] == "no"
    scores = facts["summary"]["scores"]
    assert scores["one model"] == pytest.approx(scores["nefele"], rel=1e-3)
    model = nefele.GTVRegressorCV(node="id").fit(table.select("id", "x"), table["y"].to_numpy())
    assert "Coupling does not help" in model.summary()
