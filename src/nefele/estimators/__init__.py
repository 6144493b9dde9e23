"""scikit-learn estimators: one personal model per node of a network."""

from nefele.estimators.classifier import GTVClassifier
from nefele.estimators.clustering import ClusterPath, ConvexClustering
from nefele.estimators.components import Components, components_of
from nefele.estimators.cv import GTVClassifierCV, GTVRegressorCV
from nefele.estimators.graph_selector import GraphSelectorCV
from nefele.estimators.intervals import Intervals, bootstrap_intervals
from nefele.estimators.keeping import KeepNode, keep_node
from nefele.estimators.loading import load
from nefele.estimators.regressor import GTVRegressor
from nefele.estimators.residual_plots import plot_residuals
from nefele.estimators.smoother import GraphSignalSmoother
from nefele.graph_learning.builders import GraphBuilder, MomentsKNN, SpatialKNN, TrainingRows
from nefele.selection.splits import ForwardWithinNode, WithinNodeKFold

__all__ = [
    "ClusterPath",
    "Components",
    "ConvexClustering",
    "ForwardWithinNode",
    "GTVClassifier",
    "GTVClassifierCV",
    "GTVRegressor",
    "GTVRegressorCV",
    "GraphBuilder",
    "GraphSelectorCV",
    "GraphSignalSmoother",
    "Intervals",
    "KeepNode",
    "MomentsKNN",
    "SpatialKNN",
    "TrainingRows",
    "WithinNodeKFold",
    "bootstrap_intervals",
    "components_of",
    "keep_node",
    "load",
    "plot_residuals",
]
