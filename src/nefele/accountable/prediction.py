"""Why one row gets its prediction: features, sources, similar rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_count, check_finite
from nefele._ids import describe
from nefele.accountable.fitted import Fitted
from nefele.accountable.parts import Parts
from nefele.accountable.without import parameters_without
from nefele.estimators.fitting import feature_names, rows_to_predict
from nefele.estimators.scores import curve_weights

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class PredictionExplanation:
    """One prediction as sums over features and over sources.

    Attributes
    ----------
    value : float
        The prediction: of numbers itself, of classes and counts the score (the logit, the
        logarithm), in which parts add up; of three classes or more that of one class, less the
        mean of all.
    x : array of shape (d,)
        The row, as numbers; with curves within the outermost values that these know.
    reference : array of shape (d,)
        Mean of the node's own rows, or of all rows if it has none.
    base : float
        The prediction of the node's straight model at the reference.
    features : array of shape (d,)
        coef_k (x_k - reference_k). `base + features.sum() + curves.sum()` is the value.
    curves : array of shape (d,)
        What the common curves of the features add.
    names : list of str
    nodes, by_node : arrays of shape (n,)
        What the rows of each node add: `by_node.sum() + rest` is the value.
    rest : float
        Pulls of norms, the solver's remainder, and what is common where rows do not tell it.
    label : class or None
        Whose score it is, of two classes the second.

    Examples
    --------
    >>> import nefele
    >>> X, y = np.array([[0.0], [1.0], [0.0], [1.0]]), [1.0, 3.0, 2.0, 4.0]
    >>> model = nefele.GTVRegressor(nefele.graphs.chain(2), penalty="squared_l2", alpha=0.1)
    >>> found = nefele.explain(model.fit(X, y, node_ids=[0, 0, 1, 1]), 0).prediction([1.0])
    >>> bool(np.isclose(found.value, model.predict([[1.0]], node_ids=[0])[0]))
    True
    >>> round(found.base, 3), found.features.round(3).tolist()
    (2.045, [1.0])
    """

    value: float
    x: Array = field(repr=False)
    reference: Array = field(repr=False)
    base: float
    features: Array
    curves: Array = field(repr=False)
    names: list[str]
    nodes: NDArray[Any] = field(repr=False)
    by_node: Array = field(repr=False)
    rest: float
    label: Any
    _parts: Parts = field(repr=False)
    _output: int = field(repr=False)
    _coef: Array = field(repr=False)

    def without(self, neighbour: Any) -> float:
        """The prediction if that node and its rows were not there; see `Explanation.without`.

        Parameters
        ----------
        neighbour : node id
        """
        fit, at = self._parts.fit, self._output
        found = fit.base + fit.to_units(parameters_without(fit, self._parts.system, neighbour))
        model = found.reshape(fit.n_outputs, -1)[at]
        return float(self.x @ model[:-1] + model[-1] + self.curves.sum())

    def frame(self) -> pl.DataFrame:
        """One row per feature: `feature`, `value`, `reference`, `adds` and `curve`."""
        import polars as pl

        return pl.DataFrame(
            {
                "feature": self.names,
                "value": self.x,
                "reference": self.reference,
                "adds": self.features,
                "curve": self.curves,
            }
        )

    def similar(self, count: int = 5) -> pl.DataFrame:
        """The node's own training rows that are most like this one.

        Distances are between what the features add to the prediction, so that features count as
        much as the model uses them.

        Parameters
        ----------
        count : int
            How many to list.

        Returns
        -------
        polars.DataFrame
            `row`, its place among the training rows of weight > 0, `distance` in the units of
            the prediction, and `target`; empty for a node without rows.
        """
        import polars as pl

        count = check_count(count, "count", low=1)
        fit, system = self._parts.fit, self._parts.system
        owner = fit.design.graph.positions(fit.rows.node_ids)
        own = np.flatnonzero(owner == system.at)
        X = fit.rows.X[own]
        X = X if fit.design.layout is None else fit.design.layout.clip(X)
        away = np.sqrt((((X - self.x) * self._coef) ** 2).sum(axis=1))
        top = np.argsort(away, kind="stable")[:count]
        kind = pl.String if hasattr(fit.model, "classes_") else pl.Float64
        return pl.DataFrame(
            {"row": own[top], "distance": away[top], "target": fit.targets(fit.rows.y[own[top]])},
            schema={"row": pl.Int64, "distance": pl.Float64, "target": kind},
        )

    def plot(self, ax: Any = None) -> Any:
        """What the features add to the prediction, largest first.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from nefele.accountable.plots import plot_prediction

        return plot_prediction(self, ax)


