"""The model card of a run: what it is, how well it does, for whom, and its limits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from nefele._words import at_most, visible
from nefele.accountable.fair import worst_tenth
from nefele.report.trust import MARKS, Entry, Requirement
from nefele.runs.agreeing import state_of_files
from nefele.runs.config import RunConfig
from nefele.runs.folder import RESULTS, RunFolder
from nefele.runs.trust import NOISY, requirements

_LAST = "## Seven requirements"  # chapter of every card
CHOSEN_PENALTY = "squared_l2"  # of every coupling that a run chooses itself


def trust_of(folder: RunFolder) -> tuple[dict[str, Any], dict[str, Any], list[Requirement]]:
    """Facts, arrays and requirements of a finished run whose files are as it left them."""
    facts = folder.finished_facts()
    folder.check_results(facts)
    found = folder.load_path()
    states = state_of_files(folder, facts, found)
    folder.check_steady(facts)
    return facts, found, requirements(facts, found, len(RESULTS), states)


def card_of(folder: RunFolder) -> dict[str, Any]:
    """The card as plain data."""
    facts, found, rows = trust_of(folder)
    config = folder.read_config()
    summary, private = facts["summary"], "privacy" in facts
    return {
        "name": f"{config.target} by {config.node}",
        "task": config.task,
        "created": facts["finished"],
        "made_by": f"nefele {facts['versions']['nefele']}",
        "command": facts["command"],
        "data": {
            "file": Path(config.data).name,
            "sha256": "kept back" if private else facts["files"]["data"]["sha256"],
            "rows": facts["rows"],
            "held_out_rows": facts["held_out_rows"],
            "features": facts["features"],
            "target": config.target,
            "node": config.node,
        },
        "model": _model(config, facts, found),
        "errors": {"metric": _metric(summary, private), **summary["scores"]},
        "verdict": summary["verdict"] + (f" This is {NOISY}." if private else ""),
        "worst_nodes": [] if private else _worst(found),
        "limits": facts["notes"],
        "trustworthy": facts["converged"],
        "requirements": [row.plain() for row in rows],
    }


def _metric(summary: dict[str, Any], private: bool) -> str:
    """What the errors are, and how they are known."""
    return f"{summary['metric']}, {NOISY}" if private else str(summary["metric"])


def _model(config: RunConfig, facts: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What kind of model it is."""
    return {
        "kind": "one linear model per node, neighbours coupled",
        "nodes": facts["graph"]["n_nodes"],
        "edges": facts["graph"]["n_edges"],
        "graph": facts["graph"]["source"],
        "coupling": facts["summary"].get("coupling"),
        "penalty": CHOSEN_PENALTY if config.chooses else config.penalty,
        "alpha": facts["summary"]["alpha"],
        "clusters": facts["summary"]["clusters"],
        "parameters": found["parameters"].tolist(),
        "certified_gap": facts["gap"],
        "tol": facts["tol"],
    }


def _worst(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The worst tenth of the nodes at held-out rows, the worst first."""
    errors = found["node_error"][int(found["chosen"])]
    known = np.flatnonzero((found["held_out"] > 0) & np.isfinite(errors))
    return [
        {"node": str(found["nodes"][k]), "error": float(errors[k])}
        for k in known[worst_tenth(errors[known])]
    ]


def check_card(path: Path) -> None:
    """A ValueError when a card would replace a file that is no card, such as run.json."""
    if not path.exists():
        return
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        text = ""
    if not (_is_card(text) if path.suffix.lower() == ".json" else f"\n{_LAST}\n" in text):
        raise ValueError(
            f"--card must be a new file or an earlier model card; {str(path)!r} holds something "
            "else, which would be lost. Name another file."
        )


def _is_card(text: str) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"requirements", "trustworthy", "limits"} <= set(found)


def card_text(card: dict[str, Any], file_type: str) -> str:
    """The card as "json" or as Markdown."""
    if file_type == "json":
        return json.dumps(card, indent=2, allow_nan=False) + "\n"
    return _markdown(card)


def _markdown(card: dict[str, Any]) -> str:
    data, model = card["data"], card["model"]
    gap = model["certified_gap"]
    facts = [
        ("task", card["task"]),
        ("made by", f"{card['made_by']}, {card['created']}"),
        ("data", f"{data['file']}, {data['rows']} rows, {data['held_out_rows']} of them held out"),
        ("sha256 of the data", data["sha256"]),
        ("features", ", ".join(data["features"]) or "none"),
        ("model", f"{model['kind']}; {model['nodes']} nodes, {model['edges']} edges"),
        ("graph", model["graph"]),
        *([("coupling", model["coupling"])] if model.get("coupling") else []),
        ("penalty, alpha", f"{model['penalty']}, {model['alpha']:.4g}"),
        ("certified relative gap", "none" if gap is None else f"at most {at_most(gap, 2)}"),
    ]
    errors = [
        (name, "not available" if value is None else f"{value:.6g}")
        for name, value in card["errors"].items()
        if name != "metric"
    ]
    lines = [f"# {_cell(card['name'])}", "", _cell(card["verdict"]), ""]
    if not card["trustworthy"]:
        lines += ["**Not trustworthy: the fit did not reach its tolerance.**", ""]
    lines += _table(("What", "Value"), facts)
    lines += ["## Errors on held-out rows", ""]
    lines += _table(("Method", card["errors"]["metric"]), errors)
    worst = [(one["node"], f"{one['error']:.6g}") for one in card["worst_nodes"]]
    if worst:
        lines += ["The worst tenth of the nodes:", "", *_table(("Node", "Error"), worst)]
    if card["limits"]:
        lines += ["## Limits", "", *(f"- {_cell(note)}" for note in card["limits"]), ""]
    lines += [_LAST, "", *_requirements(card["requirements"])]
    return "\n".join(lines)


def _requirements(rows: list[dict[str, Any]]) -> list[str]:
    """One table row for each requirement."""
    shown = []
    for row in rows:
        cells = []
        for mark in MARKS:
            entries = [entry for entry in row["entries"] if entry["mark"] == mark]
            cells.append("; ".join(_words(entry) for entry in entries) or "nothing")
        shown.append((row["requirement"], *cells, row["to_do"]))
    return _table(("Requirement", "Measured", "Proven", "Not covered", "A person must"), shown)


def _words(entry: dict[str, Any]) -> str:
    return Entry(entry["mark"], str(entry["text"]), entry["number"]).words()


def _table(head: tuple[str, ...], rows: Any) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(map(_cell, row)) + " |" for row in rows), ""]


def _cell(text: Any) -> str:
    """Text from users' files in one line, without what would steer a page."""
    return re.sub(r"([\\`*_<>|\[\]#])", r"\\\1", visible(str(text)))
