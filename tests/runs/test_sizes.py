"""Very many parameters: how much memory they take is said before the work begins."""

from types import SimpleNamespace

import numpy as np
import pytest

from nefele.runs.sizes import size_note
from tests.e2e.commands import FIT, run, weather


def rows(d, n=10, y=None):
    ids = np.repeat([f"n{i}" for i in range(n)], 2)
    y = np.zeros(2 * n) if y is None else y
    return SimpleNamespace(parameters=range(d), ids=ids, y=y)


def test_matrices_of_all_nodes_are_counted():
    assert size_note(rows(9_999), "regression").startswith("10000 parameters at each of 10 nodes")
    assert "7.5 GiB" in size_note(rows(9_999), "regression")
    assert size_note(rows(3_000, n=1), "regression") is not None


@pytest.mark.parametrize(("d", "n"), [(100, 2000), (2_000, 10), (5, 5)])
def test_usual_sizes_are_not_worth_a_word(d, n):
    assert size_note(rows(d, n), "regression") is None


def test_each_of_several_classes_has_parameters():
    y = np.array(list("abcd") * 5)
    assert "8004 parameters" in size_note(rows(2_000, y=y), "classification")
    assert size_note(rows(2_000, y=np.array(list("ab") * 10)), "classification") is None


@pytest.mark.parametrize("command", ["fit", "graph"])
def test_it_is_said_before_the_work(tmp_path, monkeypatch, command):
    weather().write_csv(tmp_path / "weather.csv")
    monkeypatch.setattr("nefele.runs.sizes._MUCH", 1)

    def stop(*args, **kwargs):
        raise ValueError("the work has begun")

    monkeypatch.setattr("nefele.runs.pipeline.Pipeline.run", stop)
    monkeypatch.setattr("nefele.runs.graphs._Comparison.build", stop)
    done = run(command, *FIT[1:], cwd=tmp_path)
    assert done.returncode == 2
    first, second = done.stderr.splitlines()
    assert first.startswith("Note: 3 parameters at each of 10 nodes") and "begun" in second
    done = run(command, *FIT[1:], "--quiet", cwd=tmp_path)
    assert done.stderr.splitlines() == [second]
