"""Why the model of a node of a run is what it is, from the run and the rows that it read."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from nefele._ids import did_you_mean
from nefele.accountable import Explanation, PredictionExplanation, explain
from nefele.estimators import load
from nefele.estimators.fitting import give_rows, take_rows
from nefele.runs.folder import RunFolder
from nefele.runs.inputs import read_inputs
from nefele.runs.opening import check_inputs


def explain_run(folder: RunFolder, node: str) -> tuple[Explanation, dict[str, Any]]:
    """The explanation of a node of a finished run, and the facts of the run.

    The rows are read again: a ValueError when their file is not what the run read, when the run
    is private, or when it has no such node.
    """
    facts = folder.finished_facts()
    folder.check_results(facts)
    config = folder.read_config()
    if "privacy" in facts:
        raise ValueError(
            f"The run in {str(folder.path)!r} is private: its models were fitted to noisy moments, "
            "and no row of the data explains them."
        )
    check_inputs(facts, "explanations are sums over its rows")
    model = load(folder.file("model.nefele"))
    inputs = read_inputs(config)
    rows = take_rows(clone(model), inputs.frame(config.node), inputs.y)
    folder.check_steady(facts)
    return explain(give_rows(model, rows), node), facts


def one_row(found: Explanation, text: str, node: str, features: list[str]) -> Any:
    """A table with one row from "feature=value,..."; a ValueError for what is no such text.

    `features` are the columns that the run read.
    """
    import polars as pl

    values: dict[str, Any] = {node: found.node}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"--at must be feature=value,...; got {part!r}.")
        if name.strip() in values:
            raise ValueError(f"--at must name each feature once; {name.strip()!r} comes again.")
        values[name.strip()] = _number_or_text(value.strip())
    _check_features(values, features)
    return pl.DataFrame({name: [value] for name, value in values.items()})


def _check_features(given: dict[str, Any], features: list[str]) -> None:
    strange = [name for name in list(given)[1:] if name not in features]
    if strange:
        hint = did_you_mean(np.array(features), np.array(strange[:1]))
        raise ValueError(
            f"--at must name features of the run; {strange[0]!r} is none.{hint} Features: "
            f"{', '.join(features)}."
        )
    if missing := [name for name in features if name not in given]:
        raise ValueError(f"--at must give every feature; missing: {', '.join(missing)}.")


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def groups_of(found: Explanation) -> list[dict[str, Any]]:
    """The nodes and the share of each group with one model, the largest share first."""
    groups: dict[int, list[str]] = {}  # the centre, behind all nodes, has none
    for node, cluster in zip(found.nodes.tolist(), found.clusters.tolist(), strict=False):
        groups.setdefault(int(cluster), []).append(str(node))
    shares = found.cluster_share.tolist()
    order = sorted(groups, key=lambda k: -shares[k])
    return [{"nodes": groups[k], "share": shares[k]} for k in order]


def plain(found: Explanation, count: int) -> dict[str, Any]:
    """The explanation for JSON."""
    parts = dict(zip(map(str, found.nodes.tolist()), found.by_node.tolist(), strict=True))
    return {
        "node": str(found.node),
        "how": found.how,
        "exact": found.exact,
        "certified": found.certified,
        "parameters": found.names,
        "model": found.total.tolist(),
        "optimum": found.optimum.tolist(),
        "remainder": found.remainder.tolist(),
        "shares": dict(zip(parts, found.share.tolist(), strict=True)),
        "ridge_share": found.ridge_share,
        "parts": parts,
        "common": found.common.tolist(),
        "pulls": found.pulls.tolist(),
        "clusters": groups_of(found),
        "own_share": _finite(found.own_share),
        "neighbours": dict(
            zip(map(str, found.neighbours.tolist()), found.neighbour_share.tolist(), strict=True)
        ),
        "rows": found.row_frame(count).to_dicts(),
        "edges": found.edge_frame(count).to_dicts(),
    }


def plain_prediction(one: PredictionExplanation) -> dict[str, Any]:
    """One prediction for JSON."""
    return {
        "value": one.value,
        "label": None if one.label is None else str(one.label),
        "base": one.base,
        "features": one.frame().to_dicts(),
        "nodes": dict(zip(map(str, one.nodes.tolist()), one.by_node.tolist(), strict=True)),
        "rest": one.rest,
        "similar": one.similar().to_dicts(),
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
