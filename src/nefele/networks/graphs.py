"""Graphs learnt by networks: by their first gradients, by predictions, by who helps whom.

By label counts there is `nefele.graph_learning.LabelGraph`; the complete graph, and a hub in its
place for many nodes, is `CliqueGraph` there. All are graph builders, for `graph=` of an estimator
and as candidates of `GTVNetClassifierCV` and `GTVNetRegressorCV`.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from nefele._checks import Array, as_float_array, check_count
from nefele._ids import distinct
from nefele._torch.base import Tensor, tensor, threads, to_numpy, torch
from nefele.graph import Graph
from nefele.graph_learning.builders import TrainingRows
from nefele.graph_learning.pairwise import PairwiseGraph
from nefele.networks.personal import own_outputs
from nefele.networks.steps import Steps
from nefele.selection import WithinNodeKFold


@dataclass(eq=False, repr=False)
class NetworkGraph(PairwiseGraph):
    """Join nodes of small discrepancy by what their networks do; a subclass says what.

    Parameters
    ----------
    k, threshold, weight, scale, degree, connect, normalize
        See `nefele.graph_learning.PairwiseGraph`.
    network : PersonalRegressor, PersonalClassifier or None
        How networks are built and trained; None: as the estimator does that the graph is for, or
        the default network.
    """

    _: KW_ONLY
    network: Any = None

    def fit_graph(self, rows: TrainingRows) -> Graph:
        """The graph of the training rows, see the class.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        with threads(1 if self.network is None else self.network.n_threads):
            return super().fit_graph(rows)

    def _started(self, rows: TrainingRows, **changes: Any) -> tuple[Any, Steps, Graph]:
        """Estimator, training of all rows at the start, and the graph of the nodes."""
        from nefele.networks.baselines import Local, PersonalClassifier, PersonalRegressor

        if not rows.X.shape[1]:
            raise ValueError(
                f"{type(self).__name__} needs features in memory, which datasets do not give. Use "
                "nefele.graph_learning.LabelGraph, or pass arrays."
            )
        labels = rows.targets.shape[1] > 1
        if self.network is None:
            kind = PersonalClassifier if labels else PersonalRegressor
            model: Any = kind(method=Local(), random_state=0)
        else:
            model = clone(self.network)
        model.set_params(node=None, **changes)
        return (model, *model._at_start(*_pairs(rows, labels), rows.targets.shape[1]))

    def _trained(self, rows: TrainingRows) -> tuple[Any, Steps, Tensor, Graph]:
        """Networks of each node's own rows."""
        model, steps, graph = self._started(rows)
        return model, steps, steps.descend(steps.start(), steps.budget), graph


def _pairs(rows: TrainingRows, labels: bool) -> tuple[Array, Array, Array, NDArray[Any]]:
    on = rows.sample_weight > 0
    y = rows.targets.argmax(axis=1) if labels else rows.targets[:, 0]
    return rows.X[on], y[on].astype(np.float64), rows.sample_weight[on], rows.node_ids[on]


class GradientGraph(NetworkGraph):
    """Join nodes whose losses have similar gradients at the common start of their networks.

    The discrepancy is 1 - cosine of the gradients over all rows, in [0, 2].

    Parameters
    ----------
    k, threshold, weight, scale, degree, connect, normalize, network
        See `NetworkGraph`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((40, 2))
    >>> y = X[:, :1] * np.repeat([1.0, 1.0, -1.0, -1.0], 10)[:, None]
    >>> rows = TrainingRows(X, y, np.repeat(list("abcd"), 10), np.ones(40))
    >>> GradientGraph(k=1).fit_graph(rows).neighbors("a")
    ['b']
    """

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and discrepancies of the gradients, all pairs.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        _, steps, graph = self._started(rows, batch_size=None)
        g = to_numpy(steps.gradient(steps.start()))
        length = np.linalg.norm(g, axis=1, keepdims=True)
        g = g / np.where(length > 0, length, 1.0)
        return graph.ids, np.clip(1.0 - g @ g.T, 0.0, 2.0)


