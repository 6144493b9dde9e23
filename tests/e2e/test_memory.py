"""Too little memory: one line that says what was asked for, where it is known."""

import json

import numpy as np
import pytest

from tests.e2e.commands import FIT, refused, run, weather

FAST = ("--alpha", "1", "--n-alphas", "2")


def vast(*args, **kwargs):
    return np.empty((10**9, 10**9))


def none_left(*args, **kwargs):
    raise MemoryError


@pytest.fixture
def home(tmp_path):
    weather().write_csv(tmp_path / "weather.csv")
    return tmp_path


@pytest.mark.parametrize("place", ["run.read_inputs", "pipeline.Pipeline._compare"])
def test_a_fit_says_how_much_was_asked_for(home, monkeypatch, place):
    assert run(*FIT, *FAST, "--out", "whole", cwd=home).returncode == 0
    monkeypatch.setattr(f"nefele.runs.{place}", vast)
    text = refused(*FIT, *FAST, "--out", "first", cwd=home)
    assert text.count("\n") == 1 and "fewer rows" in text
    assert "unable to allocate" in text and "iB for an array" in text
    if (home / "first").exists():
        assert json.loads((home / "first/run.json").read_text())["status"] == "failed"


@pytest.mark.parametrize(
    ("place", "args"),
    [
        ("nefele.runs.checks.examine", ("check", "weather.csv", "--node", "station")),
        ("nefele.runs.predicting.predict_table", ("predict", "first", "weather.csv")),
        ("nefele.runs.run.write_report_of", ("report", "first")),
    ],
)
def test_other_commands(home, monkeypatch, place, args):
    assert run(*FIT, *FAST, "--out", "first", cwd=home).returncode == 0
    monkeypatch.setattr(place, none_left)
    text = refused(*args, cwd=home)
    assert text.count("\n") == 1 and "the system has none left" in text
