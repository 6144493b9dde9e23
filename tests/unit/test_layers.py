"""The layers of the package: a module imports only from the layers below its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import nefele
from tests.layers import Rules, Tree, part_of_module

ROOT = Path(nefele.__file__).parent
DOCS = Path(__file__).parents[2] / "docs"
RULES = Rules(
    layers=(
        (
            "_checks",
            "_draw",
            "_files",
            "_html",
            "_ids",
            "_kernels",
            "_progress",
            "_records",
            "_threads",
            "_torch",
            "_words",
            "program",
        ),
        ("_systems", "data", "graph", "graphs"),
        ("losses", "penalties"),
        ("certificate", "problem", "result"),
        ("paths", "solvers"),
        (
            "baselines",
            "datasets",
            "encoding",
            "engines",
            "graph_learning",
            "mixed",
            "online",
            "privacy",
            "report",
            "robust",
            "runtime",
            "theory",
        ),
        ("accountable", "agnostic", "estimators", "flavours", "networks", "selection"),
        ("cli", "experiments", "runs", "sites"),
    ),
    # Within a layer: what belongs together may be seen from one side, never from both.
    neighbours={
        "_ids": {"_words"},
        "_kernels": {"_checks"},
        "_progress": {"_words"},
        "_records": {"_files"},
        "_torch": {"_checks"},
        "program": {"_checks"},
        "_draw": {"_checks", "_ids", "_words"},
        "_systems": {"graph", "graphs"},
        "graphs": {"graph"},
        "problem": {"certificate"},
        "result": {"problem"},
        "paths": {"solvers"},
        "baselines": {"runtime"},
        "engines": {"runtime"},
        "robust": {"theory"},
        "runtime": {"privacy", "robust"},
        "accountable": {"estimators"},
        "agnostic": {"estimators", "selection"},
        "estimators": {"selection"},
        "flavours": {"agnostic"},
        "networks": {"estimators", "selection"},
        "report": {"runtime"},
        "sites": {"runs"},
        "cli": {"experiments", "runs", "sites"},
    },
    # Solvers see losses and penalties through Problem only.
    hidden={"solvers": {"losses", "penalties"}},
    # These pick special formulas by type.
    excepted=frozenset(
        {
            "solvers/interior_point/chances.py",
            "solvers/interior_point/forms.py",
            "solvers/interior_point/kinks.py",
            "solvers/fedrelax.py",
            "solvers/merging/solver.py",
            "solvers/primal_dual/fused.py",
            "solvers/quadratic.py",
            "solvers/primal_dual/quotient.py",
        }
    ),
)


@pytest.fixture(scope="module")
def tree():
    return Tree(ROOT)


def test_every_import_keeps_to_the_layers(tree):
    found = [str(violation) for violation in tree.violations(RULES)]
    assert not found, "\n".join([f"{len(found)} imports break the rules:", *found])


def test_the_special_solvers_still_need_their_exception(tree):
    needed = {i.file for i in tree.imports if part_of_module(i.target) in RULES.hidden["solvers"]}
    assert needed >= RULES.excepted


def test_neighbours_share_a_layer_and_see_each_other_from_one_side():
    layer = {name: k for k, names in enumerate(RULES.layers) for name in names}
    for part, others in RULES.neighbours.items():
        assert {layer[other] for other in others} == {layer[part]}
        assert not any(part in RULES.neighbours.get(other, ()) for other in others)


def test_the_page_on_the_architecture_has_these_layers_and_real_files():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (\d) \| (.*) \|$", page, re.MULTILINE)
    assert [tuple(re.findall(r"`(\w+)`", names)) for _, names in table] == list(RULES.layers)
    for file in re.findall(r"`([\w/]+\.py)`", page):
        assert (ROOT / file).exists() or (DOCS.parent / file).exists(), file


def test_the_checker_sees_the_imports_of_this_package(tree):
    seen = {(i.module, i.target) for i in tree.imports}
    assert {
        ("nefele.solvers.base", "nefele.problem"),
        ("nefele.problem", "nefele.certificate"),
        ("nefele.cli._demo_fits", "nefele.engines"),  # `from nefele import solve`
        ("nefele.cli.fit", "nefele.runs.config"),  # while type-checking
    } <= seen


GOOD = {
    "__init__.py": "if True:\n    from toy.low import thing\n",
    "low.py": "thing = _own = 1\n",
    "room/__init__.py": "from toy.room._inner import part\n",
    "room/_inner.py": "from toy.low import thing\n",
    "room/other.py": "from toy.room._inner import _part\n",
    "room/deep/far.py": "import toy.room._inner\n",
    "beside.py": "import json\n",
    "top.py": "from toy import low, thing\nfrom toy.room import part\n",
}
TOY = Rules(
    layers=(("low",), ("beside", "room"), ("top",)),
    neighbours={},
    hidden={"top": {"beside"}},
    excepted=frozenset(),
)


def violations_of(folder, changes):
    for file, text in (GOOD | changes).items():
        path = folder / "toy" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [str(violation) for violation in Tree(folder / "toy").violations(TOY)]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("low.py", "\nimport toy.top\n", "low.py:2: layer: low imports top"),
        ("low.py", "import toy\n", "low.py:1: layer: low imports __init__"),
        ("low.py", "def f():\n  from toy import beside\n", "low.py:2: layer: low imports beside"),
        ("beside.py", "if TYPE_CHECKING:\n  import toy.room\n", "beside.py:2: layer: beside "),
        ("top.py", "from toy import beside\n", "top.py:1: layer: top imports beside"),
        ("new.py", "", "new.py:1: layer: new has no layer"),
        ("top.py", "from toy.room import _inner\n", "top.py:1: private: toy.room._inner is "),
        ("top.py", "from toy.room._inner import x\n", "top.py:1: private: toy.room._inner is "),
        ("top.py", "from toy.room.other import _x\n", "top.py:1: private: toy.room.other._x is "),
        ("room/_inner.py", "from toy.room import part\n", "room/_inner.py:1: cycle: toy.room._in"),
        ("room/_inner.py", "if TYPE_CHECKING:\n  import toy.room.other", "room/other.py:1: cycle"),
        ("room/other.py", "from . import _inner\n", "room/other.py:1: relative: imports are abso"),
    ],
)
def test_the_checker_sees_every_kind_of_violation(tmp_path, file, text, expected):
    assert violations_of(tmp_path / "good", {}) == []
    found = violations_of(tmp_path / "bad", {file: text})
    assert any(line.startswith(expected) for line in found), found


def test_the_checker_lists_all_violations_at_once(tmp_path):
    bad = {"low.py": "import toy.top\n", "top.py": "import toy.room._inner\n", "new.py": ""}
    assert len(violations_of(tmp_path, bad)) >= 4


HEAVY = ("matplotlib", "networkx", "numba", "pandas", "polars", "rich", "sklearn", "torch", "typer")


def loaded_after(code):
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(out.stdout.split()) & set(HEAVY)


def test_import_stays_light():
    assert loaded_after("import nefele") == set()


def test_numba_is_imported_only_in_the_kernels(tree):
    users = {f for f, p in tree.files.items() if "import numba" in p.read_text(encoding="utf-8")}
    assert users and all(file.startswith("_kernels/") for file in users)


def test_test_modules_do_not_import_each_other():
    folder = Path(__file__).parents[1]
    takes = re.compile(r"^\s*(from|import) tests\.([\w.]+\.)?test_", re.MULTILINE)
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if takes.search(path.read_text(encoding="utf-8"))
    }
    assert not found, "Shared builders belong in a plain module, such as tests/problems.py."
