"""What the networks of regression and of classification share: rows, checks, the fit."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from nefele._checks import check_count, check_flag, check_name, check_number
from nefele._ids import describe
from nefele._progress import check_verbose
from nefele._torch.base import SEEDS, Module, Tensor, session, threads, torch
from nefele._torch.network import Network
from nefele.estimators.layout import with_centre
from nefele.graph import Graph
from nefele.networks.algorithm1 import Algorithm1
from nefele.networks.checkpoints import open_checkpoint
from nefele.networks.coupling import Columns
from nefele.networks.implicit import LARGEST, Implicit
from nefele.networks.rounds import WIRES, Rounds, Task, auto_gamma
from nefele.networks.rows import Source
from nefele.networks.saving import load_networks, save_networks
from nefele.networks.stack import FORMS, Stack
from nefele.networks.taking import ShapedRows
from nefele.networks.training import Training
from nefele.penalties import Penalty, SquaredL2, as_penalty
from nefele.result import ConvergenceWarning, DataWarning, Status
from nefele.runtime.messages import Ledger

METHODS = ("algorithm1", "auto", "implicit")


@dataclass(eq=False, repr=False)
class NetworksBase(ShapedRows, Network):
    """One network per node: rows of any shape, fitted attributes, predictions, files.

    A subclass gives `_trained`, which trains a stack on a source and a graph.
    """

    _: KW_ONLY
    node: Any = None
    form: str = "auto"

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, node_ids: Any = None
    ) -> Self:
        """Fit one network per node of the graph.

        Parameters
        ----------
        X : table or array of shape (n_rows, d), array of shape (n_rows, ...), or datasets
            Images (n_rows, C, H, W), sequences (n_rows, T, d), tokens (n_rows, T); or one dataset
            of torch per node, whose items are pairs (features, target), as a dict by node id or
            as a list in the order of the nodes 0, 1, ...
        y : array of shape (n_rows,)
            None with datasets.
        sample_weight : array of shape (n_rows,), optional
        node_ids : array of shape (n_rows,), optional
            Node of each row, unless `node` names the column of a table.
        """
        rows = self._net_rows(X, y, sample_weight, node_ids)
        seed = int(check_random_state(self.random_state).randint(SEEDS))
        graph = self._make_graph(rows.flat())
        with session(seed, self.n_threads):
            module = self._build_for(rows.features)
            stack = Stack(module, self._outputs, self._row_loss(), self.form)
            stack.seed, stack.ids = seed, graph.ids.tolist()
            source = rows.source(graph, self._labels, self.dtype, seed)
            self._shape = rows.features.shape
            return self._trained(stack, source, graph)

    def _trained(self, stack: Stack, source: Source, graph: Graph) -> Any:
        raise NotImplementedError

    def _keep_networks(self, stack: Stack, w: Tensor, graph: Graph) -> None:
        """Set the fitted attributes that all methods share."""
        n = graph.n_nodes
        self.graph_, self.nodes_ = graph, np.array(graph.ids)
        self.module_ = stack.module.eval()
        self.parameters_ = w[:n].detach().numpy().copy()
        self.statistics_ = {k: v[:n].numpy().copy() for k, v in stack.statistics.items()}

    def _check_form(self) -> None:
        self._check_network()
        check_name(self.form, FORMS, "form")
        check_number(self.lr, "lr", low=0.0, strict=True)
        if self.batch_size is not None:
            check_count(self.batch_size, "batch_size", low=1)

    # -- prediction ---------------------------------------------------------------------------

    def network(self, node: Any) -> Module:
        """The network of the node with this id, a module of its own.

        Parameters
        ----------
        node : node id
        """
        check_is_fitted(self, "parameters_")
        i = self.graph_.position(node)
        own = {name: rows[i] for name, rows in self.statistics_.items()}
        return self._stack().network(self.parameters_[i], own)

    def save(self, path: Any) -> None:
        """Write the fitted networks to one file of plain arrays and JSON, without the code.

        Parameters that are neither text, numbers nor None are left out; `load` needs the module.

        Parameters
        ----------
        path : str or Path
        """
        check_is_fitted(self, "parameters_")
        save_networks(self, path)

    @classmethod
    def load(cls, path: Any, module: Any = None) -> Any:
        """The networks of a file that `save` wrote; nothing in it is executed.

        Parameters
        ----------
        path : str or Path
        module : Module or callable
            The architecture that was fitted; its parameters do not matter. `Layers`, such as those
            of sites, are in the file.
        """
        return load_networks(cls, path, module)

    def _stack(self) -> Stack:
        return Stack(self.module_, self._outputs, self._row_loss(), self.form)

    def _forward(self, X: Any, node_ids: Any) -> Tensor:
        """Outputs of each row's own network, shape (n_rows,) or (n_rows, n_classes)."""
        check_is_fitted(self, "parameters_")
        features, place = self._rows_of(X, node_ids)
        stack = self._stack()
        stack.statistics = {k: torch.from_numpy(v) for k, v in self.statistics_.items()}
        stack.module.eval()
        w = torch.from_numpy(self.parameters_)
        out: Tensor | None = None
        with torch.no_grad(), threads(self.n_threads):
            for i in np.unique(place).tolist():
                own = np.flatnonzero(place == i)
                network = stack.at(i, w[i])
                for first in range(0, len(own), 1024):
                    at = own[first : first + 1024]
                    found = self._outputs(network(features.take(at)))
                    out = found.new_empty((len(place), *found.shape[1:])) if out is None else out
                    out[torch.from_numpy(at)] = found
        return torch.zeros(0) if out is None else out


