"""What estimators share that train stacked networks by plain gradient steps."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from nefele._checks import check_count, check_flag, check_name, check_number
from nefele._torch.base import Module, Tensor, tensor, threads, to_numpy, torch
from nefele._torch.network import Network
from nefele.data import LocalData
from nefele.estimators.design import Rows
from nefele.estimators.rows_base import RowsBase
from nefele.graph import Graph
from nefele.networks.rows import Source
from nefele.networks.stack import Stack
from nefele.networks.training import Training


@dataclass(eq=False, repr=False)
class PersonalBase(RowsBase, Network):
    """Rows, the training, and predictions by each row's own network."""

    _: KW_ONLY
    node: Any = None
    rounds: int = 60
    local_steps: int = 10
    optimizer: Any = "sgd"
    lr: float = 0.1
    batch_size: int | None = 20
    falling: bool = True
    weighting: str = "rows"

    def _training(self, rows: Rows, graph: Graph, rounds: int) -> Training:
        """Networks and batches of these rows at the start; inside a session."""
        data = _packed(rows, graph.ids)
        module = self._build(data.d)
        training = Training(
            Stack(module, self._outputs, self._row_loss()),
            Source(data, self._labels, self.dtype),
            self._share(rows, graph),
            lr=float(self.lr),
            batch_size=self.batch_size,
            rounds=rounds,
            local_steps=int(self.local_steps),
            falling=bool(self.falling),
        )
        module.train()
        return training

    def _take(self, training: Training, w: Tensor, graph: Graph) -> None:
        """Set the fitted attributes."""
        found = to_numpy(w)
        if not np.isfinite(found).all():
            raise ValueError(
                "Training diverged: parameters are NaN or inf. Lower lr or the strength of the "
                "method, or scale the features and the target."
            )
        self.graph_, self.nodes_ = graph, np.array(graph.ids)
        self.module_ = training.stack.module.eval()
        self.parameters_ = found.astype(self.dtype)
        self.gradients_ = training.taken
        self.traffic_ = training.moved / training.n_nodes

    def _share(self, rows: Rows, graph: Graph) -> Tensor:
        """Weight of each node in means over the nodes."""
        place = graph.positions(rows.node_ids)
        weight = np.bincount(place, rows.sample_weight, minlength=graph.n_nodes)
        return tensor(weight if self.weighting == "rows" else weight > 0, self.dtype)

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
        w = tensor(self.parameters_, self.dtype)
        with torch.no_grad(), threads(self.n_threads):
            return own_outputs(self._stack(), w, tensor(X, self.dtype), place)


def own_outputs(stack: Stack, w: Tensor, X: Tensor, place: NDArray[np.int64]) -> Tensor:
    """Outputs of the network of each row's node."""
    order = np.argsort(place, kind="stable")
    nodes, first = np.unique(place[order], return_index=True)
    parts = np.split(order, first[1:])
    found = [
        stack.forward(w[i], X[torch.from_numpy(own)]) for i, own in zip(nodes, parts, strict=True)
    ]
    out = torch.cat(found)
    return out[torch.from_numpy(np.argsort(order, kind="stable"))]


def _packed(rows: Rows, ids: NDArray[Any]) -> LocalData:
    weight = None if (rows.sample_weight == 1.0).all() else rows.sample_weight
    return LocalData.from_long(rows.X, rows.y, rows.node_ids, ids, sample_weight=weight)
