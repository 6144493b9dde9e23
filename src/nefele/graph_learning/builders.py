"""Graphs that are learnt inside `fit`, from the training rows alone.

A graph builder is a scikit-learn estimator with a method `fit_graph(rows)` that returns a Graph.
It is cloned for every fit, so in cross-validation each fold learns its own graph and nothing of
the held-out rows leaks; its parameters are searched as `graph__k` and the like.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from nefele._checks import Array, check_count, check_flag, check_name, check_number, type_name
from nefele._ids import IdIndex, describe, distinct
from nefele.graph import Graph
from nefele.graph_learning.coordinates import Coordinates, as_coordinates, metric_of
from nefele.graphs import as_graph, knn

_DEFAULT_K = 4


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """What a graph builder gets to see.

    Attributes
    ----------
    X : array of shape (n_rows, d)
        Features as given, without the node column and without a constant.
    targets : array of shape (n_rows, k)
        The target (k = 1), or for a classifier one indicator column per class.
    node_ids : array of shape (n_rows,)
        Node of each row.
    sample_weight : array of shape (n_rows,)
        Row weights >= 0.
    feature_names : list of str or None
    coords : table, dict or None
        The `coords` of the estimator.
    node : str, int or None
        The `node` of the estimator: how tables call the id column.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((2, 1)), np.ones((2, 1)), np.array(["a", "b"]), np.ones(2))
    >>> rows.node_ids.tolist()
    ['a', 'b']
    """

    X: Array
    targets: Array
    node_ids: NDArray[Any]
    sample_weight: Array
    feature_names: list[str] | None = None
    coords: Any = None
    node: Any = None


class GraphBuilder(BaseEstimator, ABC):
    """Base class of graph builders: an estimator that learns a graph from training rows.

    Not needed for a builder of your own: any scikit-learn estimator with `fit_graph` will do.
    """

    @abstractmethod
    def fit_graph(self, rows: TrainingRows) -> Graph:
        """A graph whose nodes are the ids of the rows, perhaps with more nodes without rows.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """


@dataclass(eq=False, repr=False)
class SpatialKNN(GraphBuilder):
    """Join each node to its k nearest in space; great-circle distances for latitude, longitude.

    Every node with coordinates is a node of the graph, also without training rows: it gets its
    model from its neighbours.

    Parameters
    ----------
    k : int, optional
        Neighbours of each node, fewer than the nodes; an edge is there when one of its ends asks
        for it. Default: 4, or all others when they are fewer.
    coords : dict, table or list of str, optional
        {node id: point}, a table with one row per node, or columns of X (averaged over the
        node's rows). Default: the `coords` of the estimator. Columns called lat(itude) and
        lon(gitude) mean places on the Earth, in degrees.
    metric : {"auto", "euclidean", "haversine"}
        "auto" goes by the names of the columns.
    weight : {"unit", "exp", "inverse"}
        Weight of an edge of length l: 1, exp(-l / scale) or 1 / l.
    scale : float, optional
        Length scale of "exp"; default: the mean length of the edges.

    Examples
    --------
    >>> rows = TrainingRows(np.ones((2, 1)), np.ones((2, 1)), np.array(["a", "b"]), np.ones(2))
    >>> places = {"a": (0.0, 0.0), "b": (5.0, 0.0), "c": (6.0, 0.0)}
    >>> graph = SpatialKNN(k=1, coords=places).fit_graph(rows)
    >>> graph.neighbors("b")
    ['a', 'c']
    """

    k: int | None = None
    _: KW_ONLY
    coords: Any = None
    metric: str = "auto"
    weight: str = "unit"
    scale: float | None = None

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the k nearest neighbours, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        found = node_coordinates(self.coords, rows, "SpatialKNN", self.metric)
        return _neighbours(
            found.points,
            found.ids,
            self.k,
            metric=found.metric,
            weight=self.weight,
            scale=self.scale,
        )


@dataclass(eq=False, repr=False)
class MomentsKNN(GraphBuilder):
    """Join each node to the k nodes whose rows look most like its own.

    A node is described by the means and standard deviations of its features and target (for a
    classifier: shares of the classes), in units of the column's standard deviation inside the
    nodes. `fit` uses this graph when none is given.

    Parameters
    ----------
    k : int, optional
        Neighbours of each node, fewer than the nodes; an edge is there when one of its ends asks
        for it. Default: 4, or all others when they are fewer.
    target : bool
        Whether the target counts as well as the features.
    weight : {"unit", "exp", "inverse"}
        Weight of an edge of length l: 1, exp(-l / scale) or 1 / l.
    scale : float, optional
        Length scale of "exp"; default: the mean length of the edges.

    Examples
    --------
    >>> ids = np.repeat(["a", "b", "c", "d"], 2)
    >>> X = np.array([0.0, 1.0, 0.1, 1.1, 8.0, 9.0, 8.1, 9.2])[:, None]
    >>> graph = MomentsKNN(k=1).fit_graph(TrainingRows(X, 2 * X, ids, np.ones(8)))
    >>> graph.neighbors("a"), graph.neighbors("d")
    (['b'], ['c'])
    """

    k: int | None = None
    _: KW_ONLY
    target: bool = True
    weight: str = "unit"
    scale: float | None = None

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the k nearest neighbours, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        target = check_flag(self.target, "target")
        values = np.hstack([rows.X, rows.targets]) if target else rows.X
        if not values.shape[1]:
            raise ValueError("MomentsKNN(target=False) needs features; X has none.")
        ids, mean, deviation = node_moments(rows, values)
        # Sampling noise is alike in these units; between-node spreads would blow it up to the
        # size of real differences.
        inside = np.sqrt((deviation**2).mean(axis=0))
        unit = np.where(inside > 0, inside, mean.std(axis=0))
        points = np.hstack([mean, deviation]) / np.tile(np.where(unit > 0, unit, 1.0), 2)
        return _neighbours(points, ids, self.k, weight=self.weight, scale=self.scale)


def node_coordinates(
    coords: Any, rows: TrainingRows, who: str, metric: str = "auto"
) -> Coordinates:
    """Points of all nodes with rows, perhaps of more: from `coords`, by default those of the rows.

    A list of names means columns of X, averaged over the rows of each node. The metric "auto" goes
    by the names of the columns.
    """
    check_name(metric, ("auto", "euclidean", "haversine"), "metric")
    found = _known_coordinates(coords, rows, who)
    return found if metric == "auto" else Coordinates(found.ids, found.points, metric)


def _known_coordinates(coords: Any, rows: TrainingRows, who: str) -> Coordinates:
    coords = rows.coords if coords is None else coords
    if coords is None:
        raise ValueError(f"{who} needs coords: a dict, a table, or columns of X.")
    if isinstance(coords, list | tuple):
        names = rows.feature_names or []
        for name in coords:
            check_name(name, names, "column")
        ids, mean, _ = node_moments(rows, rows.X[:, [names.index(name) for name in coords]])
        return Coordinates(ids, mean, metric_of([str(name) for name in coords]))
    found = as_coordinates(coords, rows.node)
    lost = distinct(rows.node_ids[IdIndex(found.ids).positions(rows.node_ids) < 0])
    if len(lost):
        raise ValueError(
            f"coords must have every node with rows; missing: {describe(lost)}. Known are "
            f"{len(found.ids)}: {describe(found.ids)}."
        )
    return found


def node_moments(rows: TrainingRows, values: Array) -> tuple[NDArray[Any], Array, Array]:
    """Ids of the nodes with rows, and the weighted means and deviations of values at each."""
    on = rows.sample_weight > 0
    ids = distinct(rows.node_ids[on])
    owner = IdIndex(ids).positions(rows.node_ids[on])
    weight, values = rows.sample_weight[on], values[on]
    total = np.bincount(owner, weight, len(ids))

    def average(columns: Array) -> Array:
        sums = [np.bincount(owner, weight * column, len(ids)) for column in columns.T]
        return np.stack(sums, axis=1) / total[:, None]

    mean = average(values)
    return ids, mean, np.sqrt(average((values - mean[owner]) ** 2))


def base_graph(graph: Any, rows: TrainingRows, default: Any, who: str) -> Graph:
    """The graph to start from, with all nodes that have rows."""
    if isinstance(graph, type):
        raise ValueError(f"graph must be an object; use {graph.__name__}().")
    chosen = default if graph is None else graph
    if hasattr(chosen, "fit_graph"):
        found = clone(chosen).fit_graph(rows)
    elif isinstance(chosen, str | int | float):
        raise ValueError(f"{who} needs a graph or a graph builder; got {type_name(chosen)}.")
    else:
        found = as_graph(chosen)
    here = distinct(rows.node_ids[rows.sample_weight > 0])
    new = here[found.positions(here) < 0]
    if not len(new):
        return found
    ids = found.ids if found.ids.dtype.kind == new.dtype.kind else found.ids.astype(object)
    ids = np.concatenate([ids, new if ids.dtype != object else new.astype(object)])
    return Graph(ids, found.head, found.tail, found.weight)


def check_k(k: Any, n_nodes: int) -> int:
    """k, below the number of nodes; the default is 4 or what there is."""
    if k is None:
        return min(_DEFAULT_K, n_nodes - 1)
    k = check_count(k, "k", low=1)
    if k >= n_nodes > 1:
        raise ValueError(
            f"k must be smaller than the number of nodes ({n_nodes}); got {k}. Use k={n_nodes - 1} "
            "for a complete graph, or k=None."
        )
    return k


def _neighbours(points: Array, ids: NDArray[Any], k: Any, **options: Any) -> Graph:
    k = check_k(k, len(ids))
    if options.get("scale") is not None:
        check_number(options["scale"], "scale", low=0.0, strict=True)
    if len(ids) == 1:
        return Graph(ids, [], [])
    return knn(points, k, nodes=ids, **options)
