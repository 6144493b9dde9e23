"""Ctrl-C while libraries are imported: exit code 130 and one line, whatever is being imported."""

import os
import subprocess
import sys

import pytest

from tests.e2e.commands import FIT, weather

WAYS = {
    "script": "from nefele.cli import main\nmain()\n",
    "module": "import runpy\nrunpy.run_module('nefele', run_name='__main__', alter_sys=False)\n",
}
SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
module, turned = sys.argv.pop(1), sys.argv.pop(1)
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            sys.meta_path.remove(self)
            try:
                signal.raise_signal(signal.SIGINT)
            except SystemExit:
                if turned == "turned":
                    raise ImportError("no such luck") from None
                raise
sys.meta_path.insert(0, Stop())
"""
LIBRARIES = ["typer", "rich", "numpy", "scipy", "scipy.sparse", "polars", "sklearn"]
LIBRARIES += ["tomli_w", "nefele.cli.fit", "nefele.runs.config", "nefele.runs.pipeline"]


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("module", LIBRARIES)
@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_in_an_import(tmp_path, module, way):
    assert interrupted(tmp_path, module, way) == (130, "", "Interrupted.\n")


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("module", ["typer", "scipy", "sklearn"])
def test_ctrl_c_of_which_a_library_makes_another_error(tmp_path, module):
    found = interrupted(tmp_path, module, "script", "turned")
    assert found == (130, "", "Interrupted.\n")


def interrupted(tmp_path, module, way, turned="as it is"):
    weather().write_csv(tmp_path / "weather.csv")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT + WAYS[way], module, turned, *FIT, "--alpha", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return done.returncode, done.stdout, done.stderr
