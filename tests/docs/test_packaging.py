"""What goes with a release: one version, workflows that call the Makefile, links that are there."""

import re
import tomllib

import pytest

import nefele
from tests.docs.pages import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z-]+(?: [a-z-]+)*):(?!=)", MAKEFILE, re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_is_the_same_everywhere():
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", cited, re.MULTILINE)[1] == PROJECT["version"]
    assert nefele.__version__ == PROJECT["version"]


def test_the_changelog_names_the_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+) - ", text, re.MULTILINE)[1] == PROJECT["version"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_call_targets_of_the_makefile(path):
    known = {name for line in TARGETS for name in line.split()}
    commands = re.findall(r"^\s*- run: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands and all(re.fullmatch(r"make [a-z-]+", command) for command in commands)
    assert {command.split()[1] for command in commands} <= known


def test_both_commands_of_the_readme_are_checked_by_a_workflow():
    text = "\n".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    assert {"demo", "test", "docs", "dist", "test-lowest", "test-slow"} <= set(
        re.findall(r"run: make ([a-z-]+)", text)
    )


def test_project_addresses_are_those_that_exist():
    """No address is invented: papers by arXiv until there is a public repository."""
    assert PROJECT["urls"]
    assert all(url.startswith("https://arxiv.org/abs/") for url in PROJECT["urls"].values())


def test_links_of_the_security_page_exist():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert targets and all((ROOT / target).exists() for target in targets)
