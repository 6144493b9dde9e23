"""NFL, Algorithm 1, on networks with inexact primal updates, as a program on a part of the graph.

Each round has a primal update, some steps of an optimiser on L_i(w) + 1/(2 tau_i) ||w - v_i||^2
with v_i = w_i - tau_i (D^T u)_i, and the dual update of the penalty. Neighbours tell each other
2 w+ - w, and both ends of an edge keep its flow, updated from the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._torch.base import Tensor, torch
from nefele.networks.rounds import Rounds, Task
from nefele.program import Exchange, Heard, Program, run_alone
from nefele.solvers.steps import scaled

_KINDS = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16}


class Algorithm1(Rounds):
    """Algorithm 1 with steps tau_i = gamma / degree_i and sigma_e = 1 / (2 gamma).

    `says` and `hears` are, for each neighbouring part, the own nodes that it sees (positions among
    the own ones) and its nodes that are seen here (positions in the graph).
    """

    def __init__(
        self,
        task: Task,
        says: dict[Any, NDArray[np.int64]] | None = None,
        hears: dict[Any, NDArray[np.int64]] | None = None,
    ) -> None:
        super().__init__(task)
        self.says, self.hears = says or {}, hears or {}
        # Around all that is computed, and nothing that is waited for: seeds and threads of a site.
        self.within: Callable[[], AbstractContextManager[None]] = nullcontext
        graph, P = task.graph, task.columns.count if task.coupled else 0
        self.u = torch.zeros(graph.n_edges, P, dtype=self.stack.dtype)
        degree = graph.degree[task.own] if task.coupled else np.zeros(len(task.own))
        self.inverse = torch.tensor(degree / task.gamma, dtype=self.stack.dtype)  # 1 / tau_i
        self.sigma = scaled(graph, np.ones(graph.n_edges), task.gamma)[1]
        self.idle = torch.from_numpy(np.flatnonzero(~task.labelled & (degree > 0)))
        self.own = torch.from_numpy(task.own)
        # What each node was last said to be; of halves only the change travels.
        self.told = task.columns.take(self.w[:1]).repeat(graph.n_nodes if task.coupled else 0, 1)
        # All nodes are here, and nothing is rounded: what they say is made in place.
        exact = _KINDS[task.wire] == self.stack.dtype and not self.says
        self.whole = exact and len(task.own) == graph.n_nodes

    @property
    def messages(self) -> int:
        return 2 * self.task.graph.n_edges if self.task.coupled else 0

    @property
    def flow(self) -> Any:
        return self.u.numpy() if self.task.coupled else super().flow

    def extra(self) -> dict[str, Tensor]:
        return {"u": self.u, "told": self.told}

    def round(self, k: int) -> Tensor:
        return run_alone(self.program(k))

    def program(self, k: int) -> Program[Tensor]:
        """Round k: the losses as they were met; asks for the neighbours' parameters."""
        if not self.task.coupled:
            with self.within():
                return super().round(k)
        columns = self.task.columns
        with self.within():
            now = columns.take(self.w)
            before = self.told.copy_(now) if self.whole else now.clone()
            losses = self.primal(before)
            said = before.neg_().add_(columns.take(self.w), alpha=2)
        yield from self.tell(said)
        with self.within():
            self.edges.turn(self.u, self.told, self.sigma)
        return losses

    def primal(self, before: Tensor) -> Tensor:
        """Steps of the optimiser from where the last round ended.

        The gradient of the second term is (w - w_i) / tau_i + (D^T u)_i: no division by tau.
        """
        columns = self.task.columns
        push = self.edges.outflow(self.u)
        exact = before[self.idle] - push[self.idle] / self.inverse[self.idle, None]
        constant = push.addcmul_(self.inverse[:, None], before, value=-1)
        inverse = self.inverse.tolist()

        def pull(i: int, row: Tensor) -> None:
            pulled = row[columns.index]
            pulled.add_(constant[i]).add_(columns.take(self.w[i]), alpha=inverse[i])
            if not columns.is_view:
                row[columns.index] = pulled

        losses = self.steps(pull)
        for i, row in zip(self.idle.tolist(), exact, strict=True):
            self.w[i, columns.index] = row  # without rows v_i itself is the minimiser
        return losses

    def tell(self, said: Tensor) -> Program[None]:
        """What all nodes of the graph say, rounded as it goes over the wire.

        Own nodes are rounded too: both ends of an edge must see the same numbers. Halves are of
        the change since the last round, so that the error does not stay.
        """
        kind = _KINDS[self.task.wire]
        small = kind == torch.float16
        if self.whole:  # said and told are one
            yield Exchange("parameters", {})
            return
        known = self.told[self.own]
        news = (said - known if small else said).to(kind)
        self.told[self.own] = known + news.to(said.dtype) if small else news.to(said.dtype)
        arrays = {part: news[torch.from_numpy(i)].numpy() for part, i in self.says.items()}
        heard: Heard = yield Exchange("parameters", arrays)
        for part, nodes in self.hears.items():
            at, rows = torch.from_numpy(nodes), torch.from_numpy(np.array(heard.rows[part]))
            rows = rows.to(kind).to(said.dtype)
            self.told[at] = self.told[at] + rows if small else rows
