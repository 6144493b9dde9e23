"""The shared set: unlabelled rows on which neighbours compare their predictions (AGN, Eq. (6))."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_count, check_finite, check_name, is_frame
from nefele._ids import describe
from nefele.estimators.design import Rows

RULES = ("gaussian", "uniform")


def shared_rows(
    rule: Any, n_shared: Any, rows: Rows, names: list[str] | None, node: Any, seed: int
) -> Array:
    """The shared set as an array of shape (m', d), by the rule `X_shared` of `FedRelaxRegressor`.

    A rule that is a name draws `n_shared` rows after those of all nodes, whose weights are > 0.
    `names` are those of the features; the node column has no place here.
    """
    rng, d = np.random.default_rng([seed, 0]), rows.X.shape[1]
    if isinstance(rule, str):
        check_name(rule, RULES, "rule for X_shared")
        return _draw(rule, check_count(n_shared, "n_shared", low=1), rows, rng)
    if np.ndim(rule) == 0 and not is_frame(rule):
        count = min(check_count(rule, "X_shared, as a number of rows,", low=1), len(rows.X))
        return rows.X[np.sort(rng.choice(len(rows.X), count, replace=False))]
    values = as_float_array(_columns(rule, names, node) if is_frame(rule) else rule, "X_shared", 2)
    if values.shape[1] != d or not len(values):
        raise ValueError(
            f"X_shared must have at least one row and the {d} features of X, without the node "
            f"column; got shape {values.shape}."
        )
    check_finite(values, lambda at: f"X_shared[{at[0]}, {at[1]}]")
    return values


def _columns(table: Any, names: list[str] | None, node: Any) -> Any:
    """The features of a table, in the order of X."""
    have = [str(name) for name in table.columns]
    if isinstance(node, str) and node in have:
        raise ValueError(
            f"X_shared must not have the node column {node!r}: all nodes predict all of its rows. "
            "Drop it."
        )
    if names is None:
        return table
    missing = [name for name in names if name not in have]
    more = [name for name in have if name not in names]
    if missing or more:
        raise ValueError(
            f"X_shared must have the columns of X: {describe(np.array(names))}. Missing: "
            f"{missing or 'none'}; unknown: {more or 'none'}."
        )
    return table[names]


def _draw(rule: str, count: int, rows: Rows, rng: np.random.Generator) -> Array:
    X, d = rows.X, rows.X.shape[1]
    if rule == "uniform":
        low, high = X.min(axis=0), X.max(axis=0)
        return low + (high - low) * rng.random((count, d))
    mean = np.average(X, axis=0, weights=rows.sample_weight)
    centred = (X - mean) * np.sqrt(rows.sample_weight / rows.sample_weight.sum())[:, None]
    values, vectors = np.linalg.eigh(centred.T @ centred)
    spread = vectors * np.sqrt(np.maximum(values, 0.0))
    return mean + rng.standard_normal((count, d)) @ spread.T
