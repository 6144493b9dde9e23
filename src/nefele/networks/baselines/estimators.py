"""Federated learning with a server as estimators: one network per node, any method."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.base import clone

from nefele._checks import Array, type_name
from nefele._torch.base import to_numpy, torch
from nefele.estimators.design import graph_nodes
from nefele.estimators.rows_base import RowsClassifier, RowsRegressor
from nefele.networks.baselines.methods import FedAvg, Method
from nefele.networks.personal import PersonalBase
from nefele.runtime.messages import Ledger


@dataclass(eq=False, repr=False)
class ByMethod(PersonalBase):
    """Fit by a method."""

    graph = None  # there is a server in its place

    _: KW_ONLY
    method: Any = None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> Any:
        """Fit one network per node.

        Parameters
        ----------
        X, y, sample_weight, node_ids
            See `GTVRegressor.fit`.
        """
        method = self._method()
        rows = self._take_rows(X, y, sample_weight, node_ids, reset=True)
        graph = graph_nodes(rows.node_ids)
        with self._session():
            training = self._training(rows, graph, int(self.rounds))
            self._take(training, method.train(training), graph)
        self.ledger_ = Ledger(rounds=int(self.rounds))
        self.ledger_.tally("parameters", 1, training.sent)
        return self

    def _method(self) -> Method:
        method = FedAvg(finetune=0.25) if self.method is None else self.method
        if not isinstance(method, Method):
            raise ValueError(
                "method must be one of nefele.networks.baselines, such as FedAvg(); got "
                f"{type_name(method)}."
            )
        method = clone(method)
        method.check()
        return method


class PersonalRegressor(RowsRegressor, ByMethod):
    """One regression network per node by a federated method with a server.

    Parameters
    ----------
    module, loss, batch_size, dtype, n_threads, random_state
        See `GTVNetRegressor`.
    method : Method or None
        One of `nefele.networks.baselines`; None: `FedAvg(finetune=0.25)`.
    node
        See `GTVRegressor`.
    rounds, local_steps : int
        Rounds with the server, and gradients per node in each: their product is the budget of
        every method.
    optimizer : "sgd"
        The papers' plain steps.
    lr : float
    falling : bool
        Whether the learning rate goes to 0 over the second half of the budget.
    weighting : {"rows", "nodes"}
        Weight of a node in the server's averages: its rows, or all alike.

    Attributes
    ----------
    nodes_ : array of shape (n_nodes,)
    parameters_ : array of shape (n_nodes, P)
    module_ : Module
        The architecture with the initial parameters; `network(id)` gives that of a node.
    ledger_ : nefele.runtime.Ledger
        What nodes and server would have sent, as float64.
    gradients_ : int
        Gradients per node.
    traffic_ : float
        Numbers that a node sends and receives, mean over the nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from nefele.networks.baselines import Ditto
    >>> X = np.array([[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]])
    >>> y = np.array([0.0, 1.0, 2.0, 1.0, 2.0, 3.0])
    >>> model = PersonalRegressor(method=Ditto(lam=0.1), lr=0.05, batch_size=None, random_state=0)
    >>> model.fit(X, y, node_ids=list("aaabbb")).score(X, y, node_ids=list("aaabbb")) > 0.9
    True
    """

    def predict(self, X: Any, *, node_ids: Any = None) -> Array:
        """Predictions of each row's own network, shape (n_rows,)."""
        return to_numpy(self._forward(X, node_ids))


@dataclass(eq=False, repr=False, kw_only=True)
class PersonalClassifier(RowsClassifier, ByMethod):
    """One classification network per node by a federated method with a server.

    Parameters
    ----------
    module, method, node, rounds, local_steps, optimizer, lr, batch_size, falling, weighting, \
dtype, n_threads, random_state
        See `PersonalRegressor`.
    loss : "cross_entropy" or callable
        See `GTVNetClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    nodes_, parameters_, module_, ledger_, gradients_
        See `PersonalRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from nefele.networks.baselines import FedAvg
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [0.0], [1.0], [2.0], [3.0]])
    >>> y, ids = [0, 0, 1, 1, 0, 0, 0, 1], list("aaaabbbb")
    >>> model = PersonalClassifier(method=FedAvg(finetune=0.5), rounds=100, random_state=0)
    >>> model.fit(X, y, node_ids=ids).predict(np.array([[2.0], [2.0]]), node_ids=["a", "b"])
    array([1, 0])
    """

    _labels = True

    loss: Any = "cross_entropy"

    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the classes by each row's own network, shape (n_rows, n_classes)."""
        return to_numpy(torch.softmax(self._forward(X, node_ids), dim=1))

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """The most likely class of each row by its own network, shape (n_rows,)."""
        return self.classes_[self._forward(X, node_ids).argmax(dim=1).numpy()]
