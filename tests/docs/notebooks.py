"""The notebooks of the site: where they are, and how their cells are run without Jupyter."""

import importlib.util
from functools import cache

from tests.docs.pages import ROOT

spec = importlib.util.spec_from_file_location("notebooks", ROOT / "docs" / "_ext" / "notebooks.py")
reader = importlib.util.module_from_spec(spec)
spec.loader.exec_module(reader)

NOTEBOOKS = sorted([*(ROOT / "docs/course").glob("*.md"), *(ROOT / "docs/concepts").glob("*.md")])
NOTEBOOKS = [path for path in NOTEBOOKS if "{code-cell}" in path.read_text(encoding="utf-8")]


@cache
def run_cells(path):
    """All cells of code in one namespace, in order; returns what they left there."""
    namespace = {"__name__": "__main__"}
    for kind, text, line in reader.cells(path.read_text(encoding="utf-8")):
        if kind == "code":
            exec(compile("\n" * line + text, str(path), "exec"), namespace)
    return namespace
