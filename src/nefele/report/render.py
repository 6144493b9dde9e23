"""A view as one HTML file: text by Python, pictures by the script inside the file."""

from __future__ import annotations

import base64
import hashlib
import html
import math
import os
from importlib import resources
from pathlib import Path

from nefele._files import write_whole
from nefele.report.encode import safe_json
from nefele.report.payload import is_ours, payload, starting_place
from nefele.report.sample import MOST_EDGES
from nefele.report.trust import chapter
from nefele.report.view import View, check_view

# in the order in which the page reads them
_SCRIPTS = ("data.js", "axes.js", "graph.js", "parameters.js", "curves.js", "table.js", "page.js")

_SUPER = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def render(view: View) -> str:
    """Report of a run as the text of one HTML file that asks the network for nothing.

    Parameters
    ----------
    view : View

    Returns
    -------
    str
        The same view gives the same text. Above 2,000 nodes the pictures and the table hold a
        sample, and the text says so; every number of the summary is of all nodes.

    Examples
    --------
    >>> from nefele.report.example import small_view
    >>> "<title>Two nodes</title>" in render(small_view())
    True
    """
    check_view(view)
    data = payload(view)
    script = "(() => {\n'use strict';\n" + "\n".join(map(_asset, _SCRIPTS)) + "\n})();"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    parts = {
        "POLICY": f"'sha256-{digest}'",
        "STYLE": _asset("report.css"),
        "TITLE": _text(view.title),
        "ABOUT": _about(view),
        "VERDICT": _text(view.verdict),
        "NOTES": _notes(view, data["ids"], data["edges"]["data"]),
        "SCORES": _scores(view),
        "PICTURES": _pictures(view),
        "TRUST": chapter(view.trust),
        "FACTS": _facts(view),
        "COMMAND": _text(view.command),
        "FOOT": _text(f"nefele {view.version} · {view.created}"),
        "DATA": safe_json(data),
        "SCRIPT": script,
    }
    return _fill(_asset("report.html"), parts)


def write_report(view: View, path: str | os.PathLike[str]) -> None:
    """Write the report of a run; an older file stays whole until the new one is complete.

    Parameters
    ----------
    view : View
    path : path of the HTML file

    Examples
    --------
    >>> import tempfile
    >>> from nefele.report.example import small_view
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(small_view(), f"{folder}/report.html")
    ...     os.listdir(folder)
    ['report.html']
    """
    text = render(view)
    target = Path(path)
    if not target.parent.is_dir():
        raise ValueError(f"The folder of a report must exist; got {str(target)!r}. Create it.")
    data = text.encode(errors="replace")  # surrogates can stand in ids that came from broken files
    write_whole(target, lambda part: part.write_bytes(data))


def _asset(name: str) -> str:
    return (resources.files("nefele.report") / "assets" / name).read_text(encoding="utf-8")


def _fill(template: str, parts: dict[str, str]) -> str:
    """Put the parts at their marks, in one pass: a mark inside a user's text stays text."""
    pieces = template.split("@@")
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)


def _about(view: View) -> str:
    nodes, edges = len(view.nodes), len(view.edges)
    words = [
        view.task,
        f"{view.target}" if view.target else "",
        f"{nodes:,} node{'s' * (nodes != 1)}",
        f"{edges:,} edge{'s' * (edges != 1)}",
    ]
    return " · ".join(_text(word) for word in words if word)


def _notes(view: View, ids: list[str], edges: str) -> str:
    notes = [str(note) for note in view.notes]
    n = len(view.nodes)
    if len(ids) < n:
        notes.append(
            f"Pictures and table show a sample of {len(ids):,} of {n:,} nodes, drawn from every "
            "cluster by its size, with the nodes that gain or lose most always in it. A line "
            "joins two shown nodes when their surroundings in the full graph touch. Cluster "
            "sizes, errors and counts are of all nodes."
        )
    elif len(view.edges) > MOST_EDGES:
        notes.append(
            f"The graph shows {MOST_EDGES:,} of {len(view.edges):,} edges; the models used all."
        )
    if not notes:
        return ""
    items = "".join(f"<li>{_text(note)}</li>" for note in notes)
    return f'<aside class="notes" aria-label="Notes"><h2>Please note</h2><ul>{items}</ul></aside>'


def _scores(view: View) -> str:
    known = [value for _, value in view.scores if math.isfinite(value)]
    if not view.scores:
        return '<p class="quiet">No rows were held out, so there is no error to compare.</p>'
    top = max([abs(value) for value in known], default=0.0)
    rows = []
    for name, value in view.scores:
        share = 100 * abs(value) / top if math.isfinite(value) and top > 0 else 0.0
        rows.append(
            f'<div class="score{" ours" * is_ours(name)}"><dt>{_text(name)}</dt>'
            f'<dd><span class="bar" style="width:{share:.2f}%"></span>'
            f"<b>{_text(_short(value))}</b></dd></div>"
        )
    over = "" if view.held_out is None else ", mean over all of them"
    title = f"Error on held-out rows <span>{_text(view.metric)}{over}; lower is better</span>"
    return f'<h2>{title}</h2><dl class="scores">{"".join(rows)}</dl>'


def _pictures(view: View) -> str:
    """A section of pictures that stand still, nothing where there are none."""
    if not view.pictures:
        return ""
    figures = "".join(
        f"<figure><figcaption><h3>{_text(one.title)}</h3>{_says(one.says)}</figcaption>"
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(one.title)}">'
        f'<img src="{one.address}" alt="{_text(f"{one.title}. {one.says}".strip(". "))}"></div>'
        "</figure>"
        for one in view.pictures
    )
    alpha = view.alphas[starting_place(view)]
    says = _says(f"These pictures stand still: they show the fit with alpha {_short(alpha)}.")
    return (
        '<section class="page still" aria-labelledby="still-title"><h2 id="still-title">'
        f"The graph, and what is proven</h2>{says}<div>{figures}</div></section>"
    )


def _says(words: str) -> str:
    return f'<p class="says">{_text(words)}</p>' if words else ""


def _sent(view: View) -> list[tuple[str, str]]:
    """What left the nodes, by content, and what was missing."""
    books = view.ledger
    if books is None:
        return []
    rows = [
        (f"sent: {name}", f"{sums.messages} messages, {sums.floats} numbers, {sums.bytes} bytes")
        for name, sums in sorted(books.by_content.items())
    ]
    missing = ", ".join(f"{what} {count}" for what, count in books.missing.items() if count)
    rows.append(("rounds", f"{books.rounds}{'; missing: ' + missing if missing else ''}"))
    return rows


def _facts(view: View) -> str:
    return "".join(
        f'<tr><th scope="row">{_text(label)}</th><td>{_text(value)}</td></tr>'
        for label, value in [*view.facts, *_sent(view)]
    )


def _short(value: float) -> str:
    """Three digits that count, as the script writes them."""
    if not math.isfinite(value):
        return "not available"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1e3 else f"{float(f'{value:.3g}'):.0f}"
    head, power = f"{value:.2e}".split("e")
    return f"{float(head):g}\N{MULTIPLICATION SIGN}10" + str(int(power)).translate(_SUPER)
