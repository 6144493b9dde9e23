"""The fitted models of all nodes, and the common one, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from nefele._checks import Array, check_number
from nefele.estimators.layout import centre_id
from nefele.estimators.standard_errors import standard_errors

if TYPE_CHECKING:
    import polars as pl


def table_of_models(model: Any, level: float | None = None) -> pl.DataFrame:
    """One row per node, and per class where there are more than two; the centre the last.

    Parameters
    ----------
    model : GTVRegressor or GTVClassifier
        Fitted.
    level : float, optional
        Share of the intervals that are to cover the true coefficient; None: no intervals.
    """
    import polars as pl

    reach = None if level is None else _reach(level)
    coef, intercept = model._stacked()
    nodes = [str(node) for node in model.nodes_.tolist()]
    rows = row_counts(model)
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
    for name, values in zip(_names(model, d, own), coef.reshape(n * n_outputs, d).T, strict=True):
        table[name] = values.tolist()
    table["intercept"] = intercept.ravel().tolist()
    table["rows"] = [None] * (n * n_outputs) if rows is None else rows.repeat(n_outputs).tolist()
    if reach is not None:
        table |= _intervals(model, table, reach, own)
    whole = rows is None or rows.dtype.kind == "i"
    return pl.DataFrame(table, schema_overrides={"rows": pl.Int64 if whole else pl.Float64})


def table_of_common(model: Any, level: float) -> pl.DataFrame:
    """One row per coefficient of the centre, or of those that are common where there is none."""
    import polars as pl

    reach = _reach(level)
    errors = standard_errors(model).common
    if hasattr(model, "centre_coef_"):
        estimates = np.append(model.centre_coef_, model.centre_intercept_)
    else:
        estimates = np.append(model.coef_[0], model.intercept_[0])
    names = [*_names(model, len(estimates) - 1, {"intercept"}), "intercept"]
    on = np.isfinite(errors)
    if not on.any():
        raise ValueError(
            "The fit has no common coefficient with a standard error. Use hub > 0, a scale of 0 "
            "for some coefficient, or more rows."
        )
    estimate, error = estimates[on], errors[on]
    z = estimate / error
    return pl.DataFrame(
        {
            "coefficient": [name for name, kept in zip(names, on, strict=True) if kept],
            "estimate": estimate,
            "se": error,
            "z": z,
            "p": 2 * norm.sf(np.abs(z)),
            "low": estimate - reach * error,
            "high": estimate + reach * error,
        }
    )


def _reach(level: Any) -> float:
    """Half the length of an interval, in standard errors."""
    share = check_number(level, "level", low=0.0, strict=True)
    if not share < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}.")
    return float(norm.ppf((1 + share) / 2))


def _intervals(
    model: Any, table: dict[str, list[Any]], reach: float, taken: set[str]
) -> dict[str, list[float]]:
    """Standard error and both ends of every coefficient; a name that is taken is underlined."""
    found = standard_errors(model)
    errors = found.nodes
    if hasattr(model, "centre_coef_"):
        errors = np.concatenate([errors, found.common[None]])
    columns = [name for name in table if name not in taken] + ["intercept"]
    out: dict[str, list[float]] = {}
    for name, error in zip(columns, errors.T, strict=True):
        value = np.array(table[name])
        ends = {"se": error, "low": value - reach * error, "high": value + reach * error}
        for kind, values in ends.items():
            key = f"{name}_{kind}"
            while key in table or key in out:
                key = f"{key}_"
            out[key] = values.tolist()
    return out


def row_counts(model: Any) -> Array | None:
    """Rows of each node, or the sum of their weights; None where they were not saved."""
    rows = getattr(model, "_rows", None)
    if rows is None:
        return None
    place, n = model.graph_.positions(rows.node_ids), model.graph_.n_nodes
    if (rows.sample_weight == 1).all():
        return np.asarray(np.bincount(place, minlength=n))
    total = np.bincount(place, rows.sample_weight, n)
    if hasattr(model, "privacy_"):  # rows that stand for moments share their number
        return np.rint(total).astype(np.int64)
    return np.asarray(total)


def _names(model: Any, d: int, taken: set[str]) -> list[str]:
    """Names of the features; one that is taken gets an underscore."""
    found, taken = [], set(taken)
    for name in model._names() or [f"x{j}" for j in range(d)]:
        while name in taken:
            name = f"{name}_"
        taken.add(name)
        found.append(name)
    return found
