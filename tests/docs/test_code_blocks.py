"""Every Python block of the README and of docs/ runs, and every link and image is there."""

import re

import matplotlib
import pytest

from tests.docs.pages import FENCE, ROOT, blocks, run_blocks

# `make docs` leaves copies of these for the site.
COPIES = {"changelog.md", "contributing.md", "security.md"}
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name not in COPIES),
    *sorted((ROOT / "docs" / "start").glob("*.md")),
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


def prose(page):
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_blocks_run_and_print_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    run_blocks(page)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_names_a_known_language(page):
    assert {language for language, _, _ in blocks(page)} <= {"python", "text", "sh", "{toctree}"}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_relative_links_and_images_exist(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            file = page.parent / path if path else page
            assert file.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(file), f"{page.name} links to {target}"


def anchors(page):
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_make_targets_exist(page):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    shell = "\n".join(text for language, text, _ in blocks(page) if language == "sh")
    mentioned = re.findall(r"^make ([a-z-]+)", shell, re.MULTILINE)
    mentioned += re.findall(r"`make ([a-z-]+)`", prose(page))
    assert set(mentioned) <= targets


def test_readme_shows_the_two_commands_first():
    first = next(text for language, text, _ in blocks(ROOT / "README.md") if language == "sh")
    assert re.findall(r"^make (\w+)", first, re.MULTILINE) == ["demo", "test"]
