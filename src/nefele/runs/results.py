"""What a run leaves behind: tables, the path, the facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._ids import IdIndex, describe
from nefele.estimators.reporting import parameter_names
from nefele.result import Status
from nefele.runs.config import RunConfig
from nefele.runs.folder import RunFolder, now
from nefele.runs.inputs import Inputs
from nefele.runs.pipeline import Stages
from nefele.runs.rivals import column_of, rivals_in, rivals_text
from nefele.runs.spreadsheets import write_csv
from nefele.runs.wording import (
    MADE_OF_NOISE,
    METRICS,
    PRICED,
    edge_notes,
    missed_notes,
    noise_notes,
    unused_graph_note,
)
from nefele.selection import Verdict
from nefele.selection.verdict import COUPLED

Arrays = dict[str, NDArray[Any]]


def write_results(
    folder: RunFolder, config: RunConfig, inputs: Inputs, stages: Stages
) -> dict[str, Any]:
    """Write the tables and the path, and return the facts of the run, without its status."""
    found = gather(config, inputs, stages)
    folder.save_path(found)
    write_tables(folder, found)
    return facts(config, inputs, stages, found)


def write_tables(folder: RunFolder, found: Arrays, *, lost_only: bool = False) -> None:
    """Write what can be read without nefele, from the arrays of a run; or what of it is lost."""
    for name, text in table_texts(found).items():
        if not (lost_only and folder.file(name).is_file()):
            folder.write_text(name, text)


def table_texts(found: Arrays) -> dict[str, str]:
    """What metrics.csv, coef.csv and history.jsonl hold."""
    names = ("iteration", "objective", "gap", "seconds")
    lines = [
        json.dumps(dict(zip(names, _plain(row), strict=True))) for row in found["history"].tolist()
    ]
    tables = {"metrics.csv": metrics_table(found), "coef.csv": coef_table(found)}
    texts = {name: write_csv(table) or "" for name, table in tables.items()}
    return {**texts, "history.jsonl": "\n".join(lines) + "\n"}


def gather(config: RunConfig, inputs: Inputs, stages: Stages) -> Arrays:
    """Everything a report needs, nodes in the order of the graph; see `nefele.report.View`."""
    path, held = stages.path, stages.held
    nodes = path["nodes"]
    place = IdIndex(nodes).positions(held["nodes"])

    def spread(values: Array) -> Array:
        out = np.full((*values.shape[:-1], len(nodes)), np.nan)
        out[..., place] = values
        return out

    held_out = np.zeros(len(nodes), dtype=np.int64)
    held_out[place] = held["held_out"]
    count = len(stages.alphas)
    errors = np.array([fold["error"] for fold in stages.folds]).reshape(-1, count)
    blank = np.full(count, np.nan)
    few = len(errors) < 2
    found = {
        "alphas": stages.alphas,
        "cv_error": errors.mean(axis=0) if len(errors) else blank,
        "cv_se": blank if few else errors.std(axis=0, ddof=1) / np.sqrt(len(errors)),
        "cv_own": _mean([fold["own"] for fold in stages.folds]),
        "cv_pooled": _mean([fold["pooled"] for fold in stages.folds]),
        "best": np.array(stages.chosen if len(errors) else -1),
        "own_error": spread(held["node_own"]),
        "pooled_error": spread(held["node_pooled"]),
        "node_error": spread(held["node_error"]),
        "held_out": held_out,
        "parameters": np.array(parameter_names(inputs.parameters, path["classes"])),
    }
    kept = ("chosen", "clearest", "nodes", "rows", "edges", "weights", "coef", "gaps", "clusters")
    found |= {name: path[name] for name in (*kept, "history")}
    if stages.rivals is not None:
        found["rivals"] = stages.rivals["names"]
        found["rival_error"] = spread(stages.rivals["node_error"])
    positions = inputs.positions(nodes)
    if positions is not None:
        found["positions"] = positions
        found["geographic"] = np.array(inputs.geographic)
    return found


def _mean(values: list[Any]) -> Array:
    return np.array(np.mean(values) if values else np.nan)


def metrics_table(found: Arrays) -> Any:
    """Per node: rows, held-out rows, errors, gain over own data only, cluster."""
    import polars as pl

    coupled = found["node_error"][int(found["chosen"])]
    columns = {
        "node": pl.Series(found["nodes"].tolist(), dtype=pl.String),
        "rows": found["rows"],
        "held_out": found["held_out"],
        "own_error": found["own_error"],
        "pooled_error": found["pooled_error"],
        "nefele_error": coupled,
        "gain": found["own_error"] - coupled,
        "cluster": found["clusters"][int(found["chosen"])],
    }
    for k, name in enumerate(found.get("rivals", np.array([])).tolist()):
        columns[column_of(name)] = found["rival_error"][k]
    return pl.DataFrame(columns).fill_nan(None)


def coef_table(found: Arrays) -> Any:
    """Per node: the parameters of its model."""
    import polars as pl

    coef = found["coef"][int(found["chosen"])]
    names = found["parameters"].tolist()
    first = "node"
    while first in names:  # a feature of that name
        first += " id"
    nodes = pl.Series(first, found["nodes"].tolist(), dtype=pl.String)
    return pl.DataFrame([nodes, *(pl.Series(name, coef[:, j]) for j, name in enumerate(names))])


def compared(found: Arrays) -> Verdict:
    """The verdict at the held-out rows, from the arrays of a run."""
    on = found["held_out"] > 0
    coupled = found["node_error"][int(found["chosen"])]
    return Verdict(
        found["own_error"][on],
        found["pooled_error"][on],
        coupled[on],
        found["held_out"][on],
        found["nodes"][on].tolist(),
    )


def facts(config: RunConfig, inputs: Inputs, stages: Stages, found: Arrays) -> dict[str, Any]:
    """What run.json says about the result."""
    path, status = stages.path, str(stages.path["status"])
    missed = {
        "cross-validation": int(sum(int(fold["missed"]) for fold in stages.folds)),
        "fits to the training rows": int(stages.held["missed"]),
        "path": int(path["missed"]),
    }
    searched = config.alpha == "auto" and not config.chooses
    # What reading the rows brought to light is not to be read in a private report.
    seen = inputs.notes if stages.spent is None else ()
    notes = [*seen, *edge_notes(stages.chosen, stages.alphas, searched)]
    summary = _summary(config, stages, found)
    given = inputs.graph is not None and inputs.graph.n_edges > 0
    if "coupling" in summary and given and "graph" not in summary["coupling"]:
        notes.append(unused_graph_note(summary["coupling"]))
    if stages.spent is not None:
        if config.task == "regression":
            notes += noise_notes(summary["scores"][COUPLED], (config.bounds or {})["y"])
        notes += [*stages.spent.text().split("\n"), PRICED if config.price else MADE_OF_NOISE]
    notes += (
        _never_held(config, found) + missed_notes(missed, config.tol) + path["warnings"].tolist()
    )
    notes += [] if stages.rivals is None else stages.rivals["notes"].tolist()
    return {
        **_promised(stages),
        "finished": now(),
        "rows": len(inputs.y),
        "held_out_rows": int(found["held_out"].sum()),
        "features": list(inputs.uses.names),
        "columns": [[part.name, part.how()] for part in inputs.parts],
        "left_out": inputs.uses.left_out if stages.spent is None else {},
        "graph": {
            "n_nodes": len(found["nodes"]),
            "n_edges": len(found["edges"]),
            "source": graph_source(config),
        },
        "diagnostics": path["diagnostics"].tolist(),
        "theory": path["theory"].tolist(),
        "certificate": str(path["certificate"]),
        "robustness": json.loads(str(path["robustness"])),
        "pictures": path["pictures"].tolist(),
        "timings": stages.seconds,
        "converged": Status(status).reached,
        "solver_status": status,
        "advice": Status(status).advice,
        "gap": finite(float(path["gap"])),
        "tol": config.tol,
        "summary": summary,
        "notes": notes,
    }


def _promised(stages: Stages) -> dict[str, Any]:
    """What privacy the run has, and what it cost."""
    return {} if stages.spent is None else {"privacy": stages.spent.to_dict()}


def _never_held(config: RunConfig, found: Arrays) -> list[str]:
    """A note about nodes of several rows whose latest time has too many of them."""
    idle = found["nodes"][(found["held_out"] == 0) & (found["rows"] > 1)]
    if config.time is None or not len(idle):
        return []
    return [
        f"{len(idle)} of {len(found['nodes'])} nodes have no held-out rows, since more than half "
        f"of their rows have the latest {config.time}: {describe(idle)}."
    ]


def _summary(config: RunConfig, stages: Stages, found: Arrays) -> dict[str, Any]:
    """The verdict at held-out rows, and the choice."""
    verdict, chosen = compared(found), stages.chosen
    better, worse = verdict.count(verdict.coupled)
    summary: dict[str, Any] = {
        "verdict": verdict.text(),
        "helps": verdict.helps,
        "metric": METRICS[config.task],
        "scores": dict(verdict.scores),
        "gain": finite(verdict.gain.mean),
        "gain_se": finite(verdict.gain.error),
        "nodes_judged": int((found["held_out"] > 0).sum()),
        "nodes_better": better,
        "nodes_worse": worse,
        "pooled_better": verdict.count(verdict.pooled)[0],
        "pooled_worse": verdict.count(verdict.pooled)[1],
        "penalty": config.penalty,
        "alpha": float(stages.alphas[chosen]),
        "clusters": int(found["clusters"][chosen].max()) + 1,
    }
    if "words" in stages.path:
        summary["coupling"] = str(stages.path["words"])
    if "wrong" in stages.held:
        wrong = stages.held["wrong"]
        shares = (wrong[-1], wrong[0], wrong[1 + chosen])
        names = [name for name, _ in verdict.scores]
        summary["wrong"] = dict(zip(names, map(float, shares), strict=True))
    if stages.rivals is not None:
        _add_rivals(summary, verdict, rivals_in(found), stages.rivals["wrong"])
    return summary


def _add_rivals(
    summary: dict[str, Any], verdict: Verdict, rivals: dict[str, Array], wrong: Array
) -> None:
    """Methods that were asked for: their scores, nodes that do better, and a sentence."""
    summary["verdict"] += f" {rivals_text(verdict, rivals)}"
    summary["rivals"] = {}
    for k, (name, errors) in enumerate(rivals.items()):
        better, worse = verdict.count(errors)
        summary["scores"][name] = verdict.total(errors)
        summary["rivals"][name] = {"nodes_better": better, "nodes_worse": worse}
        if "wrong" in summary:
            summary["wrong"][name] = float(wrong[k])


def graph_source(config: RunConfig) -> str:
    """Where the graph comes from."""
    if config.edge_file is not None:
        return f"from {Path(config.edge_file).name}"
    if config.bare:
        return "no graph was given: each model is drawn to a common centre"
    if config.learns:
        return "learnt from the data" + (f" ({config.learner})" if config.graph else "")
    return f"{config.k} nearest by {', '.join(config.coords or ())}"


def finite(value: float) -> float | None:
    """The number, None when JSON has no word for it."""
    return float(value) if np.isfinite(value) else None


def _plain(row: list[float]) -> list[Any]:
    return [int(row[0]), *(finite(value) for value in row[1:])]
