"""The comparison of personal networks: deals, choices, and the table of the documentation."""

import json
from pathlib import Path

import numpy as np
import pytest

from nefele.experiments.pfl_data import (
    COUNTS,
    deal,
    dirichlet_counts,
    find_images,
    label_counts,
    load_images,
)
from nefele.experiments.pfl_table import markdown
from tests.experiments.commands import call, found

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "pfl.json"


def test_a_deal_gives_every_client_its_counts_and_no_image_twice():
    X, y = load_images("8 x 8 digits", None)
    counts = label_counts(None, y)
    dealt = deal(X, y, counts, 1, seed=3)
    both = np.concatenate([dealt.train, dealt.test])
    assert len(set(both)) == len(both) == counts.sum()
    for i, row in enumerate(counts):
        own = np.concatenate([dealt.train[dealt.train_ids == i], dealt.test[dealt.test_ids == i]])
        np.testing.assert_array_equal(np.bincount(y[own], minlength=10), row)


def test_a_small_deal_has_the_same_test_images():
    X, y = load_images("8 x 8 digits", None)
    counts = label_counts(None, y)
    few, many = (deal(X, y, counts, divided, seed=1) for divided in (5, 1))
    np.testing.assert_array_equal(few.test, many.test)
    assert set(few.train) < set(many.train) and len(few.train) < 0.4 * len(many.train)


def test_counts_are_refused_when_they_are_none(tmp_path):
    (tmp_path / COUNTS).write_text("[1, 2]")
    with pytest.raises(ValueError, match="label_counts"):
        label_counts(tmp_path, np.zeros(1, dtype=int))
    with pytest.raises(ValueError, match="fewer clients"):
        dirichlet_counts(np.array([3]), 10, 0.1, 0)


def test_pflllibs_counts_are_those_of_mnist():
    folder = find_images()
    if folder is None:
        pytest.skip("MNIST is not at hand")
    counts = label_counts(folder, np.zeros(0, dtype=int))
    assert counts.shape == (20, 10) and counts.sum() == 70_000


def test_a_quick_run_on_small_digits(tmp_path):
    pytest.importorskip("torch")
    from nefele.experiments import Inputs, load

    cells = load("pfl").cells(True, Inputs())
    assert {cell["images"] for cell in cells} == {"8 x 8 digits"}
    values = load("pfl").compute(next(c for c in cells if "own" in c["method"]), Inputs())
    assert 0.5 < values["accuracy"][0] <= 1 and values["bytes"] == [0.0]
    done = [{**c, **values, "accuracy": [0.9]} for c in cells]
    rows = load("pfl").rows(done)
    first = next(r for r in rows if "nefele" in r.what and r.quantity == "test accuracy")
    assert first.verdict.startswith("not above own images only")


def test_a_folder_without_the_images_is_refused(tmp_path):
    result = call("pfl", "--data", tmp_path, "--out", tmp_path / "out")
    assert result.exit_code != 0
    assert "pfl needs MNIST" in result.output and "fashion_mnist.npz" in result.output


@pytest.mark.slow
def test_the_quick_command(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    found("pfl", "--quick", "--jobs", 1, "--out", tmp_path / "out")


def test_the_table_of_the_documentation_is_that_of_the_results():
    page = (ROOT / "docs" / "personal_networks.md").read_text(encoding="utf-8")
    if not RESULTS.exists():
        assert "| method | accuracy |" not in page
        return
    assert markdown(json.loads(RESULTS.read_text(encoding="utf-8"))) in page
