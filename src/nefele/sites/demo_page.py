"""The page of `nefele federation demo`: rounds, links, the kill, and whether all is equal."""

from __future__ import annotations

from typing import Any

from nefele.selection.verdict import COUPLED, OWN, POOLED
from nefele.sites._html import page, says, section, size, table, text
from nefele.sites._svg import bars, curves, network


def demo_page(facts: dict[str, Any]) -> str:
    """The page as text, from the facts of demo.json."""
    sections = [_gap(facts), _rounds(facts), _network(facts), _errors(facts), _sites(facts)]
    about = f"Federation {facts['federation']} · {len(facts['sites'])} sites on one machine"
    title = "Five sites learn together, and one is killed"
    return page(title, about, _head(facts), sections, str(facts["finished"]))


def conclusions(facts: dict[str, Any]) -> list[str]:
    """What the demo has shown, in plain sentences."""
    killed, went_on = facts["killed"], facts["killed"].get("went_on")
    gap = "none" if facts["gap"] is None else f"{facts['gap']:.1e}"
    proven = "certified" if facts["converged"] else "NOT converged"
    same = "are the same, bit for bit" if facts["bit_equal"] else "are NOT the same"
    back = (
        f"went on from its journal in the {went_on['stage']} after round {went_on['round']} "
        f"(request {went_on['request']:,})"
        if went_on
        else "did NOT go on from its journal"
    )
    # The numbers are those of one process: they tell of the sites only when these are the same.
    whose = "These models" if facts["bit_equal"] else "The models of one process, not of the sites"
    total = sum(one["payload_bytes"] for one in facts["sites"].values())
    apart = facts["objective_difference"]
    return [
        f"Gap: {gap}, {proven}, after {facts['rounds']:,} rounds.",
        f"{killed['site']} was killed (SIGKILL) in the {killed['stage']} at about round "
        f"{killed['round']}; the others waited, and it {back}.",
        f"Five processes and the same programs in one {same}.",
        f"{whose}, compared with the whole problem solved at once: objective apart by "
        f"{'an unknown amount' if apart is None else f'{apart:.1e}'}, parameters by "
        f"{facts['parameter_difference']:.1e} at most (relative).",
        f"Sent in all: {size(total)} of parameters, flows and sums; no rows.",
    ]


def _head(facts: dict[str, Any]) -> str:
    kind, words = ("good", "All is equal.") if facts["equal"] else ("bad", "Not all is equal.")
    items = "".join(f"<li>{text(line)}</li>" for line in conclusions(facts))
    return (
        f'<p class="verdict"><span class="{kind}">{words}</span></p><ul>{items}</ul>'
        f'<p class="says">Hash of what was agreed: <code>{text(facts["hash"])}</code></p>'
    )


def _gap(facts: dict[str, Any]) -> str:
    points = [(float(k), float(gap)) for k, _, gap in facts["history"] if gap is not None]
    went_on = facts["killed"].get("went_on") or {}
    inside = went_on.get("stage") == "final fit"
    site = facts["killed"]["site"]
    marks = [(float(went_on["round"]), f"{site} killed, restarted")] if inside else []
    words = "Proven together at each dot, from sums alone."
    if went_on and not inside:
        words += f" {site} was killed before, in the {went_on['stage']}."
    picture = curves(
        {"": points},
        ("round of the final fit", "certified gap"),
        logs=(False, True),
        limit=(facts["tol"], "agreed"),
        marks=marks,
    )
    return section("How near to the optimum", says(words), picture)


def _rounds(facts: dict[str, Any]) -> str:
    killed = facts["killed"]
    series = {name: _forward(points) for name, points in facts["trace"].items()}
    marks = [(killed["seconds"], f"{killed['site']} killed"), (killed["restarted"], "restarted")]
    others = killed["others"]
    words = (
        "What each site has asked of the others: all go in step, wait while one is away, and go "
        f"on when it is back. {killed['site']} was away for "
        f"{killed['restarted'] - killed['seconds']:.1f} s; meanwhile "
        + ", ".join(f"{name} stood after round {at['round']}" for name, at in others.items())
        + f" of the {next(iter(others.values()))['stage']}."
    )
    picture = curves(series, ("seconds", "requests answered"), marks=marks)
    return section("The kill and the restart", says(words), picture)


def _forward(points: list[tuple[float, int]]) -> list[tuple[float, float]]:
    """How far a site has ever been: one that reads its journal does nothing anew."""
    most, found = 0, []
    for seconds, count in points:
        most = max(most, count)
        found.append((seconds, float(most)))
    return found


def _network(facts: dict[str, Any]) -> str:
    links = {(a, b): float(count) for a, b, count in facts["links"]}
    words = {pair: size(count) for pair, count in links.items()}
    return section(
        "Who talked to whom",
        says("Bytes of both directions, each message once. Only neighbours talk."),
        network(links, words),
    )


def _errors(facts: dict[str, Any]) -> str:
    errors = facts["errors"]
    group = {
        words: errors[name] for name, words in ((OWN, OWN), (POOLED, POOLED), (COUPLED, "coupled"))
    }
    return section(
        "Was it worth it?",
        says("Mean squared error at the held-out rows of all sites, lower is better."),
        bars({"at all sites": group}, "coupled"),
    )


def _sites(facts: dict[str, Any]) -> str:
    heads = ["site", "states", "rows", "messages", "numbers", "bytes", "on the wire", "said again"]
    rows = [
        [
            name,
            one["nodes"],
            one["rows"],
            f"{one['messages_sent']:,}",
            f"{one['numbers_sent']:,}",
            size(one["payload_bytes"]),
            size(one["bytes_sent"]),
            one["said_again"],
            "yes" if one["same"] else "NO",
        ]
        for name, one in facts["sites"].items()
    ]
    words = (
        f"On the wire are seals and greetings, too; for {facts['killed']['site']} only what came "
        "after its restart. Same: the model equals that of one process, bit for bit."
    )
    return section("What each site sent", says(words), table([*heads, "same"], rows), full=True)
