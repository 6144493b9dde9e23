"""One network per node, their parameters coupled over a graph (NFL, Algorithm 1, Sec. VI-D)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nefele._checks import Array
from nefele._torch.base import to_numpy, torch
from nefele.estimators.rows_base import RowsClassifier, RowsRegressor
from nefele.networks.base import NetBase


class GTVNetRegressor(RowsRegressor, NetBase):
    """One regression network per node, the parameters of neighbours coupled over a graph.

    Approaches a minimum of sum_i L_i(w_i) + alpha * sum_e A_e phi(w_head(e) - w_tail(e)) (NFL,
    Eq. (16)) by Algorithm 1 of NFL, w_i all parameters of the network of node i and L_i its mean
    loss. All networks have the same architecture and the same initial parameters, and are trained
    together. The primal updates are a few steps of an optimiser each, which the method bears if
    the errors have a finite sum.

    There is no certificate: with hidden layers the problem is not convex, and `status_` is always
    "uncertified". Without hidden layers it is the problem of `GTVRegressor`.

    Parameters
    ----------
    module : Module, callable or None
        The architecture, see `TorchRegressor`. Layers with running statistics (BatchNorm) are
        refused.
    graph, node
        See `GTVRegressor`.
    alpha : float
        Strength of the coupling, the core's lam; 0 trains each network by itself.
    penalty : str or Penalty
        phi, see `GTVRegressor`.
    loss : {"squared", "absolute"} or callable
        See `TorchRegressor`; a callable must work under `torch.func.vmap`.
    rounds : int
        Rounds of Algorithm 1; all are done.
    prox_steps : int
        Steps of the optimiser in each primal update.
    optimizer : {"adam", "sgd"}
    lr : float
        Learning rate; in the second half of the rounds it falls to 0.
    batch_size : int or None
        Rows of each node drawn for a step; None: all, padded to the longest node.
    gamma : float
        Step scale of Algorithm 1, tau_i = gamma / degree_i and sigma_e = 1 / (2 gamma); 1 is as
        printed. Larger values leave the local losses more say in each round.
    dtype : {"float32", "float64"}
    n_threads : int or None
        Threads of torch in fit and predict; None: as many as torch is set to.
    random_state : int, RandomState or None
        Of the initial parameters, batches and dropout. The global generator is left as it was.

    Attributes
    ----------
    nodes_ : array of shape (n_nodes,)
        Node ids, those of the graph without training rows included.
    parameters_ : array of shape (n_nodes, P)
    module_ : Module
        The architecture with the initial parameters; `network(id)` gives that of a node.
    flow_ : array of shape (n_edges, P)
        Dual variables of Algorithm 1.
    graph_ : Graph
    history_ : list of nefele.runtime.Round
        Objective, sum of the losses, spread of the parameters and seconds of each round.
    objective_ : float
    status_ : str
        "uncertified".
    rounds_ : int
    ledger_ : nefele.runtime.Ledger
        What the sites would have sent, as float64.
    n_features_in_, feature_names_in_
        Without the node column.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"town": list("aaabbb"), "t": [0.0, 1.0, 2.0, 0.0, 1.0, 2.0]})
    >>> y = [1.0, 2.0, 1.0, 1.2, 2.2, 1.2]
    >>> roads = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    >>> model = GTVNetRegressor(graph=roads, node="town", alpha=0.01, lr=0.03, random_state=0)
    >>> model.fit(X, y).predict(pd.DataFrame({"town": ["c"], "t": [1.0]})).round(0).tolist()
    [2.0]
    >>> model.status_, model.parameters_.shape
    ('uncertified', (3, 97))
    """

    def predict(self, X: Any, *, node_ids: Any = None) -> Array:
        """Predictions of each row's own network, shape (n_rows,).

        Parameters
        ----------
        X : table or array of shape (n_rows, d), or with the node column (n_rows, d + 1)
        node_ids : array of shape (n_rows,), optional
        """
        return to_numpy(self._forward(X, node_ids))


@dataclass(eq=False, repr=False, kw_only=True)
class GTVNetClassifier(RowsClassifier, NetBase):
    """One classification network per node, the parameters of neighbours coupled over a graph.

    As `GTVNetRegressor`, with logits as outputs. All networks have outputs for all classes; a
    node may have rows of one class only, or none.

    Parameters
    ----------
    module : Module, callable or None
        See `TorchClassifier`.
    loss : "cross_entropy" or callable
        See `TorchClassifier`.
    graph, node, alpha, penalty, rounds, prox_steps, optimizer, lr, batch_size, gamma, dtype, \
n_threads, random_state
        See `GTVNetRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    nodes_, parameters_, module_, flow_, graph_, history_, objective_, status_, rounds_, ledger_, \
n_features_in_, feature_names_in_
        See `GTVNetRegressor`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"shop": list("aaaabb"), "price": [1.0, 2.0, 3.0, 4.0, 1.0, 1.5]})
    >>> y = ["buys", "buys", "leaves", "leaves", "buys", "buys"]
    >>> links = pd.DataFrame({"source": ["a"], "target": ["b"]})
    >>> model = GTVNetClassifier(graph=links, node="shop", alpha=0.1, lr=0.03, random_state=0)
    >>> model.fit(X, y).predict(pd.DataFrame({"shop": ["b", "b"], "price": [1.0, 4.0]})).tolist()
    ['buys', 'leaves']
    """

    _labels = True

    loss: Any = "cross_entropy"

    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the classes by each row's own network, shape (n_rows, n_classes)."""
        return to_numpy(torch.softmax(self._forward(X, node_ids), dim=1))

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """The most likely class of each row by its own network, shape (n_rows,)."""
        best = self._forward(X, node_ids).argmax(dim=1).numpy()
        return self.classes_[best]

    def _check_target(self, y: Any, X: Array) -> Array:
        code = super()._check_target(y, X)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have two classes or more; got one class, {self.classes_.tolist()}."
            )
        return code
