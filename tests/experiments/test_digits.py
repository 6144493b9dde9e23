"""The digits of Table II: where they come from, and what they show without MNIST."""

import socket

import numpy as np
import pytest

from nefele.experiments import Inputs, load
from nefele.experiments.digits import IMAGES, LABELS, deal, find_mnist, load_digits
from tests.experiments.commands import call, found, rows_by
from tests.experiments.idx import write_idx


@pytest.mark.parametrize("packed", [True, False])
def test_idx_files_are_read(tmp_path, packed):
    images = np.random.default_rng(0).integers(0, 256, (6, 28, 28))
    write_idx(tmp_path, IMAGES, images, packed)
    assert find_mnist(tmp_path) is None
    write_idx(tmp_path, LABELS, np.arange(6), packed)
    X, y, name = load_digits(Inputs(mnist=find_mnist(tmp_path)))
    np.testing.assert_array_equal(X, images.reshape(6, -1) / 255)
    assert y.tolist() == list(range(6)) and name == "MNIST"


def test_a_cut_file_is_refused(tmp_path):
    write_idx(tmp_path, IMAGES, np.zeros((2, 28, 28)), packed=False)
    write_idx(tmp_path, LABELS, np.zeros(2), packed=False)
    whole = (tmp_path / IMAGES).read_bytes()
    (tmp_path / IMAGES).write_bytes(whole[:-1])
    with pytest.raises(ValueError, match="it is not, or it is cut off"):
        load_digits(Inputs(mnist=tmp_path))


def test_no_answer_from_openml_is_said(monkeypatch):
    def nobody(*args, **options):
        assert 0 < socket.getdefaulttimeout() <= 30
        raise OSError("no route")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", nobody)
    before = socket.getdefaulttimeout()
    with pytest.raises(ValueError, match=r"could not be fetched from openml.org \(no route\)"):
        load_digits(Inputs(fetch=True))
    assert socket.getdefaulttimeout() == before


def test_no_image_is_dealt_twice():
    X, y, _ = load_digits(Inputs())
    marked = np.column_stack([X, np.arange(len(X))])
    own, held = deal(marked, y, 4, 14, seed=3)
    seen = np.concatenate([part[:, -1] for part, _ in own + held])
    assert len(set(seen.tolist())) == 40 * 18
    assert {int(d) for _, digits in own[:20] for d in digits} == {0, 1}
    with pytest.raises(ValueError, match="must have 2000 images"):
        deal(X, y, 50, 50, seed=0)


def test_without_torch_the_networks_are_left_out_and_coupling_helps(monkeypatch):
    table2 = load("table2")
    monkeypatch.setitem(table2.cells.__globals__, "find_spec", lambda name: None)
    few = [cell for cell in table2.cells(True, Inputs()) if cell["split"] == "few"]
    done = [{**cell, **table2.compute(cell, Inputs())} for cell in few]
    rows = table2.rows(done)
    assert rows[-1].verdict == 'networks left out: pip install "nefele[torch]"'
    assert not any(row.failed for row in rows)
    test = {row.what.split(": ")[1]: row.ours for row in rows if row.quantity == "test accuracy"}
    assert test["logistic, coupled, lam 0.1"] > test["logistic, alone"] + 0.05


@pytest.mark.slow
def test_table_2_from_the_command_line(tmp_path):
    answer = found("table2", "--quick", "--jobs", 1, "--out", tmp_path / "out")
    rows = rows_by(answer, "table2")
    few = "few split, 4 + 14 images: networks"
    coupled = rows[f"{few}, Algorithm 1, lam 1", "test accuracy"]["ours"]
    assert coupled > rows[f"{few}, alone", "test accuracy"]["ours"] + 0.05
    assert all(row["printed"] is None for row in rows.values())  # these are not MNIST
    assert "8 x 8 digits" in call(
        "table2", "--quick", "--jobs", 1, "--out", tmp_path / "out"
    ).output.replace("\n", " ")


def test_the_notes_speak_of_the_images_that_were_used():
    notes = load("table2").notes
    assert any("stand in" in note for note in notes([{"images": "digits"}]))
    assert not any("stand in" in note for note in notes([{"images": "MNIST"}]))
