"""Pages of the repository that stand outside docs/, and links to them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gallery import write

ROOT = Path(__file__).parents[2]
# Where a file of the repository is on the site.
MOVED = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/README.md": "benchmarks/index.md",
}
_LINK = re.compile(r"(\]\()([^)\s:]+?)((?:#[^)\s]*)?\))")


def page_of(path: str) -> str | None:
    """The page for a file of the repository, both seen from their roots; None: there is none.

    Examples
    --------
    >>> page_of("docs/theory.md"), page_of("examples/sensors.py"), page_of("LICENSE")
    ('theory.md', 'gallery/sensors.md', None)
    """
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("examples/") and path.endswith(".py"):
        return f"gallery/{Path(path).stem}.md"
    if path.startswith("benchmarks/results/") and path.endswith(".md"):
        return f"benchmarks/{Path(path).name}"
    return None


def relinked(text: str, home: str, page: str) -> str:
    """Text of a file of the repository with its links as the site needs them.

    Parameters
    ----------
    text : str
        Markdown.
    home, page : str
        The file, from the root of the repository; its page, from the root of the site.

    Examples
    --------
    >>> relinked("[a](docs/theory.md#b) [c](LICENSE)", "CHANGELOG.md", "changelog.md")
    '[a](theory.md#b) c'
    """
    up = "../" * page.count("/")

    def move(link: re.Match[str]) -> str:
        start, target, end = link.groups()
        path = Path(ROOT, home).parent.joinpath(target).resolve()
        if not path.is_relative_to(ROOT):
            return link[0]
        inside = path.relative_to(ROOT).as_posix()
        found = page_of(inside)
        return f"\0{inside}\0" if found is None else f"{start}{up}{found}{end}"

    text = _LINK.sub(move, text)
    return re.sub(r"\[([^\]]*)\0[^\0]*\0", r"\1", text)


def make_pages(app: Any) -> None:
    """Copies of what stands outside docs/."""
    files = {
        **MOVED,
        **{
            f"benchmarks/results/{path.name}": f"benchmarks/{path.name}"
            for path in sorted((ROOT / "benchmarks" / "results").glob("*.md"))
        },
    }
    for home, page in files.items():
        text = relinked((ROOT / home).read_text(encoding="utf-8"), home, page)
        if home.startswith("benchmarks/results/"):
            text = re.sub(r"!\[[^\]]*\]\([^)]*\)|\Z", "", text)
            if not text.startswith("# "):
                text = f"# Results: {Path(home).stem}\n\n{text}"
        if page == "benchmarks/index.md":
            names = [Path(p).stem for p in files.values() if p.startswith("benchmarks/")]
            listed = "\n".join(name for name in names if name != "index")
            text += f"\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
        write(Path(app.srcdir) / page, text)


def relink_page(app: Any, name: str, source: list[str]) -> None:
    """Links of the pages of docs/ to what stands outside."""
    if name == "how_to":
        source[0] = source[0].replace("% the rest\n", rest(Path(app.srcdir)))
    if str(app.env.doc2path(name)).endswith(".md"):
        up = "../" * name.count("/")
        for target, page in _outside(source[0], name):
            source[0] = source[0].replace(f"]({target})", f"]({up}{page})")


def rest(docs: Path) -> str:
    """A list of the pages that no other page lists."""
    lists = [docs / f"{name}.md" for name in ("how_to", "project", "index", "start/index")]
    listed = set(
        re.findall(r"^(?:\.\./)?([\w/]+)$", "\n".join(p.read_text("utf-8") for p in lists), re.M)
    )
    names = [path.stem for path in sorted(docs.glob("*.md")) if path.stem not in listed | {"index"}]
    return (
        "```{toctree}\n:caption: More\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n"
        if names
        else ""
    )


def _outside(text: str, name: str) -> list[tuple[str, str]]:
    found = []
    for _, target, _ in _LINK.findall(text):
        path = Path(ROOT, "docs", name).parent.joinpath(target).resolve()
        if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "docs"):
            page = page_of(path.relative_to(ROOT).as_posix())
            if page is not None:
                found.append((target, page))
    return found


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", make_pages)
    app.connect("source-read", relink_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
