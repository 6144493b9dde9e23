"""What a run at a site shows of the seven requirements, from what it left in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nefele.accountable.fair import worst_tenth
from nefele.report.trust import MEASURED, OPEN, PROVEN, Entry, Requirement
from nefele.runs.trust import TO_DO, known, promised
from nefele.selection.verdict import COUPLED, OWN

_PROOFS = ("dual", "strong convexity")


def site_facts(folder: Path) -> dict[str, Any] | None:
    """The facts of run.json if this is the folder of a run at a site; None otherwise."""
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    known_as = isinstance(facts, dict) and "format" not in facts
    return facts if known_as and {"federation", "bytes_sent", "converged"} <= set(facts) else None


def site_requirements(folder: Path, facts: dict[str, Any]) -> list[Requirement]:
    """One row for each requirement, as far as this site knows."""
    entries = (
        _oversight(facts),
        _robustness(facts),
        _privacy(facts),
        [
            known(MEASURED, "features of each model", len(facts["features"])),
            Entry(OPEN, "whether the people concerned know that a model is used"),
        ],
        _fairness(folder),
        [
            known(MEASURED, "bytes sent", facts["bytes_sent"]),
            known(MEASURED, "rounds", facts["rounds"]),
            Entry(OPEN, "energy: sites do not record processor time"),
            Entry(OPEN, "what the predictions do to society"),
        ],
        [
            known(MEASURED, "messages of others that were refused", sum(facts["refused"].values())),
            known(MEASURED, "members that were away", len(facts["gone"])),
            Entry(OPEN, "audit by somebody else, and redress"),
        ],
    )
    return [
        Requirement(name, found, to_do)
        for (name, to_do), found in zip(TO_DO.items(), entries, strict=True)
    ]


def _oversight(facts: dict[str, Any]) -> list[Entry]:
    return [
        known(MEASURED, "held-out rows at which this site judged the models", facts["held_out"]),
        Entry(OPEN, "who may overrule a prediction, and how"),
    ]


def _robustness(facts: dict[str, Any]) -> list[Entry]:
    gap = facts["gap"] if facts["converged"] else None
    mark = PROVEN if facts["certificate"] in _PROOFS else MEASURED
    return [
        known(mark, "relative distance of the fit from the optimum, at most", gap),
        known(
            MEASURED, f"error on own held-out rows ({facts['metric']})", facts["errors"][COUPLED]
        ),
        Entry(OPEN, "how far captured or broken nodes can move the others"),
        Entry(OPEN, "backdoors, and rows unlike those of the training"),
    ]


def _privacy(facts: dict[str, Any]) -> list[Entry]:
    return [
        known(MEASURED, "messages that left this site", facts["messages_sent"]),
        known(MEASURED, "numbers that left this site", facts["numbers_sent"]),
        *promised(facts.get("privacy")),
        Entry(OPEN, "the right to use the rows, and how long they are kept"),
    ]


def _fairness(folder: Path) -> list[Entry]:
    """Errors of the own nodes, by the table that the run left."""
    import polars as pl

    entries = []
    try:
        table = pl.read_csv(folder / "metrics.csv", infer_schema_length=None)
        coupled, own = (table[name].cast(pl.Float64).to_numpy() for name in (COUPLED, OWN))
    except (OSError, pl.exceptions.PolarsError):
        raise ValueError(
            f"The run in {str(folder)!r} must have its metrics.csv as it was written; it is lost "
            "or was changed. Restore it."
        ) from None
    on = np.isfinite(coupled)
    if on.any():
        tenth = coupled[on][worst_tenth(coupled[on])].mean()
        entries.append(known(MEASURED, "mean error over the own nodes", coupled[on].mean()))
        entries.append(known(MEASURED, "mean error over the worst tenth of these", tenth))
        worse = (coupled > own)[on & np.isfinite(own)].sum()
        entries.append(known(MEASURED, "own nodes that do worse than with their own rows", worse))
    else:
        entries.append(Entry(OPEN, "errors by node: no rows were held out"))
    entries.append(Entry(OPEN, "nodes of other sites, and groups of people"))
    return entries
