"""What a run shows of the seven requirements for trustworthy AI, from its folder alone."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from nefele.accountable.cost import Cost
from nefele.accountable.fair import worst_tenth
from nefele.report.trust import MEASURED, OPEN, PROVEN, Entry, Requirement

Arrays = dict[str, Any]

# What a person must still do.
TO_DO = {
    "Human agency and oversight": (
        "Name who decides, and let them see the report and override any prediction."
    ),
    "Technical robustness and safety": (
        "Check where the rows come from, watch errors in use, and have a plan for failure."
    ),
    "Privacy and data governance": (
        "Make sure that the rows may be used, and treat models and report as personal data "
        "unless a privacy bound says otherwise."
    ),
    "Transparency": (
        "Tell those concerned, and explain single predictions by nefele.explain(model, node)."
    ),
    "Diversity, non-discrimination and fairness": (
        "Compare groups that matter by nefele.fairness(model, X, y, groups)."
    ),
    "Societal and environmental well-being": (
        "Weigh the use of the predictions against its effect on those who are not asked."
    ),
    "Accountability": "Keep the folder, name who answers for the model, and have it audited.",
}


def requirements(facts: dict[str, Any], found: Arrays, checked: int = 0) -> list[Requirement]:
    """One row for each requirement, from run.json and the arrays of a finished run.

    `checked` is how many result files were compared with their hashes.
    """
    entries = (
        _oversight(facts),
        _robustness(facts),
        _privacy(facts),
        _transparency(facts, found),
        _fairness(facts, found),
        _environment(facts),
        _accountability(facts, checked),
    )
    return [
        Requirement(name, own, to_do)
        for (name, to_do), own in zip(TO_DO.items(), entries, strict=True)
    ]


def known(mark: str, text: str, number: Any) -> Entry:
    """An entry, or "not covered" where there is no number."""
    if number is None or not np.isfinite(number):
        return Entry(OPEN, f"{text}: no number")
    return Entry(mark, text, float(number))


def _oversight(facts: dict[str, Any]) -> list[Entry]:
    summary = facts["summary"]
    return [
        known(MEASURED, "nodes whose prediction was judged", summary["nodes_judged"]),
        known(MEASURED, "notes for the reader in the report", len(facts["notes"])),
        Entry(OPEN, "who may overrule a prediction, and how"),
    ]


def _robustness(facts: dict[str, Any]) -> list[Entry]:
    gap = facts["gap"] if facts["converged"] else None
    entries = [
        known(PROVEN, "relative distance of the fit from the optimum, at most", gap),
        known(MEASURED, f"error on held-out rows ({facts['summary']['metric']})", _error(facts)),
    ]
    label = _one_label(facts)
    if label is not None:
        text = "move of all models per unit of one training label, at most (standardized units)"
        entries.append(Entry(PROVEN, text, label))
    else:
        entries.append(Entry(OPEN, "how far one wrong label can move the models"))
    entries += [
        Entry(OPEN, "how far captured or broken nodes can move the others"),
        Entry(OPEN, "backdoors, and rows unlike those of the training"),
    ]
    return entries


def _one_label(facts: dict[str, Any]) -> float | None:
    """The bound on what one label changes, where theory gave one."""
    for label, words in facts.get("theory", []):
        number = re.search(r"at most ([0-9.eE+-]+) per unit", words)
        if label == "one label" and number:
            return float(number[1])
    return None


def _privacy(facts: dict[str, Any]) -> list[Entry]:
    return [
        *promised(facts.get("privacy")),
        Entry(OPEN, "what would leave a site: one process held all rows"),
        Entry(OPEN, "the right to use the rows, and how long they are kept"),
    ]


def promised(privacy: Any) -> list[Entry]:
    """What a private run has spent; "not covered" where nothing is promised."""
    found = privacy if isinstance(privacy, dict) else {}
    epsilon = found.get("epsilon")
    if not isinstance(epsilon, int | float) or not np.isfinite(epsilon):
        return [Entry(OPEN, "differential privacy: the models may tell of single rows")]
    left = [
        Entry(OPEN, f"outside the privacy accountant: {text}") for text in found.get("outside", ())
    ]
    if found.get("insecure"):
        return [Entry(OPEN, "differential privacy: the noise of a test can be drawn again"), *left]
    if found.get("refit"):
        left.insert(0, Entry(OPEN, "privacy of the models themselves: the last refit saw raw rows"))
    whom = "all records of one node" if found.get("unit") == "node" else "one record"
    text = f"of differential privacy, {whom} replaced"
    return [
        Entry(PROVEN, f"epsilon {text}", float(epsilon)),
        known(PROVEN, f"delta {text}", found.get("delta")),
        *left,
    ]


def _transparency(facts: dict[str, Any], found: Arrays) -> list[Entry]:
    return [
        Entry(MEASURED, "linear models that can be read in coef.csv", float(len(found["nodes"]))),
        Entry(MEASURED, "numbers in each model", float(len(found["parameters"]))),
        Entry(MEASURED, "groups of nodes with one model", float(facts["summary"]["clusters"])),
        Entry(OPEN, "whether the people concerned know that a model is used"),
    ]


def _fairness(facts: dict[str, Any], found: Arrays) -> list[Entry]:
    on = found["held_out"] > 0
    errors = found["node_error"][int(found["chosen"])][on]
    summary = facts["summary"]
    entries = []
    if "privacy" in facts:  # the least and the largest of raw errors would tell of single rows
        entries.append(Entry(OPEN, "errors by node: a private run keeps them back"))
    elif len(errors) and np.isfinite(errors).all():
        tenth = float(errors[worst_tenth(errors)].mean())
        entries.append(Entry(MEASURED, "mean error over the nodes", float(errors.mean())))
        entries.append(Entry(MEASURED, "mean error over the worst tenth of the nodes", tenth))
        worse = float(summary["nodes_worse"])
        entries.append(Entry(MEASURED, "nodes that do worse than with their own rows", worse))
    else:
        entries.append(Entry(OPEN, "errors by node: no rows were held out"))
    if (~on).any():
        entries.append(Entry(OPEN, f"{int((~on).sum())} nodes without held-out rows"))
    entries.append(Entry(OPEN, "groups of people: the run knows nodes only"))
    return entries


def _environment(facts: dict[str, Any]) -> list[Entry]:
    entries = []
    seconds = facts.get("cpu_seconds")
    if seconds is None:
        entries.append(Entry(OPEN, "energy: processor time was not recorded"))
    else:
        cost = Cost(cpu_seconds=float(seconds))
        entries.append(Entry(MEASURED, "processor seconds", cost.cpu_seconds))
        text = f"watt-hours, assuming {cost.watts:g} W for a busy core"
        entries.append(Entry(MEASURED, text, cost.watt_hours))
    entries.append(Entry(OPEN, "what the predictions do to society"))
    return entries


def _accountability(facts: dict[str, Any], checked: int) -> list[Entry]:
    entries = [
        Entry(MEASURED, "input files with a recorded SHA-256", float(len(facts["files"]))),
        Entry(MEASURED, "versions of software on record", float(len(facts["versions"]))),
        Entry(OPEN, "audit by somebody else, and redress"),
    ]
    if checked:
        text = "result files that agree with their recorded SHA-256"
        entries.insert(1, Entry(MEASURED, text, float(checked)))
    return entries


def _error(facts: dict[str, Any]) -> float | None:
    """The error of the coupled models at held-out rows."""
    value = facts["summary"]["scores"].get("nefele")
    return None if value is None else float(value)
