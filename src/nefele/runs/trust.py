"""What a run shows of the seven requirements for trustworthy AI, from its folder alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._words import visible
from nefele.accountable.cost import Cost
from nefele.accountable.fair import worst_tenth
from nefele.report.trust import MEASURED, OPEN, PROVEN, Entry, Requirement
from nefele.runs.wording import PRICE

Arrays = dict[str, Any]

NOISY = "estimated from the noisy release"
_PROOFS = ("dual", "strong convexity")  # forms of a certificate that leave nothing to a guess

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


def requirements(
    facts: dict[str, Any],
    found: Arrays,
    checked: int = 0,
    files: dict[str, str] | None = None,
) -> list[Requirement]:
    """One row for each requirement, from run.json and the arrays of a finished run.

    `checked` is how many result files were compared with their hashes, `files` what is wrong with
    the others, by name; empty if nothing is.
    """
    files = files or {}
    entries = (
        _oversight(facts),
        _robustness(facts),
        _privacy(facts),
        _transparency(facts, found, files),
        _fairness(facts, found),
        _environment(facts),
        _accountability(facts, checked, files),
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


def judged(text: str, number: Any, private: bool) -> Entry:
    """A measured entry; where privacy let noisy moments out only, an estimate and no measurement.

    Examples
    --------
    >>> judged("error", 2.0, private=True)
    Entry(mark='not covered', text='error, estimated from the noisy release', number=2.0)
    """
    return known(OPEN if private else MEASURED, f"{text}, {NOISY}" if private else text, number)


def _oversight(facts: dict[str, Any]) -> list[Entry]:
    count, private = facts["summary"]["nodes_judged"], "privacy" in facts
    return [
        judged("nodes whose prediction was judged", count, private),
        known(MEASURED, "notes for the reader in the report", len(facts["notes"])),
        Entry(OPEN, "who may overrule a prediction, and how"),
    ]


def _robustness(facts: dict[str, Any]) -> list[Entry]:
    private = "privacy" in facts
    error = f"error over all held-out rows ({facts['summary']['metric']})"
    return [
        gap_entry(facts, private),
        judged(error, _error(facts), private),
        *_bounds(facts),
        Entry(OPEN, "backdoors, and rows unlike those of the training"),
    ]


def gap_entry(facts: dict[str, Any], private: bool = False) -> Entry:
    """The gap of a fit: proven, or not covered where it is an estimate or missed its tolerance."""
    text = "relative distance of the fit from the optimum"
    if private:
        text += " of its noisy objective (not of that of the rows)"
    gap, form = facts["gap"] if facts["converged"] else None, facts.get("certificate")
    if gap is None or form in _PROOFS:
        return known(PROVEN, f"{text}, at most", gap)
    how = "it is not recorded how it is known" if form is None else f"its proof has an {form}"
    return Entry(OPEN, f"{text}: about {gap:.2g}, but {how}")


def _bounds(facts: dict[str, Any]) -> list[Entry]:
    """What one label and one captured node can do, as far as the run has proven it."""
    names = (
        "how far one wrong label can move the models",
        "how far a captured node can move others",
    )
    found = facts.get("robustness")
    if found is None:
        return [
            Entry(OPEN, f"{name}: not recorded by the version that made the run") for name in names
        ]
    if not facts["converged"]:
        return [Entry(OPEN, f"{name}: the fit is not the optimum") for name in names]
    units, label, captured = found["units"], found["one_label"], found["captured"]
    if "privacy" in facts:
        label = {"number": None, "why": "the fit saw noisy moments, no labels"}
    if label["number"] is None:
        first = Entry(OPEN, f"{names[0]}: none, because {label['why']}")
    else:
        first = _by_label(found, units)
    if "privacy" in facts:
        units += ", of the fit to noisy moments"
    return [first, *_moved(captured, units, names[1])]


def _by_label(found: dict[str, Any], units: str) -> Entry:
    """What one label can do: proven, but not covered where the bound is larger than the models."""
    number, text = found["one_label"]["number"], "move of all models per unit of one training label"
    size, spread = found.get("size"), found.get("spread")
    if size is None or spread is None or number * spread <= size:
        return Entry(PROVEN, f"{text}, at most ({units})", number)
    return Entry(
        OPEN,
        f"{text}: what is proven says nothing here. By it, a label that is off by one deviation of "
        f"the labels ({spread:.3g}) may move the models by {number * spread:.3g}, and all of them "
        f"together are {size:.3g} in size ({units}). More rows at each node, or a ridge term, "
        "tighten it",
    )


def _moved(found: dict[str, Any], units: str, name: str) -> list[Entry]:
    """What a node in wrong hands can do to the others."""
    if found["number"] is None:
        return [Entry(OPEN, f"{name}: none, because {found['why']}")]
    which = found.get("which") or _which(found["worst"])
    text = (
        f"move of the honest models together, whatever one captured node does, at most ({units}; "
        f"{which}, {visible(found['node'])})"
    )
    entries = [Entry(PROVEN, text, found["number"])]
    left = found["honest"] - found["covered"]
    if left:
        entries.append(Entry(OPEN, f"{left} honest nodes that this bound leaves out"))
    return entries


def _which(worst: bool) -> str:
    """Whose capture a bound is about, in the words of a version that kept none."""
    return "the worst one" if worst else "the best connected one"


def _privacy(facts: dict[str, Any]) -> list[Entry]:
    entries = promised(facts.get("privacy"))
    if "privacy" in facts:
        if PRICE in facts.get("pictures", ()):
            entries.append(Entry(OPEN, "privacy of the picture of its price, drawn from raw rows"))
        entries.append(Entry(OPEN, "other releases of the same rows: see the account beside them"))
    return [
        *entries,
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


def _transparency(facts: dict[str, Any], found: Arrays, files: dict[str, str]) -> list[Entry]:
    wrong = files.get("coef.csv", "not checked")
    text, count = "linear models that can be read in coef.csv", float(len(found["nodes"]))
    return [
        Entry(OPEN, f"{text}: it is {wrong}") if wrong else Entry(MEASURED, text, count),
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
        entries.append(
            Entry(MEASURED, "mean error over the nodes, each counted once", float(errors.mean()))
        )
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
    return [*energy(facts.get("cpu_seconds")), Entry(OPEN, "what the predictions do to society")]


def energy(cpu_seconds: Any) -> list[Entry]:
    """Processor seconds, and watt-hours by the stated assumption."""
    if cpu_seconds is None:
        return [Entry(OPEN, "energy: processor time was not recorded")]
    cost = Cost(cpu_seconds=float(cpu_seconds))
    text = f"watt-hours, not measured: an assumption of {cost.watts:g} W for a busy core"
    return [
        known(MEASURED, "processor seconds", cost.cpu_seconds),
        known(OPEN, text, cost.watt_hours),
    ]


def _accountability(facts: dict[str, Any], checked: int, files: dict[str, str]) -> list[Entry]:
    entries = [
        Entry(MEASURED, "input files with a recorded SHA-256", float(len(facts["files"]))),
        Entry(MEASURED, "versions of software on record", float(len(facts["versions"]))),
        Entry(OPEN, "audit by somebody else, and redress"),
    ]
    if checked:
        text = "result files that agree with their recorded SHA-256"
        entries.insert(1, Entry(MEASURED, text, float(checked)))
    wrong = {name: state for name, state in files.items() if state}
    if files:
        text = "other files that are there (tables and settings as the run wrote them)"
        entries.insert(-1, Entry(MEASURED, text, float(len(files) - len(wrong))))
    entries += [Entry(OPEN, f"{visible(name)}: it is {state}") for name, state in wrong.items()]
    return entries


def _error(facts: dict[str, Any]) -> float | None:
    """The error of the coupled models at held-out rows."""
    value = facts["summary"]["scores"].get("nefele")
    return None if value is None else float(value)