def explain_prediction(parts: Parts, node: Any, x: Any, label: Any) -> PredictionExplanation:
    """The prediction of one row by the model of a node."""
    fit, system = parts.fit, parts.system
    numbers = _one_row(fit, node, x)
    layout, at = fit.design.layout, system.at
    owner = fit.design.graph.positions(fit.rows.node_ids)
    own = owner == at
    known = fit.rows.X[own] if own.any() else fit.rows.X
    weight = fit.rows.sample_weight[own] if own.any() else fit.rows.sample_weight
    seen = numbers if layout is None else layout.clip(numbers)
    reference = np.average(known if layout is None else layout.clip(known), axis=0, weights=weight)
    models = fit.stored(at)
    if fit.n_outputs > 1:
        models = fit.to_units(system.classes.centred(fit.w, at)[at]).reshape(fit.n_outputs, -1)
    output = _output(fit, models @ np.append(seen[0], 1.0), label)
    coef, intercept = models[output, :-1], float(models[output, -1])
    curves = _curves(fit, numbers, at)
    features = coef * (seen[0] - reference)
    base = float(coef @ reference + intercept)
    value = base + float(features.sum() + curves.sum())
    unit = np.append(seen[0], 1.0)
    by_node = parts.by_node.reshape(len(parts.by_node), fit.n_outputs, -1)[:, output] @ unit
    if parts.curves is not None and layout is not None and layout.smooth is not None:
        by_node = by_node + parts.curves @ layout.smooth.basis(numbers)[0]
    return PredictionExplanation(
        value,
        seen[0],
        reference,
        base,
        features,
        curves,
        feature_names(fit.model),
        np.array(fit.problem.graph.ids),
        by_node,
        value - float(by_node.sum()),
        _label(fit, output),
        parts,
        output,
        coef,
    )


def _label(fit: Fitted, output: int) -> Any:
    """The class whose score is explained, of two the second; None for numbers."""
    classes = getattr(fit.model, "classes_", None)
    if classes is None:
        return None
    return classes[[output if fit.n_outputs > 1 else 1]].tolist()[0]


def _output(fit: Fitted, scores: Array, label: Any) -> int:
    """Place of the class whose score is explained; 0 for numbers and two classes."""
    if fit.n_outputs == 1:
        if label is not None:
            raise ValueError("label must be left out for numbers and two classes: one score.")
        return 0
    if label is None:
        return int(scores.argmax())
    found = np.flatnonzero(fit.model.classes_ == label)
    if not len(found):
        raise ValueError(
            f"label must be a class of the fit, {describe(fit.model.classes_)}; got {label!r}."
        )
    return int(found[0])


def _one_row(fit: Fitted, node: Any, x: Any) -> Array:
    """The row as numbers, shape (1, d); a plain vector has no node column."""
    if not hasattr(x, "columns"):
        plain = np.asarray(x)
        if plain.ndim not in (1, 2):
            raise ValueError(f"x must be one row: a table, or an array of numbers; got {x!r}.")
        if plain.ndim == 1:
            x = plain[None, :]
    if len(x) != 1:
        raise ValueError(f"x must be one row; got {len(x)}.")
    d = fit.rows.X.shape[1]
    bare = not hasattr(x, "columns") and np.shape(x)[1] == d
    if bare and not hasattr(fit.model, "encoder_"):
        numbers = as_float_array(x, "x", 2)
        check_finite(numbers, lambda at: f"x[{at[1]}]")
        return numbers
    ids = None if fit.model.node is not None else np.array([node])
    numbers, found = rows_to_predict(fit.model, x, ids)
    if found is not None and list(found) != [node]:
        raise ValueError(f"x must be a row of the node explained, {node!r}; got {found[0]!r}.")
    return numbers


def _curves(fit: Fitted, x: Array, at: int) -> Array:
    """What the common curve of each feature adds, shape (d,)."""
    out = np.zeros(x.shape[1])
    layout = fit.design.layout
    if layout is None or layout.smooth is None or layout.smooth.weights is None:
        return out
    smooth = layout.smooth
    columns = np.array([curve.column for curve in smooth.curves])[smooth.groups]
    weight = curve_weights(fit.model, np.array([at]))
    np.add.at(out, columns, np.ravel(weight)[0] * smooth.basis(x)[0] * smooth.weights)
    return out
