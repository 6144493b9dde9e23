"""The last steps of a builder: a target degree, one component, units of the weights."""

from __future__ import annotations

from typing import Any

from nefele._checks import Array, check_flag, check_name, check_number
from nefele.graph import Graph
from nefele.graph_learning.refine import NORMS, connect_graph, normalize_weights, shortest


def check_finish(builder: Any) -> bool:
    """Check degree, connect (where there is one) and normalize; True when any edge may change."""
    if builder.degree is not None:
        check_number(builder.degree, "degree", low=0.0, strict=True)
    connect = check_flag(getattr(builder, "connect", False), "connect")
    check_name(builder.normalize, NORMS, "normalisation")
    return connect or builder.degree is not None


def finish_graph(
    graph: Graph, builder: Any, discrepancy: Array | None = None, by_weight: bool = False
) -> Graph:
    """The graph with the builder's degree, connect and normalize, in this order.

    Kept are the edges of least discrepancy, or the heaviest when there is none or by_weight; links
    that connect are those of least discrepancy.
    """
    if builder.degree is not None:
        length = -graph.weight
        if discrepancy is not None and not by_weight:
            length = discrepancy[graph.head, graph.tail]
        keep = shortest(length, graph.head, graph.tail, graph.n_nodes, builder.degree)
        graph = Graph(graph.ids, graph.head[keep], graph.tail[keep], graph.weight[keep])
    if discrepancy is not None and getattr(builder, "connect", False):
        graph = connect_graph(graph, discrepancy)
    return normalize_weights(graph, builder.normalize)
