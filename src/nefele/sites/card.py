"""The model card of a run at a site: of its own nodes, without anything of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nefele.report.trust import Requirement
from nefele.selection.verdict import COUPLED, OWN, POOLED
from nefele.sites.trust import errors_of

_NEEDED = ("nodes", "target", "task", "penalty", "version", "verdict")


def site_card(folder: Path, facts: dict[str, Any], rows: Sequence[Requirement]) -> dict[str, Any]:
    """The card as plain data, as `nefele.runs.model_card.card_text` writes it.

    Parameters
    ----------
    folder : Path
        Of the run.
    facts : dict
        Of its run.json.
    rows : sequence of Requirement
    """
    lost = [name for name in _NEEDED if name not in facts]
    if lost:
        raise ValueError(
            f"The run in {str(folder)!r} must be of this version for a model card; its run.json "
            f"has no {lost[0]!r}."
        )
    errors = {name: facts["errors"].get(name) for name in (OWN, POOLED, COUPLED)}
    return {
        "name": f"{facts['target']} at {facts['name']}, in {facts['federation']}",
        "task": facts["task"],
        "created": facts["finished"],
        "made_by": f"nefele {facts['version']}",
        "command": f"nefele site run --run {facts['run']}",
        "data": {
            "file": f"rows of {facts['name']}",
            "sha256": "kept back",
            "rows": facts["rows"],
            "held_out_rows": facts["held_out"],
            "features": facts["features"],
            "target": facts["target"],
            "node": ", ".join(map(str, facts["nodes"])),
        },
        "model": _model(facts),
        "errors": {"metric": errors_of(facts), **errors},
        "verdict": facts["verdict"],
        "worst_nodes": [],
        "limits": _limits(facts),
        "trustworthy": facts["converged"],
        "requirements": [row.plain() for row in rows],
    }


def _model(facts: dict[str, Any]) -> dict[str, Any]:
    kinds = {
        "predictions": "one model per node, coupled by predictions",
        "networks": "one network per node, coupled by parameters",
    }
    kind = kinds.get(facts["method"], "one linear model per node")
    return {
        "kind": f"{kind}; the nodes of this site",
        "nodes": len(facts["nodes"]),
        "edges": facts["edges"],
        "graph": f"agreed in the federation, hash {facts['hash'][:16]}",
        "penalty": facts["penalty"],
        "alpha": facts["alpha"],
        "certified_gap": facts["gap"],
        "tol": facts["tol"],
    }


def _limits(facts: dict[str, Any]) -> list[str]:
    """What a reader must know."""
    limits = ["It knows the nodes of this site only; errors elsewhere are in the others' cards."]
    if facts["gone"]:
        limits.append(f"Members that left on the way: {', '.join(map(str, facts['gone']))}.")
    if facts["gap"] is None:
        limits.append(f"No gap is proven: {facts['certificate']}.")
    return limits
