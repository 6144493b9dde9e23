"""What a certificate needs of a problem: all of it in one place, or one part among others."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.base import BoundLoss
from nefele.penalties import Penalty
from nefele.program import Program

_ROUNDED = 1 + 1e-12  # how far a flow may be outside by rounding


class Posed(Protocol):
    """Graph, losses, penalty and how strongly they couple: a `Problem`, or a part of one.

    A part has a graph of its own nodes, those of its neighbours that they see, and the edges at
    own nodes. `own` picks the own nodes, the only ones with losses, and `counted` the edges that
    enter into sums here; of a whole problem that is all of them. `steady` says that the steps of a
    solve must be the same to the last bit however the nodes are spread over parts.
    """

    graph: Graph
    loss: BoundLoss
    penalty: Penalty
    lam: float
    own: Any
    counted: Any
    steady: bool

    @property
    def whole(self) -> bool:
        """Whether all nodes are its own."""

    @property
    def d(self) -> int:
        """Length of each node's parameter vector."""

    @property
    def scale(self) -> Array:
        """Lam * A_e of each edge, shape (n_edges,)."""

    @property
    def coupled(self) -> bool:
        """Whether the nodes are coupled at all."""

    @property
    def parts(self) -> NDArray[np.int64]:
        """Group of each node, shape (n_nodes,)."""

    @property
    def n_parts(self) -> int:
        """Number of groups, those elsewhere included."""

    def outflow(self, u: Array) -> Array:
        """(D^T u)_i at the own nodes."""

    def placed(self, rows: Array) -> Array:
        """Rows of the own nodes in the order of `graph`, zero elsewhere."""

    def seen(self, rows: Array, content: str) -> Program[Array]:
        """The same with the neighbours' rows."""

    def fill(self, rows: Array) -> Program[None]:
        """Bring the neighbours' rows of `rows` up to date."""


def inside(problem: Posed, u: Array) -> Array:
    """The flow with each edge scaled back into the domain of its conjugate, such as a ball.

    A flow that is inside already is returned itself.
    """
    if not problem.coupled:
        return np.zeros_like(u)
    ratio = problem.penalty.domain_ratio(u, problem.scale)
    return u / np.maximum(ratio, 1.0)[:, None] if (ratio > _ROUNDED).any() else u
