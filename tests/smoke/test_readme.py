"""The README's examples work after a plain install: no pandas, no matplotlib, no torch."""

import os
import subprocess
import sys
import tomllib

from tests.docs.pages import ROOT

EXTRAS = ("pandas", "matplotlib", "torch", "networkx", "igraph", "libpysal", "cvxpy", "skops")
CODE = f"""
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {EXTRAS}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from tests.docs.pages import ROOT, run_blocks
run_blocks(ROOT / "README.md")
"""


def test_the_examples_of_the_readme_need_no_extra(tmp_path):
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_none_of_these_comes_with_a_plain_install():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not any(line.startswith(EXTRAS) for line in project["dependencies"])
