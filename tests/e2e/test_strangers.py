"""Run folders that somebody has changed, mixed or made: nothing is believed, nothing else lost."""

import json
import os
import shutil

import polars as pl
import pytest

from nefele import _files
from tests.e2e.commands import FIT, edges, process, refused, run, weather

FAST = ("--alpha", "1", "--n-alphas", "2")
ARGS = (*FIT, "--graph", "edges.csv", *FAST)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    weather().write_csv(home / "weather.csv")
    edges().write_csv(home / "edges.csv")
    assert run(*ARGS, "--out", "first", cwd=home).returncode == 0
    assert run(*ARGS, "--l2", "3", "--out", "other", cwd=home).returncode == 0
    return home


@pytest.fixture
def home(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


COMMANDS = [
    ("report", "first"),
    ("path", "first"),
    ("predict", "first", "weather.csv", "--out", "new.csv"),
    ("run", "first"),
]


@pytest.mark.parametrize("old", ['penalty = "l2"', "alpha = 1.0", "tol = 0.0001", "seed = 0"])
def test_an_edited_configuration_is_not_that_of_the_run(home, old):
    file = home / "first/config.toml"
    text = file.read_text()
    assert old in text
    name = old.split()[0]
    new = {"penalty": '"l1"', "alpha": "0.5", "tol": "0.001", "seed": "7"}[name]
    file.write_text(text.replace(old, f"{name} = {new}"))
    for command in (("report", "first"), ("run", "first")):
        assert "must be as the run was made; it has been changed" in refused(*command, cwd=home)
    said = refused("run", "first/config.toml", cwd=home)
    assert "its config.toml has been changed since then" in said
    assert "config.toml has been changed" in refused(*ARGS, "--out", "first", cwd=home)
    assert run("run", "first/config.toml", "--out", "again", cwd=home).returncode == 0
    assert run("run", "first/config.toml", "--force", cwd=home).returncode == 0
    assert run("report", "first", cwd=home).returncode == 0


@pytest.mark.parametrize("name", ["path.npz", "model.nefele"])
def test_results_of_another_run_are_refused(home, name):
    shutil.copy(home / "other" / name, home / "first" / name)
    for command in COMMANDS:
        said = refused(*command, cwd=home)
        assert name in said and "must be what the run made" in said


def test_folders_of_the_user_stay(home):
    for name in ("stages", "notes"):
        (home / "mine" / name).mkdir(parents=True)
        (home / "mine" / name / "thesis.txt").write_text("mine")
    assert run(*ARGS, "--out", "mine", "--force", cwd=home).returncode == 0
    assert run(*ARGS, "--l2", "1", "--out", "mine", "--force", cwd=home).returncode == 0
    for name in ("stages", "notes"):
        assert (home / "mine" / name / "thesis.txt").read_text() == "mine"


def test_a_folder_from_elsewhere_touches_no_other_files(home):
    victim = home / "victim.txt"
    victim.write_text("here")
    (home / "first/.ready").mkdir()
    names = [str(victim), "../victim.txt"]
    (home / "first/.ready/files.json").write_text(json.dumps(names))
    refused("report", "first", cwd=home)  # its own files are gone: none of them was listed
    assert victim.read_text() == "here"


@pytest.mark.parametrize("text", ["{", '{"new": 3}', "7", '"\\u0000', ""])
def test_a_list_that_is_none_is_an_error_at_once(home, text, monkeypatch):
    monkeypatch.setattr("nefele.runs.folder._PATIENCE", 1e9)
    (home / "first/.ready").mkdir()
    (home / "first/.ready/files.json").write_text(text)
    if text == '{"new": 3}':  # a list of names, none of them nefele's
        assert run("report", "first", cwd=home).returncode == 2
        return
    assert "must be as nefele left it" in refused("report", "first", cwd=home)
    assert (home / "first/run.json").is_file()


def test_a_link_in_the_place_of_files_is_an_error(home):
    (home / "first/.ready").symlink_to(home / "other")
    assert "must be as nefele left it" in refused("report", "first", cwd=home)
    assert (home / "other/run.json").is_file()


def test_without_locks_nobody_is_refused(home, monkeypatch):
    import fcntl

    def none(*args):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with _files.only_writer(home):
        pass
    assert run(*ARGS, "--out", "third", cwd=home).returncode == 0


def test_odd_parquet_files(home):
    columns = {"id": ["a", "a", "b", "b"], "y": [1.0, 2.0, 3.0, 5.0], "": [1.0, 2.0, 3.0, 3.5]}
    pl.DataFrame(columns).write_parquet(home / "nameless.parquet")
    args = ("--node", "id", "--target", "y")
    assert run("check", "nameless.parquet", *args, cwd=home).returncode in (0, 2)
    pl.DataFrame(columns).clear().write_parquet(home / "empty.parquet")
    assert "at least one row" in refused("check", "empty.parquet", *args, cwd=home)


def test_a_pipe_is_not_waited_for(home):
    os.mkfifo(home / "pipe.csv")
    done = process("check", "pipe.csv", "--node", "id", "--target", "y", cwd=home)
    assert done.returncode == 2 and "it is a pipe" in done.stderr


def test_names_with_line_breaks_are_not_written_as_csv(home):
    data = weather().rename({"wind": "wi\nnd"})
    data.write_parquet(home / "lines.parquet")
    args = ("fit", "lines.parquet", *FIT[2:], "--graph", "edges.csv", *FAST, "--out", "lines")
    args = tuple("wi\nnd" if a == "wind" else a for a in args)
    done = run(*args, cwd=home)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr
