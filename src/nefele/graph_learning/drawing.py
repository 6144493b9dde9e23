"""Pictures of graphs; they need matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import as_float_array
from nefele.graph_learning.structure import spectral_points


def draw_graph(found: Any, positions: Any = None, ax: Any = None) -> Any:
    """Nodes coloured by community, edges by weight, suspicious edges in red.

    Parameters
    ----------
    found : GraphDiagnostics
    positions : array of shape (n_nodes, 2), optional
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph
    >>> from nefele.graph_learning import graph_diagnostics
    >>> graph_diagnostics(Graph([0, 1, 2], [0, 1], [1, 2])).plot().get_title()
    '3 nodes, 2 edges'
    """
    try:
        from matplotlib import pyplot
        from matplotlib.collections import LineCollection
    except ImportError:
        raise ImportError('Pictures need matplotlib: pip install "nefele[plot]".') from None
    graph = found.graph
    if positions is None:
        place = _spectral_place(graph)
    else:
        place = as_float_array(positions, "positions", 2)
        if place.shape != (graph.n_nodes, 2):
            raise ValueError(f"positions must have shape ({graph.n_nodes}, 2); got {place.shape}.")
    if ax is None:
        ax = pyplot.subplots()[1]
    odd = np.zeros(graph.n_edges, dtype=bool)
    odd[found.suspicious] = True
    ends = np.stack([place[graph.head], place[graph.tail]], axis=1)
    width = graph.weight / graph.weight.max() if graph.n_edges else graph.weight
    ax.add_collection(LineCollection(list(ends[~odd]), linewidths=0.3 + width[~odd], colors="0.7"))
    ax.add_collection(LineCollection(list(ends[odd]), linewidths=2.0, colors="tab:red"))
    ax.scatter(*place.T, s=25, c=found.communities % 10, cmap="tab10", vmin=0, vmax=9, zorder=3)
    ax.set_axis_off()
    ax.set_title(f"{graph.n_nodes} nodes, {graph.n_edges} edges")
    return ax


def _spectral_place(graph: Any) -> Any:
    """Second and third eigenvector, and a circle where there are too few nodes for that."""
    if graph.n_nodes < 4 or not graph.n_edges:
        angle = 2 * np.pi * np.arange(graph.n_nodes) / graph.n_nodes
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    root = np.sqrt(np.maximum(graph.weighted_degree, graph.weight.min()))
    return spectral_points(graph, 3)[:, 1:3] / root[:, None]
