"""What a run at a site shows of the seven requirements, from what it left in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nefele._words import visible
from nefele.accountable.fair import worst_tenth
from nefele.report.trust import MEASURED, OPEN, PROVEN, Entry, Requirement
from nefele.runs.trust import NOISY, TO_DO, energy, gap_entry, judged, known, promised
from nefele.selection.verdict import COUPLED, OWN
from nefele.sites.status import FILE, read_status

_MOST_PEERS = 20


_KEYS = {
    "federation", "name", "bytes_sent", "messages_sent", "numbers_sent", "converged", "gap",
    "certificate", "held_out", "features", "metric", "errors", "rounds", "refused", "gone",
}  # fmt: skip


def site_facts(folder: Path) -> dict[str, Any] | None:
    """The facts of run.json if this is the folder of a run at a site; None otherwise.

    A ValueError for the folder of a site itself, and for a run that is not finished.
    """
    try:
        facts = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        _check_other(folder)
        return None
    if not isinstance(facts, dict) or "format" in facts or "federation" not in facts:
        return None
    lost = sorted(_KEYS - set(facts))
    if lost:
        raise ValueError(
            f"{str(folder / 'run.json')!r} must be as the site wrote it; it has no {lost[0]!r}. "
            "Restore it."
        )
    return facts


def _check_other(folder: Path) -> None:
    """Say what is wrong with a folder of a site that has no results."""
    if (folder / "site.toml").is_file():
        raise ValueError(
            f"{str(folder)!r} is the folder of a site; name one of its runs, such as "
            f"{str(folder / 'run-1')!r}."
        )
    if (folder / FILE).is_file():
        state = read_status(folder)["state"]
        raise ValueError(
            f"The run in {str(folder)!r} is not finished (state: {state}). Go on with: nefele site "
            f"run {folder.parent}"
        )


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
        _fairness(folder, _private(facts)),
        _environment(folder, facts),
        _accountability(facts),
    )
    return [
        Requirement(name, found, to_do)
        for (name, to_do), found in zip(TO_DO.items(), entries, strict=True)
    ]


def _oversight(facts: dict[str, Any]) -> list[Entry]:
    text = "held-out rows at which this site judged the models"
    return [
        judged(text, facts["held_out"], _private(facts)),
        Entry(OPEN, "who may overrule a prediction, and how"),
    ]


def _robustness(facts: dict[str, Any]) -> list[Entry]:
    private = _private(facts)
    error = f"error on own held-out rows ({facts['metric']})"
    return [
        gap_entry(facts, private),
        judged(error, facts["errors"][COUPLED], private),
        *_moved(facts),
        Entry(OPEN, "backdoors, and rows unlike those of the training"),
    ]


def _moved(facts: dict[str, Any]) -> list[Entry]:
    """What the other sites can do to the models of this one."""
    name, found = "how far the other sites can move the own models", facts.get("robustness")
    if found is None:
        return [Entry(OPEN, f"{name}: not recorded by the version that made the run")]
    if found["number"] is None:
        return [Entry(OPEN, f"{name}: none, because {found['why']}")]
    units = "scaled units, of the fit to noisy moments" if _private(facts) else "scaled units"
    text = f"move of the own models together, whatever all other sites do, at most ({units})"
    entries = [Entry(PROVEN, text, found["number"])]
    if found["honest"] > found["covered"]:
        left = found["honest"] - found["covered"]
        entries.append(Entry(OPEN, f"{left} own nodes that this bound leaves out"))
    return entries


def _promise(facts: dict[str, Any]) -> dict[str, Any] | None:
    """What privacy was agreed to; None without."""
    found = facts.get("promise") or {}
    return found if found.get("mechanism", "none") != "none" else None


def _private(facts: dict[str, Any]) -> bool:
    return _promise(facts) is not None


def errors_of(facts: dict[str, Any]) -> str:
    """What the errors of a run are, and how they are known."""
    return f"{facts['metric']}, {NOISY}" if _private(facts) else str(facts["metric"])


def _privacy(facts: dict[str, Any]) -> list[Entry]:
    promise = _promise(facts)
    entries = promised(promise)
    if promise is None and facts.get("privacy", "none") != "none":  # of an older version
        entries = [Entry(OPEN, f"differential privacy, not checked here: {facts['privacy']}")]
    if promise is not None:
        entries.append(Entry(OPEN, "other releases of the same rows: see the account beside them"))
    return [
        known(MEASURED, "messages that left this site", facts["messages_sent"]),
        known(MEASURED, "numbers that left this site", facts["numbers_sent"]),
        *entries,
        Entry(OPEN, "the right to use the rows, and how long they are kept"),
    ]


def _environment(folder: Path, facts: dict[str, Any]) -> list[Entry]:
    return [
        known(MEASURED, "bytes sent", facts["bytes_sent"]),
        *_to_peers(folder),
        known(MEASURED, "rounds", facts["rounds"]),
        *energy(facts.get("cpu_seconds")),
        Entry(OPEN, "energy of the network, of the relay and of the other sites"),
        Entry(OPEN, "what the predictions do to society"),
    ]


def _to_peers(folder: Path) -> list[Entry]:
    """Bytes of messages to each peer, each message once; nothing where the ledger is lost."""
    import polars as pl

    try:
        table = pl.read_csv(folder / "ledger.csv").filter(pl.col("direction") == "sent")
        sums = table.group_by("peer").agg(pl.col("bytes").cast(pl.Float64).sum()).sort("peer")
        found = list(sums.iter_rows())
    except (OSError, pl.exceptions.PolarsError):
        return [Entry(OPEN, "bytes to each site: the ledger is lost or was changed")]
    return [
        known(MEASURED, f"of these, payload to {visible(str(peer))}", count)
        for peer, count in found[:_MOST_PEERS]
    ]


def _accountability(facts: dict[str, Any]) -> list[Entry]:
    return [
        known(MEASURED, "messages of others that were refused", sum(facts["refused"].values())),
        known(MEASURED, "members that were away", len(facts["gone"])),
        Entry(OPEN, "audit by somebody else, and redress"),
    ]


def _fairness(folder: Path, private: bool) -> list[Entry]:
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
        entries.append(judged("mean error over the own nodes", coupled[on].mean(), private))
        entries.append(judged("mean error over the worst tenth of these", tenth, private))
        worse = (coupled > own)[on & np.isfinite(own)].sum()
        entries.append(judged("own nodes that do worse than with their own rows", worse, private))
    else:
        entries.append(Entry(OPEN, "errors by node: no rows were held out"))
    entries.append(Entry(OPEN, "nodes of other sites, and groups of people"))
    return entries