@dataclass(eq=False, repr=False)
class PredictionGraph(NetworkGraph):
    """Join nodes whose networks, trained on their own rows, say the same of shared rows.

    The discrepancy is the mean squared difference of predictions, or of probabilities.

    Parameters
    ----------
    k, threshold, weight, scale, degree, connect, normalize, network
        See `NetworkGraph`.
    X_shared : array of shape (m, d), optional
        Default: `n_shared` rows drawn from a normal distribution with the mean and the deviation
        of each feature.
    n_shared : int

    Examples
    --------
    >>> from nefele.networks import GTVNetRegressor
    >>> ids, X = np.repeat(list("abcd"), 10), np.random.default_rng(0).standard_normal((40, 2))
    >>> model = GTVNetRegressor(graph=PredictionGraph(k=1), rounds=1, random_state=0)
    >>> model.fit(X, np.where(ids < "c", X[:, 0], -X[:, 0]), node_ids=ids).graph_.neighbors("a")
    ['b']
    """

    _: KW_ONLY
    X_shared: Any = None
    n_shared: int = 100

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and discrepancies of the predictions, all pairs.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        shared = self._rows(rows.X)
        model, steps, w, graph = self._trained(rows)
        with torch.no_grad():
            X, stack = tensor(shared, model.dtype), steps.stack
            stack.module.eval()
            out = torch.stack([stack.outputs(stack.at(i, w[i])(X)) for i in range(len(w))])
        said = to_numpy(torch.softmax(out, dim=-1) if model._labels else out)
        flat = said.reshape(len(said), -1)
        return graph.ids, ((flat[:, None] - flat[None]) ** 2).sum(axis=2) / len(shared)

    def _rows(self, X: Array) -> Array:
        if self.X_shared is None:
            count = check_count(self.n_shared, "n_shared", low=1)
            rng = np.random.default_rng(0)
            return X.mean(axis=0) + X.std(axis=0) * rng.standard_normal((count, X.shape[1]))
        shared = as_float_array(self.X_shared, "X_shared", ndim=2)
        if shared.shape[1] != X.shape[1]:
            raise ValueError(
                f"X_shared must have rows of {X.shape[1]} features; got shape {shared.shape}."
            )
        return shared


class GainGraph(NetworkGraph):
    """Join nodes whose networks help each other at rows that neither was trained on.

    A quarter of each node's rows is held out. With w_i trained on the others, node j helps node i
    if the mean of w_i and w_j predicts the held-out rows of i better than w_i does; the mean of
    both gains counts, and pairs without any gain are never joined.

    Parameters
    ----------
    k, threshold, weight, scale, degree, connect, normalize, network
        See `NetworkGraph`.

    Examples
    --------
    >>> ids, X = np.repeat(list("abcd"), 16), np.random.default_rng(0).standard_normal((64, 3))
    >>> y = np.where(ids < "c", X[:, 0], -X[:, 0]) + 0.5 * X[:, 2]  # the last is not seen
    >>> rows = TrainingRows(X[:, :2], y[:, None], ids, np.ones(64))
    >>> GainGraph(k=1).fit_graph(rows).neighbors("a")
    ['b']
    """

    def discrepancy(self, rows: TrainingRows) -> tuple[NDArray[Any], Array]:
        """Ids and the largest gain minus that of the pair, infinite where there is none.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        ids = distinct(rows.node_ids[rows.sample_weight > 0])
        gain = self.gains(rows)
        with np.errstate(invalid="ignore"):
            both = np.nanmean(np.stack([gain, gain.T]), axis=0)
        both = np.nan_to_num(both, nan=0.0)
        np.fill_diagonal(both, 0.0)
        return ids, np.where(both > 0, both.max() - both, np.inf)

    def gains(self, rows: TrainingRows) -> Array:
        """By how much node j lowers the loss of node i, shape (n_nodes, n_nodes).

        NaN where node i has no held-out rows.

        Parameters
        ----------
        rows : TrainingRows
            Training rows and their node ids.
        """
        train, test = next(
            WithinNodeKFold(4, shuffle=True, random_state=0).split(rows.X, None, rows.node_ids)
        )
        alone = ~np.isin(rows.node_ids[test], rows.node_ids[train])
        train, test = np.sort(np.append(train, test[alone])), test[~alone]
        model, steps, w, graph = self._trained(_part(rows, train))
        held = model._held(*_pairs(_part(rows, test), model._labels), graph)
        node, n = held.row_node, graph.n_nodes
        total = np.bincount(node, held.weight, minlength=n)
        table = np.empty((n, n))
        for j in range(n):
            out = own_outputs(steps.stack, (w + w[j]) / 2, held)
            loss = to_numpy(steps.stack.loss(out, held.y))
            sums = np.bincount(node, loss * held.weight, minlength=n)
            table[:, j] = np.where(total > 0, sums / np.maximum(total, 1e-300), np.nan)
        return np.diagonal(table)[:, None] - table


def _part(rows: TrainingRows, at: NDArray[Any]) -> TrainingRows:
    some = (rows.X[at], rows.targets[at], rows.node_ids[at], rows.sample_weight[at])
    return TrainingRows(*some, rows.feature_names, rows.coords, rows.node)
