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
    Eq. (16)), w_i the parameters of the network of node i and L_i its mean loss: by Algorithm 1 of
    NFL, or by steps that are implicit in the coupling. All networks have the same architecture and
    the same initial parameters.

    There is no certificate: with hidden layers the problem is not convex, and `status_` is
    "uncertified". Without hidden layers it is the problem of `GTVRegressor`.

    Parameters
    ----------
    module : Module, callable or None
        The architecture, see `TorchRegressor`; a function is told the shape of a row that is not
        flat, such as (1, 28, 28). Running statistics of BatchNorm are personal.
    graph, node
        See `GTVRegressor`.
    alpha : float
        Strength of the coupling, the core's lam; 0 trains each network by itself.
    penalty : str or Penalty
        phi, see `GTVRegressor`.
    couple : {"all", "body", "head"}, list of str or callable
        Parameters that are coupled: all, all but the last layer, the last layer, those whose names
        begin so, or those for whose names it gives True. The others are personal.
    hub : float
        Share of a centre without data that is joined to all nodes, see `GTVRegressor`.
    method : {"auto", "algorithm1", "implicit"}
        "implicit" needs penalty="squared_l2" and suits every alpha; "auto" takes it there.
    loss : {"squared", "absolute"} or callable
        See `TorchRegressor`; a callable must work under `torch.func.vmap`.
    rounds : int
        Rounds; all are done, but for early stopping.
    prox_steps : int
        Steps of the optimiser in each round.
    optimizer : {"adam", "sgd"}
    lr : float
        Learning rate; in the second half of the rounds it falls to 0.
    batch_size : int or None
        Rows of each node in a step, without replacement until all have come; None: all.
    gamma : float or "auto"
        Step scale of Algorithm 1, tau_i = gamma / degree_i and sigma_e = 1 / (2 gamma); 1 is as
        printed. Larger values leave the local losses more say in each round. Implicit steps: of
        the metric I + gamma K. "auto": 1 without hidden layers, otherwise 10 / sqrt(alpha) and 10.
    form : {"auto", "loop", "stacked"}
        One node after the other, or all at once by `torch.func.vmap`; the same up to rounding.
    wire : {"float32", "float16", "float64"}
        Numbers that neighbours tell each other are rounded so.
    early_stop : int or None
        Stop after so many rounds without progress on held-out rows, and keep the best.
    validation : float
        Share of each node's rows that is held out for it.
    warm_start : bool
        Whether `fit` begins at the networks of the last one.
    checkpoint : path or None
        File that is written after every `checkpoint_every` rounds.
    checkpoint_every : int
    resume : bool
        Whether to go on from the checkpoint.
    verbose : bool or int
        Whether to show progress in one line, as `nefele.solve` does; k: after every k-th round.
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
    coupled_ : bool array of shape (P,)
    statistics_ : dict of name to array of shape (n_nodes, ...)
        Running statistics of BatchNorm.
    centre_ : array of shape (P,)
        With `hub` > 0.
    module_ : Module
        The architecture with the initial parameters; `network(id)` gives that of a node.
    flow_ : array of shape (n_edges, coupled parameters)
        Dual variables of Algorithm 1; zero for implicit steps.
    graph_ : Graph
    history_ : list of nefele.networks.rounds.NetRound
        Objective, sum of the losses, spread of the parameters, seconds, bytes and held-out loss of
        each round.
    objective_ : float
    status_ : str
        "uncertified", "stopped" early or "interrupted".
    rounds_, best_round_ : int
        Rounds done, and the one whose networks are kept.
    ledger_ : nefele.runtime.Ledger
        What the sites would have sent.
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
        X : table or array, or datasets
            As in `fit`; with datasets the rows go node by node, in the order of the dict.
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
    graph, node, alpha, penalty, couple, hub, method, rounds, prox_steps, optimizer, lr, \
batch_size, gamma, form, wire, early_stop, validation, warm_start, checkpoint, checkpoint_every, \
resume, verbose, dtype, n_threads, random_state
        See `GTVNetRegressor`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    nodes_, parameters_, coupled_, statistics_, centre_, module_, flow_, graph_, history_, \
objective_, status_, rounds_, best_round_, ledger_, n_features_in_, feature_names_in_
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
        """Probabilities of the classes by each row's own network, shape (n_rows, n_classes).

        Parameters
        ----------
        X : table or array, or datasets
            As in `fit`; with datasets the rows go node by node, in the order of the dict.
        node_ids : array of shape (n_rows,), optional
            Node of each row, unless `node` names the column of a table.
        """
        return to_numpy(torch.softmax(self._forward(X, node_ids).double(), dim=1))

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """The most likely class of each row by its own network, shape (n_rows,).

        Parameters
        ----------
        X : table or array, or datasets
            As in `fit`; with datasets the rows go node by node, in the order of the dict.
        node_ids : array of shape (n_rows,), optional
            Node of each row, unless `node` names the column of a table.
        """
        best = self._forward(X, node_ids).argmax(dim=1).numpy()
        return self.classes_[best]

    def _check_target(self, y: Any, X: Array) -> Array:
        code = super()._check_target(y, X)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must have two classes or more; got one class, {self.classes_.tolist()}."
            )
        return code
