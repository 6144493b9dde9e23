"""Federated learning with a server as estimators: one network per node, any method."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from nefele._checks import Array, check_count, check_flag, check_name, check_number, type_name
from nefele._torch.base import Module, Tensor, tensor, threads, to_numpy, torch
from nefele._torch.network import Network
from nefele.data import LocalData
from nefele.estimators.design import Rows, graph_nodes
from nefele.estimators.rows_base import RowsBase, RowsClassifier, RowsRegressor
from nefele.networks.baselines.methods import FedAvg, Method
from nefele.networks.baselines.training import Training
from nefele.networks.rows import Source
from nefele.networks.stack import Stack
from nefele.runtime.messages import Ledger


@dataclass(eq=False, repr=False)
class PersonalBase(RowsBase, Network):
    """Fit by a method, and prediction by each row's own network."""

    graph = None  # there is a server in its place

    method: Any = None
    module: Any = None
    _: KW_ONLY
    node: Any = None
    rounds: int = 60
    local_steps: int = 10
    optimizer: Any = "sgd"
    lr: float = 0.1
    batch_size: int | None = 20
    falling: bool = True
    weighting: str = "rows"

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
        data = _packed(rows, graph.ids)
        with self._session():
            module = self._build(data.d)
            training = Training(
                Stack(module, self._outputs, self._row_loss()),
                Source(data, self._labels, self.dtype),
                self._share(rows, graph.positions(rows.node_ids)),
                lr=float(self.lr),
                batch_size=self.batch_size,
                rounds=int(self.rounds),
                local_steps=int(self.local_steps),
                falling=bool(self.falling),
            )
            training.stack.module.train()
            found = to_numpy(method.train(training))
        if not np.isfinite(found).all():
            raise ValueError(
                "Training diverged: parameters are NaN or inf. Lower lr or the strength of the "
                "method, or scale the features and the target."
            )
        self.graph_, self.nodes_ = graph, np.array(graph.ids)
        self.module_ = module.eval()
        self.parameters_ = found.astype(self.dtype)
        self.ledger_ = Ledger(rounds=int(self.rounds))
        self.ledger_.tally("parameters", 1, training.sent)
        self.gradients_ = training.taken
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

    def _share(self, rows: Rows, place: NDArray[np.int64]) -> Tensor:
        weight = np.bincount(place, rows.sample_weight)
        return tensor(weight if self.weighting == "rows" else np.ones(len(weight)), self.dtype)

    def _check_parameters(self) -> None:
        self._check_network()
        check_name(self.optimizer, ("sgd",), "optimizer")
        check_name(self.weighting, ("rows", "nodes"), "weighting")
        check_number(self.lr, "lr", low=0.0, strict=True)
        check_count(self.rounds, "rounds", low=1)
        check_count(self.local_steps, "local_steps", low=1)
        check_flag(self.falling, "falling")
        if self.batch_size is not None:
            check_count(self.batch_size, "batch_size", low=1)

    def network(self, node: Any) -> Module:
        """The network of the node with this id, a module of its own."""
        check_is_fitted(self, "parameters_")
        return self._stack().network(self.parameters_[self.graph_.position(node)])

    def _stack(self) -> Stack:
        return Stack(self.module_, self._outputs, self._row_loss())

    def _forward(self, X: Any, node_ids: Any) -> Tensor:
        """Outputs of each row's own network, shape (n_rows,) or (n_rows, n_classes)."""
        check_is_fitted(self, "parameters_")
        X, place = self._known_rows(X, node_ids, "a network")
        rows, w, stack = tensor(X, self.dtype), tensor(self.parameters_, self.dtype), self._stack()
        out: Tensor | None = None
        with torch.no_grad(), threads(self.n_threads):
            for i in np.unique(place):
                own = torch.tensor(np.flatnonzero(place == i))
                found = stack.forward(w[i], rows[own])
                out = found.new_empty((len(rows), *found.shape[1:])) if out is None else out
                out[own] = found
        assert out is not None
        return out


class PersonalRegressor(RowsRegressor, PersonalBase):
    """One regression network per node by a federated method with a server.

    Parameters
    ----------
    method : Method or None
        One of `nefele.networks.baselines`; None: `FedAvg(finetune=0.25)`.
    module, loss, batch_size, dtype, n_threads, random_state
        See `GTVNetRegressor`.
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

    Examples
    --------
    >>> from nefele.networks.baselines import Ditto
    >>> X = np.array([[0.0], [1.0], [2.0], [0.0], [1.0], [2.0]])
    >>> y = np.array([0.0, 1.0, 2.0, 1.0, 2.0, 3.0])
    >>> model = PersonalRegressor(Ditto(lam=0.1), lr=0.05, batch_size=None, random_state=0)
    >>> model.fit(X, y, node_ids=list("aaabbb")).score(X, y, node_ids=list("aaabbb")) > 0.9
    True
    """

    def predict(self, X: Any, *, node_ids: Any = None) -> Array:
        """Predictions of each row's own network, shape (n_rows,)."""
        return to_numpy(self._forward(X, node_ids))


@dataclass(eq=False, repr=False, kw_only=True)
class PersonalClassifier(RowsClassifier, PersonalBase):
    """One classification network per node by a federated method with a server.

    Parameters
    ----------
    method, module, node, rounds, local_steps, optimizer, lr, batch_size, falling, weighting, \
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
    >>> from nefele.networks.baselines import FedAvg
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [0.0], [1.0], [2.0], [3.0]])
    >>> y, ids = [0, 0, 1, 1, 0, 0, 0, 1], list("aaaabbbb")
    >>> model = PersonalClassifier(method=FedAvg(finetune=0.5), rounds=100, random_state=0)
    >>> model.fit(X, y, node_ids=ids).predict(np.array([[2.0], [2.0]]), node_ids=["a", "b"])
    array([1, 0])
    """

    _labels = True

    method: Any = None
    module: Any = None
    loss: Any = "cross_entropy"

    def predict_proba(self, X: Any, *, node_ids: Any = None) -> Array:
        """Probabilities of the classes by each row's own network, shape (n_rows, n_classes)."""
        return to_numpy(torch.softmax(self._forward(X, node_ids), dim=1))

    def predict(self, X: Any, *, node_ids: Any = None) -> Any:
        """The most likely class of each row by its own network, shape (n_rows,)."""
        return self.classes_[self._forward(X, node_ids).argmax(dim=1).numpy()]


def _packed(rows: Rows, ids: NDArray[Any]) -> LocalData:
    weight = None if (rows.sample_weight == 1.0).all() else rows.sample_weight
    return LocalData.from_long(rows.X, rows.y, rows.node_ids, ids, sample_weight=weight)