@dataclass(eq=False, repr=False)
class NetBase(NetworksBase):
    """Networks coupled over a graph; a subclass gives the target, the loss and `predict`."""

    _: KW_ONLY
    graph: Any = None
    alpha: float = 1.0
    penalty: Any = "squared_l2"
    couple: Any = "all"
    hub: float = 0.0
    method: str = "auto"
    rounds: int = 200
    prox_steps: int = 5
    gamma: Any = "auto"
    wire: str = "float32"
    early_stop: int | None = None
    validation: float = 0.1
    warm_start: bool = False
    checkpoint: Any = None
    checkpoint_every: int = 10
    resume: bool = False
    verbose: bool | int = False

    # -- fit ----------------------------------------------------------------------------------

    def _trained(self, stack: Stack, source: Source, graph: Graph) -> Any:
        held = None
        if self.early_stop is not None:
            source, held = source.held_out(float(self.validation))
        task = self._task(stack, source, graph)
        method = self._rounds(task)
        self._go_on(method, graph)
        self._warn_of_idle(task, graph)
        file = open_checkpoint(
            self.checkpoint, self.checkpoint_every, self.resume, method, self._options()
        )
        training = Training(method, held, self.early_stop, self.verbose, file)
        training.run()
        return self._keep(training, graph)

    def _task(self, stack: Stack, source: Source, graph: Graph) -> Task:
        whole = with_centre(graph, float(self.hub))
        if whole.n_nodes > graph.n_nodes:  # the centre has no rows
            source = _with_empty(source)
        penalty, alpha = as_penalty(self.penalty), float(self.alpha)
        implicit = self._is_implicit(penalty, int((source.counts > 0).sum()))
        return Task(
            stack,
            source,
            whole,
            penalty,
            alpha,
            auto_gamma(self.gamma, stack, alpha, implicit),
            Columns.of(self.couple, stack),
            self.optimizer,
            float(self.lr),
            int(self.rounds),
            int(self.prox_steps),
            self.batch_size,
            self.wire,
            np.arange(whole.n_nodes),
        )

    def _rounds(self, task: Task) -> Rounds:
        """The method: a subclass may have another one."""
        implicit = self._is_implicit(task.penalty, int(task.labelled.sum()))
        return Implicit(task) if implicit else Algorithm1(task)

    def _is_implicit(self, penalty: Penalty, n_labelled: int) -> bool:
        squared = type(penalty) is SquaredL2
        if self.method == "implicit" and not squared:
            raise ValueError(
                f'method="implicit" needs penalty="squared_l2"; got {penalty}. Use method="auto".'
            )
        few = n_labelled <= LARGEST
        return self.method == "implicit" or (self.method == "auto" and squared and few)

    def _go_on(self, method: Rounds, graph: Graph) -> None:
        """With warm_start, begin at the networks of the last fit."""
        if not (self.warm_start and hasattr(self, "parameters_")):
            return
        P = method.w.shape[1]
        if self.parameters_.shape != (graph.n_nodes, P) or not np.array_equal(
            self.nodes_, graph.ids
        ):
            raise ValueError(
                "warm_start needs the nodes and the network of the last fit; got shape "
                f"{(graph.n_nodes, P)} after {self.parameters_.shape}. Use warm_start=False."
            )
        n = graph.n_nodes
        method.w[:n] = torch.from_numpy(self.parameters_)
        if len(method.w) > n:
            method.w[n:] = method.w[:n].mean(dim=0)
        for name, rows in self.statistics_.items():
            method.stack.statistics[name][:n] = torch.from_numpy(rows)

    def _keep(self, training: Training, graph: Graph) -> Any:
        """Set the fitted attributes."""
        method, n = training.rounds, graph.n_nodes
        self._keep_networks(method.stack, method.w, graph)
        if len(method.w) > n:
            self.centre_ = method.w[n].numpy().copy()
        self.coupled_ = method.task.columns.on
        self.flow_ = method.flow
        self.history_, self.status_ = training.history, str(training.status)
        self.rounds_ = len(self.history_)
        self.best_round_ = training.best_round or self.rounds_
        self.objective_ = self.history_[self.best_round_ - 1].objective
        self.ledger_ = Ledger(rounds=self.rounds_)
        count = method.task.columns.count
        size = WIRES[method.task.wire]
        self.ledger_.tally("parameters", method.messages * self.rounds_, count, size)
        if training.status is Status.INTERRUPTED:
            warnings.warn(
                f"Stopped by Ctrl-C after round {self.rounds_} of {method.task.rounds}; the "
                "networks are those of this round.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return self

    def _warn_of_idle(self, task: Task, graph: Graph) -> None:
        whole, n = task.graph, graph.n_nodes
        parts = whole.components if task.coupled else np.arange(whole.n_nodes)
        lost = ~np.isin(parts, parts[task.labelled])[:n]
        if lost.any():
            warnings.warn(
                f"{int(lost.sum())} nodes are not connected to any data, such as "
                f"{describe(graph.ids[lost])}: they keep the initial parameters. Add edges or "
                "data, or drop them.",
                DataWarning,
                stacklevel=5,
            )

    def _options(self) -> dict[str, Any]:
        """Parameters that decide the rounds and are neither rows, graph nor network."""
        names = (
            "alpha",
            "gamma",
            "rounds",
            "prox_steps",
            "batch_size",
            "lr",
            "optimizer",
            "hub",
            "wire",
            "early_stop",
            "validation",
            "dtype",
            "form",
            "loss",
        )
        return {name: getattr(self, name) for name in names}

    def _check_parameters(self) -> None:
        check_number(self.alpha, "alpha", low=0.0, advice="Use alpha=0 for local fits.")
        as_penalty(self.penalty)
        self._check_form()
        if self.gamma != "auto":
            check_number(self.gamma, "gamma", low=0.0, strict=True, advice='Or use "auto".')
        check_name(self.optimizer, ("adam", "sgd"), "optimizer")
        check_name(self.method, METHODS, "method")
        check_name(self.wire, WIRES, "wire")
        check_count(self.rounds, "rounds", low=1)
        check_count(self.prox_steps, "prox_steps", low=1)
        check_verbose(self.verbose)
        check_flag(self.warm_start, "warm_start")
        check_flag(self.resume, "resume")
        if not 0 <= check_number(self.hub, "hub", low=0.0) <= 1:
            raise ValueError(f"hub must be a share, from 0 to 1; got {self.hub}.")
        if self.early_stop is not None:
            check_count(self.early_stop, "early_stop", low=1)
            if not 0 < check_number(self.validation, "validation", low=0.0) < 1:
                raise ValueError(
                    f"validation must be a share between 0 and 1; got {self.validation}."
                )


def _with_empty(source: Source) -> Source:
    """The source with one more node that has no rows."""
    return Source(
        source.features,
        source.places,
        np.append(source.ptr, source.ptr[-1]),
        source.target,
        source.weight,
        source.dtype,
        source.seed,
        np.append(source.keys, source.keys.max(initial=-1) + 1),
    )
