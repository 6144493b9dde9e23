"""run.json changed by hand: every command says what is wrong with it, none of them breaks."""

import copy
import json

import pytest

from nefele.runs.folder import RunFolder
from tests.e2e.commands import FIT, edges, refused, run, weather

FAST = ("--alpha", "1", "--n-alphas", "2")
COMMANDS = {
    "report": ("report", "first"),
    "path": ("path", "first"),
    "predict": ("predict", "first", "weather.csv", "--out", "new.csv"),
    "run": ("run", "first"),
    "json": ("run", "first", "--json"),
}
WRONG = ["gone", None, 7, "x", [], {}, [[1]], True, float("nan"), {"a": {"b": 1}}]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("runs")
    weather().write_csv(home / "weather.csv")
    edges().write_csv(home / "edges.csv")
    done = run(*FIT, "--graph", "edges.csv", *FAST, "--out", "first", cwd=home)
    assert done.returncode == 0, done.stderr
    return home


@pytest.fixture
def facts(home):
    file = home / "first/run.json"
    text = file.read_text()
    yield json.loads(text)
    file.write_text(text)


def places(value, path=()):
    """Every key inside nested objects."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from places(inner, (*path, key))


def edited(facts, path, new):
    facts = copy.deepcopy(facts)
    inner = facts
    for key in path[:-1]:
        inner = inner[key]
    if new == "gone":
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return facts


@pytest.mark.parametrize("command", COMMANDS)
def test_every_edit_is_refused(home, facts, command):
    file = home / "first/run.json"
    for number, path in enumerate(places(facts)):
        new = WRONG[number % len(WRONG)]
        if edited(facts, path, new) == facts:  # this is what it was
            new = WRONG[(number + 1) % len(WRONG)]
        file.write_text(json.dumps(edited(facts, path, new)))
        said = refused(*COMMANDS[command], cwd=home)
        assert "run.json" in said or "must be a run of format" in said
        assert said.count("\n") == 1


def test_a_number_that_was_made_better_is_refused(home, facts):
    facts["summary"]["gain"] *= 2
    (home / "first/run.json").write_text(json.dumps(facts))
    said = refused("report", "first", cwd=home)
    assert "must be as nefele wrote it; it was changed by hand" in said and "--force" in said


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "{", "null", '{"format": "nefele run"}', "[" * 9999]
)
def test_what_is_no_run_at_all(home, facts, text):
    (home / "first/run.json").write_text(text)
    for command in COMMANDS.values():
        said = refused(*command, cwd=home)
        assert "run.json" in said and said.count("\n") == 1


def test_a_fit_into_such_a_folder_is_refused(home, facts):
    (home / "first/run.json").write_text(json.dumps(edited(facts, ("summary",), 3)))
    args = (*FIT, "--graph", "edges.csv", *FAST, "--out", "first")
    assert "--force" in refused(*args, cwd=home)


def test_names_of_markup_are_printed(home, facts):
    del facts["sha256"]
    facts["summary"]["metric"] = "[/x] [bold]error"
    RunFolder(home / "first").write_facts(facts)
    done = run("run", "first", cwd=home)
    assert done.returncode == 0 and "[/x] [bold]error" in done.stdout
