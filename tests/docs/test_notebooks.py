"""Every notebook of the course and of the concepts runs, without a warning, as its text says."""

import json
import re

import matplotlib
import numpy as np
import pytest

from tests.docs.notebooks import NOTEBOOKS, ROOT, reader, run_cells

SLOW = {"when_it_helps"}
TOPICS = [
    "components",
    "erm",
    "augmentation",
    "gradient_methods",
    "networks",
    "gtvmin",
    "flavours",
    "algorithms",
    "graph_learning",
    "trust",
]
CASES = [
    pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
    for path in NOTEBOOKS
]


@pytest.mark.parametrize("path", CASES)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    run_cells(path)


def test_there_is_a_notebook_for_each_topic():
    names = [path.stem for path in NOTEBOOKS if path.parent.name == "course"]
    assert names == [f"{k:02d}_{topic}" for k, topic in enumerate(TOPICS, 1)]
    listed = (ROOT / "docs/course/index.md").read_text(encoding="utf-8")
    assert re.findall(r"^(\d\d_\w+)$", listed, re.MULTILINE) == names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_exercises_have_solutions_and_the_source_has_no_outputs(path):
    text = path.read_text(encoding="utf-8")
    if path.parent.name == "course":
        exercises = re.findall(r"^\*\*\d\.\*\* ", text, re.MULTILINE)
        assert len(exercises) == 3 == text.count(":tags: [hide-cell]")
    assert text.count("```") == 2 * text.count("```{code-cell} python\n")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_links_of_notebooks_exist(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)", text):
        assert (path.parent / target).exists(), target


def test_the_file_of_jupyter_holds_the_same_code():
    path = next(path for path in NOTEBOOKS if path.stem == "08_algorithms")
    text = path.read_text(encoding="utf-8")
    file = json.loads(reader.as_jupyter(text))
    code = ["".join(cell["source"]) for cell in file["cells"] if cell["cell_type"] == "code"]
    assert code == [cell.text for cell in reader.cells(text) if cell.kind == "code"]
    assert "def fedrelax" in "".join(code) and ":tags:" not in "".join(code)
    ids = [cell["id"] for cell in file["cells"]]
    assert len(set(ids)) == len(ids) and file["nbformat"] == 4


def test_what_the_course_writes_out_is_what_nefele_computes(tmp_path, monkeypatch):
    """FedRelax and Algorithm 1 of chapter 8, against the solvers of the same name."""
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    found = run_cells(next(path for path in NOTEBOOKS if path.stem == "08_algorithms"))
    solve, smooth, norm = found["nefele"].solve, found["smooth"], found["norm"]
    w, _ = found["algorithm1"](norm, 40)
    theirs = solve(norm, "algorithm1", tol=None, max_iter=40)
    np.testing.assert_allclose(w, theirs.w, atol=1e-12)
    relaxed = solve(smooth, "fedrelax", tol=None, max_iter=7).w
    np.testing.assert_allclose(found["fedrelax"](smooth, 7), relaxed, atol=1e-12)
