"""`nefele reproduce`: our reference values, the shapes of the figures, and how a run behaves."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from nefele.experiments import NAMES, Inputs, Row, Store, load, run
from nefele.experiments import runner as runner_module
from nefele.experiments.figures import svg
from nefele.experiments.page import page
from tests.experiments.commands import call, found, rows_by, start
from tests.waiting import LONG

GENERATED = ("fig2", "fig3", "fig4", "fig5", "fig7", "table1", "flavours")
MSE = "MSE (40)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reproduce")


@pytest.fixture(scope="module")
def tables(folder):
    """Rows of the quick runs on generated data, from the command line."""
    rows = {}
    for name in GENERATED:
        answer = found(name, "--quick", "--jobs", 1, "--out", folder / name)
        rows[name] = rows_by(answer, name)
    return rows


# -- our reference values ------------------------------------------------------------------------


def test_block_model_reference_point(tables):
    rows = tables["fig2"]
    point = "l1, rho 0.6, p_out 0.01, seed 0"
    assert rows[point, "edges"]["ours"] == 5074
    assert rows[point, "edges across"]["ours"] == 87
    assert rows[point, "objective"]["ours"] == pytest.approx(3.473941128, rel=1e-6)
    assert rows[point, MSE]["ours"] == pytest.approx(4.852845e-05, rel=1e-2)
    printed = rows[f"{point}, Algorithm 1, 3000 iterations", "objective"]
    assert printed["ours"] == pytest.approx(3.473941128, rel=1e-6)


def test_stopping_is_not_solving(tables):
    rows, point = tables["fig2"], "l1, rho 0.2, p_out 0.2, seed 0"
    assert rows[point, "objective"]["ours"] == pytest.approx(38.69292, rel=1e-6)
    stopped = rows[f"{point}, Algorithm 1, 3000 iterations", "objective"]
    assert stopped["ours"] == pytest.approx(40.73, abs=5e-3)
    assert stopped["gap"] > 1e-2


@pytest.mark.parametrize(
    ("name", "objective", "error"),
    [
        ("GTVMin l2, lam 0.001", 0.1371974918, 2.83e-07),
        ("GTVMin l2, lam 0.01", 1.3707224753, 8.22e-06),
        ("GTVMin l1, lam 0.01", 9.3778627505, 3.08e-04),
    ],
)
def test_table_1_reference_values(tables, name, objective, error):
    rows = tables["table1"]
    assert rows[f"{name}, seed 0", "objective"]["ours"] == pytest.approx(objective, rel=1e-6)
    assert rows[f"{name}, seed 0", MSE]["ours"] == pytest.approx(error, rel=1e-2)
    assert rows[name, MSE]["verdict"].startswith("differs, because the table comes from another")


def test_table_1_baselines(tables):
    rows = tables["table1"]
    assert rows["seed 0", "edges"]["ours"] == 1258
    assert rows["oracle", MSE]["ours"] == pytest.approx(2.5e-07, rel=0.2)
    assert rows["IFCA", MSE]["ours"] == pytest.approx(rows["oracle", MSE]["ours"], rel=1e-2)
    assert rows["FedAvg", MSE]["ours"] == pytest.approx(rows["pooled", MSE]["ours"], rel=1e-6)
    stopped = rows["Algorithm 1, 1000 iterations, l2, lam 0.01", MSE]
    assert stopped["ours"] > 10  # not converged for l2
    assert not stopped["converged"] and stopped["stops"] and not stopped["failed"]


def test_where_the_printed_table_1_comes_from(tables):
    rows = tables["table1"]
    label = "error of the training labels"
    oracle = rows["d = 1000: one model per cluster", label]
    assert oracle["ours"] == pytest.approx(8.04e-07, rel=1e-2)
    assert oracle["verdict"] == "same"
    assert rows["d = 1000: one model for all", label]["ours"] == pytest.approx(117.09, rel=0.15)


@pytest.mark.parametrize(("eps", "error"), [(0.1, 7.13e-09), (0.5, 1.78e-07), (0.9, 5.78e-07)])
def test_chain_reference_values(tables, eps, error):
    row = tables["fig4"][f"l2, rho 0.6, eps {eps:g}, seeds 0-2", MSE]
    assert row["ours"] == pytest.approx(error, rel=1e-2)
    assert row["gap"] <= 1e-10


def test_star_reference_values(tables):
    rows = tables["fig7"]
    assert rows["l2", "critical lam"]["ours"] == pytest.approx(16.04144, rel=1e-6)
    assert rows["l1", "critical lam"]["ours"] == pytest.approx(15.78956, rel=1e-6)
    spread = {key[0]: row["ours"] for key, row in rows.items() if key[1].startswith("spread")}
    below = [value for name, value in spread.items() if "0.999" in name]
    above = [value for name, value in spread.items() if "1.001" in name]
    assert min(below) > 1e-3 and max(above) < 1e-6 and spread["squared_l2, lam 1000"] > 1e-3


# -- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["l1", "l2"])
def test_norms_recover_and_degrade_with_edges_across(tables, name):
    rows = tables["fig2"]
    errors = [rows[f"{name}, rho 0.6, p_out {p:g}", MSE]["ours"] for p in (0.01, 0.1, 0.2)]
    assert errors[0] < 1e-3
    assert errors[0] < errors[1] < errors[2]
    noisy = tables["fig3"]
    errors = [noisy[f"{name}, sigma 0.01, p_out {p:g}", MSE]["ours"] for p in (0.01, 0.1, 0.2)]
    assert errors[0] < 1e-3
    assert errors[0] < errors[1] < errors[2]


def test_mocha_is_worse_by_ten_times(tables):
    rows, point = tables["fig2"], "rho 0.6, p_out 0.01"
    squared = rows[f"squared, {point}", MSE]["ours"]
    assert squared > 10 * rows[f"l1, {point}", MSE]["ours"]
    assert squared > 10 * rows[f"l2, {point}", MSE]["ours"]


@pytest.mark.parametrize(
    ("name", "point", "printed"),
    [
        ("l2", "rho 0.6, p_out 0.1", 2.622e-4),
        ("l2", "rho 0.2, p_out 0.1", 3.290),
        ("squared", "rho 0.2, p_out 0.01", 0.3398),
    ],
)
def test_the_notebooks_iterations_give_its_numbers(tables, name, point, printed):
    rows = tables["fig2"]
    row = rows[f"{name}, errors summed, {point}, 2000 iterations", MSE]
    assert row["verdict"] == "same" and row["where"] == "authors' notebook"
    assert row["ours"] == pytest.approx(printed, rel=0.25)


def test_the_notebooks_iterations_are_not_always_the_optimum(tables):
    point = "l2, errors summed, rho 0.2, p_out 0.1"
    stopped = tables["fig2"][f"{point}, 2000 iterations", MSE]
    optimum = tables["fig2"][f"{point}, optimum", MSE]
    assert optimum["gap"] <= 1e-8 < stopped["gap"]
    assert optimum["ours"] > 1.5 * stopped["ours"]


def test_every_row_is_certified_or_says_why_not(tables):
    for rows in tables.values():
        for row in rows.values():
            assert (row["converged"] or row["stops"]) and not row["failed"]
            if row["gap"] is not None:
                assert row["converged"] == (row["gap"] <= 1e-8)
            if row["printed"] is not None:
                assert row["verdict"] == "same" or row["verdict"].startswith("differs, because ")


# -- files ---------------------------------------------------------------------------------------


def test_every_figure_regenerates_to_the_byte(tables, folder):
    for name in GENERATED:
        one = run([name], Inputs(), Store(folder / name), quick=True, jobs=1)[0]
        drawn = svg(one.experiment, one.cells, quick=True)
        assert drawn == (folder / name / f"{name}.svg").read_bytes()
        assert b"<dc:date>" not in drawn and b"Matplotlib" not in drawn


def test_two_runs_give_the_same_bytes_whatever_the_number_of_jobs(tables, folder, tmp_path):
    words = ("fig4", "--quick", "--jobs", 2, "--quiet", "--out", "again")
    process = start(*words, cwd=tmp_path)
    out, err = process.communicate(timeout=LONG)
    assert process.returncode == 0, err
    assert "Algorithm 1" in out
    for file in ("fig4.csv", "fig4.svg"):
        assert (tmp_path / "again" / file).read_bytes() == (folder / "fig4" / file).read_bytes()
    again = sorted(p.name for p in (tmp_path / "again" / "results").iterdir())
    assert again == sorted(p.name for p in (folder / "fig4" / "results").iterdir())


def test_page_is_whole_and_navigable(tables, folder):
    done = [
        run([name], Inputs(), Store(folder / name), quick=True, jobs=1)[0] for name in GENERATED
    ]
    pictures = {one.experiment.name: svg(one.experiment, one.cells) for one in done}
    html = page(done, pictures, {"table3": "no <data>"}, "0", quick=True)
    assert len(html) < 5e6
    assert set(re.findall(r'href="#(\w+)"', html)) == set(re.findall(r'section id="(\w+)"', html))
    sources = re.findall(r'(?:src|href)="([^"]{1,30})', html)
    assert all(s.startswith(("#", "data:image/svg+xml;base64,")) for s in sources)
    assert html.count("<img ") == len(GENERATED) and "no &lt;data&gt;" in html


# -- a run ---------------------------------------------------------------------------------------


def counted(monkeypatch):
    calls = []
    compute = runner_module._compute

    def count(name, setting, *rest, **options):
        calls.append(setting)
        return compute(name, setting, *rest, **options)

    monkeypatch.setattr(runner_module, "_compute", count)
    return calls


def test_finished_settings_are_not_repeated(tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    store = Store(tmp_path / "out")
    first = run(["fig7"], Inputs(), store, jobs=1)
    assert len(calls) == 3
    kept = sorted((tmp_path / "out" / "results").iterdir())
    kept[0].unlink()
    kept[1].write_text('{"steps": [')  # cut off
    second = run(["fig7"], Inputs(), Store(tmp_path / "out"), jobs=1)
    assert len(calls) == 5
    assert second[0].rows == first[0].rows
    monkeypatch.setattr("nefele.experiments.store.version", lambda name: "9.9")
    run(["fig7"], Inputs(), store, jobs=1)
    assert len(calls) == 8


# Ctrl-C while the process waits for its workers, who have done some settings by then.
INTERRUPTED = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from nefele.experiments import runner
compute_all = runner._compute_all

class Interrupting(list):
    def __iter__(self):
        for i, item in enumerate(super().__iter__()):
            if i == 6:
                os.kill(os.getpid(), signal.SIGINT)
            yield item

runner._compute_all = lambda todo, *rest: compute_all(Interrupting(todo), *rest)
"""


