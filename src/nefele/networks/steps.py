"""Plain gradient steps on stacked networks: what all methods of the comparison train with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nefele._torch.base import Tensor, torch
from nefele.networks.rows import Batch, Source
from nefele.networks.stack import Stack

Pull = Callable[[Tensor], Tensor]


class Mark(NamedTuple):
    """A point of a training: gradients taken, numbers sent, batches drawn, running statistics."""

    taken: int
    sent: int
    moved: int
    drawn: int
    statistics: dict[str, Tensor]


class Steps:
    """Networks, batches, and a budget of gradients per node; every gradient sees a new batch.

    The learning rate is `lr`, with `falling` it goes to 0 over the second half of the budget. With
    one seed all methods see the same batches, as the k-th gradient of a node is of its k-th batch.

    Attributes
    ----------
    share : Tensor of shape (n_nodes, 1)
        Weights of the nodes in averages; they sum to 1.
    taken : int
        Gradients per node so far.
    sent : int
        Numbers that all nodes and the server have sent so far.
    moved : int
        Numbers that nodes have sent or received so far.
    """

    def __init__(
        self,
        stack: Stack,
        source: Source,
        share: Tensor,
        *,
        lr: float,
        batch_size: int | None,
        rounds: int,
        local_steps: int,
        falling: bool = True,
    ) -> None:
        self.stack, self.source = stack, source
        self.lr, self.rounds, self.local_steps, self.falling = lr, rounds, local_steps, falling
        self.share = (share / share.sum())[:, None]
        self.n_nodes, self.n_parameters = len(share), stack.n_parameters
        self.budget = rounds * local_steps
        self.taken = self.sent = self.moved = 0
        self.size = int(source.counts.max(initial=1)) if batch_size is None else batch_size

    def start(self) -> Tensor:
        """The same parameters at all nodes, shape (n_nodes, P)."""
        self.stack.module.train()
        return self.stack.start(self.n_nodes)

    @property
    def rate(self) -> float:
        """The learning rate now."""
        left = 1.0 - self.taken / self.budget
        return self.lr * min(1.0, 2 * left) if self.falling else self.lr

    def batch(self) -> Batch:
        """The next rows of each node."""
        return self.source.batch(self.size)

    def gradient(self, w: Tensor, batch: Batch | None = None) -> Tensor:
        """Gradients of the nodes' losses at new rows or at these, shape (n_nodes, P)."""
        self.taken += 1
        self.stack.step = self.taken  # dropout
        return self.stack.gradients(w, self.batch() if batch is None else batch)

    def time(self, steps: int) -> float:
        """Sum of the learning rates of so many steps from here."""
        last = min(self.taken + steps, self.budget)
        left = 1.0 - np.arange(self.taken, last) / self.budget
        return self.lr * float(np.minimum(1.0, 2 * left).sum() if self.falling else len(left))

    def mark(self) -> Mark:
        """Where training is, for `go_back`: the batches that follow are the same then."""
        kept = {name: rows.clone() for name, rows in self.stack.statistics.items()}
        return Mark(self.taken, self.sent, self.moved, self.source.drawn, kept)

    def go_back(self, mark: Mark) -> None:
        """To a mark."""
        self.taken, self.sent, self.moved = mark.taken, mark.sent, mark.moved
        self.source.drawn = mark.drawn
        self.stack.statistics = {name: rows.clone() for name, rows in mark.statistics.items()}

    def descend(
        self, w: Tensor, steps: int, pull: Pull | None = None, only: Tensor | None = None
    ) -> Tensor:
        """So many steps w - rate * (gradient + pull(w)), of the parameters `only` if given."""
        for _ in range(steps):
            rate = self.rate
            move = self.gradient(w)
            if pull is not None:
                move = move + pull(w)
            w = w.add(move if only is None else only * move, alpha=-rate)
        return w

    def mean(self, w: Tensor) -> Tensor:
        """The weighted mean over the nodes, at all nodes: the server's step. Counts what is sent.

        Every node sends its row, the server sends the mean to each.
        """
        self.by_server(w.shape[1])
        return (self.share * w).sum(dim=0, keepdim=True).expand_as(w)

    def by_server(self, size: int) -> None:
        """Count that every node sent so many numbers to the server and got as many back."""
        self.sent += 2 * self.n_nodes * size
        self.moved += 2 * self.n_nodes * size

    def by_edges(self, n_edges: int, size: int) -> None:
        """Count that so many numbers went over each edge in both directions."""
        self.sent += 2 * n_edges * size
        self.moved += 4 * n_edges * size

    def finetune(self, w: Tensor) -> Tensor:
        """Steps of each node by itself until the budget is used."""
        return self.descend(w, self.budget - self.taken)

    @property
    def n_intercepts(self) -> int:
        """Biases of the last layer, which are the last parameters; 0 if it has none."""
        name = self.stack.names[-1]
        return self.stack.sizes[-1] if name.rpartition(".")[2] == "bias" else 0

    def head(self) -> Tensor:
        """1 for the parameters of the last layer, 0 for the body, shape (P,)."""
        owner = [name.rpartition(".")[0] for name in self.stack.names]
        sizes = torch.tensor(self.stack.sizes)
        last = torch.tensor([name == owner[-1] for name in owner])
        return torch.repeat_interleave(last.to(torch.float64), sizes)
