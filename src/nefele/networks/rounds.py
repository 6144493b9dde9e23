"""The state of a method on stacked networks, and its rounds; a method gives one round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._torch.base import Tensor, torch
from nefele.graph import Graph
from nefele.networks.coupling import Columns, Edges
from nefele.networks.rows import CHUNK, Source
from nefele.networks.stack import Stack
from nefele.penalties import Penalty

# Adam keeps little momentum, since the flow turns between rounds, and forgets no large gradient:
# with its usual (0.9, 0.999) linear networks ended up to 18% above the optimum, or burst after
# they had reached it. With these numbers and the falling lr all runs came within 3e-5 of it.
BETAS = (0.5, 0.999)
Change = Callable[[int, Tensor], None]
WIRES = {"float64": 8, "float32": 4, "float16": 2}  # bytes of a number


class NetRound(NamedTuple):
    """One round of networks.

    Attributes
    ----------
    round : int
    objective : float
        sum_i L_i(w_i) + alpha sum_e A_e phi(w_i - w_j), without dropout.
    loss : float
        sum_i L_i(w_i). With batches the mean over those of the round, as they were met; exact in
        the last round.
    spread : float
        Root mean square distance of the nodes' parameters from their mean.
    seconds : float
        Since the start.
    bytes : int
        What the sites would have sent in this round.
    held_out : float
        Mean over the nodes of the loss on the rows that were kept for early stopping, or NaN.

    Examples
    --------
    >>> NetRound(1, objective=2.5, loss=2.0, spread=0.1, seconds=0.0, bytes=800).loss
    2.0
    """

    round: int
    objective: float
    loss: float
    spread: float
    seconds: float
    bytes: int
    held_out: float = np.nan


def auto_gamma(gamma: float | str, stack: Stack, alpha: float, implicit: bool) -> float:
    """The step scale: as given, or what suits a network.

    One layer is a convex problem: 1, as printed. With hidden layers losses bend far less in most
    directions, and longer steps get to lower objectives in the same rounds: on networks of
    handwritten digits, alpha from 0.003 to 3, about 10 / sqrt(alpha) for Algorithm 1 and 10 for
    implicit steps.
    """
    if not isinstance(gamma, str):
        return float(gamma)
    layers = {name.rpartition(".")[0] for name in stack.names}
    if len(layers) == 1 or alpha == 0:
        return 1.0
    return 10.0 if implicit else float(np.clip(10.0 / np.sqrt(alpha), 1.0, 1000.0))


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be trained, and how.

    Attributes
    ----------
    stack : Stack
    source : Source
        Rows of the own nodes.
    graph : Graph
        With the centre where there is one; sites see their own nodes and the neighbours.
    penalty : Penalty
    alpha, gamma, lr : float
    columns : Columns
        Parameters that are coupled.
    optimizer : str
    rounds, steps : int
        Rounds, and steps of the optimiser in each.
    batch_size : int or None
    wire : str
        The kind of numbers that neighbours tell each other.
    own : int array of shape (n_own,)
        Positions of the own nodes in `graph`.
    """

    stack: Stack
    source: Source
    graph: Graph
    penalty: Penalty
    alpha: float
    gamma: float
    columns: Columns
    optimizer: str
    lr: float
    rounds: int
    steps: int
    batch_size: int | None
    wire: str
    own: NDArray[np.int64]

    @property
    def coupled(self) -> bool:
        """Whether there is anything to tell neighbours."""
        return self.alpha > 0 and self.graph.n_edges > 0 and self.columns.count > 0

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Own nodes that have rows."""
        return self.source.counts > 0


def _optimizer(task: Task, part: Tensor) -> Any:
    if task.optimizer == "sgd":
        return torch.optim.SGD([part], lr=task.lr)
    return torch.optim.Adam([part], lr=task.lr, betas=BETAS, amsgrad=True, fused=True)


class Rounds:
    """Parameters w of shape (n_own, P) and the optimiser; a subclass gives `round`.

    By itself it trains each network alone. `alone` says whether nodes hear of each other between
    rounds only.
    """

    alone = True

    def __init__(self, task: Task) -> None:
        self.task, self.stack, self.source = task, task.stack, task.source
        self.w: Tensor = task.stack.start(len(task.own))
        # One tensor per node where nodes are worked on one by one: the same numbers for a node
        # whoever else is there, and its rows are still in the cache.
        rows = list(self.w) if task.stack.form == "loop" else [self.w]
        self.parts = [torch.nn.Parameter(row) for row in rows]
        self.optimizers: list[Any] = [_optimizer(task, part) for part in self.parts]
        self._taken: Tensor | None = None
        scale = task.alpha * task.graph.weight
        self.edges = Edges(task.graph, task.penalty, scale, task.own)

    # -- for the subclasses -------------------------------------------------------------------

    def round(self, k: int) -> Tensor:
        """Round k, from 1; the losses of the own nodes as they were met, shape (n_own,)."""
        return self.steps()

    @property
    def messages(self) -> int:
        """Messages of one round between the sites, each of all coupled parameters."""
        return 0

    def extra(self) -> dict[str, Tensor]:
        """What a round goes on from beside w, the optimiser and the statistics; by name."""
        return {}

    @property
    def flow(self) -> Array:
        """Flows of the edges, shape (n_edges, coupled parameters); zero where there are none."""
        return np.zeros((self.task.graph.n_edges, self.task.columns.count))

    # -- one step -------------------------------------------------------------------------------

    def steps(self, change: Change | None = None) -> Tensor:
        """All steps of a round; the losses as they were met, shape (n_own,).

        `change` is given each node and its gradient, to add what else pulls at it.
        """
        if self.alone and self.stack.form == "loop" and self.task.batch_size is not None:
            return self._node_by_node(self.task.batch_size, change)
        losses = torch.zeros(len(self.w), dtype=self.stack.dtype)
        for _ in range(self.task.steps):
            gradient, found = self.gradient()
            if change is not None:
                for i, row in enumerate(gradient):
                    change(i, row)
            self.move(gradient)
            losses += found / self.task.steps
        return losses

    def _node_by_node(self, size: int, change: Change | None) -> Tensor:
        """All steps of a node before those of the next: its numbers stay in the cache."""
        stack, count, before = self.stack, self.task.steps, self.stack.step
        losses = torch.zeros(len(self.w), dtype=stack.dtype)
        row = torch.empty_like(self.w[0]) if self._taken is None else self._taken
        self._taken = row
        batches = [self.source.batch(size) for _ in range(count)]
        for turns in zip(*(batch.each() for batch in batches), strict=True):
            i = turns[0][0]
            worker = stack.at(i, self.w[i])
            for k, (_, *rows) in enumerate(turns, 1):
                stack.step = before + k
                losses[i] += stack.gradient_of(worker, i, rows, row) / count
                if change is not None:
                    change(i, row)
                self.parts[i].grad = row
                self.optimizers[i].step()
        stack.step = before + count
        return losses

    def gradient(self, w: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Gradients and losses on the next batch, or on all rows."""
        at = self.w if w is None else w
        self.stack.step += 1
        if self.task.batch_size is not None:
            return self.stack.with_losses(
                at, self.source.batch(self.task.batch_size), self._all(at)
            )
        if int(self.source.counts.max(initial=0)) <= CHUNK:
            for batch in self.source.chunks():
                return self.stack.with_losses(at, batch, self._all(at))
        gradient, losses = torch.zeros_like(at), torch.zeros(len(at), dtype=self.stack.dtype)
        for batch in self.source.chunks():
            part, found = self.stack.with_losses(at, batch)
            gradient += part
            losses += found
        return gradient, losses

    def _all(self, w: Tensor) -> Tensor | None:
        """Memory for the gradients of all nodes, the same in each step."""
        if self.stack.form == "loop" and (self._taken is None or self._taken.shape != w.shape):
            self._taken = torch.empty_like(w)
        return self._taken

    def move(self, gradient: Tensor) -> None:
        """One step of the optimiser."""
        rows = list(gradient) if len(self.parts) != 1 or self.stack.form == "loop" else [gradient]
        for part, row, optimizer in zip(self.parts, rows, self.optimizers, strict=True):
            part.grad = row
            optimizer.step()

    def set_rate(self, k: int) -> None:
        """The learning rate of round k: lr, falling to 0 over the second half of the rounds.

        The errors of the primal updates must have a finite sum (NFL, Sec. IV).
        """
        rate = self.task.lr * min(1.0, 2 * (1 - (k - 1) / self.task.rounds))
        for optimizer in self.optimizers:
            optimizer.param_groups[0]["lr"] = rate

    # -- what came of it --------------------------------------------------------------------------

    @property
    def bytes(self) -> int:
        """Bytes of one round between the sites."""
        return self.messages * self.task.columns.count * WIRES[self.task.wire]

    def losses_on(self, source: Source) -> Array:
        """L_i(w_i) on all rows of a source, shape (n_own,); nothing is trained."""
        training = self.stack.module.training
        self.stack.module.eval()
        total = torch.zeros(len(self.w), dtype=torch.float64)
        for batch in source.chunks():
            total += self.stack.losses(self.w, batch)
        self.stack.module.train(training)
        return total.numpy()

    def coupling(self) -> float:
        """The sum alpha sum_e A_e phi(w_i - w_j), where all nodes are own ones."""
        return self.edges.value(self.task.columns.take(self.w)) if self.task.coupled else 0.0

    def spread(self) -> float:
        """Root mean square distance of the parameters from their mean."""
        mean, total = self.w.mean(dim=0), 0.0
        for row in self.w:
            total += float(((row - mean) ** 2).sum(dtype=torch.float64))
        return float(np.sqrt(total / len(self.w)))

    # -- checkpoints ------------------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """All tensors that the next round depends on, by name."""
        found = {"w": self.w, **{f"extra.{k}": v for k, v in self.extra().items()}}
        found |= {f"statistics.{k}": v for k, v in self.stack.statistics.items()}
        memory = [o.state[p] for o, p in zip(self.optimizers, self.parts, strict=True)]
        known: dict[str, Tensor] = next(
            (one for one in memory if one), {}
        )  # nodes without rows may have none
        for name, value in known.items():
            zero = torch.zeros_like(value)
            found[f"optimizer.{name}"] = torch.stack([one.get(name, zero) for one in memory])
        return found

    def restore(self, found: dict[str, Tensor]) -> None:
        """Go on from where `state` was taken."""
        self.w.copy_(found["w"])
        for name, value in self.extra().items():
            value.copy_(found[f"extra.{name}"])
        for name, value in self.stack.statistics.items():
            value.copy_(found[f"statistics.{name}"])
        names = [name for name in found if name.startswith("optimizer.")]
        for i, (optimizer, part) in enumerate(zip(self.optimizers, self.parts, strict=True)):
            optimizer.state[part] = {
                name.removeprefix("optimizer."): found[name][i].clone() for name in names
            }
