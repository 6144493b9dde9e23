"""Pictures of the theory on the graph; they need matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from nefele._checks import Array, as_float_array, check_finite
from nefele._draw.drawing import (
    BLUE,
    DASHED,
    GREY,
    axes,
    colour_bar,
    draw_edges,
    draw_nodes,
    finish_graph,
    key,
    name_edge,
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
    positions : array of shape (n_nodes, 2) or mapping of node id to (x, y), optional
        Where to draw the nodes; default: by forces along the edges.
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
    positions : array of shape (n_nodes, 2) or mapping of node id to (x, y), optional
        Where to draw the nodes; default: by forces along the edges.
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
    positions : array of shape (n_nodes, 2) or mapping of node id to (x, y), optional
        Where to draw the nodes; default: by forces along the edges.
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
    size = np.where(found.size > _NOTHING * np.nanmax(np.abs(found.w)), found.size, 0.0)[known]
    lines = draw_edges(ax, graph, where, found.edges[known], values=size)
    rest = np.setdiff1d(np.arange(graph.n_edges), found.edges)
    other: dict[str, Any] = dict(color=GREY, linestyle="dotted", linewidth=0.8)
    draw_edges(ax, graph, where, found.edges[~known], zorder=2.0, **DASHED)
    draw_edges(ax, graph, where, rest, zorder=1.0, **other)
    draw_nodes(ax, where)
    finish_graph(ax, _influence_title(graph, found.edges, known, size))
    colour_bar(ax, lines, "change of the optimum without the edge")
    entries = [
        (f"no unique optimum without it: {(~known).sum()}", DASHED),
        (f"not asked: {len(rest)}", other),
    ]
    shown = ((~known).any(), len(rest) > 0)
    key(ax, [entry for entry, there in zip(entries, shown, strict=True) if there])
    return ax


def _influence_title(graph: Graph, edges: Any, known: Any, size: Any) -> str:
    if not graph.n_edges:
        return "no edges"
    if not len(edges):
        return "no edge was asked about"
    if not known.any():
        return "no edge can be removed"
    if not size.any():
        return "no edge changes the optimum"
    return f"largest change: {name_edge(graph, int(edges[known][size.argmax()]))}"


def plot_flow(
    found: FlowSolution | Array,
    network: FlowNetwork,
    problem: Problem,
    positions: Any = None,
    ax: Any = None,
) -> Any:
    """The graph with the share of its capacity that each edge carries in a flow.

    Orange dashes: saturated edges; at least cost the only ones over which parameters may differ.

    Parameters
    ----------
    found : FlowSolution or array of shape (n_arcs,)
        Of `network.solve()`, or a flow such as `network.flow_of(result)`.
    network : FlowNetwork
        The network it belongs to.
    problem : Problem
        The problem it came from.
    positions : array of shape (n_nodes, 2) or mapping of node id to (x, y), optional
        Where to draw the nodes; default: by forces along the edges.
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
    if not isinstance(network, FlowNetwork):
        raise ValueError(
            f"network must be a FlowNetwork; got {type(network).__name__}. "
            "Use min_cost_flow(problem)."
        )
    graph = check_problem(problem).graph
    _check_sizes(graph, nodes=network.n_nodes - 1)
    m = graph.n_edges
    best = isinstance(found, FlowSolution)
    flow = as_float_array(found.flow if isinstance(found, FlowSolution) else found, "found", 1)
    if len(flow) != network.n_arcs:
        raise ValueError(
            f"found must hold a flow for {network.n_arcs} arcs; got {len(flow)}. "
            "Use network.solve() or network.flow_of(result)."
        )
    check_finite(flow, lambda at: f"found, arc {at[0]},")
    same = np.array_equal(network.tail[:m], graph.head)
    if not (same and np.array_equal(network.head[:m], graph.tail)):
        raise ValueError("network must come from the graph of problem. Use min_cost_flow(problem).")
    where = place(graph, positions)
    ax = axes(ax)
    room = network.upper[:m]
    share = np.divide(np.abs(flow[:m]), room, out=np.ones(m), where=room > 0)
    full = share >= _FULL
    lines = draw_edges(ax, graph, where, ~full, values=share[~full], top=1.0)
    draw_edges(ax, graph, where, full, zorder=2.0, **DASHED)
    draw_nodes(ax, where)
    cost = f"{'least ' if best else ''}cost {network.cost(flow):.4g}"
    finish_graph(ax, f"{cost}, {full.sum()} of {m} edges saturated")
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
