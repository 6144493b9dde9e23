"""Short tables for notebooks: what an object is, in a few lines of HTML."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

_STYLE = "font-family: system-ui, sans-serif; font-size: 90%; line-height: 1.35"


def facts(title: str, rows: Mapping[str, Any]) -> str:
    """A title and pairs of words, escaped, for `_repr_html_`.

    Examples
    --------
    >>> facts("Graph", {"nodes": 3}).count("<tr>"), "&lt;b&gt;" in facts("<b>", {})
    (1, True)
    """
    cells = "".join(
        f'<tr><td style="text-align:left; opacity:.7">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    return f'<div style="{_STYLE}"><b>{escape(title)}</b><table>{cells}</table></div>'


def shown(names: Any, most: int = 8) -> str:
    """A list of names, cut when it is long.

    Examples
    --------
    >>> shown(["x0", "x1", "x2"], most=2)
    'x0, x1, ... (3)'
    """
    words = [str(name) for name in names]
    rest = f", ... ({len(words)})" if len(words) > most else ""
    return ", ".join(words[:most]) + rest


def count(number: int, word: str) -> str:
    """A number with its word.

    Examples
    --------
    >>> count(1, "node"), count(12000, "row")
    ('1 node', '12,000 rows')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"