def test_ctrl_c_leaves_a_folder_to_go_on_from(tables, folder, tmp_path):
    words = ("fig2", "--quick", "--jobs", 2, "--quiet", "--out", "out")
    process = start(*words, cwd=tmp_path, first=INTERRUPTED)
    _, err = process.communicate(timeout=LONG)
    assert process.returncode == 130, err
    assert list((tmp_path / "out" / "results").glob("fig2-*.json"))
    answer = found("fig2", "--quick", "--jobs", 1, "--out", tmp_path / "out")
    assert rows_by(answer, "fig2") == tables["fig2"]


def test_a_missed_reference_value_is_exit_code_1(tables, folder, monkeypatch):
    monkeypatch.setitem(load("fig7").compute.__globals__["CRITICAL"], "l2", 16.1)
    result = call("fig7", "--quick", "--jobs", 1, "--quiet", "--out", folder / "fig7")
    assert result.exit_code == 1
    assert "FAILS: our reference" in result.output.replace("\n", " ")


def test_a_solve_that_did_not_converge_is_exit_code_1(tmp_path):
    out = tmp_path / "out"
    assert call("fig7", "--quick", "--jobs", 1, "--quiet", "--out", out).exit_code == 0
    store = Store(out)
    for file in (out / "results").iterdir():
        text = json.dumps(store.kept(file.name)).replace('"converged": true', '"converged": false')
        store.keep(file.name, json.loads(text))
    result = call("fig7", "--quick", "--jobs", 1, "--quiet", "--out", out)
    assert result.exit_code == 1
    assert "not converged" in result.output


