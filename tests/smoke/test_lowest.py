"""The pins of `make test-lowest` come from pyproject.toml."""

import importlib.util

import pytest

from tests.docs.pages import ROOT

spec = importlib.util.spec_from_file_location("lowest", ROOT / "tools" / "lowest.py")
lowest = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lowest)


def test_the_lowest_version_of_each_requirement():
    project = {
        "dependencies": ["numpy>=2.1", "a.b-c>=1.0,<2"],
        "optional-dependencies": {"plot": ["matplotlib>=3.9"], "torch": ["torch==2.13.0"]},
    }
    assert lowest.pins(project, []) == ["numpy==2.1", "a.b-c==1.0"]
    assert lowest.pins(project, ["torch"])[-1] == "torch==2.13.0"


@pytest.mark.parametrize("line", ["numpy", "numpy>2", "numpy<3", "numpy~=2.1", "numpy>=2; a"])
def test_a_requirement_without_a_lowest_version_is_an_error(line):
    with pytest.raises(ValueError, match="must say its lowest version"):
        lowest.pins({"dependencies": [line]}, [])


def test_an_unknown_extra_is_an_error():
    with pytest.raises(ValueError, match="No extra 'plots'"):
        lowest.pins({"dependencies": [], "optional-dependencies": {"plot": []}}, ["plots"])
