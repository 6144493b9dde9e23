"""What `nefele site` says about a run: one line about it, what is refused and why, how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nefele._progress import Line
from nefele.cli._common import say

_SILENT = 20  # seconds after which a person is told what to look at
# Refusals that no patience mends: people have to agree on one file, one run and one version.
_DISAGREEMENTS = {
    "other federation file": (
        "{who} has another federation file than this site, whose hash is {hash}. Compare them by: "
        "nefele federation show"
    ),
    "other run": "{who} is in another run than this site, which is in run {run}. Agree on --run.",
    "other version": "{who} speaks another version. Install the same version of nefele everywhere.",
}


def refusals(facts: dict[str, Any]) -> list[str]:
    """What people have to settle with a neighbour before it can take part.

    Examples
    --------
    >>> refusals({"refused": {"kemi: other run": 3}, "run": "2", "hash": "ab" * 32})
    ['Refused: kemi is in another run than this site, which is in run 2. Agree on --run.']
    """
    found = []
    for name in facts.get("refused") or {}:
        who, _, why = name.partition(": ")
        if why in _DISAGREEMENTS:
            text = _DISAGREEMENTS[why].format(who=who, hash=facts["hash"][:16], run=facts["run"])
            found.append(f"Refused: {text}")
    return found


def shown(quiet: bool) -> Any:
    """Prints the progress: on a terminal one line that changes, elsewhere one now and then."""
    if quiet:
        return None
    shown_line, last = Line(timed=False), {"state": ""}
    asked: set[str] = set()

    def tell(why: str) -> None:
        shown_line.leave()
        say(why, err=True)

    def show(facts: dict[str, Any]) -> None:
        for why in refusals(facts):
            if why not in asked:
                asked.add(why)
                tell(why)
        silent = [who for who, s in (facts.get("late") or {}).items() if s > _SILENT]
        if facts["stage"] == "starting" and (new := [q for q in silent if q not in asked]):
            asked.update(new)
            tell(_question(facts, new))
        shown_line.show(line(facts), now=facts["state"] != last["state"])
        last["state"] = facts["state"]
        if facts["state"] == "finished":
            shown_line.close()

    return show


def _question(facts: dict[str, Any], names: list[str]) -> str:
    """What to look at when a run does not begin: other files and runs are silent, too."""
    return (
        f"Note: Nothing to go on with from {', '.join(names)} yet; this site goes on waiting. Ask "
        f"there whether it runs, with --run {facts['run']} and the hash {facts['hash'][:16]}, and "
        "whether its address, the relay or the shared folder can be reached."
    )


def line(facts: dict[str, Any]) -> str:
    """One line about a run."""
    words = [f"{facts['name']}: {facts['state']}"]
    if "requests" in facts:
        words.append(f"{facts['stage']}, round {facts['round']}, {_progress(facts)}")
        words.append(f"{facts['rounds_per_second']:g} rounds/s")
        words.append(f"{facts['bytes_sent'] / 1e6:.2f} MB sent")
    late = facts.get("late") or {}
    if late:
        words.append("late: " + ", ".join(f"{who} ({s:.0f} s)" for who, s in late.items()))
        if facts.get("refused"):  # perhaps why
            words.append("refused: " + ", ".join(facts["refused"]))
    if facts.get("why"):
        words.append(facts["why"])
    if facts.get("gone"):
        words.append("gone: " + ", ".join(facts["gone"]))
    return "; ".join(words)


def _progress(facts: dict[str, Any]) -> str:
    """The gap, or the change of models that have no certificate."""
    if facts.get("change") is not None:
        return f"change {facts['change']:.1e}"
    return "gap not proven yet" if facts["gap"] is None else f"gap {facts['gap']:.1e}"


def ended(facts: dict[str, Any], folder: Path) -> list[str]:
    """What a person wants to know in the end."""
    lines = [f"{facts['name']}: alpha {facts['alpha']:.4g}, {_proven(facts)}."]
    if facts.get("kappa") is not None:
        lines.append(f"Contraction factor of the rounds: {facts['kappa']:.3g}.")
    for name, error in facts["errors"].items():
        both = ("-" if e is None else f"{e:.5g}" for e in (error, facts["errors_everywhere"][name]))
        here, there = both
        lines.append(f"  {facts['metric']}, {name}: {here} here, {there} at all sites")
    if facts["one_model"] != "compared":
        lines.append(f"One model for all: {facts['one_model']}.")
    if facts["models"] != "stored as model.nefele":
        lines.append(f"Models: {facts['models']}.")
    if facts["gone"]:
        lines.append(f"Without {', '.join(facts['gone'])}: they were away for too long.")
    lines.append(
        f"Sent: {facts['messages_sent']} messages, {facts['bytes_sent'] / 1e6:.2f} MB in all."
    )
    lines.append(f"Report: {folder / 'report.html'}")
    return lines


def _proven(facts: dict[str, Any]) -> str:
    if facts["change"] is not None:
        settled = "settled" if facts["converged"] else "NOT settled"
        return f"{facts['certificate']}; {settled}, last change {facts['change']:.1e}"
    gap = "none" if facts["gap"] is None else f"{facts['gap']:.1e}"
    return f"{'certified' if facts['converged'] else 'NOT converged'}, gap {gap}"
