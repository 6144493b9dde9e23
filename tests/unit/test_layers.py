"""The layers of the package: a module imports only from the layers below its own."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import nefele

ROOT = Path(nefele.__file__).parent
LAYERS = (
    ("_checks", "_files", "_ids", "_kernels", "_records", "_threads", "_words"),
    ("_draw", "_systems", "graph", "graphs", "data"),
    ("losses", "penalties"),
    ("certificate", "problem", "result"),
    ("paths", "solvers"),
    ("datasets", "estimators", "privacy", "robust", "runtime", "theory"),
    ("agnostic", "baselines", "graph_learning"),
    ("flavours", "report", "runs"),
    ("experiments", "cli"),
)
LAYER = {name: k for k, names in enumerate(LAYERS) for name in names}
# Within a layer: what belongs together may see each other, losses and penalties may not.
NEIGHBOURS = {
    "_draw": {"graph"},
    "_systems": {"graph"},
    "_ids": {"_words"},
    "_kernels": {"_checks"},
    "_records": {"_files"},
    "graph": {"_checks"},
    "graphs": {"graph", "data"},
    "certificate": {"problem", "result"},
    "paths": {"solvers"},
    "problem": {"certificate", "result"},
    "result": {"certificate", "problem"},
    "runtime": {"privacy", "robust"},
    "runs": {"report"},
    "cli": {"experiments"},
}
# Solvers see losses and penalties through Problem only; these pick special formulas by type.
SPECIAL = {
    "solvers/interior_point/cones.py",
    "solvers/fedrelax.py",
    "solvers/primal_dual/fused.py",
    "solvers/quadratic.py",
    "solvers/primal_dual/quotient.py",
}

FILES = sorted(p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*.py"))
MODULES = [f for f in FILES if f != "__init__.py"]


def own_module(file):
    """Top-level module or package that a file belongs to."""
    return file.split("/")[0].removesuffix(".py")


def imported_modules(file):
    """Top-level nefele modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            names = [node.module]
            if node.module == "nefele":
                names = [f"nefele.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("nefele.")}
    # The package itself re-exports names such as `solve` of lower layers.
    homes = {name: thing.__module__.split(".")[1] for name, thing in exported().items()}
    return {homes.get(name, name) for name in found} - {own_module(file)}


def exported():
    names = {name: getattr(nefele, name) for name in nefele.__all__}
    return {name: thing for name, thing in names.items() if hasattr(thing, "__module__")}


def allowed(file):
    module = own_module(file)
    lower = {name for name, layer in LAYER.items() if layer < LAYER[module]}
    if module == "solvers" and file not in SPECIAL:
        lower -= {"losses", "penalties"}
    return lower | NEIGHBOURS.get(module, set())


@pytest.mark.parametrize("file", MODULES)
def test_a_module_imports_only_from_lower_layers(file):
    if file == "__main__.py":
        assert imported_modules(file) <= {"cli"}
        return
    assert own_module(file) in LAYER, f"Give {own_module(file)} a layer in this test."
    assert imported_modules(file) <= allowed(file)


def test_the_special_solvers_still_need_their_exception():
    for file in SPECIAL:
        assert imported_modules(file) & {"losses", "penalties"}


def test_the_test_sees_imports():
    assert imported_modules("problem.py") >= {"_checks", "certificate", "data", "graph", "losses"}
    assert "problem" in imported_modules("solvers/base.py")


HEAVY = ("matplotlib", "networkx", "numba", "pandas", "polars", "rich", "sklearn", "torch", "typer")


def loaded_after(code):
    script = f"{code}\nimport sys\nprint(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(out.stdout.split()) & set(HEAVY)


def test_import_stays_light():
    assert loaded_after("import nefele") == set()


def test_numba_is_imported_only_in_the_kernels():
    users = {file for file in FILES if "import numba" in (ROOT / file).read_text(encoding="utf-8")}
    assert users and all(file.startswith("_kernels/") for file in users)
