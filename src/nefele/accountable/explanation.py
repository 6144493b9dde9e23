"""Why a node's model is what it is: own rows, neighbours, clusters, every other node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array, check_count
from nefele._html import facts
from nefele.accountable.parts import Parts
from nefele.accountable.prediction import PredictionExplanation, explain_prediction
from nefele.accountable.without import parameters_without

if TYPE_CHECKING:
    import polars as pl

Index = NDArray[np.int64]

_SHOWN = 6  # nodes in a notebook


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the model of one node is made of, in the units of X.

    Each part is a vector of d + 1 numbers: what it adds to the coefficients and, the last, to the
    intercept; with more than two classes those of each class in turn, less their mean over the
    classes, which says nothing. `by_node.sum(axis=0) + common + pulls` is the optimum, and with
    `remainder` the model as it was fitted.

    Attributes
    ----------
    node : node id
    exact : bool
        Squared loss and squared penalty: weights do not depend on the labels, so the parts tell
        of any change of them. Otherwise they add up as well, but tell of small changes only.
    certified : bool
        For norm penalties: whether the certificate proves which models are equal.
    how : str
        The same in words.
    names : list of str
        The features, then "intercept".
    total : array of shape (d + 1,)
        The model.
    nodes : array of shape (n,)
        Ids of all nodes; with `hub` > 0 the centre is the last. It has no rows of its own.
    by_node : array of shape (n, d + 1)
        What the rows of each node add to the model.
    share : array of shape (n,)
        The same as one number: the part of the model's parameters that the rows of the node
        determine. With `ridge_share` they sum to 1.
    ridge_share : float
        What ridge terms determine, which draw to zero.
    common : array of shape (d + 1,)
        What is estimated for all nodes at once (`scale`, curves) and cannot be told apart by
        rows; zero for squared fits in which common and personal coefficients are one optimum:
        there `by_node` has it, too.
    shared_part : array of shape (d + 1,)
        Coefficients that are common to all nodes, as they were estimated.
    pulls : array of shape (d + 1,)
        What the bounded forces of norm and Huber penalties add; zero for squared ones.
    remainder : array of shape (d + 1,)
        What the tolerance of the solver left: the fitted model minus the optimum.
    neighbours : array of shape (k,)
        Ids of the neighbours, the centre among them.
    neighbour_parts : array of shape (k, d + 1)
        What each neighbour's model, as it is, adds directly: with `own_part` and `shared_part`
        they are the optimum as well. Empty where a norm holds parameters together one by one.
    neighbour_share : array of shape (k,)
    own_part : array of shape (d + 1,)
        What the rows of the node (of all `members`) add directly.
    own_share : float
        Direct share of these rows.
    members : array
        Ids of the nodes that a norm penalty holds equal to this one, itself among them.
    clusters : int array of shape (n_nodes,)
        The model's clusters, without the centre.

    Examples
    --------
    >>> import nefele
    >>> X, y = np.ones((3, 0)), [0.0, 0.0, 4.0]
    >>> model = nefele.GTVRegressor(nefele.graphs.chain(3), penalty="squared_l2", alpha=2.0)
    >>> found = nefele.explain(model.fit(X, y, node_ids=[0, 1, 2]), 1)
    >>> found.share.round(3).tolist(), found.by_node[:, -1].round(3).tolist()
    ([0.25, 0.5, 0.25], [0.0, 0.0, 1.0])
    """

    node: Any
    exact: bool
    certified: bool
    how: str = field(repr=False)
    names: list[str] = field(repr=False)
    total: Array
    nodes: NDArray[Any] = field(repr=False)
    by_node: Array = field(repr=False)
    share: Array = field(repr=False)
    ridge_share: float
    common: Array = field(repr=False)
    shared_part: Array = field(repr=False)
    pulls: Array = field(repr=False)
    remainder: Array = field(repr=False)
    neighbours: NDArray[Any] = field(repr=False)
    neighbour_parts: Array = field(repr=False)
    neighbour_share: Array = field(repr=False)
    own_part: Array = field(repr=False)
    own_share: float
    members: NDArray[Any] = field(repr=False)
    clusters: Index = field(repr=False)
    _parts: Parts = field(repr=False)

    def _repr_html_(self) -> str:
        order = np.argsort(-np.abs(self.share), kind="stable")[:_SHOWN]
        rows = {f"rows of {self.nodes[k]}": f"{self.share[k]:.0%}" for k in order}
        rest = np.delete(self.share, order)
        if rest.any():
            rows[f"{np.count_nonzero(rest)} others"] = f"{rest.sum():.0%}"
        return facts(f"What the model of {self.node} is made of", {**rows, "how": self.how})

    @property
    def optimum(self) -> Array:
        """The model at the optimum, to rounding: all parts but the remainder."""
        return np.asarray(self.by_node.sum(axis=0) + self.common + self.pulls)

    @property
    def cluster_share(self) -> Array:
        """Share of the rows of each cluster, shape (n_clusters,)."""
        return np.asarray(np.bincount(self.clusters, self.share[: len(self.clusters)]), dtype=float)

    @property
    def cluster_parts(self) -> Array:
        """What the rows of each cluster add to the model, shape (n_clusters, d + 1)."""
        out = np.zeros((int(self.clusters.max()) + 1, len(self.total)))
        np.add.at(out, self.clusters, self.by_node[: len(self.clusters)])
        return out

    def prediction(self, x: Any, label: Any = None) -> PredictionExplanation:
        """Why the model predicts what it does for one row.

        Parameters
        ----------
        x : table or array with one row, as for `predict`, or array of shape (d,)
        label : class, optional
            Of three classes or more: whose score is explained, default the one predicted.
        """
        return explain_prediction(self._parts, self.node, x, label)

    def without(self, neighbour: Any) -> Array:
        """The model if that node and its rows were not there, shape (d + 1,).

        The rest of the problem stays: metric, scaling, weights of the rows and common part.

        Parameters
        ----------
        neighbour : node id
            Any other node, the centre included.
        """
        fit = self._parts.fit
        found = parameters_without(fit, self._parts.system, neighbour)
        return fit.base + fit.to_units(found)

    def row_frame(self, count: int = 10) -> pl.DataFrame:
        """The training rows that matter most for this model.

        Parameters
        ----------
        count : int
            How many to list.

        Returns
        -------
        polars.DataFrame
            `row`, its place among the training rows of weight > 0, `node`, `target` (of classes
            their name), `signal`, whether it is a user's signal and no label, and `size`: how far
            it moves the model, as the root mean square over the training rows of the node (of all
            rows, if it has none) of what it adds to their predictions.
        """
        import polars as pl

        count = check_count(count, "count", low=1)
        fit, parts = self._parts.fit, self._parts.by_row
        if parts is None:
            raise ValueError("The loss must be a sum over rows; this one is not.")
        size = self._size(parts)
        top = np.argsort(-size, kind="stable")[:count]
        rows, place = fit.rows, fit.order[top]
        told = rows.y if rows.signals is None else np.append(rows.y, rows.signals[:, 1])
        return pl.DataFrame(
            {
                "row": rows.places[place],
                "node": [str(rows.node_ids[k]) for k in rows.places[place]],
                "target": fit.targets(told[place]),
                "signal": place >= len(rows.y),
                "size": size[top],
            }
        )

    def edge_frame(self, count: int = 10) -> pl.DataFrame:
        """The edges that matter most for this model.

        Parameters
        ----------
        count : int
            How many to list.

        Returns
        -------
        polars.DataFrame
            `source`, `target`, `weight`, and `size`: how far the model moves when the force of the
            edge goes, to first order, measured as in `row_frame`. Edges that hold equal models
            together count as zero.
        """
        import polars as pl

        count = check_count(count, "count", low=1)
        graph, change = self._parts.system.graph, self._parts.system.edge_change
        size = self._size(self._parts.fit.to_units(change))
        top = np.argsort(-size, kind="stable")[:count]
        ends = [[str(graph.ids[k]) for k in side[top]] for side in (graph.head, graph.tail)]
        columns = {"source": ends[0], "target": ends[1], "weight": graph.weight[top]}
        kinds = {"source": pl.String, "target": pl.String}
        return pl.DataFrame({**columns, "size": size[top]}, schema_overrides=kinds)

    def frame(self) -> pl.DataFrame:
        """One row per source: `source`, `share` and what it adds to each coefficient."""
        import polars as pl

        others = ("common", "pulls", "remainder", "total")
        parts = np.vstack([self.by_node, *(getattr(self, name) for name in others)])
        table = {
            "source": [*map(str, self.nodes.tolist()), *others],
            "share": [*self.share.tolist(), None, None, None, 1.0 - self.ridge_share],
        }
        columns = [*table, *self.names]
        for j in range(2, len(columns)):
            while columns[j] in columns[:j]:
                columns[j] += "_"
        table |= {name: parts[:, j].tolist() for j, name in enumerate(columns[2:])}
        return pl.DataFrame(table)

    def plot(self, axes: Any = None) -> Any:
        """Shares of the sources and of the direct neighbours, largest first.

        Parameters
        ----------
        axes : pair of matplotlib Axes, optional

        Returns
        -------
        array of two matplotlib Axes
        """
        from nefele.accountable.plots import plot_explanation

        return plot_explanation(self, axes)

    def _size(self, parts: Array) -> Array:
        """Root mean square of what parts (k, d + 1) add at the node's rows, over all classes."""
        fit = self._parts.fit
        own = fit.design.graph.positions(fit.rows.node_ids) == self._parts.system.at
        X = fit.rows.X[own] if own.any() else fit.rows.X
        X = X if fit.design.layout is None else fit.design.layout.clip(X)
        Z = np.column_stack([X, np.ones(len(X))])
        blocks = parts.reshape(len(parts), fit.n_outputs, Z.shape[1])
        square = np.einsum("kcp,pq,kcq->k", blocks, Z.T @ Z / len(Z), blocks)
        return np.sqrt(square.clip(min=0.0))
