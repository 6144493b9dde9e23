"""Pictures of the theory on the graph; they need matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._drawing import (
    BLUE,
    DASHED,
    GREY,
    axes,
    colour_bar,
    draw_edges,
    draw_nodes,
    finish_graph,
    key,
    place,
)
from nefele.graph import Graph
from nefele.problem import Problem
from nefele.theory._inputs import check_problem
from nefele.theory.certified import CertifiedClusters
from nefele.theory.consensus import CriticalLambda
from nefele.theory.flow_network import FlowNetwork, FlowSolution
from nefele.theory.influence import EdgeInfluence
from nefele.theory.plots import check_found

_FULL = 1 - 1e-6  # share of its capacity from which an edge counts as saturated
_NOTHING = 1e-12  # change, relative to the largest parameter, that is none
_CLOSE: dict[str, Any] = dict(color=BLUE, linestyle="solid", linewidth=1.8)
_OPEN: dict[str, Any] = dict(color=GREY, linestyle="solid", linewidth=0.6)

_SINGLE: dict[str, Any] = dict(marker="o", color="white", markeredgecolor="black", linestyle="none")


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
        Where to draw the nodes; default: by eigenvectors of the graph.
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
    check_found(found, CriticalLambda, "critical_lambda(problem)")
    graph = check_problem(problem).graph
    if found.flow is None:
        raise ValueError("There is no flow to draw: a smooth penalty has no finite critical lam.")
    _check_sizes(graph, edges=len(found.load))
    where = place(graph, positions)
    ax = axes(ax)
    share = found.load / (found.value or 1.0)
    lines = draw_edges(ax, graph, where, values=share, top=1.0)
    draw_nodes(ax, where)
    finish_graph(ax, f"critical lam = {found.value:.4g}")
    colour_bar(ax, lines, "share of the critical value")
    return ax


def plot_certified(
    found: CertifiedClusters, problem: Problem, positions: Any = None, ax: Any = None
) -> Any:
    """The graph with what a result proves about each edge, and the groups it proves.

    Blue: the ends differ by at most `found.tol`, if at all; orange dashes: they differ; thin grey:
    undecided. Nodes of one group have one colour, nodes in a group of their own are white.

    Parameters
    ----------
    found : CertifiedClusters
    problem : Problem
        The problem of the result.
    positions : array of shape (n_nodes, 2), optional
        Where to draw the nodes; default: by eigenvectors of the graph.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph, LocalData, Problem, solve
    >>> from nefele.theory import certify_clusters, plot_certified
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.1, 5.0)])
    >>> problem = Problem(Graph.from_edges([(0, 1), (1, 2)]), data, lam=0.3)
    >>> ax = plot_certified(certify_clusters(solve(problem, tol=1e-9), tol=1e-3), problem)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['within 0.001: 1', 'different: 1', 'undecided: 0', 'single nodes: 1']
    """
    check_found(found, CertifiedClusters, "certify_clusters(result)")
    graph = check_problem(problem).graph
    _check_sizes(graph, nodes=len(found.groups), edges=len(found.upper))
    where = place(graph, positions)
    ax = axes(ax)
    entries: list[tuple[str, dict[str, Any]]] = []
    for word, mask, style, level in (
        (f"within {found.tol:.3g}", found.close, _CLOSE, 1.5),
        ("different", found.apart, DASHED, 2.0),
        ("undecided", found.undecided, _OPEN, 1.0),
    ):
        draw_edges(ax, graph, where, mask, zorder=level, **style)
        entries.append((f"{word}: {mask.sum()}", style))
    draw_nodes(ax, where, found.groups)
    single = int((np.bincount(found.groups) == 1).sum())
    if single:
        entries.append((f"single nodes: {single}", _SINGLE))
    count = int(found.groups.max()) + 1
    form = "proven" if found.proven else "estimated"
    finish_graph(ax, f"{form}: {count} group{'s' if count > 1 else ''}")
    key(ax, entries)
    return ax


def plot_influence(
    found: EdgeInfluence, problem: Problem, positions: Any = None, ax: Any = None
) -> Any:
    """The graph with the change of the optimum when an edge is removed.

    Dark and wide edges matter most. Orange dashes: without this edge no optimum is unique. Dotted:
    edges that `edge_influence` was not asked about.

    Parameters
    ----------
    found : EdgeInfluence
    problem : Problem
        The problem it belongs to.
    positions : array of shape (n_nodes, 2), optional
        Where to draw the nodes; default: by eigenvectors of the graph.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import edge_influence, plot_influence
    >>> data = LocalData.from_list([([[1.0]], [y]) for y in (0.0, 0.0, 4.0)])
    >>> problem = Problem(Graph.from_edges([(0, 1), (1, 2)]), data, penalty="squared_l2", lam=2.0)
    >>> plot_influence(edge_influence(problem), problem).get_title()
    'largest change: edge 1 (1, 2)'
    """
    check_found(found, EdgeInfluence, "edge_influence(problem)")
    graph = check_problem(problem).graph
    _check_sizes(graph, nodes=len(found.w))
    if found.edges.max(initial=-1) >= graph.n_edges:
        raise ValueError(
            f"problem must have an edge {found.edges.max()}; it has {graph.n_edges} edges. "
            "Give the problem that edge_influence was called with."
        )
    where = place(graph, positions)
    ax = axes(ax)
    known = np.isfinite(found.size)
    # what rounding errors leave is no change
    size = np.where(found.size > _NOTHING * np.abs(found.w).max(), found.size, 0.0)[known]
    lines = draw_edges(ax, graph, where, found.edges[known], values=size)
    rest = np.setdiff1d(np.arange(graph.n_edges), found.edges)
    other: dict[str, Any] = dict(color=GREY, linestyle="dotted", linewidth=0.8)
    draw_edges(ax, graph, where, found.edges[~known], zorder=2.0, **DASHED)
    draw_edges(ax, graph, where, rest, zorder=1.0, **other)
    draw_nodes(ax, where)
    title = "no edge changes the optimum" if len(size) else "no edge can be removed"
    if size.any():
        title = f"largest change: {graph.describe_edge(int(found.edges[known][size.argmax()]))}"
    finish_graph(ax, title)
    colour_bar(ax, lines, "change of the optimum without the edge")
    entries = [
        (f"no unique optimum without it: {(~known).sum()}", DASHED),
        (f"not asked: {len(rest)}", other),
    ]
    shown = ((~known).any(), len(rest) > 0)
    key(ax, [entry for entry, there in zip(entries, shown, strict=True) if there])
    return ax


def plot_flow(
    found: FlowSolution,
    network: FlowNetwork,
    problem: Problem,
    positions: Any = None,
    ax: Any = None,
) -> Any:
    """The graph with the share of its capacity that each edge carries in a flow of least cost.

    Orange dashes: saturated edges, the only ones over which parameters may differ.

    Parameters
    ----------
    found : FlowSolution
    network : FlowNetwork
        The network that was solved.
    problem : Problem
        The problem it came from.
    positions : array of shape (n_nodes, 2), optional
        Where to draw the nodes; default: by eigenvectors of the graph.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph, LocalData, Problem
    >>> from nefele.theory import min_cost_flow, plot_flow
    >>> data = LocalData.from_list([([[1.0]], [0.0]), ([[1.0]], [4.0])])
    >>> problem = Problem(Graph.from_edges([(0, 1)]), data, "absolute", lam=0.25)
    >>> network = min_cost_flow(problem)
    >>> plot_flow(network.solve(), network, problem).get_title()
    'least cost -1, 1 of 1 edges saturated'
    """
    check_found(found, FlowSolution, "min_cost_flow(problem).solve()")
    if not isinstance(network, FlowNetwork):
        raise ValueError(
            f"network must be a FlowNetwork; got {type(network).__name__}. "
            "Use min_cost_flow(problem)."
        )
    graph = check_problem(problem).graph
    _check_sizes(graph, nodes=network.n_nodes - 1)
    m = graph.n_edges
    if len(found.flow) != network.n_arcs:
        raise ValueError(
            f"found must hold a flow for {network.n_arcs} arcs; got {len(found.flow)}. "
            "Use network.solve()."
        )
    same = np.array_equal(network.tail[:m], graph.head)
    if not (same and np.array_equal(network.head[:m], graph.tail)):
        raise ValueError("network must come from the graph of problem. Use min_cost_flow(problem).")
    where = place(graph, positions)
    ax = axes(ax)
    room = network.upper[:m]
    share = np.divide(np.abs(found.flow[:m]), room, out=np.ones(m), where=room > 0)
    full = share >= _FULL
    lines = draw_edges(ax, graph, where, ~full, values=share[~full], top=1.0)
    draw_edges(ax, graph, where, full, zorder=2.0, **DASHED)
    draw_nodes(ax, where)
    finish_graph(ax, f"least cost {found.cost:.4g}, {full.sum()} of {m} edges saturated")
    colour_bar(ax, lines, "share of the capacity")
    key(ax, [(f"saturated: {full.sum()}", DASHED)] if full.any() else [])
    return ax


def _check_sizes(graph: Graph, *, nodes: int | None = None, edges: int | None = None) -> None:
    for want, got, what in ((nodes, graph.n_nodes, "nodes"), (edges, graph.n_edges, "edges")):
        if want is not None and want != got:
            raise ValueError(
                f"problem must have {want} {what}, as in found; got {got}. "
                "Give the problem that found belongs to."
            )
