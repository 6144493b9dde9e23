"""The frame of the pages about sites: one file that asks the network for nothing, without scripts.

Everything that comes from outside, names above all, goes through `text`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

from nefele._files import write_whole

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

# The colours are those of the report of a run.
_STYLE = """
:root { color-scheme: light dark; --paper: #fcfcfa; --card: #ffffff; --ink: #1d252e;
  --soft: #596473; --line: #e2e5e8; --accent: #0b6394; --accent-soft: #e3eff6; --lose: #b3400b;
  --warn: #fdf3dc; --warn-line: #d9a21b; --track: #cfd5da; --second: #8a6d00; --third: #00735a;
  --fourth: #9c3f78; --fifth: #596473;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181d; --card: #1a2026; --ink: #e5e9ed;
  --soft: #a0abb7; --line: #2f3841; --accent: #6db7e6; --accent-soft: #1d3443; --lose: #f28a52;
  --warn: #2e2817; --warn-line: #b98a1c; --track: #46515c; --second: #e0bd45; --third: #4fc7a6;
  --fourth: #e08fc0; --fifth: #a0abb7; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 var(--sans); }
.page { max-width: 1100px; margin: 0 auto; padding: 0 20px; }
h1 { font-size: clamp(1.6rem, 1.2rem + 2vw, 2.3rem); line-height: 1.15; font-weight: 650;
  margin: .1em 0 .5em; overflow-wrap: anywhere; }
h2 { font-size: 1.06rem; line-height: 1.3; font-weight: 640; margin: 0 0 4px; }
p { margin: 0 0 8px; max-width: 46em; overflow-wrap: anywhere; }
.about, .says, footer { color: var(--soft); font-size: .89rem; overflow-wrap: anywhere; }
.about { padding-top: 36px; margin: 0; }
.verdict { font-size: 1.2rem; line-height: 1.5; }
.bad { color: var(--lose); font-weight: 650; }
.good { color: var(--accent); font-weight: 650; }
.notes { border-left: 4px solid var(--warn-line); background: var(--warn); padding: 10px 16px;
  margin: 12px 0; border-radius: 0 6px 6px 0; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr));
  gap: 40px 44px; padding-top: 24px !important; }
section { min-width: 0; }
section.full { grid-column: 1 / -1; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 10px; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 600; color: var(--soft); }
th:first-child, td:first-child, .left { text-align: left; }
.words td { text-align: left; white-space: normal; overflow-wrap: anywhere; }
.words th { text-align: left; }
code { font-size: .84em; overflow-wrap: anywhere; }
svg { display: block; width: 100%; max-width: 520px; height: auto; margin: 8px 0; }
svg text { font: 11px var(--sans); fill: var(--soft); }
svg .strong { fill: var(--ink); font-weight: 600; }
svg .grid { stroke: var(--line); fill: none; }
svg .axis { stroke: var(--track); fill: none; }
svg .bar { fill: var(--track); }
svg .ours { fill: var(--accent); }
svg .curve { fill: none; stroke: var(--accent); stroke-width: 1.8; stroke-linejoin: round; }
svg .dot { fill: var(--accent); }
svg .limit { stroke: var(--lose); stroke-dasharray: 5 4; fill: none; }
svg .mark { stroke: var(--ink); stroke-dasharray: 2 3; fill: none; }
svg .link { stroke: var(--track); fill: none; }
svg .node { fill: var(--accent-soft); stroke: var(--accent); stroke-width: 1.5; }
svg .halo { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
svg .c1 { stroke: var(--second); } svg .c2 { stroke: var(--third); }
svg .c3 { stroke: var(--fourth); } svg .c4 { stroke: var(--fifth); }
svg text.c0 { fill: var(--accent); } svg text.c1 { fill: var(--second); stroke: none; }
svg text.c2 { fill: var(--third); stroke: none; } svg text.c3 { fill: var(--fourth); stroke: none; }
svg text.c4 { fill: var(--fifth); stroke: none; }
footer { padding: 28px 0 36px; }
@media (max-width: 600px) {
  table.words, .words tbody, .words tr, .words td { display: block; }
  .words thead { position: absolute; clip-path: inset(50%); width: 1px; height: 1px;
    overflow: hidden; }
  .words tr { padding: 5px 0; border-bottom: 1px solid var(--line); }
  .words td { border: 0; padding: 0; }
  .words td:empty { display: none; }
  .words td:first-child { font-weight: 640; padding-top: 8px; }
  .words td:nth-child(2):not(:last-child) { color: var(--soft); }
}
"""


def text(value: object) -> str:
    """Text that is nothing but text in a page.

    Examples
    --------
    >>> text('<b title="x">')
    '&lt;b title=&quot;x&quot;&gt;'
    """
    return html.escape(str(value), quote=True)


def page(title: str, about: str, head: str, sections: Iterable[str], created: str) -> str:
    """A whole page; `head` and `sections` are HTML already.

    Examples
    --------
    >>> "<title>a &lt; b</title>" in page("a < b", "", "", [], "today")
    True
    """
    foot = text(f"nefele {version('nefele')} · {created}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<header class="page"><p class="about">{text(about)}</p><h1>{text(title)}</h1>{head}'
        f'</header>\n<main class="page">\n{"".join(sections)}</main>\n'
        f'<footer class="page">{foot}</footer>\n</body>\n</html>\n'
    )


def section(title: str, *parts: str, full: bool = False) -> str:
    """A part of a page with a title; `parts` are HTML already."""
    kind = ' class="full"' if full else ""
    return f"<section{kind}><h2>{text(title)}</h2>{''.join(parts)}</section>\n"


def says(words: str) -> str:
    """A quiet sentence."""
    return f'<p class="says">{text(words)}</p>'


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table whose first column is of names.

    Examples
    --------
    >>> table(["name", "bytes"], [["<a>", 7]])[-59:]
    '<tr><td>&lt;a&gt;</td><td>7</td></tr></tbody></table></div>'
    """
    top = "".join(f'<th scope="col">{text(head)}</th>' for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{text(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def size(count: float) -> str:
    """Bytes in words.

    Examples
    --------
    >>> size(812), size(20_400), size(3_460_000)
    ('812 B', '20.4 kB', '3.46 MB')
    """
    for limit, unit in ((1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{count / limit:.3g} {unit}"
    return f"{count:.0f} B"


def write_html(path: Path, content: str) -> None:
    """Write a page; an older file stays whole until the new one is complete."""
    data = content.encode(errors="replace")  # surrogates can stand in ids from broken files
    write_whole(path, lambda part: part.write_bytes(data))
