"""What a certificate needs of a problem; `Problem` gives it, and certifies itself by it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele.graph import Graph
from nefele.losses.base import BoundLoss
from nefele.penalties import Penalty


class Posed(Protocol):
    """A posed problem: graph, losses, penalty and how strongly they couple."""

    graph: Graph
    loss: BoundLoss
    penalty: Penalty

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

    def objective(self, w: Array) -> float:
        """Value at w, shape (n_nodes, d)."""

    def inside(self, u: Array) -> Array:
        """The flow with each edge scaled back into its domain."""
