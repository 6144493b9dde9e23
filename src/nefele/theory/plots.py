"""Pictures of the theory as bars and curves; they need matplotlib."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nefele._checks import as_float_array, check_number
from nefele._draw.drawing import BLUE, ORANGE, axes, bars, new_axes, shorten
from nefele.problem import Problem
from nefele.theory._inputs import check_problem
from nefele.theory.clusters import ErrorBound, WellConnected
from nefele.theory.phase import PhaseDiagram
from nefele.theory.spectrum import SpectrumBounds
from nefele.theory.spread_bounds import SpreadBound

_FEW = 30  # nodes up to which each one is named


def plot_slack(found: WellConnected, ax: Any = None) -> Any:
    """The slack of each cluster: above zero it is well-connected.

    Hatched: not well-connected. An arrow head: infinite, a single node.

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
    check_found(found, WellConnected, "well_connected(problem, partition)")
    words = ("well-connected", "not well-connected")
    ax = bars(axes(ax), _names(found.labels), found.slack, found.holds, words=words)
    ax.set_xlabel("cluster")
    ax.set_ylabel("slack (edge weight)")
    return ax


def plot_error_bound(found: ErrorBound, ax: Any = None) -> Any:
    """The bound on the distance of each cluster's model from the cluster's own optimum.

    Hatched: not proven, as the cluster is not well-connected. An arrow head: infinite.

    Parameters
    ----------
    found : ErrorBound
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import error_bound, plot_error_bound
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, lam=0.5)
    >>> ax = plot_error_bound(error_bound(problem, ["a", "b"]))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.25, 0.25]
    """
    check_found(found, ErrorBound, "error_bound(problem, partition)")
    words = ("proven", "not proven")
    ax = bars(axes(ax), _names(found.labels), found.value, found.proven, words=words)
    ax.set_xlabel("cluster")
    ax.set_ylabel("distance from its optimum, at most")
    return ax


def plot_spread(found: SpreadBound, ax: Any = None) -> Any:
    """The bound on the spread of the models of each component or cluster.

    An arrow head: infinite, as the part is not connected by its own edges.

    Parameters
    ----------
    found : SpreadBound
        Of `consensus_bound` or `cluster_bound`.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import consensus_bound, plot_spread
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=2.0)
    >>> ax = plot_spread(consensus_bound(problem))
    >>> [round(float(bar.get_height()), 6) for bar in ax.patches]
    [4.0]
    """
    check_found(found, SpreadBound, "consensus_bound or cluster_bound")
    finite = np.isfinite(found.value)
    ax = bars(axes(ax), _names(found.labels), found.value, finite)
    ax.set_xlabel("component or cluster")
    ax.set_ylabel("sum of squared distances\nfrom the mean, at most")
    return ax


def plot_contraction(found: SpectrumBounds, accuracy: float = 1e-6, ax: Any = None) -> Any:
    """The bound on the error of gradient descent against the number of steps.

    Parameters
    ----------
    found : SpectrumBounds
    accuracy : float > 0
        The share of the first error to reach; the steps that it takes are marked.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele.theory import SpectrumBounds, plot_contraction
    >>> plot_contraction(SpectrumBounds(1.0, 3.0, 0.25, 0.5, 1.0)).get_title()
    'at most 20 steps to 1e-06 of the first error'
    """
    check_found(found, SpectrumBounds, "spectrum_bounds(problem)")
    accuracy = check_number(accuracy, "accuracy", low=0.0, strict=True)
    needed = found.iterations(accuracy)
    endless = math.isinf(needed)
    last = 100.0 if endless else max(1.25 * needed, 2.0)
    steps = np.linspace(0.0, last, 200) if last > 200 else np.arange(math.ceil(last) + 1.0)
    floor = min(accuracy, 1.0) / 30  # below, nothing is of interest, and zero has no logarithm
    rate = math.log(found.contraction) if found.contraction > 0 else -math.inf
    error = np.exp(np.multiply(steps, rate, out=np.zeros_like(steps), where=steps > 0))
    ax = axes(ax)
    ax.semilogy(steps, np.maximum(error, floor), color=BLUE, label="error, at most")
    ax.axhline(accuracy, color="0.4", linestyle="dotted", label=f"accuracy {accuracy:.3g}")
    ax.set_xlabel("gradient steps")
    ax.set_ylabel("share of the first error")
    ax.set_xlim(0.0, last)
    ax.set_ylim(floor, max(2.0, 2 * accuracy))
    if endless:
        ax.set_title("no rate is proven: contraction 1")
    else:
        s = "" if needed == 1 else "s"
        ax.axvline(needed, color=ORANGE, linestyle="dashed", label=f"{needed} step{s}")
        ax.set_title(f"at most {needed} step{s} to {accuracy:.3g} of the first error")
    ax.legend(frameon=False)
    return ax


def plot_sensitivity(values: Any, problem: Problem, ax: Any = None) -> Any:
    """How far one label of a node moves the solution at most, largest nodes first.

    Parameters
    ----------
    values : array of shape (n_rows,)
        Of `label_sensitivity(problem)`; the largest of each node is shown.
    problem : Problem
        The problem they belong to. Nodes without rows have no label and are left out.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import label_sensitivity, plot_sensitivity
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[2.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, penalty="squared_l2", lam=2.0)
    >>> ax = plot_sensitivity(label_sensitivity(problem), problem)
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1', '0']
    """
    data = check_problem(problem).data
    rows = as_float_array(values, "values", 1)
    count = 0 if data is None else len(data.y)
    if data is None or len(rows) != count or not count:
        raise ValueError(
            f"values must have one entry for each of the {count} rows of problem; got {len(rows)}. "
            "Use label_sensitivity(problem)."
        )
    if not (rows >= 0).all():
        raise ValueError(f"values must be >= 0; got {rows[~(rows >= 0)][0]}.")
    largest = np.full(problem.graph.n_nodes, -1.0)
    np.maximum.at(largest, data.row_node, rows)
    order = np.argsort(-largest, kind="stable")
    order = order[largest[order] >= 0]
    few = len(order) <= _FEW
    names = _names(problem.graph.ids[order]) if few else [str(k + 1) for k in range(len(order))]
    ax = bars(axes(ax), names, largest[order], np.isfinite(largest[order]), numbers=False)
    first = ", ".join(shorten(str(name)) for name in problem.graph.ids[order[:3]].tolist())
    ax.set_xlabel("node" if few else f"nodes by rank; the first: {first}", parse_math=False)
    ax.set_ylabel("change of the solution\nper unit of a label, at most")
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
    check_found(found, PhaseDiagram, "phase_diagram(...)")
    if axes is None:
        axes = new_axes(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
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


def check_found(found: Any, kind: type, source: str) -> None:
    """Whether found is of the kind that a function returns."""
    if not isinstance(found, kind):
        raise ValueError(
            f"found must be a {kind.__name__}; got {type(found).__name__}. Use {source}."
        )


def _names(labels: Any) -> list[str]:
    return [str(name) for name in labels.tolist()]
