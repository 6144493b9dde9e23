"""One self-contained HTML page with every table and figure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape

from nefele.experiments.base import Row
from nefele.experiments.runner import Reproduced
from nefele.experiments.tables import number, with_deviation

_CSS = """
:root{color-scheme:light dark;--line:#8884;--ok:#0a7d4f;--bad:#b3261e}
body{font:15px/1.5 system-ui,sans-serif;margin:0 auto;max-width:72rem;padding:1rem}
nav{display:flex;flex-wrap:wrap;gap:.3rem .9rem;padding:.5rem 0;border-bottom:1px solid var(--line)}
section{border-top:1px solid var(--line);margin-top:2rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.85rem;min-width:60%}
th,td{border-bottom:1px solid var(--line);padding:.2rem .6rem;text-align:left;vertical-align:top}
td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
caption{text-align:left;padding:.4rem 0;opacity:.8}
img{max-width:100%;height:auto;background:#fff}
.same{color:var(--ok)}.fails{color:var(--bad);font-weight:600}
footer{margin-top:2rem;opacity:.8}
"""
_HEADS = ("setting", "quantity", "printed", "nefele", "seeds", "certified gap", "verdict")


def page(
    found: Sequence[Reproduced],
    pictures: Mapping[str, bytes],
    left_out: Mapping[str, str],
    version: str,
    quick: bool = False,
) -> str:
    """The page of the experiments that were run, with their pictures (SVG by name).

    `left_out` says by name why others were not run; `version` is that of nefele.

    Examples
    --------
    >>> "<title>" in page([], {}, {"table3": "no data"}, "0.1.0")
    True
    """
    names = [one.experiment.name for one in found] + list(left_out)
    links = "".join(f'<a href="#{name}">{name}</a>' for name in names)
    sections = "".join(_section(one, pictures.get(one.experiment.name)) for one in found)
    sections += "".join(
        f'<section id="{name}"><h2>{name}</h2><p>Left out: {escape(text)}</p></section>'
        for name, text in left_out.items()
    )
    kind = "A quick run: fewer seeds and settings than the papers." if quick else ""
    failed = sum(len(one.failed) for one in found)
    state = (
        f'<p class="fails">{failed} rows miss our reference values or did not converge.</p>'
        if failed
        else "<p>Every exact solve converged, and every reference value was met.</p>"
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>nefele: the papers, reproduced</title><style>{_CSS}</style></head><body>"
        "<h1>The papers, reproduced</h1><p>What the papers print beside what the exact solution of "
        f"their formulas gives. {kind}</p>{state}<nav>{links}</nav>{sections}"
        f"<footer>nefele {escape(version)}. NFL: Networked Federated Learning. AGN: Towards "
        "Model-Agnostic Federated Learning over Networks.</footer></body></html>\n"
    )


def _section(one: Reproduced, picture: bytes | None) -> str:
    about = one.experiment
    parts = [
        f'<section id="{about.name}"><h2>{about.name}: {escape(about.title)}</h2>',
        f"<p>{escape(about.source)}</p>",
        *(f"<p>{escape(note)}</p>" for note in one.notes),
    ]
    if picture is not None:
        code = base64.b64encode(picture).decode()
        parts.append(f'<img alt="{escape(about.title)}" src="data:image/svg+xml;base64,{code}">')
    major = [row for row in one.rows if not row.minor]
    minor = [row for row in one.rows if row.minor]
    parts.append(_table("Printed and found", major))
    if minor:
        table = _table("All points of the curves", minor)
        parts.append(f"<details><summary>{len(minor)} points</summary>{table}</details>")
    return "".join(parts) + "</section>"


def _table(title: str, rows: Sequence[Row]) -> str:
    heads = "".join(f'<th scope="col">{name}</th>' for name in _HEADS)
    body = "".join(_line(row) for row in rows)
    return (
        f'<div class="wide"><table><caption>{title}</caption><thead><tr>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _line(row: Row) -> str:
    kind = "fails" if row.failed else "same" if row.verdict == "same" else ""
    gap = "" if row.gap is None else f"{row.gap:.1e}"
    printed = number(row.printed) + (f" ({escape(row.where)})" if row.where else "")
    return (
        f"<tr><td>{escape(row.what)}</td><td>{escape(row.quantity)}</td>"
        f'<td class="n">{printed}</td><td class="n">{with_deviation(row)}</td>'
        f'<td class="n">{row.seeds}</td><td class="n">{gap}</td>'
        f'<td class="{kind}">{escape(row.verdict)}</td></tr>'
    )
