"""Notebooks written as Markdown: their cells, and the same as a file of Jupyter."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

HEAD = "---\nfile_format: mystnb\nkernelspec:\n  name: python3\n---\n\n"
_FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^:::+.*\n", re.MULTILINE)  # boxes of the site, plain text in a notebook


class Cell(NamedTuple):
    """A piece of prose or of code, and the line of the file before it."""

    kind: str
    text: str
    line: int


def cells(text: str) -> list[Cell]:
    r"""The cells of a notebook in MyST Markdown, in order.

    Examples
    --------
    >>> [cell[:2] for cell in cells("Two:\n\n```{code-cell} python\n1 + 1\n```\n")]
    [('markdown', 'Two:'), ('code', '1 + 1')]
    """
    front = _FRONT.match(text)
    found, at = [], front.end() if front else 0
    for cell in _CELL.finditer(text):
        found.append(Cell("markdown", text[at : cell.start()], text[:at].count("\n")))
        code = re.sub(r"\A(:[\w-]+:.*\n)+\n?", "", cell[1])
        found.append(Cell("code", code, text[: cell.start(1)].count("\n")))
        at = cell.end()
    found.append(Cell("markdown", text[at:], text[:at].count("\n")))
    return [Cell(kind, text.strip("\n"), line) for kind, text, line in found if text.strip()]


def as_jupyter(text: str) -> str:
    r"""The notebook as a file of Jupyter (nbformat 4.5), without outputs.

    Examples
    --------
    >>> file = json.loads(as_jupyter("```{code-cell} python\n1 + 1\n```\n"))
    >>> file["nbformat"], file["cells"][0]["source"]
    (4, ['1 + 1'])
    """
    out = []
    for k, (kind, source, _) in enumerate(cells(text)):
        if kind == "markdown":
            source = re.sub(r"^:class:.*\n", "", _FENCED.sub("", source), flags=re.MULTILINE)
        cell = {
            "cell_type": kind,
            "id": f"cell-{k}",
            "metadata": {},
            "source": source.strip("\n").splitlines(keepends=True),
        }
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        if "".join(cell["source"]).strip():
            out.append(cell)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    file = {"cells": out, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(file, indent=1, ensure_ascii=False) + "\n"
