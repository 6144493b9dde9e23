"""Graphs: generators, and conversion from what people already have."""

from nefele.graphs.convert import as_graph
from nefele.graphs.generators import chain, geometric, grid, knn, sbm, star
from nefele.graphs.mapped import MappedGraph
from nefele.graphs.maps import mapped, trend

__all__ = [
    "MappedGraph",
    "as_graph",
    "chain",
    "geometric",
    "grid",
    "knn",
    "mapped",
    "sbm",
    "star",
    "trend",
]
