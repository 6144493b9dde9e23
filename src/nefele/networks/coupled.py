"""One network for all first, then personal ones coupled over a graph, by plain gradient steps.

The objective of the second part is sum_i L_i(w_i) + alpha / 2 sum_e A_e ||w_i - w_j||^2 (NFL,
Eq. (16), with the squared norm). The first part is its limit of strong coupling on a connected
graph: a path of alphas from one model for all down to the alpha wanted, as for linear models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nefele._torch.base import Tensor, torch
from nefele.graph import Graph
from nefele.networks.steps import Steps

COUPLE = ("all", "body")


@dataclass(frozen=True, eq=False)
class Coupling:
    """Who is coupled to whom, how strongly, and in which parameters.

    Attributes
    ----------
    graph : Graph
        Its nodes in the order of the networks.
    alpha : float
    couple : {"all", "body"}
        All parameters, or all but those of the last layer.
    """

    graph: Graph
    alpha: float
    couple: str = "all"

    @property
    def on(self) -> bool:
        """Whether anything is coupled."""
        return self.alpha > 0 and self.graph.n_edges > 0


def train_common(training: Steps, w: Tensor, rounds: int, intercept: bool = False) -> Tensor:
    """One network for all: rounds of local steps and a mean over the nodes.

    With `intercept` the biases of the last layer stay each node's own: classes are not equally
    frequent at all nodes, nor are levels of a target, and nothing else need make up for that.
    """
    last = training.n_parameters - (training.n_intercepts if intercept else 0)
    for _ in range(rounds):
        w = training.descend(w, training.local_steps)
        w = torch.cat([training.mean(w[:, :last]), w[:, last:]], dim=1)
    return w


def train_coupled(training: Steps, w: Tensor, coupling: Coupling, rounds: int) -> Tensor:
    """Rounds of local steps, each with what the neighbours said before it.

    A step of node i with gradient g and rate r solves

        v+ = v - r (g + alpha [(1 + h) d_i v+ - h d_i w_i - sum_j A_ij w_j]),

    w the parameters before the round: the coupling is implicit, so that no alpha is too large.
    With h = 0 nodes that move at once would swap places under strong coupling; h = 1 majorises
    the objective and never does. h grows with what the coupling moves in a round.
    """
    if not coupling.on:
        return training.descend(w, rounds * training.local_steps)
    graph, steps = coupling.graph, training.local_steps
    where = torch.ones(w.shape[1], dtype=w.dtype)
    if coupling.couple == "body":
        where = 1.0 - training.head().to(w.dtype)
    strength = coupling.alpha * where
    degree = torch.tensor(graph.weighted_degree, dtype=w.dtype)[:, None]
    adjacency = _adjacency(graph, w.dtype)
    for _ in range(rounds):
        hold = 1.0 - torch.exp(-training.time(steps) * coupling.alpha * degree)
        centre = strength * (hold * degree * w + torch.sparse.mm(adjacency, w))
        weight = strength * ((1.0 + hold) * degree)
        for _ in range(steps):
            rate = training.rate
            w = (w - rate * (training.gradient(w) - centre)) / (1.0 + rate * weight)
        training.by_edges(graph.n_edges, int(where.sum()))
    return w


def unit_of_alpha(training: Steps, graph: Graph, rounds: int) -> float:
    """The alpha that moves an average node once towards its neighbours in so many rounds.

    1 / (sum of the learning rates * mean weighted degree): far less than that does nothing, far
    more makes one network per component. Steps of gradient descent are in units of the inverse
    curvature, which is therefore in the learning rate already: the unit depends neither on the
    size of the network nor on the number of rows.
    """
    time = training.time(rounds * training.local_steps)
    degree = float(np.mean(graph.weighted_degree)) if graph.n_edges else 1.0
    return 1.0 / (time * degree)


def _adjacency(graph: Graph, dtype: torch.dtype) -> Tensor:
    n = graph.n_nodes
    one = sparse.coo_array((graph.weight, (graph.head, graph.tail)), shape=(n, n))
    both = (one + one.T).tocoo()
    at = torch.tensor(np.stack(both.coords).astype(np.int64))
    values = torch.tensor(both.data, dtype=dtype)
    return torch.sparse_coo_tensor(at, values, (n, n), check_invariants=False).coalesce()
