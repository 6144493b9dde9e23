"""The primal-dual method of NFL, Algorithm 1, on stacked networks with inexact primal updates."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._torch.base import Tensor, to_numpy, torch
from nefele.graph import Graph
from nefele.networks.rows import Padded, Source
from nefele.networks.stack import Stack
from nefele.penalties import Penalty
from nefele.runtime.run import Round
from nefele.solvers.steps import scaled
from nefele.solvers.updates import ahead, dual

# Adam keeps little momentum, since the flow turns between rounds, and forgets no large gradient:
# with its usual (0.9, 0.999) linear networks ended up to 18% above the optimum, or burst after
# they had reached it. With these numbers and the falling lr all runs came within 3e-5 of it.
_BETAS = (0.5, 0.999)


class Rounds:
    """The state of Algorithm 1: parameters w, flow u, and the optimiser of the primal update.

    Steps tau_i = gamma / degree_i and sigma_e = 1 / (2 gamma); gamma = 1 is as printed. `labelled`
    marks the nodes that have rows; each primal update takes so many `steps` of the optimiser.
    """

    def __init__(
        self,
        stack: Stack,
        source: Source,
        labelled: NDArray[np.bool_],
        graph: Graph,
        penalty: Penalty,
        alpha: float,
        gamma: float,
        optimizer: str,
        lr: float,
        steps: int,
        batch_size: int | None,
    ) -> None:
        self.stack, self.source, self.graph, self.penalty = stack, source, graph, penalty
        self.lr, self.steps, self.batch_size = lr, steps, batch_size
        self.coupled = alpha > 0 and graph.n_edges > 0
        self.scale = alpha * graph.weight
        self.rows = source.everything()
        self.w: Tensor = torch.nn.Parameter(stack.start(graph.n_nodes))
        # It lives on from round to round: a primal update starts where the last one ended.
        self.optimizer: Any = (
            torch.optim.Adam([self.w], lr=lr, betas=_BETAS, amsgrad=True)
            if optimizer == "adam"
            else torch.optim.SGD([self.w], lr=lr)
        )
        self.u = np.zeros((graph.n_edges, stack.n_parameters))
        degree = graph.degree if self.coupled else np.zeros(graph.n_nodes)
        self.inverse = degree / gamma  # 1 / tau_i, 0 at isolated nodes: these just train
        self.sigma = scaled(graph, np.ones(graph.n_edges), gamma)[1]
        self.idle = np.flatnonzero(~labelled & (self.inverse > 0))

    def run(self, rounds: int) -> list[Round]:
        """All rounds, and what came of each."""
        started, history = time.perf_counter(), []
        for k in range(1, rounds + 1):
            self.stack.module.train()
            self.optimizer.param_groups[0]["lr"] = self.rate(k, rounds)
            before = to_numpy(self.w)
            force = self.graph.div(self.u) if self.coupled else np.zeros_like(before)
            self.primal(before, force)
            after = to_numpy(self.w)
            if not np.isfinite(after).all():
                raise ValueError(
                    f"Training diverged: parameters are NaN or inf in round {k}. Lower lr, or "
                    "scale the features and the target."
                )
            if self.coupled:
                diff = self.graph.diff(ahead(before, after))
                self.u = dual(self.penalty, self.u, diff, self.scale, self.sigma)
            objective, loss, spread = self.measure(after)
            seconds = time.perf_counter() - started
            history.append(Round(k, objective, loss=loss, spread=spread, seconds=seconds))
        return history

    def rate(self, k: int, rounds: int) -> float:
        """The learning rate of round k: lr, falling to 0 over the second half of the rounds.

        The errors of the primal updates must have a finite sum (NFL, Sec. IV).
        """
        return self.lr * min(1.0, 2 * (1 - (k - 1) / rounds))

    def primal(self, before: Array, force: Array) -> None:
        """A few steps on L_i(w) + 1/(2 tau_i) ||w - v_i||^2, v_i = w_i - tau_i (D^T u)_i.

        The gradient of the second term is (w - w_i) / tau_i + (D^T u)_i: no division by tau.
        """
        centre = torch.tensor(before, dtype=self.w.dtype)
        push = torch.tensor(force, dtype=self.w.dtype)
        inverse = torch.tensor(self.inverse, dtype=self.w.dtype)[:, None]
        for _ in range(self.steps):
            gradient = self.stack.gradients(self.w, self.batch())
            self.w.grad = gradient + inverse * (self.w.detach() - centre) + push
            self.optimizer.step()
        if self.idle.size:  # without rows v_i itself is the minimiser
            exact = before[self.idle] - force[self.idle] / self.inverse[self.idle, None]
            with torch.no_grad():
                self.w[self.idle] = torch.tensor(exact, dtype=self.w.dtype)

    def batch(self) -> Padded:
        return self.rows if self.batch_size is None else self.source.batch(self.batch_size)

    def measure(self, w: Array) -> tuple[float, float, float]:
        """Objective, sum of the losses, and spread."""
        self.stack.module.eval()
        with torch.no_grad():
            loss = float(self.stack.losses(self.w, self.rows).sum())
        apart = self.scale @ self.penalty.value(self.graph.diff(w)) if self.coupled else 0.0
        spread = np.sqrt(((w - w.mean(axis=0)) ** 2).sum(axis=1).mean())
        return loss + float(apart), loss, float(spread)
