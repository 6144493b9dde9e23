"""`nefele reproduce`: damaged files, other data, runs that break off, marks of quick runs."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from nefele.experiments import Inputs, Row, Store, load, run
from nefele.experiments import runner as runner_module
from nefele.experiments.digits import IMAGES, LABELS
from nefele.experiments.fig8 import _why
from nefele.experiments.store import inputs_key
from nefele.experiments.tables import as_csv, as_table
from nefele.experiments.weather import find_weather, load_weather
from tests.experiments.commands import call, start
from tests.experiments.idx import write_idx
from tests.waiting import LONG

HEAD = "min_temp,max_temp,station\n"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder without weather data in the usual places."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEFELE_FMI_DATA", raising=False)
    return tmp_path


@pytest.mark.slow
def test_table_2_is_the_same_in_every_process(tmp_path):
    for jobs in (1, 2):
        process = start("table2", "--quick", "--jobs", jobs, "--quiet", "--out", jobs, cwd=tmp_path)
        _, err = process.communicate(timeout=LONG)
        assert process.returncode == 0, err
    for name in ("table2.csv", "table2.svg"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    for file in (tmp_path / "1" / "results").iterdir():
        assert file.read_bytes() == (tmp_path / "2" / "results" / file.name).read_bytes()


def test_stopping_early_is_no_failure_only_where_it_is_meant():
    assert Row("a", "e", 1.0, converged=False).failed
    stopped = Row("a", "e", 1.0, converged=False, stops=True)
    assert not stopped.failed and stopped.as_dict()["converged"] is False


def test_another_folder_of_images_is_another_key(tmp_path):
    keys = set()
    for k in range(2):
        folder = tmp_path / str(k)
        folder.mkdir()
        write_idx(folder, IMAGES, np.full((2, 28, 28), k), packed=False)
        write_idx(folder, LABELS, np.zeros(2), packed=False)
        keys.add(inputs_key("digits", Inputs(mnist=folder)))
    keys |= {inputs_key("digits", Inputs(fetch=fetch)) for fetch in (True, False)}
    assert len(keys) == 4


def test_what_is_no_number_is_null_and_empty(tmp_path, monkeypatch):
    row = Row("networks", "accuracy", float("nan"), deviation=float("inf"))
    line = next(csv.DictReader(as_csv([row]).splitlines()))
    assert line["ours"] == "" and line["deviation"] == ""
    changed = replace(load("fig7"), rows=lambda cells: [row])
    monkeypatch.setattr("nefele.experiments.fig7.EXPERIMENT", changed)
    result = call("fig7", "--quick", "--jobs", 1, "--json", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["experiments"][0]["rows"][0]["ours"] is None


@pytest.mark.parametrize("damage", ["{}", "[]", "null", "types"])
def test_a_damaged_setting_is_computed_again(tmp_path, damage):
    store = Store(tmp_path / "out")
    first = run(["fig7"], Inputs(), store, jobs=1)
    file = sorted((tmp_path / "out" / "results").iterdir())[0]
    whole = file.read_text()
    stored = json.loads(whole)
    stored["values"]["steps"] = "many"
    file.write_text(json.dumps(stored) if damage == "types" else damage)
    assert store.kept(file.name) is None
    assert run(["fig7"], Inputs(), store, jobs=1)[0].rows == first[0].rows
    assert file.read_text() == whole


def test_brackets_are_printed():
    from rich.console import Console

    console = Console(width=200)
    row = Row("networks", "accuracy", 1.0, because='pip install "nefele[torch]"')
    with console.capture() as capture:
        console.print(as_table("a [b]", [row]))
    assert '"nefele[torch]"' in capture.get() and "a [b]" in capture.get()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "must have the columns"),
        (HEAD.encode(), "it has none below its header"),
        (HEAD.encode() + b"1,2,a\n" * 5 + b"1,2", "line 7 must have"),
        (HEAD.encode() + b"1,2,a\n" * 5 + b"1,2,b\n", "'b' has 1"),
        (HEAD.encode() + b"1,nan,a\n" * 5, "line 2: min_temp and max_temp must be numbers"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe\x00", "it is not text"),
    ],
)
def test_a_bad_weather_file_is_said_before_any_work(elsewhere, content, text, monkeypatch):
    (elsewhere / "bad.csv").write_bytes(content)
    monkeypatch.setattr(runner_module, "_compute", None)
    for name in ("table3", "all"):
        result = call(name, "--quick", "--jobs", 1, "--data", "bad.csv", "--out", "out")
        assert result.exit_code == 2, result.output
        assert text in result.output and "'bad.csv'" in result.output
        assert "github.com/YuTian8328" in result.output
        assert not (elsewhere / "out").exists()


def broken(setting, inputs):
    raise ValueError("no luck")


def test_what_is_finished_is_written_when_another_experiment_breaks(elsewhere, monkeypatch):
    monkeypatch.setattr(runner_module, "NAMES", ("fig5", "fig7"))
    monkeypatch.setattr("nefele.experiments.NAMES", ("fig5", "fig7"))
    changed = replace(load("fig5"), compute=broken)
    monkeypatch.setattr("nefele.experiments.fig5.EXPERIMENT", changed)
    result = call("all", "--quick", "--jobs", 1, "--out", "out")
    assert result.exit_code == 2 and "Error: no luck" in result.output
    assert {"fig7.csv", "index.html"} <= {file.name for file in (elsewhere / "out").iterdir()}
    assert "fig5 broke off: no luck" in (elsewhere / "out" / "index.html").read_text()
    with pytest.raises(ValueError, match="no luck"):
        run(["fig5"], Inputs(), Store(elsewhere / "other"), quick=True, jobs=1)


def test_a_variable_that_names_no_file_is_an_error(elsewhere, monkeypatch):
    monkeypatch.setenv("NEFELE_FMI_DATA", "gone.csv")
    with pytest.raises(ValueError, match=r"NEFELE_FMI_DATA must be .* no file 'gone.csv'"):
        find_weather()
    result = call("table3", "--quick", "--out", "out")
    assert result.exit_code == 2 and "'gone.csv'" in result.output
    assert call("fig7", "--quick", "--quiet", "--jobs", 1, "--out", "out").exit_code == 0


def test_quiet_still_says_what_is_left_out(elsewhere, monkeypatch):
    monkeypatch.setattr(runner_module, "NAMES", ("fig7", "table3", "fig9"))
    monkeypatch.setattr("nefele.experiments.NAMES", ("fig7", "table3", "fig9"))
    result = call("all", "--quick", "--quiet", "--jobs", 1, "--out", "out")
    assert result.exit_code == 0, result.output
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Left out: table3, fig9. ")


def test_another_weather_file_is_said_once(elsewhere):
    rng = np.random.default_rng(0)
    lines = [f"{a:.2f},{a + 5 * b:.2f},s{k}" for k in range(4) for a, b in rng.random((12, 2))]
    (elsewhere / "small.csv").write_text(HEAD + "\n".join(lines) + "\n")
    result = call("fig9", "--jobs", 1, "--data", "small.csv", "--out", "out")
    assert result.output.count("4 stations; the paper's has 203") == 1
    assert "203" not in (elsewhere / "out" / "fig9.csv").read_text()
    assert len(load_weather(elsewhere / "small.csv").stations) == 4


def test_a_flat_curve_is_said_only_when_it_is_flat():
    assert "flat" in _why({1.0: 9.0, 5.0: 5.1, 10.0: 5.0}, 0.2)
    assert "flat" not in _why({1.0: 9.0, 5.0: 7.1, 10.0: 5.0}, 0.2)


def test_quick_runs_are_marked(tmp_path):
    assert (
        "fig7, quick run:" in call("fig7", "--quick", "--jobs", 1, "--out", tmp_path / "a").output
    )
    assert (
        "quick" not in call("fig7", "--jobs", 1, "--out", tmp_path / "b").output.split("Written")[0]
    )
    for folder, mark in (("a", "True"), ("b", "False")):
        lines = csv.DictReader((tmp_path / folder / "fig7.csv").read_text().splitlines())
        assert {line["quick"] for line in lines} == {mark}
        assert ("quick run" in (tmp_path / folder / "fig7.svg").read_text()) == (mark == "True")


def test_few_draws_are_the_reason_given():
    from nefele.experiments.fig2 import _point

    cell = {f"notebook l2 {key}": {"mse": 9.0, "gap": 0.1} for key in ("stopped", "optimum")}
    few, all_ = (_point("l2", 0.2, 0.1, n * [cell], [3.29, 0.11])[0].verdict for n in (2, 5))
    assert "quick run: 2 of 5 draws" in few and "quick" not in all_


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    store = Store(tmp_path / "out")
    (tmp_path / "out" / "fig7.csv").mkdir()
    with pytest.raises(OSError, match=r"fig7\.csv") as caught:
        store.write("fig7.csv", "a")
    assert caught.value.filename == str(tmp_path / "out" / "fig7.csv")
    assert not list((tmp_path / "out").glob(".*.part"))


def drawn(name, cells):
    from matplotlib.figure import Figure

    figure = Figure()
    load(name).draw(figure, cells)
    return figure.axes


def test_axes_do_not_mislead():
    scores = {"split": "few", "train": 4, "logistic": {"test": 0.9}}
    assert drawn("table2", [scores])[0].get_xlim() == (0.0, 1.0)
    graphs = ("graph of all rows", "graph of training rows")
    errors = {f"{name}, {where}": {"error": 1.0} for name in ("l1", "l2") for where in graphs}
    (ax,) = drawn("fig8", [{"eta": eta, **errors} for eta in (1.0, 2.0, 5.0)])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["1", "2", "5"]
    starts = [line.get_xdata()[0] for line in ax.get_lines() if len(line.get_xdata()) == 3]
    assert len(set(starts)) >= 4  # error bars side by side
