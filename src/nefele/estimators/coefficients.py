"""The fitted models of all nodes as one table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nefele._checks import Array
from nefele.estimators.layout import centre_id

if TYPE_CHECKING:
    import polars as pl


def table_of_models(model: Any) -> pl.DataFrame:
    """One row per node, and per class where there are more than two; the centre the last.

    Parameters
    ----------
    model : GTVRegressor or GTVClassifier
        Fitted.
    """
    import polars as pl

    coef, intercept = model._stacked()
    nodes = [str(node) for node in model.nodes_.tolist()]
    rows = _row_counts(model)
    if hasattr(model, "centre_coef_"):
        _, n_outputs, d = coef.shape
        coef = np.concatenate([coef, np.reshape(model.centre_coef_, (1, n_outputs, d))])
        intercept = np.concatenate([intercept, np.reshape(model.centre_intercept_, (1, n_outputs))])
        nodes.append(centre_id(np.array(nodes)))
        rows = None if rows is None else np.append(rows, 0)
    n, n_outputs, d = coef.shape
    table: dict[str, list[Any]] = {"node": np.repeat(nodes, n_outputs).tolist()}
    if n_outputs > 1:
        table["class"] = model.classes_.tolist() * n
    own = {"node", "class", "intercept", "rows"}
    for name, values in zip(_names(model, d, own), coef.reshape(-1, d).T, strict=True):
        table[name] = values.tolist()
    table["intercept"] = intercept.ravel().tolist()
    table["rows"] = [None] * (n * n_outputs) if rows is None else rows.repeat(n_outputs).tolist()
    whole = rows is None or rows.dtype.kind == "i"
    return pl.DataFrame(table, schema_overrides={"rows": pl.Int64 if whole else pl.Float64})


def _row_counts(model: Any) -> Array | None:
    """Rows of each node, or the sum of their weights; None where they were not saved."""
    rows = getattr(model, "_rows", None)
    if rows is None:
        return None
    place, n = model.graph_.positions(rows.node_ids), model.graph_.n_nodes
    if (rows.sample_weight == 1).all():
        return np.asarray(np.bincount(place, minlength=n))
    return np.asarray(np.bincount(place, rows.sample_weight, n))


def _names(model: Any, d: int, taken: set[str]) -> list[str]:
    """Names of the features; one that is taken gets an underscore."""
    found, taken = [], set(taken)
    for name in model._names() or [f"x{j}" for j in range(d)]:
        while name in taken:
            name = f"{name}_"
        taken.add(name)
        found.append(name)
    return found
