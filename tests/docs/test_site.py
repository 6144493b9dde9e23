"""What makes the site from files of the repository, without the tools that build it."""

import importlib
import importlib.util
import inspect
import re
import sys

import matplotlib
import pytest

import nefele
from tests.docs.pages import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOT_RUN = "flower_fedrelax"  # Flower is not installed here


@pytest.fixture
def extension(monkeypatch):
    """Modules of docs/_ext, which import each other by name."""
    names = ("check_site", "gallery", "notebooks", "outside")
    for name in names:  # a module of the tests may have been loaded by the same name
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_a_page_and_a_notebook(extension, path):
    page = extension("gallery").example_page(path)
    found = [cell.text for cell in extension("notebooks").cells(page) if cell.kind == "code"]
    if path.stem == NOT_RUN:
        assert found == [] and "not run here" in page
        return
    assert 'if __name__ == "__main__"' not in page
    assert found[-1] == "figure = picture()"
    compile("\n".join(found), str(path), "exec")


def test_an_example_without_its_packages_is_shown_only(extension, tmp_path):
    path = tmp_path / "one.py"
    path.write_text(
        '"""One.\n\nTwo.\n"""\n\nimport json\n\nfrom no_such_package.x import y\n\ny()\n'
    )
    page = extension("gallery").example_page(path)
    assert "It needs no_such_package, and is shown, not run here." in page
    assert "{code-cell}" not in page and "y()" in page


def test_the_reference_has_every_package():
    text = (ROOT / "docs" / "_ext" / "reference.py").read_text(encoding="utf-8")
    packages = [name for name in nefele.__all__ if inspect.ismodule(getattr(nefele, name))]
    assert len(packages) > 15
    assert [name for name in packages if f'"nefele.{name}": "' not in text] == []


def test_links_to_files_of_the_repository_become_links_of_the_site(extension):
    relinked = extension("outside").relinked
    text = (
        "[a](docs/theory.md#b) ![c](docs/images/report.png) [d](examples/sensors.py) [e](LICENSE)"
    )
    assert relinked(text, "CHANGELOG.md", "changelog.md") == (
        "[a](theory.md#b) ![c](images/report.png) [d](gallery/sensors.md) e"
    )
    deep = relinked("[a](results/bench.md)", "benchmarks/README.md", "benchmarks/index.md")
    assert deep == "[a](../benchmarks/bench.md)"
    assert relinked("[a](https://example.org)", "CHANGELOG.md", "changelog.md").count("https") == 1


def test_every_page_is_listed(extension):
    """Pages that no list names come to the end of how_to.md by themselves."""
    rest = extension("outside").rest(ROOT / "docs")
    new = re.findall(r"^(\w+)$", rest, re.MULTILINE)
    assert not {"index", "how_to", "estimators", "install", "changelog"} & set(new)
    assert all((ROOT / "docs" / f"{name}.md").exists() for name in new)


def test_broken_links_of_a_site_are_found(extension, tmp_path):
    good = '<a href="two.html#here">x</a><img src="a.png"><a href="https://example.org">y</a>'
    (tmp_path / "one.html").write_text(good)
    (tmp_path / "two.html").write_text('<p id="here"></p>')
    (tmp_path / "a.png").write_text("")
    problems = extension("check_site").problems
    assert problems(tmp_path) == []
    bad = (
        '<a href="three.html">x</a><a href="two.html#there">y</a><script src="//cdn/x.js"></script>'
    )
    (tmp_path / "one.html").write_text(bad)
    found = problems(tmp_path)
    assert len(found) == 3 and "loads" in "".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem != NOT_RUN], ids=lambda p: p.stem)
def test_every_example_draws_its_picture(path, tmp_path):
    matplotlib.use("agg")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.picture().savefig(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 5000


COLUMN = 760.0  # pixels of the text on a screen of 1280, see docs/_static/site.css
LEAST = 11.0  # pixels of letters


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda path: path.stem
)
def test_letters_of_pictures_can_be_read(path):
    text = path.read_text(encoding="utf-8")
    width = float(re.search(r'viewBox="0 0 ([0-9.]+)', text)[1])
    drawn = [100 * float(size) for size in re.findall(r"scale\(([0-9.]+) -[0-9.]+\)", text)]
    written = [float(size) for size in re.findall(r"font(?:-size)?: (?:\d+ )?([0-9.]+)px", text)]
    assert min(drawn + written) * COLUMN / width >= LEAST


@pytest.mark.parametrize(
    "path",
    [*sorted((ROOT / "docs").glob("co*/*.md")), *EXAMPLES],
    ids=lambda path: path.stem,
)
def test_letters_of_figures_can_be_read(path):
    text = path.read_text(encoding="utf-8")
    widths = [float(width) for width in re.findall(r"figsize=\(([0-9.]+)", text)]
    sizes = [float(size) for size in re.findall(r"fontsize=([0-9.]+)", text)]
    for width in widths:
        assert min([10.0, *sizes]) / 72 * COLUMN / width >= LEAST
