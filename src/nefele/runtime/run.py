"""Where message passing has ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._words import Text
from nefele.problem import Problem
from nefele.result import relative_gap
from nefele.runtime.messages import Ledger


class Round(NamedTuple):
    """One round of message passing; NaN is what a method does not measure.

    Attributes
    ----------
    round : int
    objective : float
        sum_i L_i + alpha sum_e A_e d_e: for FedRelax with the squared error or the log loss as
        L_i, whatever the models minimise themselves, NaN while a node has no model; for networks
        sum_i L_i(w_i) + alpha sum_e A_e phi(w_i - w_j), without dropout.
    change : float
        FedRelax: largest change of a node's predictions on X_shared, root mean square, relative
        to the spread of the target; for classes the change of probabilities.
    loss : float
        Networks: sum_i L_i(w_i).
    spread : float
        Networks: root mean square distance of the nodes' parameters from their mean.
    seconds : float
        Networks: since the start.

    Examples
    --------
    >>> Round(1, objective=2.5, change=0.1).change
    0.1
    """

    round: int
    objective: float
    change: float = np.nan
    loss: float = np.nan
    spread: float = np.nan
    seconds: float = np.nan


@dataclass(frozen=True, eq=False)
class Run:
    """Where message passing ended, what it sent, what was missing, and what is proven.

    Attributes
    ----------
    problem : Problem
    w : array of shape (n_nodes, d)
        Parameters of the nodes.
    u : array of shape (n_edges, d)
        Flows of the edges as the rounds left them, which a certificate may mend further; for
        FedRelax those that w fixes.
    ledger : Ledger
        Messages by content and edge; lost, late and inactive counts.
    rounds : int
    steps : int array of shape (n_nodes,)
        Updates that each node has made; without faults one per round.
    kappa : float
        Contraction factor max_i 1/(1 + sigma_i/(lam d_i)) of FedRelax; 1 where nothing is proven,
        NaN for the `Quadratic` penalty and for other methods.
    staleness : int
        B: no update used news older than B rounds, and no node rested longer than B rounds, as
        the run really went; 0 for a network that waits.
    factor : float
        kappa^floor(t/(2B+1)): the largest error over the nodes is at most this times the first.
    error_bound : float
        The same in absolute terms: factor * max_i ||T(w0)_i - w0_i|| / (1 - kappa), T one update
        of all nodes without faults; it bounds max_i ||w_i - w*_i||. Both are inf when an update
        of a node was not finite, of which nothing is proven.
    privacy : str
        What was promised about it; "no guarantee" for updates with noise as printed in Algorithm 5
        of the lecture notes.

    Examples
    --------
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.runtime import Faults, pass_messages, relax_messages
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> run = pass_messages(problem, 200, faults=Faults(link_loss=0.3))
    >>> run.gap < 1e-6, int(run.steps.max()) < 200, run.missing["late"]
    (True, True, 0)
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=1.0)
    >>> run = relax_messages(problem, 50, faults=Faults(delay=2))
    >>> run.staleness, run.error_bound < 1e-3, run.gap < 1e-6
    (2, True, True)
    """

    problem: Problem = field(repr=False)
    w: Array = field(repr=False)
    u: Array = field(repr=False)
    ledger: Ledger = field(repr=False)
    rounds: int
    steps: NDArray[np.int64] = field(repr=False)
    kappa: float = np.nan
    staleness: int = 0
    factor: float = np.inf
    error_bound: float = np.inf
    privacy: str = "none"

    def summary(self) -> Text:
        """What was sent, as a table of text, and what is promised about privacy.

        Examples
        --------
        >>> from nefele import Graph, LocalData, Problem
        >>> from nefele.runtime import relax_messages
        >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
        >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=1.0)
        >>> print(relax_messages(problem, 2, noise=0.1, seed=0).summary())
        content       messages      floats       bytes
        parameters           4           4          32
        all                  4           4          32
        2 rounds, 1 edges used; lost 0, late 0, inactive 0
        privacy: no guarantee (updates perturbed by noise of deviation 0.1)
        """
        return Text(f"{self.ledger.summary()}\nprivacy: {self.privacy}")

    @property
    def n_messages(self) -> int:
        """Messages sent."""
        return self.ledger.messages

    @property
    def n_bytes(self) -> int:
        """Bytes sent."""
        return self.ledger.bytes

    @property
    def missing(self) -> dict[str, int]:
        """Lost and late messages, and rounds that nodes sat out."""
        return self.ledger.missing

    @property
    def speed(self) -> str:
        """What kappa says: "linear", "slow" when it is 1, or "unknown" where there is none."""
        if np.isnan(self.kappa):
            return "unknown"
        return "slow" if self.kappa >= 1 else "linear"

    @cached_property
    def gap(self) -> float:
        """Certified relative gap of w, proven with the flow u; inf when these are not finite."""
        if not (np.isfinite(self.w).all() and np.isfinite(self.u).all()):
            return np.inf
        found = self.problem.certificate(self.w, self.u)
        return relative_gap(self.problem, found.objective, found.gap_abs)
