"""Whom a model serves badly: errors by node, by group of nodes, and of the worst tenth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, as_float_array, check_finite
from nefele._ids import describe
from nefele.accountable.fitted import one_estimator
from nefele.estimators.fitting import rows_to_predict

if TYPE_CHECKING:
    import polars as pl

Index = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Fairness:
    """Errors of a model by node and by group of nodes.

    Attributes
    ----------
    metric : str
        "mean squared error", or "share of wrong predictions" for classes.
    nodes : array of shape (n,)
        Ids of the nodes with rows here.
    rows : int array of shape (n,)
    errors : array of shape (n,)
        Error of each node.
    mean : float
        Over all rows.
    worst : int array
        Places of the worst tenth of the nodes (at least one), the worst first.
    worst_tenth : float
        Mean over the nodes of the worst tenth.
    groups : list
        Labels of the groups; empty where none were given.
    group_errors : array
        Over all rows of each group.
    group_rows : int array

    Examples
    --------
    >>> import nefele
    >>> X, y = np.empty((4, 0)), [0.0, 2.0, 5.0, 5.0]
    >>> model = nefele.GTVRegressor(alpha=0.0).fit(X, y, node_ids=list("aabb"))
    >>> found = nefele.fairness(model, X, y, {"a": "north", "b": "south"}, node_ids=list("aabb"))
    >>> found.errors.round(9).tolist(), found.mean, found.worst_tenth, found.gap
    ([1.0, 0.0], 0.5, 1.0, 1.0)
    """

    metric: str
    nodes: NDArray[Any] = field(repr=False)
    rows: Index = field(repr=False)
    errors: Array = field(repr=False)
    mean: float
    worst: Index = field(repr=False)
    worst_tenth: float
    groups: list[Any] = field(default_factory=list)
    group_errors: Array = field(default_factory=lambda: np.zeros(0))
    group_rows: Index = field(default_factory=lambda: np.zeros(0, dtype=np.int64), repr=False)

    @property
    def gap(self) -> float:
        """Largest minus least error of a group; not a number with fewer than two groups."""
        if len(self.groups) < 2:
            return float("nan")
        return float(self.group_errors.max() - self.group_errors.min())

    def frame(self) -> pl.DataFrame:
        """One row per node, the worst first: `node`, `rows`, `error`, `worst_tenth`."""
        import polars as pl

        order = np.argsort(-self.errors, kind="stable")
        return pl.DataFrame(
            {
                "node": [str(node) for node in self.nodes[order]],
                "rows": self.rows[order],
                "error": self.errors[order],
                "worst_tenth": np.isin(order, self.worst),
            }
        )

    def group_frame(self) -> pl.DataFrame:
        """One row per group: `group`, `rows`, `error`."""
        import polars as pl

        names = [str(group) for group in self.groups]
        return pl.DataFrame({"group": names, "rows": self.group_rows, "error": self.group_errors})

    def plot(self, ax: Any = None) -> Any:
        """The error of each node, the largest first.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        matplotlib Axes
        """
        from nefele.accountable.plots import plot_errors

        return plot_errors(self, ax)


def fairness(model: Any, X: Any, y: Any, groups: Any = None, *, node_ids: Any = None) -> Fairness:
    """Errors by node, by group of nodes and of the worst tenth, at rows that are given.

    Give rows that the model was not fitted to: at its training rows every model looks fair that
    follows them closely.

    Parameters
    ----------
    model : GTVRegressor, GTVClassifier, GTVRegressorCV or GTVClassifierCV
        Fitted.
    X, y : as in fit
    groups : dict, optional
        Label of each node id, for nodes with rows here.
    node_ids : array of shape (n_rows,), optional

    Returns
    -------
    Fairness

    Examples
    --------
    >>> import nefele
    >>> X, y = np.empty((4, 0)), ["no", "yes", "yes", "yes"]
    >>> model = nefele.GTVClassifier(alpha=1.0, graph=nefele.graphs.chain(2))
    >>> found = nefele.fairness(model.fit(X, y, node_ids=[0, 0, 1, 1]), X, y, node_ids=[0, 0, 1, 1])
    >>> found.metric, found.errors.tolist()
    ('share of wrong predictions', [0.5, 0.0])
    """
    inner = one_estimator(model)
    _, ids = rows_to_predict(inner, X, node_ids)
    predicted, target = np.asarray(model.predict(X, node_ids=node_ids)), np.asarray(y)
    if target.shape != predicted.shape:
        raise ValueError(
            f"y must have one entry per row of X, shape {predicted.shape}; got {target.shape}."
        )
    if not len(target):
        raise ValueError("X must have at least one row; it has none.")
    classes = hasattr(inner, "classes_")
    each = _wrong(inner, predicted, target) if classes else _squared(predicted, target)
    owners = np.zeros(len(each), dtype=np.int64) if ids is None else np.asarray(ids)
    metric = "share of wrong predictions" if classes else "mean squared error"
    return report_of(metric, owners, each, groups)


def _wrong(model: Any, predicted: Array, target: NDArray[Any]) -> Array:
    """Whether each row got another class than its own."""
    known = model.classes_.tolist()
    unknown = [label for label in target.tolist() if label not in known]
    if unknown:
        raise ValueError(
            f"y must hold classes of the fit, {describe(model.classes_)}; got {unknown[0]!r}."
        )
    return np.asarray(predicted != target, dtype=float)


def _squared(predicted: Array, target: NDArray[Any]) -> Array:
    """The squared error of each row."""
    numbers = as_float_array(target, "y", 1)
    check_finite(numbers, lambda at: f"y[{at[0]}]")
    return np.asarray((predicted - numbers) ** 2)


def report_of(metric: str, owners: NDArray[Any], each: Array, groups: Any = None) -> Fairness:
    """The report from the error of each row and the id of its node."""
    nodes, place = np.unique(owners, return_inverse=True)
    rows = np.bincount(place)
    errors = np.bincount(place, each) / rows
    worst = worst_tenth(errors)
    found = (metric, nodes, rows, errors, float(each.mean()), worst, float(errors[worst].mean()))
    if groups is None:
        return Fairness(*found)
    label = _labels(groups, nodes)
    names = sorted(set(label), key=str)
    group = np.array([names.index(one) for one in label])[place]
    sizes = np.bincount(group, minlength=len(names))
    return Fairness(*found, names, np.bincount(group, each, len(names)) / sizes, sizes)


def fairness_of(metric: str, nodes: NDArray[Any], rows: Index, errors: Array) -> Fairness:
    """The report from the mean error of each node.

    Examples
    --------
    >>> fairness_of("error", np.array(["a", "b"]), np.array([1, 3]), np.array([4.0, 0.0])).mean
    1.0
    """
    worst = worst_tenth(errors)
    mean = float(np.average(errors, weights=rows))
    return Fairness(metric, nodes, rows, errors, mean, worst, float(errors[worst].mean()))


def worst_tenth(errors: Array) -> Index:
    """Places of the worst tenth, at least one, the worst first.

    Examples
    --------
    >>> worst_tenth(np.array([1.0, 3.0, 2.0])).tolist()
    [1]
    """
    return np.argsort(-errors, kind="stable")[: -(-len(errors) // 10)]


def _labels(groups: Any, nodes: NDArray[Any]) -> list[Any]:
    """The group of each node."""
    if not isinstance(groups, Mapping):
        raise ValueError(
            f"groups must be a dict from node id to label; got {type(groups).__name__}."
        )
    missing = [node for node in nodes.tolist() if node not in groups]
    if missing:
        raise ValueError(
            f"groups must name every node with rows; missing: {describe(np.array(missing))}."
        )
    labels = [groups[node] for node in nodes.tolist()]
    for node, label in zip(nodes.tolist(), labels, strict=True):
        if not _is_label(label):
            raise ValueError(
                "Labels of groups must be texts, numbers or tuples of these, and not NaN; got "
                f"{label!r} for node {node!r}. Name the group of what is unknown, such as "
                '"unknown".'
            )
    return labels


def _is_label(label: Any) -> bool:
    """Whether it can name a group: it has a hash, and is equal to itself."""
    try:
        return bool(hash(label) == hash(label) and label == label)
    except (TypeError, ValueError):  # no hash; a missing value that is not even unequal
        return False
