"""Pictures of the theory on the graph show what the numbers say."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from nefele import Graph, Problem, solve
from nefele._draw.drawing import BLUE, ORANGE
from nefele.theory import (
    CertifiedClusters,
    EdgeInfluence,
    FlowSolution,
    certify_clusters,
    critical_lambda,
    edge_influence,
    label_sensitivity,
    min_cost_flow,
    plot_certified,
    plot_critical_flow,
    plot_flow,
    plot_influence,
    plot_sensitivity,
)
from tests.theory.pictures import LABELS, PARTS, edge_set, legend, pairs, scalar
from tests.theory.problems import random_regression


def test_certified_shows_the_kind_of_each_edge(ax):
    problem = scalar(PARTS, LABELS)
    found = certify_clusters(solve(problem, tol=1e-9), tol=1e-3)
    place = np.random.default_rng(0).random((8, 2))
    assert plot_certified(found, problem, positions=place, ax=ax) is ax
    close, apart, rest = ax.collections[:3]
    near = found.upper <= found.tol
    assert pairs(close, place) == edge_set(PARTS, near) != set()
    assert pairs(apart, place) == edge_set(PARTS, found.differs) != set()
    assert pairs(rest, place) == edge_set(PARTS, ~(near | found.differs))
    assert to_hex(close.get_color()[0]) == BLUE.lower()
    assert to_hex(apart.get_color()[0]) == ORANGE.lower()
    assert close.get_linestyle()[0][1] is None and apart.get_linestyle()[0][1] is not None
    assert rest.get_linewidth()[0] < close.get_linewidth()[0]
    single = int((np.bincount(found.groups) == 1).sum())
    want = [f"within 0.001: {near.sum()}", f"different: {found.differs.sum()}", "undecided: 0"]
    assert legend(ax) == [*want, f"single nodes: {single}"]
    assert ax.get_title() == f"proven: {found.groups.max() + 1} groups"


def test_certified_counts_are_those_of_the_summary(ax):
    """Also for an edge that is proven close and proven different at once."""
    upper, lower = np.array([0.5, 0.5, 9.0, 9.0]), np.array([0.1, 0.0, 0.1, 0.0])
    graph = Graph(list(range(5)), [0, 1, 2, 3], [1, 2, 3, 4])
    groups = np.array([0, 0, 0, 1, 2])
    found = CertifiedClusters(upper, lower, lower > 0, np.ones(5), groups, 1.0, False)
    plot_certified(found, scalar(graph, [0.0] * 5), ax=ax)
    assert found.summary.startswith("estimated: 2 edges within 1, 1 edges differ, 1 undecided")
    assert legend(ax) == ["within 1: 2", "different: 1", "undecided: 1", "single nodes: 2"]
    assert [len(c.get_segments()) for c in ax.collections[:3]] == [2, 1, 1]
    assert ax.get_title() == "estimated: 3 groups"


def test_nodes_of_a_group_look_alike_and_those_of_two_groups_do_not(ax):
    """Ten groups of two: more than there are colours, so some have another marker."""
    graph = Graph(list(range(21)), np.arange(0, 20, 2), np.arange(1, 20, 2))
    groups = np.append(np.repeat(np.arange(10), 2), 10)
    none = np.zeros(10)
    found = CertifiedClusters(none, none, none > 0, np.ones(21), groups, 1.0, True)
    place = np.stack([np.arange(21.0), np.zeros(21)], axis=1)
    plot_certified(found, scalar(graph, [0.0] * 21), positions=place, ax=ax)
    look = {}
    for points in ax.collections[3:]:
        colors, shape = points.get_facecolor(), points.get_paths()[0].vertices.tobytes()
        colors = np.broadcast_to(colors, (len(points.get_offsets()), 4))
        for (x, _), color in zip(points.get_offsets(), colors, strict=True):
            look[int(x)] = (to_hex(color), shape)
    assert len(look) == 21 and look[20][0] == "#ffffff"
    assert all(look[2 * k] == look[2 * k + 1] for k in range(10))
    assert len({look[2 * k] for k in range(10)}) == 10


def test_critical_flow_of_several_components(ax):
    problem = scalar(PARTS, LABELS)
    found = critical_lambda(problem)
    place = np.random.default_rng(0).random((8, 2))
    plot_critical_flow(found, problem, place, ax)
    lines = ax.collections[0]
    assert np.allclose(np.sort(lines.get_array()), np.sort(found.load / found.value))
    widest = lines.get_segments()[int(np.argmax(lines.get_linewidth()))]
    e = int(found.load.argmax())
    assert np.allclose(widest, place[[PARTS.head[e], PARTS.tail[e]]])
    assert len(ax.figure.axes) == 2  # with its colour bar


def test_influence_shows_size_and_what_cannot_go(ax):
    """Node c has no data: without its only edge there is no unique optimum."""
    graph = Graph(list("abc"), [0, 1], [1, 2])
    problem = scalar(graph, (0.0, 4.0, None), penalty="squared_l2", lam=2.0)
    found = edge_influence(problem)
    assert np.isnan(found.size[1])
    place = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
    plot_influence(found, problem, place, ax)
    known, needed, rest = ax.collections[:3]
    assert pairs(known, place) == {(0, 1)} and pairs(needed, place) == {(1, 2)}
    assert known.get_array().tolist() == [found.size[0]]
    assert not rest.get_segments() and needed.get_linestyle()[0][1] is not None
    assert legend(ax) == ["no unique optimum without it: 1"]
    assert ax.get_title() == 'largest change: edge 0 ("a", "b")'


def test_influence_of_some_edges(ax):
    problem = random_regression(0, "squared_l2", n=7)
    found = edge_influence(problem, [4, 1])
    place = np.random.default_rng(0).random((7, 2))
    plot_influence(found, problem, place, ax)
    graph, lines = problem.graph, ax.collections[0]
    assert pairs(lines, place) == edge_set(graph, [1, 4])
    top = pairs_of_widest(lines, place)
    assert top == edge_set(graph, [found.edges[found.size.argmax()]])
    assert legend(ax) == [f"not asked: {graph.n_edges - 2}"]
    assert len(ax.collections[2].get_segments()) == graph.n_edges - 2


def pairs_of_widest(lines, place):
    best = int(np.argmax(lines.get_linewidth()))
    where = {tuple(xy): i for i, xy in enumerate(place)}
    return {tuple(sorted(where[tuple(end)] for end in lines.get_segments()[best]))}


def test_influence_when_nothing_changes(ax):
    """All labels are equal: what is left are rounding errors, which are not shown as sizes."""
    problem = scalar(PARTS, [2.0] * 8, penalty="squared_l2")
    plot_influence(edge_influence(problem), problem, ax=ax)
    assert ax.get_title() == "no edge changes the optimum"
    assert not ax.collections[0].get_array().any()
    assert len(ax.figure.axes) == 1  # no colour bar, as there is nothing to tell apart
    w, none = np.ones((8, 1)), np.full((6, 8, 1), np.nan)
    blind = EdgeInfluence(np.arange(6), none, np.full(6, np.nan), w)
    other = plot_influence(blind, problem, ax=Figure().add_subplot())
    assert other.get_title() == "no edge can be removed"


def test_flow_shows_shares_and_saturated_edges(ax):
    chain = Graph(list(range(5)), [0, 1, 2, 3], [1, 2, 3, 4])
    problem = scalar(chain, (0.0, 3.0, 1.0, 6.0, 4.0), "absolute", "l1", 0.6)
    network = min_cost_flow(problem)
    found = network.solve()
    place = np.stack([np.arange(5.0), np.zeros(5)], axis=1)
    plot_flow(found, network, problem, place, ax)
    share = np.abs(found.flow[:4]) / 0.6
    full = share > 1 - 1e-6
    assert 0 < full.sum() < 4
    free, tight = ax.collections[:2]
    assert pairs(tight, place) == edge_set(chain, full)
    assert pairs(free, place) == edge_set(chain, ~full)
    assert np.allclose(np.sort(free.get_array()), np.sort(share[~full]))
    assert free.get_clim() == (0.0, 1.0)
    assert legend(ax) == [f"saturated: {full.sum()}"]
    # parameters differ over saturated edges only
    apart = np.abs(np.diff(found.w[:, 0])) > 1e-9
    assert (apart <= full).all()


def test_flow_widths_mean_the_same_in_every_picture(ax):
    """A share of a half looks like one half, also when it is the largest."""
    graph = Graph([0, 1, 2], [0, 1], [1, 2])
    problem = scalar(graph, (0.0, 0.0, 0.0), "absolute", "l1", 1.0)
    network = min_cost_flow(problem)
    flow = np.concatenate([[0.5, 0.25], np.zeros(network.n_arcs - 2)])
    plot_flow(FlowSolution(flow, 0.0, 0.0, np.zeros((3, 1))), network, problem, ax=ax)
    lines = ax.collections[0]
    assert lines.get_clim() == (0.0, 1.0) and max(lines.get_linewidth()) < 3.0


def test_flow_of_quadratic_costs(ax):
    """An array of flows is drawn like a solution, without the claim that it is the best."""
    chain = Graph(list(range(5)), [0, 1, 2, 3], [1, 2, 3, 4])
    problem = scalar(chain, (0.0, 3.0, 1.0, 6.0, 4.0), "squared", "l1", 1.5)
    network = min_cost_flow(problem)
    flow = network.flow_of(solve(problem, tol=1e-12))
    place = np.stack([np.arange(5.0), np.zeros(5)], axis=1)
    plot_flow(flow, network, problem, place, ax)
    full = np.abs(flow[:4]) / 1.5 > 1 - 1e-6
    assert 0 < full.sum() < 4 and pairs(ax.collections[1], place) == edge_set(chain, full)
    cost = f"cost {network.cost(flow):.4g}"
    assert ax.get_title() == f"{cost}, {full.sum()} of 4 edges saturated"


def test_influence_of_no_edge_and_of_nodes_without_data(ax):
    problem = scalar(PARTS, LABELS, penalty="squared_l2")
    plot_influence(edge_influence(problem, []), problem, ax=ax)
    assert ax.get_title() == "no edge was asked about"
    bare = scalar(Graph(list("abcde"), [], []), (1.0, 2.0, 3.0, 4.0, 5.0), penalty="squared_l2")
    other = plot_influence(edge_influence(bare), bare, ax=Figure().add_subplot())
    assert other.get_title() == "no edges"
    partly = scalar(PARTS, (*LABELS[:7], None), penalty="squared_l2")
    other = plot_influence(edge_influence(partly), partly, ax=Figure().add_subplot())
    assert other.get_title().startswith("largest change: edge")


LONE = Graph(["only"], [], [])
BARE = Graph(list("abcde"), [], [])


@pytest.mark.parametrize("graph", [LONE, BARE, PARTS], ids=["one node", "no edges", "parts"])
def test_graphs_with_few_or_no_edges(graph):
    labels = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0][: graph.n_nodes]
    norm, smooth = scalar(graph, labels), scalar(graph, labels, penalty="squared_l2")
    robust = scalar(graph, labels, "absolute", "l1")
    network = min_cost_flow(robust)
    figure = Figure(layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    plot_certified(certify_clusters(solve(norm, tol=1e-8)), norm, ax=axes[0])
    plot_critical_flow(critical_lambda(norm), norm, ax=axes[1])
    plot_influence(edge_influence(smooth), smooth, ax=axes[2])
    plot_flow(network.solve(), network, robust, ax=axes[3])
    figure.draw_without_rendering()
    for ax in axes:
        segments = sum(len(c.get_segments()) for c in ax.collections if hasattr(c, "get_segments"))
        points = sum(len(c.get_offsets()) for c in ax.collections if not hasattr(c, "get_segments"))
        assert segments == graph.n_edges and points == graph.n_nodes


def test_ids_with_dollar_signs_are_shown_as_they_are(ax):
    graph = Graph(["$x^$", r"$\frac", "$z"], [0, 1], [1, 2])
    problem = scalar(graph, (0.0, 2.0, 9.0), penalty="squared_l2")
    plot_influence(edge_influence(problem), problem, ax=ax)
    assert ax.get_title() == r'largest change: edge 1 ("$\frac", "$z")'
    figure = Figure()
    plot_sensitivity(label_sensitivity(problem), problem, figure.add_subplot())
    figure.draw_without_rendering()


def test_another_problem_is_refused():
    problem, other = (random_regression(0, "squared_l2", n=n) for n in (6, 9))
    influence = edge_influence(problem)
    with pytest.raises(ValueError, match="problem must have 6 nodes, as in found; got 9"):
        plot_influence(influence, other)
    path = Problem(Graph(list(range(6)), [0], [1]), problem.data, penalty="squared_l2", lam=1.0)
    with pytest.raises(ValueError, match="problem must have an edge"):
        plot_influence(influence, path)
    certified = certify_clusters(solve(problem, tol=1e-6))
    with pytest.raises(ValueError, match="problem must have 6 nodes"):
        plot_certified(certified, other)
    with pytest.raises(ValueError, match=r"problem must have \d+ edges"):
        plot_certified(certified, path)
    with pytest.raises(ValueError, match="problem must be"):
        plot_certified(certified, problem.graph)


def test_flow_arguments():
    first = scalar(Graph([0, 1, 2], [0, 1], [1, 2]), (0.0, 1.0, 5.0), "absolute", "l1")
    second = scalar(Graph([0, 1, 2], [0, 0], [1, 2]), (0.0, 1.0, 5.0), "absolute", "l1")
    network = min_cost_flow(first)
    found = network.solve()
    with pytest.raises(ValueError, match="found must be numeric"):
        plot_flow("flow", network, first)
    with pytest.raises(ValueError, match=r"found, arc 1, must be finite; got nan"):
        plot_flow(np.array([0.0, np.nan, 0.0, 0.0, 0.0]), network, first)
    with pytest.raises(ValueError, match="network must be a FlowNetwork; got Problem"):
        plot_flow(found, first, network)
    with pytest.raises(ValueError, match="network must come from the graph of problem"):
        plot_flow(found, network, second)
    short = FlowSolution(found.flow[:2], 0.0, 0.0, found.w)
    with pytest.raises(ValueError, match="a flow for 5 arcs; got 2"):
        plot_flow(short, network, first)
    with pytest.raises(ValueError, match="problem must have 3 nodes"):
        plot_flow(found, network, scalar(PARTS, LABELS))


def test_wrong_places_and_axes_are_refused():
    problem = random_regression(0, "squared_l2", n=6)
    found = edge_influence(problem)
    with pytest.raises(ValueError, match=r"positions must have shape \(6, 2\); got \(6, 3\)"):
        plot_influence(found, problem, np.zeros((6, 3)))
    place = np.zeros((6, 2))
    place[4, 1] = np.nan
    with pytest.raises(ValueError, match="positions, row 4, must be finite; got nan"):
        plot_influence(found, problem, place)
    with pytest.raises(ValueError, match=r"ax must be one matplotlib Axes; got numpy\.ndarray"):
        plot_influence(found, problem, ax=Figure().subplots(1, 2))
