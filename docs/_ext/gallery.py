"""Every script of examples/ as a page of the site, and every notebook as a file to download."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from notebooks import HEAD, as_jupyter

EXAMPLES = Path(__file__).parents[2] / "examples"


def absent(tree: ast.AST) -> list[str]:
    """Packages that a script imports and that are not installed: the site has few extras."""
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            roots.add(node.module.partition(".")[0])
    return sorted(name for name in roots if find_spec(name) is None)


def example_page(path: Path) -> str:
    """An example as a notebook: its docstring, its code, a call of main, its picture."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title, _, about = (ast.get_docstring(tree) or path.stem).partition("\n")
    about = re.sub(r"\n*Run it: .*", "", about.strip(), flags=re.DOTALL)
    lines = source.splitlines()
    body = tree.body[1:]
    guard = [
        node for node in body if isinstance(node, ast.If) and "__name__" in lines[node.lineno - 1]
    ]
    end = guard[0].lineno - 1 if guard else len(lines)
    names = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    code = "\n".join(lines[tree.body[0].end_lineno : end]).strip("\n")
    parts = [f"# {title.rstrip('.')}", about, f"`examples/{path.name}`"]
    if lacking := absent(tree):
        needs = " and ".join(lacking)
        parts += [f"It needs {needs}, and is shown, not run here.", f"```python\n{code}\n```"]
        return "\n\n".join(part for part in parts if part) + "\n"
    parts.append(_cell(code))
    if "main" in names:
        parts.append(_cell("main()"))
    if "picture" in names:
        parts.append(_cell("figure = picture()"))
    return HEAD + "\n\n".join(part for part in parts if part) + "\n"


def _cell(code: str) -> str:
    return f"```{{code-cell}} python\n{code}\n```"


def index_page(pages: dict[str, str]) -> str:
    """The gallery's first page: one card per example."""
    cards, names = [], []
    for name, text in pages.items():
        title = re.search(r"^# (.*)$", text, re.MULTILINE)
        assert title is not None
        about = text[title.end() :].strip().split("\n\n")[0].replace("\n", " ")
        about = "" if about.startswith("`") else re.split(r"(?<=[a-z]\.) ", about)[0]
        cards.append(
            f":::{{grid-item-card}} {title[1]}\n:link: {name}\n:link-type: doc\n\n{about}\n:::"
        )
        names.append(name)
    toc = "\n".join(names)
    return (
        "# Gallery\n\nEvery script of `examples/`, with what it prints and draws, to read here or "
        "to take along as a notebook. They are run when this site is built.\n\n"
        "::::{grid} 1 1 2 2\n:gutter: 3\n\n" + "\n\n".join(cards) + "\n::::\n\n"
        f"```{{toctree}}\n:hidden:\n\n{toc}\n```\n"
    )


def write(path: Path, text: str) -> None:
    """Only when something changed, so that a build need not read it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def make_pages(app: Any) -> None:
    """The gallery, and the notebooks to download."""
    docs = Path(app.srcdir)
    pages = {path.stem: example_page(path) for path in sorted(EXAMPLES.glob("*.py"))}
    for name, text in pages.items():
        write(docs / "gallery" / f"{name}.md", text)
    write(docs / "gallery" / "index.md", index_page(pages))


def write_notebooks(app: Any, error: Exception | None) -> None:
    """Beside each page that is a notebook, the file of Jupyter."""
    if error is not None or app.builder.name != "html":
        return
    for name in notebook_pages(app):
        source = Path(app.srcdir, f"{name}.md").read_text(encoding="utf-8")
        write(Path(app.outdir) / f"{name}.ipynb", as_jupyter(source))


def notebook_pages(app: Any) -> list[str]:
    """Names of the pages that hold cells of code."""
    docs = Path(app.srcdir)
    return [
        path.relative_to(docs).with_suffix("").as_posix()
        for folder in ("gallery", "course", "concepts")
        for path in sorted((docs / folder).glob("*.md"))
        if "{code-cell}" in path.read_text(encoding="utf-8")
    ]


def tell_template(app: Any, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """The sidebar of a notebook links to its file."""
    if page in notebook_pages(app):
        context["notebook"] = f"{page.rpartition('/')[2]}.ipynb"


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", make_pages)
    app.connect("html-page-context", tell_template)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
