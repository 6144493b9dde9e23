"""Predictions of a run's model for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from nefele._checks import check_name
from nefele._ids import describe, distinct
from nefele.runs.columns import fitted_column
from nefele.runs.folder import RunFolder
from nefele.runs.inputs import _absent, _complete, with_nodes
from nefele.runs.tables import Table


def predict_table(
    folder: RunFolder, path: Path, unseen: str, column: str, drop_missing: bool
) -> tuple[Any, list[str]]:
    """The rows of a file with a column of predictions, and what a reader must know.

    The file has the node ids and the features of the finished run in `folder`. `unseen` says what
    to do with ids that have no model: "raise", "pooled" or "centre".
    """
    import polars as pl

    from nefele.estimators import load

    check_name(unseen, ("raise", "pooled", "centre"), "rule for unseen ids")
    facts = folder.finished_facts()
    config = folder.read_config()
    folder.check_results(facts)
    model = load(folder.file("model.nefele"))
    if unseen == "centre":
        if not hasattr(model, "centre_coef_"):
            raise ValueError(
                '--unseen centre needs a run with a centre, "--penalty auto". Use --unseen pooled.'
            )
        model.set_params(unseen="centre")
    features = tuple(facts["features"])
    folder.check_steady(facts)
    table = Table.read(path)
    table.check_column(config.node)
    for name in features:
        try:
            table.check_column(name)
        except ValueError as error:
            raise ValueError(
                f"{error} It is a feature of the run: add it, or fit without it by --features."
            ) from None
    if column in table.columns:
        raise ValueError(
            f'{table.name} has a column "{column}" already. Name another one by --column.'
        )
    encoder = getattr(model, "encoder_", None)
    frame = _columns(table, features, encoder)
    gone = {config.node: _absent(table, config.node)}
    if encoder is None or drop_missing:
        gone |= {name: frame[name].is_null().to_numpy() for name in features}
    keep, notes = _complete(table, gone, drop_missing)
    if not keep.all():
        table, frame = table.take(keep), frame.filter(pl.Series(keep)) if features else frame
    ids = table.ids(config.node)
    notes += _unknown(model, ids, table.name, unseen)
    notes += [] if encoder is None else encoder.news(frame)
    frame = with_nodes(frame, ids, config.node)
    found = table.frame.with_columns(pl.Series(column, model.predict(frame)))
    if config.task == "classification":
        found = _with_shares(found, model, frame, table.name)
    return found, notes


def _columns(table: Table, features: tuple[str, ...], encoder: Any) -> Any:
    """The features as a polars table, null where a value is missing, as they were fitted."""
    import polars as pl

    if encoder is None:
        numbers = {name: table.numbers(name) for name in features}
        return pl.DataFrame(numbers, nan_to_null=True)
    return pl.DataFrame([fitted_column(table, part) for part in encoder.parts_])


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
            "--unseen centre to predict them by the centre of a chosen coupling, --unseen pooled "
            "by the model of all rows."
        )
    by = "the model of the centre" if unseen == "centre" else "the model of all rows"
    return [f"{text}; {int(lost.sum())} rows are predicted by {by}."]