def test_verdicts():
    assert Row("a", "e", 1.04, printed=1.0).verdict == "same"
    assert Row("a", "e", 1.2, printed=1.0, because="x").verdict == "differs, because x"
    assert Row("a", "e", 1.0, converged=False).failed
    assert Row("a", "e", 1.0, expected=(1.1, 2.0)).failed
    assert not Row("a", "e", 1.2, printed=1.0, because="x", expected=(1.1, 2.0)).failed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["fig6"], "Available: fig2"),
        (["fig7", "--data", "nowhere"], "No file or folder 'nowhere'"),
        (["fig7", "--data", "."], "must have FMIData.csv, or train-images"),
        (["fig7", "--out", "file"], "must be a folder"),
        (["fig7", "--out", "full"], "holds something else"),
        (["table3"], "github.com/YuTian8328/FederatedLearning"),
        (["table3", "--data", "file"], "must have the columns min_temp, max_temp, station"),
    ],
)
def test_bad_input_is_exit_code_2(words, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEFELE_FMI_DATA", raising=False)
    Path("file").write_text("a,b\n1,2\n")
    Path("full").mkdir()
    Path("full", "thesis.tex").write_text("mine")
    result = call(*words, "--jobs", 1)
    assert result.exit_code == 2
    assert text in result.output.replace("\n", " ")
    assert Path("full", "thesis.tex").read_text() == "mine"


def test_list_names_all():
    answer = call("list")
    assert answer.exit_code == 0
    assert [line.split()[0] for line in answer.output.splitlines()] == list(NAMES)


def test_settings_are_seeded_and_plain():
    for name in NAMES:
        for quick in (True, False):
            cells = load(name).cells(quick, Inputs())
            assert all("seed" in cell for cell in cells)
            keys = [repr(sorted(cell.items())) for cell in cells]
            assert len(set(keys)) == len(keys)
        few, all_ = (len(load(name).cells(quick, Inputs())) for quick in (True, False))
        assert few <= all_


def test_same_draws_give_same_numbers():
    setting = {"rho": 0.2, "p_out": 0.1, "seed": 1}
    fig2 = load("fig2")
    first, second = (fig2.compute(setting, Inputs()) for _ in range(2))
    assert first == second
    other = fig2.compute({**setting, "seed": 2}, Inputs())
    assert not np.isclose(first["l1"]["mse"], other["l1"]["mse"], rtol=1e-6)
