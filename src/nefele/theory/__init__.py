"""The papers' theory as functions: critical lam, well-connected clusters, bounds (NFL, Sec. V)."""

from nefele.theory.certified import CertifiedClusters, certify_clusters
from nefele.theory.clusters import ErrorBound, WellConnected, error_bound, well_connected
from nefele.theory.consensus import CriticalLambda, critical_lambda
from nefele.theory.flow_network import FlowNetwork, FlowSolution, min_cost_flow
from nefele.theory.graph_plots import (
    plot_certified,
    plot_critical_flow,
    plot_flow,
    plot_influence,
)
from nefele.theory.influence import EdgeInfluence, edge_influence, label_sensitivity
from nefele.theory.phase import PhaseDiagram, phase_diagram
from nefele.theory.plots import (
    plot_contraction,
    plot_error_bound,
    plot_phase,
    plot_sensitivity,
    plot_slack,
    plot_spread,
)
from nefele.theory.spectrum import SpectrumBounds, spectrum_bounds
from nefele.theory.spread_bounds import SpreadBound, cluster_bound, consensus_bound
from nefele.theory.suggest import Suggestion, suggest_nodes

__all__ = [
    "CertifiedClusters",
    "CriticalLambda",
    "EdgeInfluence",
    "ErrorBound",
    "FlowNetwork",
    "FlowSolution",
    "PhaseDiagram",
    "SpectrumBounds",
    "SpreadBound",
    "Suggestion",
    "WellConnected",
    "certify_clusters",
    "cluster_bound",
    "consensus_bound",
    "critical_lambda",
    "edge_influence",
    "error_bound",
    "label_sensitivity",
    "min_cost_flow",
    "phase_diagram",
    "plot_certified",
    "plot_contraction",
    "plot_critical_flow",
    "plot_error_bound",
    "plot_flow",
    "plot_influence",
    "plot_phase",
    "plot_sensitivity",
    "plot_slack",
    "plot_spread",
    "spectrum_bounds",
    "suggest_nodes",
    "well_connected",
]
