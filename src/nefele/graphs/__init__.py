"""Graphs: generators, and conversion from what people already have."""

from nefele.graphs.convert import as_graph
from nefele.graphs.generators import chain, geometric, grid, knn, sbm, star

__all__ = ["as_graph", "chain", "geometric", "grid", "knn", "sbm", "star"]
