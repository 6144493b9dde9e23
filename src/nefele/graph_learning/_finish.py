"""The last steps of a builder: a target degree, one component, units of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nefele._checks import Array, check_flag, check_name, check_number
from nefele.graph import Graph
from nefele.graph_learning.builders import GraphBuilder
from nefele.graph_learning.refine import (
    NORMS,
    check_options,
    connect_graph,
    graph_from_discrepancy,
    normalize_weights,
    shortest,
)


@dataclass(eq=False, repr=False, kw_only=True)
class Trimmed(GraphBuilder):
    """A builder with a target degree and units of the weights; it may also connect."""

    connect = False

    degree: float | None = None
    normalize: str = "none"

    def _check_finish(self) -> bool:
        """Check the options; True when any edge may change."""
        if self.degree is not None:
            check_number(self.degree, "degree", low=0.0, strict=True)
        connect = check_flag(self.connect, "connect")
        check_name(self.normalize, NORMS, "normalisation")
        return connect or self.degree is not None

    def _finish(
        self, graph: Graph, discrepancy: Array | None = None, by_weight: bool = False
    ) -> Graph:
        """The graph with the builder's degree, connect and normalize, in this order.

        Kept are the edges of least discrepancy, or the heaviest when there is none or by_weight;
        links that connect are those of least discrepancy.
        """
        if self.degree is not None:
            length = -graph.weight
            if discrepancy is not None and not by_weight:
                length = discrepancy[graph.head, graph.tail]
            keep = shortest(length, graph.head, graph.tail, graph.n_nodes, self.degree)
            graph = Graph(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])
        if discrepancy is not None and self.connect:
            graph = connect_graph(graph, discrepancy)
        return normalize_weights(graph, self.normalize)


@dataclass(eq=False, repr=False, kw_only=True)
class Finished(Trimmed):
    """A builder whose graph may be made one component, too."""

    connect: bool = False


@dataclass(eq=False, repr=False, kw_only=True)
class FromDiscrepancy(Finished):
    """A builder with the options of `graph_from_discrepancy`."""

    weight: str = "unit"
    scale: float | None = None

    def _options(self) -> dict[str, Any]:
        names = ("weight", "scale", "degree", "connect", "normalize")
        return {name: getattr(self, name) for name in names}

    def _check_options(self, k: Any, threshold: Any = None, name: str = "threshold") -> None:
        check_options(k, threshold, **self._options(), name=name)

    def _near(self, ids: Any, matrix: Array, k: Any, threshold: Any = None) -> Graph:
        return graph_from_discrepancy(ids, matrix, k=k, threshold=threshold, **self._options())
