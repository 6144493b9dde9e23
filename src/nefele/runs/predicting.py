"""Predictions of a run's model for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import check_name
from nefele._ids import describe, distinct
from nefele.runs.folder import RunFolder
from nefele.runs.inputs import _absent, _complete, feature_frame
from nefele.runs.tables import Table


def predict_table(
    folder: RunFolder, path: Path, unseen: str, column: str, drop_missing: bool
) -> tuple[Any, list[str]]:
    """The rows of a file with a column of predictions, and what a reader must know.

    The file has the node ids and the features of the finished run in `folder`. `unseen` says what
    to do with ids that have no model: "raise" or "pooled".
    """
    import polars as pl

    from nefele.estimators import load

    check_name(unseen, ("raise", "pooled"), "rule for unseen ids")
    facts = folder.finished_facts()
    config = folder.read_config()
    folder.check_results(facts)
    model = load(folder.file("model.nefele"))
    features = tuple(facts["features"])
    folder.check_steady(facts)
    table = Table.read(path)
    for name in (config.node, *features):
        table.check_column(name)
    if column in table.columns:
        raise ValueError(
            f'{table.name} has a column "{column}" already. Name another one by --column.'
        )
    X = np.column_stack([table.numbers(name) for name in features] or [np.empty((0, 0))])
    X = X if features else np.empty((table.frame.height, 0))
    gone = {name: np.isnan(X[:, j]) for j, name in enumerate(features)}
    gone[config.node] = _absent(table, config.node)
    keep, notes = _complete(table, gone, drop_missing)
    table, X = (table, X) if keep.all() else (table.take(keep), X[keep])
    ids = table.ids(config.node)
    notes += _unknown(model, ids, table.name, unseen)
    frame = feature_frame(X, features, ids, config.node)
    found = table.frame.with_columns(pl.Series(column, model.predict(frame)))
    if config.task == "classification":
        found = _with_shares(found, model, frame, table.name)
    return found, notes


def _with_shares(found: Any, model: Any, frame: Any, name: str) -> Any:
    """The rows with the probability of each class; a ValueError where a column is in the way."""
    import polars as pl

    columns = [f"probability_{label}" for label in model.classes_.tolist()]
    taken = [column for column in columns if column in found.columns]
    if taken:
        raise ValueError(
            f'{name} must not have a column "{taken[0]}", where a probability goes. Rename it.'
        )
    shares = model.predict_proba(frame)
    return found.with_columns(pl.Series(column, shares[:, j]) for j, column in enumerate(columns))


def _unknown(model: Any, ids: NDArray[Any], name: str, unseen: str) -> list[str]:
    """A note about ids that have no model, or an error."""
    lost = model.graph_.positions(ids) < 0
    if not lost.any():
        return []
    missing = distinct(ids[lost])
    text = f"{len(missing)} id(s) of {name} have no model: {describe(missing)}"
    if unseen == "raise":
        raise ValueError(
            f"{text}. The run knows {len(model.nodes_)}: {describe(model.nodes_)}. Use "
            "--unseen pooled to predict them by the model of all rows."
        )
    return [f"{text}; {int(lost.sum())} rows are predicted by the model of all rows."]
