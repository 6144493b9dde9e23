"""The fenced blocks of a page: what they hold, and whether they print what the page says."""

import contextlib
import io
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\{toctree\}|\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(language, text, line number) of each fenced block."""
    text = page.read_text(encoding="utf-8")
    assert text.count("```") % 2 == 0
    return [(m[1], m[2], text[: m.start(2)].count("\n")) for m in FENCE.finditer(text)]


def words(text):
    return [line.split() for line in text.strip().splitlines()]


def run_blocks(page):
    """Run all Python blocks in one namespace; a text block right after one is its output."""
    namespace, printed = {"__name__": "__main__"}, None
    for language, text, line in blocks(page):
        if language == "python":
            code = compile("\n" * line + text, str(page), "exec")
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(code, namespace)
            printed = out.getvalue()
        elif language == "text":
            assert printed is not None, f"{page.name}:{line}: output without code"
            assert words(printed) == words(text), f"{page.name}:{line}"
            printed = None
