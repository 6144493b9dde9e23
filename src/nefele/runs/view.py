"""From the folder of a run to what a report shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from nefele.accountable.cost import Cost
from nefele.report.pictures import Picture, pictures_in
from nefele.report.view import Step, View
from nefele.runs.agreeing import state_of_tables
from nefele.runs.config import RunConfig
from nefele.runs.folder import RunFolder
from nefele.runs.results import compared
from nefele.runs.rivals import rivals_in
from nefele.runs.trust import requirements
from nefele.runs.wording import PICTURES, describe_graph, gap_text

_WEIGHTING = {
    "rows": "rows: every row counts the same, in all three methods",
    "nodes": "nodes: every node counts the same, in all three methods",
}


def view_of(folder: RunFolder, facts: dict[str, Any] | None = None) -> View:
    """The view of a finished run."""
    if facts is None:
        facts = folder.finished_facts()
        folder.check_results(facts)
    config = folder.read_config()
    found = folder.load_path()
    summary = facts["summary"]
    steps = [Step(int(row[0]), *map(float, row[1:])) for row in found["history"]]
    pictures, wrong = _pictures(folder, facts)
    notes = [*facts["notes"], *wrong]
    if not facts["converged"]:
        notes.insert(
            0, f"Not trustworthy: the final fit is {facts['solver_status']}. {facts['advice']}"
        )
    return View(
        title=f"{config.target} by {config.node}",
        task=config.task,
        target=config.target,
        metric=summary["metric"],
        command=facts["command"],
        created=facts["finished"],
        version=facts["versions"]["nefele"],
        facts=_facts(config, facts, len(found["parameters"])),
        verdict=summary["verdict"],
        notes=notes,
        scores=_scores(found),
        nodes=found["nodes"].tolist(),
        parameters=found["parameters"].tolist(),
        rows=found["rows"],
        edges=found["edges"].astype(np.int64).reshape(-1, 2),
        weights=found["weights"],
        alphas=found["alphas"],
        coef=found["coef"],
        clusters=found["clusters"],
        gaps=found["gaps"],
        cv_error=found["cv_error"],
        cv_se=found["cv_se"],
        cv_own=float(found.get("cv_own", np.nan)),
        cv_pooled=float(found.get("cv_pooled", np.nan)),
        chosen=int(found["chosen"]),
        best=int(found["best"]),
        clearest=int(found["clearest"]),
        own_error=found["own_error"],
        pooled_error=found["pooled_error"],
        node_error=found["node_error"],
        held_out=found["held_out"],
        tol=config.tol,
        history=steps,
        positions=found.get("positions"),
        centre=config.chooses,
        geographic=bool(found.get("geographic", False)),
        pictures=pictures,
        trust=requirements(facts, found, files=state_of_tables(folder, found)),
    )


def _scores(found: dict[str, Any]) -> list[tuple[str, float]]:
    """Overall errors by method, those asked for the last."""
    verdict = compared(found)
    more = [(name, verdict.total(errors)) for name, errors in rivals_in(found).items()]
    return [*verdict.scores, *more]


def _facts(config: RunConfig, facts: dict[str, Any], p: int) -> list[tuple[str, str]]:
    files = facts["files"]
    found = [
        ("data", Path(config.data).name),
        ("data sha256", "kept back" if "privacy" in facts else files["data"]["sha256"]),
        ("rows", f"{facts['rows']}, of them {facts['held_out_rows']} held out for the comparison"),
        ("features", ", ".join(facts["features"]) or "none"),
        *((f"column {name}", how) for name, how in facts.get("columns", []) if how != "numbers"),
        ("graph", describe_graph(facts["graph"])),
    ]
    if "graph" in files:
        found.append(("graph sha256", files["graph"]["sha256"]))
    found += [(f"graph: {a}", b) for a, b in facts["diagnostics"] if a != "nodes, edges"]
    found += [(label, value) for label, value in facts.get("theory", [])]
    held = f"the latest by {config.time}" if config.time else f"at random, seed {config.seed}"
    found += [
        ("held out", f"within each node, {held}"),
        ("weighting", _WEIGHTING[config.weighting]),
        ("penalty", config.penalty),
        ("alpha", f"{facts['summary']['alpha']:.4g} ({_choice(config)})"),
        ("standardized", "yes" if config.standardize else "no"),
    ]
    if config.ridge:
        found.append(("ridge term", f"{config.ridge:g}"))
    gap = facts["gap"]
    edges = facts["graph"]["n_edges"]
    found.append(
        (
            "sent",
            "nothing: solved in one process. By messages between neighbours, each iteration would "
            f"send {4 * edges} vectors of parameters or duals ({32 * edges * p:,} bytes), no rows.",
        )
    )
    found.append(
        ("certified gap", "none" if gap is None else f"{gap_text(gap)} (tol {config.tol:g})")
    )
    if "cpu_seconds" in facts:
        found.append(("energy", Cost(cpu_seconds=facts["cpu_seconds"]).text()))
    found += [(name, number) for name, number in facts["versions"].items()]
    return found


def _pictures(folder: RunFolder, facts: dict[str, Any]) -> tuple[list[Picture], list[str]]:
    """The run's own pictures, then what else was put into its folder `pictures`; complaints."""
    own = [(name, *PICTURES[name]) for name in facts.get("pictures", []) if name in PICTURES]
    return pictures_in(folder.file("pictures"), own)


def _choice(config: RunConfig) -> str:
    if config.chooses:
        return "by restricted likelihood"
    if config.alpha != "auto":
        return "given"
    return "by cross-validation, forward in time" if config.time else "by cross-validation"
