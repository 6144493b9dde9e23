"""Pictures of the theory; they need matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import as_float_array
from nefele.problem import Problem
from nefele.theory._inputs import check_problem
from nefele.theory.clusters import WellConnected
from nefele.theory.consensus import CriticalLambda
from nefele.theory.phase import PhaseDiagram


def plot_critical_flow(
    found: CriticalLambda, problem: Problem, positions: Any = None, ax: Any = None
) -> Any:
    """The graph with the flow that proves the critical lam: the widest edges are the bottleneck.

    Parameters
    ----------
    found : CriticalLambda
    problem : Problem
        The problem it belongs to.
    positions : array of shape (n_nodes, 2), optional
        Where to draw the nodes; default: on a circle.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import critical_lambda, plot_critical_flow
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> plot_critical_flow(critical_lambda(problem), problem).get_title()
    'critical lam = 4'
    """
    _check(found, CriticalLambda, "critical_lambda(problem)")
    graph = check_problem(problem).graph
    if found.flow is None:
        raise ValueError("There is no flow to draw: a smooth penalty has no finite critical lam.")
    if len(found.load) != graph.n_edges:
        raise ValueError(f"problem must have {len(found.load)} edges; got {graph.n_edges}.")
    if positions is None:
        angle = 2 * np.pi * np.arange(graph.n_nodes) / graph.n_nodes
        place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    else:
        place = as_float_array(positions, "positions", 2)
        if place.shape != (graph.n_nodes, 2):
            raise ValueError(f"positions must have shape ({graph.n_nodes}, 2); got {place.shape}.")
    ax = _axes(ax)
    from matplotlib.collections import LineCollection

    share = found.load / (found.value or 1.0)
    lines = LineCollection(
        list(np.stack([place[graph.head], place[graph.tail]], axis=1)),
        linewidths=0.5 + 4 * share,
        cmap="viridis_r",
    )
    lines.set_array(share)
    lines.set_clim(0, 1)
    ax.add_collection(lines)
    ax.scatter(*place.T, s=25, color="black", zorder=3)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(f"critical lam = {found.value:.4g}")
    ax.figure.colorbar(lines, ax=ax, label="share of the critical lam")
    return ax


def plot_slack(found: WellConnected, ax: Any = None) -> Any:
    """The slack of each cluster: above zero it is well-connected.

    Parameters
    ----------
    found : WellConnected
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import plot_slack, well_connected
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [0.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=1.0)
    >>> plot_slack(well_connected(problem, [0, 0])).get_xlabel()
    'cluster'
    """
    _check(found, WellConnected, "well_connected(problem, partition)")
    ax = _axes(ax)
    finite = np.isfinite(found.slack)
    top = float(np.abs(found.slack[finite]).max(initial=1.0))
    height = np.clip(found.slack, -1.1 * top, 1.1 * top)
    names = [str(name) for name in found.labels.tolist()]
    colors = np.where(found.holds, "tab:green", "tab:red")
    bars = ax.bar(np.arange(len(names)), height, color=colors)
    ax.bar_label(bars, [f"{value:.3g}" for value in found.slack])
    ax.axhline(0.0, color="black", linewidth=0.8)
    ax.set_xticks(np.arange(len(names)), names)
    ax.set_xlabel("cluster")
    ax.set_ylabel("slack (edge weight)")
    return ax


def plot_phase(found: PhaseDiagram, axes: Any = None) -> Any:
    """Predicted and observed recovery side by side.

    Parameters
    ----------
    found : PhaseDiagram
    axes : two matplotlib Axes, optional

    Returns
    -------
    array of two matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele.theory import phase_diagram, plot_phase
    >>> left, right = plot_phase(phase_diagram([0.0, 0.1], [1.0], n=12, runs=1))
    >>> left.get_title(), right.get_title()
    ('predicted', 'observed')
    """
    _check(found, PhaseDiagram, "phase_diagram(...)")
    if axes is None:
        axes = _pyplot().subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")[1]
    axes = np.asarray(axes)
    if axes.shape != (2,):
        raise ValueError(f"axes must be two matplotlib Axes; got shape {axes.shape}.")
    pairs = (("predicted", found.predicted), ("observed", found.observed))
    for ax, (title, values) in zip(axes, pairs, strict=True):
        image = ax.imshow(values, vmin=0, vmax=1, origin="lower", aspect="auto", cmap="viridis")
        ax.set_xticks(np.arange(len(found.fraction)), [f"{x:g}" for x in found.fraction])
        ax.set_yticks(np.arange(len(found.p_out)), [f"{x:g}" for x in found.p_out])
        ax.set_xlabel("share of nodes with data")
        ax.set_title(title)
    axes[0].set_ylabel("p_out")
    axes[0].figure.colorbar(image, ax=list(axes), label="share of runs")
    return axes


def _check(found: Any, kind: type, source: str) -> None:
    if not isinstance(found, kind):
        raise ValueError(
            f"found must be a {kind.__name__}; got {type(found).__name__}. Use {source}."
        )


def _axes(ax: Any) -> Any:
    return _pyplot().subplots()[1] if ax is None else ax


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError('Plots need matplotlib: pip install "nefele[plot]".') from None
    return plt
