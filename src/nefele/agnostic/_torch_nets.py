"""What the networks of regression and of classification share: checks, the fit, predictions."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nefele._checks import check_count, check_name, check_number
from nefele._ids import describe
from nefele.agnostic._torch_base import Module, Network, Tensor, tensor, threads, torch
from nefele.agnostic._torch_rounds import Rounds
from nefele.agnostic._torch_stack import Source, Stack
from nefele.data import LocalData
from nefele.estimators.design import Rows
from nefele.estimators.nodes import row_places
from nefele.estimators.rows_base import RowsBase
from nefele.graph import Graph
from nefele.penalties import as_penalty
from nefele.result import DataWarning, Status
from nefele.runtime.messages import Ledger


@dataclass(eq=False, repr=False)
class NetBase(RowsBase, Network):
    """Fit and choice of networks; a subclass gives the target, the loss and `predict`."""

    _: KW_ONLY
    graph: Any = None
    node: Any = None
    alpha: float = 1.0
    penalty: Any = "l2"
    rounds: int = 200
    prox_steps: int = 5
    gamma: float = 1.0

    # -- fit ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, node_ids: Any = None) -> Self:
        """Fit one network per node of the graph.

        Parameters
        ----------
        X, y, sample_weight, node_ids
            See `GTVRegressor.fit`.
        """
        rows = self._take_rows(X, y, sample_weight, node_ids, reset=True)
        graph = self._make_graph(rows)
        data = _packed(rows, graph)
        with self._session():
            module = self._build(data.d)
            run = Rounds(
                Stack(module, self._outputs, self._row_loss()),
                Source(data, self._labels, self.dtype),
                data.labelled,
                graph,
                as_penalty(self.penalty),
                float(self.alpha),
                float(self.gamma),
                self.optimizer,
                float(self.lr),
                int(self.prox_steps),
                self.batch_size,
            )
            self._warn_of_idle(graph, data, run.coupled)
            history = run.run(int(self.rounds))
        return self._keep(run, module, history)

    def _keep(self, run: Rounds, module: Module, history: list[Any]) -> Any:
        """Set the fitted attributes."""
        graph, rounds = run.graph, len(history)
        self.graph_, self.nodes_ = graph, np.array(graph.ids)
        self.module_ = module.eval()
        self.parameters_ = run.w.detach().numpy().copy()
        self.flow_ = run.u
        self.history_ = history
        self.objective_ = history[-1].objective
        self.rounds_ = rounds
        self.status_ = str(Status.UNCERTIFIED)
        self.ledger_ = Ledger(rounds=rounds)
        messages = 2 * graph.n_edges * rounds if run.coupled else 0  # 2 w+ - w to each neighbour
        self.ledger_.tally("parameters", messages, run.stack.n_parameters)
        return self

    def _warn_of_idle(self, graph: Graph, data: LocalData, coupled: bool) -> None:
        parts = graph.components if coupled else np.arange(graph.n_nodes)
        lost = ~np.isin(parts, parts[data.labelled])
        if lost.any():
            warnings.warn(
                f"{int(lost.sum())} nodes are not connected to any data, such as "
                f"{describe(graph.ids[lost])}: they keep the initial parameters. Add edges or "
                "data, or drop them.",
                DataWarning,
                stacklevel=4,
            )

    def _check_parameters(self) -> None:
        check_number(self.alpha, "alpha", low=0.0, advice="Use alpha=0 for local fits.")
        as_penalty(self.penalty)
        self._check_network()
        check_number(self.gamma, "gamma", low=0.0, strict=True)
        check_number(self.lr, "lr", low=0.0, strict=True)
        check_name(self.optimizer, ("adam", "sgd"), "optimizer")
        check_count(self.rounds, "rounds", low=1)
        check_count(self.prox_steps, "prox_steps", low=1)
        if self.batch_size is not None:
            check_count(self.batch_size, "batch_size", low=1)

    # -- prediction ---------------------------------------------------------------------------

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
        nodes, row, counts = np.unique(place, return_inverse=True, return_counts=True)
        order = np.argsort(row, kind="stable")
        column = np.empty(len(row), dtype=np.int64)
        column[order] = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        padded = np.zeros((len(nodes), counts.max(), X.shape[1]))
        padded[row, column] = X
        w = tensor(self.parameters_[nodes], self.dtype)
        with torch.no_grad(), threads(self.n_threads):
            out = self._stack().forward_all(w, tensor(padded, self.dtype))
        return out[torch.tensor(row), torch.tensor(column)]


def _packed(rows: Rows, graph: Graph) -> LocalData:
    """The rows node by node, in the order of the graph."""
    row_places(graph, rows.node_ids)  # all must be there
    weight = None if (rows.sample_weight == 1.0).all() else rows.sample_weight
    return LocalData.from_long(rows.X, rows.y, rows.node_ids, graph.ids, sample_weight=weight)
