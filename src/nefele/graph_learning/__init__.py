"""Learn the graph from the rows of the nodes (NFL, Sec. VI-D, E).

`nefele.GraphSelectorCV` finds out whether a graph helps.
"""

from nefele.graph_learning.alternating import AlternatingGraph
from nefele.graph_learning.block_model import BlockModelCleanup, fit_block_model
from nefele.graph_learning.builders import GraphBuilder, MomentsKNN, SpatialKNN, TrainingRows
from nefele.graph_learning.degrees import DegreeGraph, solve_degrees
from nefele.graph_learning.diagnostics import GraphDiagnostics, graph_diagnostics
from nefele.graph_learning.embedding import EmbeddingKNN
from nefele.graph_learning.glasso import GlassoGraph
from nefele.graph_learning.labels import LabelGraph
from nefele.graph_learning.link_prediction import LinkPrediction, link_scores
from nefele.graph_learning.models import GradientGraph, LossGraph, PoolingGainGraph
from nefele.graph_learning.pairwise import PairwiseGraph
from nefele.graph_learning.references import CliqueGraph, NoEdges, ShuffledGraph
from nefele.graph_learning.refine import (
    connect_graph,
    graph_from_discrepancy,
    normalize_weights,
    sparsify_graph,
)
from nefele.graph_learning.smooth_signals import SmoothSignalGraph, learn_smooth_graph
from nefele.graph_learning.spatial import DelaunayGraph, RadiusGraph
from nefele.graph_learning.structure import communities, modularity
from nefele.graph_learning.two_sample import TestGraph
from nefele.graph_learning.validation import choose_by_validation
from nefele.graph_learning.wasserstein import WassersteinGraph, squared_wasserstein

__all__ = [
    "AlternatingGraph",
    "BlockModelCleanup",
    "CliqueGraph",
    "DegreeGraph",
    "DelaunayGraph",
    "EmbeddingKNN",
    "GlassoGraph",
    "GradientGraph",
    "GraphBuilder",
    "GraphDiagnostics",
    "LabelGraph",
    "LinkPrediction",
    "LossGraph",
    "MomentsKNN",
    "NoEdges",
    "PairwiseGraph",
    "PoolingGainGraph",
    "RadiusGraph",
    "ShuffledGraph",
    "SmoothSignalGraph",
    "SpatialKNN",
    "TestGraph",
    "TrainingRows",
    "WassersteinGraph",
    "choose_by_validation",
    "communities",
    "connect_graph",
    "fit_block_model",
    "graph_diagnostics",
    "graph_from_discrepancy",
    "learn_smooth_graph",
    "link_scores",
    "modularity",
    "normalize_weights",
    "solve_degrees",
    "sparsify_graph",
    "squared_wasserstein",
]
