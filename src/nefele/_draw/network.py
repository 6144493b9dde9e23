"""What drawing must know of a graph: so that a graph can be drawn by its own method."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray


class Network(Protocol):
    """A graph, as far as pictures are concerned."""

    @property
    def ids(self) -> NDArray[Any]:
        """Node ids, shape (n_nodes,)."""

    @property
    def head(self) -> NDArray[Any]:
        """Positions of the first ends, shape (n_edges,)."""

    @property
    def tail(self) -> NDArray[Any]:
        """Positions of the second ends, shape (n_edges,)."""

    @property
    def weight(self) -> NDArray[Any]:
        """Edge weights, shape (n_edges,)."""

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""

    @property
    def n_edges(self) -> int:
        """Number of edges."""

    def positions(self, ids: Any) -> NDArray[Any]:
        """Where the ids are among the nodes, -1 for those that are not."""
