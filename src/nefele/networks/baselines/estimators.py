"""Federated learning with a server as estimators: one network per node, any method."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from nefele._checks import Array, type_name
from nefele._torch.base import DTYPES, SEEDS, session, to_numpy, torch
from nefele.estimators.design import graph_nodes
from nefele.estimators.packing import Rows
from nefele.estimators.rows_base import RowsClassifier, RowsRegressor
from nefele.graph import Graph
from nefele.networks.baselines.methods import FedAvg, Method
from nefele.networks.features import ArrayFeatures
from nefele.networks.personal import PersonalBase
from nefele.networks.rows import Source
from nefele.networks.stack import Stack
from nefele.networks.steps import Steps
from nefele.networks.taking import NetRows


@dataclass(eq=False, repr=False)
class ByMethod(PersonalBase):
    """Fit by a method."""

    graph = None  # there is a server in its place

    _: KW_ONLY
    method: Any = None

    def _make_graph(self, rows: Rows) -> Graph:
        return graph_nodes(rows.node_ids)

    def _trained(self, stack: Stack, source: Source, graph: Graph) -> Any:
        steps = self._steps(stack, source, int(self.rounds))
        return self._keep(steps, self._method().train(steps), graph)

    def _at_start(
        self, X: Array, y: Array, weight: Array, ids: Any, n_outputs: int
    ) -> tuple[Steps, Graph]:
        """Networks of these rows at the start, for graph builders; y holds class numbers."""
        self._check_parameters()
        if self._labels:
            self.classes_ = np.arange(n_outputs)
        graph = graph_nodes(ids)
        seed = int(check_random_state(self.random_state).randint(SEEDS))
        with session(seed, self.n_threads):
            source = self._held(X, y, weight, ids, graph)
            module = self._build_for(source.features)
        stack = Stack(module, self._outputs, self._row_loss(), self.form)
        stack.seed = source.seed = seed
        return self._steps(stack, source, int(self.rounds)), graph

    def _held(self, X: Array, y: Array, weight: Array, ids: Any, graph: Graph) -> Source:
        """Such rows by node."""
        rows = NetRows(ArrayFeatures(X, DTYPES[self.dtype]), np.arange(len(y)), y, ids, weight)
        return rows.source(graph, self._labels, self.dtype, 0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._method()

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
    module, loss, batch_size, form, dtype, n_threads, random_state
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
        """Predictions of each row's own network, shape (n_rows,).

        Parameters
        ----------
        X : table or array, or datasets
            As in `fit`; with datasets the rows go node by node, in the order of the dict.
        node_ids : array of shape (n_rows,), optional
            Node of each row, unless `node` names the column of a table.
        """
        return to_numpy(self._forward(X, node_ids))


@dataclass(eq=False, repr=False, kw_only=True)
class PersonalClassifier(RowsClassifier, ByMethod):
    """One classification network per node by a federated method with a server.

    Parameters
    ----------
    module, method, node, rounds, local_steps, optimizer, lr, batch_size, falling, weighting, \
form, dtype, n_threads, random_state
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
        return self.classes_[self._forward(X, node_ids).argmax(dim=1).numpy()]
