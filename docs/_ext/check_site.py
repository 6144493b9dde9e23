"""Whether every link inside the built site leads somewhere, and nothing is loaded from elsewhere.

Run it: python docs/_ext/check_site.py build/docs/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Attributes by which a page loads something.
_LOADS = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}


class Page(HTMLParser):
    """Links, what is loaded, and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.anchors.add(value)
            elif tag == "a" and name == "href":
                self.links.append(value)
            elif (tag, name) in _LOADS:
                self.loaded.append(value)


def problems(folder: Path) -> list[str]:
    """One line per link that leads nowhere, or file that is loaded from elsewhere."""
    pages = {
        path.resolve(): Page(path.read_text(encoding="utf-8"))
        for path in folder.rglob("*.html")
        if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        for target in page.links + page.loaded:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if target in page.loaded and parts.scheme != "data":
                    found.append(f"{name} loads {target}")
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                found.append(f"{name} links to {target}: no such page")
            elif parts.fragment and file in pages:
                anchor = unquote(parts.fragment)
                if anchor not in pages[file].anchors and anchor not in ("", "top"):
                    found.append(f"{name} links to {target}: no such place")
    return sorted(set(found))


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print(
        "\n".join(wrong) or "Every link of the site leads somewhere; nothing is loaded from afar."
    )
    sys.exit(bool(wrong))
