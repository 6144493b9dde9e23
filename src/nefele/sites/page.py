"""A page of the site's own view: what was learnt here, what it is worth, what left the site."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nefele.accountable.cost import Cost
from nefele.report.trust import MARKS, Requirement
from nefele.selection.verdict import COUPLED, OWN, POOLED, Verdict
from nefele.sites._html import page, says, section, size, table, text, write_html
from nefele.sites._svg import bars, curves, short
from nefele.sites.driver import Driver
from nefele.sites.learnt import Learnt
from nefele.sites.predicting import Predicted

FILE = "report.html"
_SHOWN = 200  # rows of a table


def write_page(
    folder: Path,
    facts: dict[str, Any],
    learnt: Learnt | Predicted,
    driver: Driver,
    trust: Sequence[Requirement] = (),
) -> None:
    """Write report.html.

    It holds errors, parameters of the own nodes and counts: no rows, no labels, no keys, no names
    of files.

    Parameters
    ----------
    folder : Path
    facts : dict
        Of run.json.
    learnt : Learnt
    driver : Driver
    trust : sequence of Requirement
        What is known of the seven requirements for trustworthy AI.
    """
    write_html(folder / FILE, render(facts, learnt, driver, trust))


def render(
    facts: dict[str, Any],
    learnt: Learnt | Predicted,
    driver: Driver,
    trust: Sequence[Requirement] = (),
) -> str:
    """The page as text."""
    sections = [
        _comparison(facts, learnt),
        _gap(facts, learnt),
        _alpha(facts),
        _coefficients(facts, learnt),
        _ledger(driver),
        _again(facts),
        *_trust(trust),
    ]
    about = f"Federation {facts['federation']} · run {facts['run']} · {facts['rows']:,} rows here"
    title = f"{facts['name']} in {facts['federation']}"
    return page(title, about, _head(facts, learnt), sections, str(facts["finished"]))


def _head(facts: dict[str, Any], learnt: Learnt | Predicted) -> str:
    if learnt.fitted.certificate is None:
        settled = "settled" if facts["converged"] else "did NOT settle"
        words = (
            f"{learnt.fitted.reason}. The models {settled}: in the last of {facts['rounds']:,} "
            f"rounds they changed by {facts['change']:.1e} (relative), agreed were "
            f"{facts['tol']:.1e}."
        )
        kind = "good" if facts["converged"] else "bad"
        proven = f'<p class="verdict"><span class="{kind}">No proof:</span> {text(words)}</p>'
    elif facts["converged"]:
        words = (
            f"the objective of all sites together is within {facts['gap']:.1e} (relative) of the "
            f"optimum, proven after {facts['rounds']:,} rounds."
        )
        proven = f'<p class="verdict"><span class="good">Certified:</span> {text(words)}</p>'
    else:
        gap = "no gap is proven" if facts["gap"] is None else f"the gap is {facts['gap']:.1e}"
        words = (
            f"after {facts['rounds']:,} rounds {gap}, agreed were {facts['tol']:.1e}. Do not rely "
            "on these models; agree on more rounds or a larger tol."
        )
        proven = f'<p class="verdict"><span class="bad">Not converged:</span> {text(words)}</p>'
    gone = ""
    if facts["gone"]:
        words = (
            f"{', '.join(map(str, facts['gone']))} left on the way: away for longer than agreed. "
            "The others began anew without their nodes, and all numbers here are without them."
        )
        gone = f'<p class="notes">{text(words)}</p>'
    mark = f'<p class="says">Hash of what was agreed: <code>{text(facts["hash"])}</code></p>'
    return f"{proven}<p>{text(verdict(learnt))}</p>{gone}{mark}"


def verdict(learnt: Learnt | Predicted) -> str:
    """Whether coupling helps at this site, by its held-out rows, in plain words."""
    scores = learnt.scores
    held = scores.count > 0
    if not held.any():
        return "No rows were held out here, so this site cannot tell whether coupling helps it."
    own, pooled, coupled = scores.error[:, held] / scores.count[held]
    if not np.isfinite(coupled).all():
        return "The errors at held-out rows here are not known."
    if not np.isfinite(pooled).all():  # no second derivatives, so not known: own data are the rival
        if float(np.average(coupled - own, weights=scores.count[held])) >= 0:
            return "Coupling does not help here: own data only do as well or better."
        return "Coupling helps at the held-out rows here, compared with own data only."
    names = [str(node) for node in scores.nodes[held].tolist()]
    return Verdict(own, pooled, coupled, scores.count[held], names).text()


def _comparison(facts: dict[str, Any], learnt: Learnt | Predicted) -> str:
    here, there = facts["errors"], facts["errors_everywhere"]
    called = {OWN: OWN, POOLED: POOLED, COUPLED: "coupled"}
    groups = {
        place: {words: errors[name] for name, words in called.items()}
        for place, errors in (("at this site", here), ("at all sites", there))
    }
    rows = [
        [words, *("unknown" if e[name] is None else short(e[name]) for e in (here, there))]
        for name, words in called.items()
    ]
    words = (
        f"{facts['metric']} at held-out rows, lower is better; {facts['held_out']:,} of them are "
        f"here. Own data only: a model for each node from its own rows. One model: the same for "
        f"all nodes of all sites. Coupled: what was learnt together, with alpha "
        f"{facts['alpha']:.4g}."
    )
    return section(
        "Was it worth it?",
        says(words[:1].upper() + words[1:]),
        bars(groups, "coupled"),
        table(["", "here", "at all sites"], rows),
        says(_everywhere(there)),
    )


def _everywhere(errors: dict[str, float | None]) -> str:
    """One sentence about all sites."""
    own, pooled, coupled = (errors[name] for name in (OWN, POOLED, COUPLED))
    known = [(value, name) for value, name in ((own, OWN), (pooled, POOLED)) if value is not None]
    if coupled is None or not known:
        return "Over all sites the errors are not known."
    best, name = min(known)
    if coupled < best:
        return f"Over all sites coupled models do better than {name}, {_less(coupled, best)}."
    return f"Over all sites coupling does not help: {name} does as well or better."


def _less(value: float, base: float) -> str:
    return f"by {1 - value / base:.1%}" if base > 0 else "a little"


def _gap(facts: dict[str, Any], learnt: Learnt | Predicted) -> str:
    if learnt.fitted.certificate is None:
        return ""
    points = [(float(k), gap) for k, _, gap in learnt.fitted.history]
    limit = (float(facts["tol"]), "agreed")
    picture = curves({"": points}, ("round", "certified gap"), logs=(False, True), limit=limit)
    words = (
        "At each dot the sites proved together, by sums alone, how far the objective can still be "
        "from the optimum."
    )
    lost = [] if picture else [says("No finite gap was proven.")]
    drift = (
        says(f"The two copies of a flow differed by {facts['drift']:.1e} at most, and were mended.")
        if facts["drift"]
        else ""
    )
    kappa = facts.get("kappa")
    shrinks = (
        says(
            "Whenever all have heard of a round of their neighbours, the largest error over the "
            f"nodes has shrunk to at most {kappa:.3g} of itself."
        )
        if kappa is not None and kappa < 1
        else ""
    )
    return section("How near to the optimum", says(words), picture, *lost, drift, shrinks)


def _alpha(facts: dict[str, Any]) -> str:
    if not facts["alphas"]:
        return ""
    pairs = zip(facts["alphas"], facts["cv_errors"], strict=True)
    points = sorted((a, e) for a, e in pairs if e is not None and a > 0)
    picture = curves(
        {"": points},
        ("alpha", "error"),
        logs=(True, False),
        marks=[(facts["alpha"], f"chosen: {facts['alpha']:.3g}")] if facts["alpha"] > 0 else (),
    )
    words = (
        "Error at rows left out in turn, over all sites, by how strongly neighbours are coupled: "
        "to the right one model for all, to the left own data only."
    )
    return section("How alpha was chosen", says(words), picture)


def _coefficients(facts: dict[str, Any], learnt: Learnt | Predicted) -> str:
    if isinstance(learnt, Predicted):
        return section("Models of the nodes here", says(f"Of any kind: {facts['models']}."))
    names, classes = list(facts["features"]), list(facts["classes"])
    outputs = classes if len(classes) > 2 else [""]
    heads = ["node", *(["class"] if len(outputs) > 1 else []), *names, "intercept"]
    w = in_units(learnt, len(outputs))
    rows = []
    for node, models in zip(learnt.scores.nodes.tolist(), w, strict=True):
        for output, model in zip(outputs, models, strict=True):
            first = [node, output] if len(outputs) > 1 else [node]
            rows.append([*first, *(short(float(value)) for value in model)])
    words = ["In the units of the data."]
    if len(classes) == 2:
        words.append(f"They lean towards {classes[1]} where they are positive.")
    if len(rows) > _SHOWN:
        words.append(f"The first {_SHOWN} of {len(rows):,}; model.nefele has all.")
    shown = table(heads, rows[:_SHOWN])
    return section("Models of the nodes here", says(" ".join(words)), shown, full=True)


def in_units(learnt: Learnt, outputs: int) -> Any:
    """Parameters of the own nodes in the units of the data, shape (n, outputs, d), constant last.

    A feature that is the same in all rows has the coefficient 0.
    """
    scales, real = (
        learnt.scales,
        np.isin(learnt.part.graph.ids[learnt.part.own], learnt.scores.nodes),
    )
    own = learnt.part.w1[real]
    w = own.reshape(len(own), outputs, -1)
    slope = w[..., :-1] / scales.scale
    constant = w[..., -1] - slope @ scales.shift + scales.offset
    return np.concatenate([slope, constant[..., None]], axis=2)


def _ledger(driver: Driver) -> str:
    parts = []
    for title, books in (("Sent", driver.ledger), ("Heard", driver.heard)):
        rows: list[Sequence[object]] = []
        for (sender, receiver, content), sums in sorted(books.by_way.items()):
            peer = receiver if sender == driver.me else sender
            counts = (f"{sums.messages:,}", f"{sums.floats:,}", size(sums.bytes))
            rows.append((peer, content, *counts))
        total = (f"{books.messages:,}", f"{books.floats:,}", size(books.bytes))
        rows.append(("in all", "", *total))
        heads = ["to" if title == "Sent" else "from", "content", "messages", "numbers", "bytes"]
        parts.append(says(f"{title}, each message once:") + table(heads, rows))
    words = (
        "Parameters and flows at the border, sums and steps of certificates; no rows and no labels "
        "are among them."
    )
    return section("What left this site, and what came", says(words), *parts)


def _again(facts: dict[str, Any]) -> str:
    lines = [
        f"On the wire went {size(facts['bytes_sent'])}, with seals, greetings and what was said "
        f"again: {facts['said_again']:,} messages, since an answer was late.",
        f"The site took {Cost(cpu_seconds=facts['cpu_seconds']).text()}.",
    ]
    if facts["resumed"]:
        lines.append(
            f"The program was stopped, and went on from its journal at request "
            f"{facts['resumed']:,}; bytes and messages are those of all its processes."
        )
    if not facts["refused"]:
        return section("Said again, refused", *map(says, lines), says("Nothing was refused."))
    rows = [(why, f"{count:,}") for why, count in facts["refused"].items()]
    return section("Said again, refused", *map(says, lines), table(["refused", "messages"], rows))


def _trust(rows: Sequence[Requirement]) -> list[str]:
    """The seven requirements, one statement to a line."""
    lines = [
        (row.name, mark, words) for row in rows for mark in MARKS for words in row.of(mark)
    ] + [(row.name, "a person must", row.to_do) for row in rows]
    if not lines:
        return []
    order = {row.name: k for k, row in enumerate(rows)}
    lines.sort(key=lambda line: order[line[0]])
    shown = [
        ("" if k and lines[k - 1][0] == name else name, *rest)
        for k, (name, *rest) in enumerate(lines)
    ]
    words = (
        "Nothing counts as measured or proven without a number; this is no assessment by itself."
    )
    body = table(["requirement", "mark", "statement"], shown).replace(
        "<table>", '<table class="words">'
    )
    return [section("Seven requirements", says(words), body, full=True)]
