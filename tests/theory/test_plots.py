"""Bars and curves of the theory show what the numbers say."""

import sys

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from nefele import Graph, LocalData, Problem, solve
from nefele._draw.drawing import BLUE, ORANGE
from nefele.theory import (
    ErrorBound,
    SpectrumBounds,
    SpreadBound,
    WellConnected,
    cluster_bound,
    consensus_bound,
    edge_influence,
    error_bound,
    label_sensitivity,
    plot_certified,
    plot_contraction,
    plot_error_bound,
    plot_influence,
    plot_sensitivity,
    plot_slack,
    plot_spread,
    spectrum_bounds,
)
from tests.theory.pictures import LABELS, PARTS, bar_values, legend, scalar
from tests.theory.problems import planted, random_regression


def cluster_table(kind, value, good):
    labels = np.array([f"c{k}" for k in range(len(value))])
    value, good = np.array(value, dtype=float), np.array(good)
    if kind is WellConnected:
        rest = [[0]] * 2 + [np.zeros(1)] * 3
        return WellConnected(labels, good, value, *rest, 1.0)
    return ErrorBound(labels, value, good, np.zeros((len(value), 1)))


@pytest.mark.parametrize(
    ("plot", "kind", "word"),
    [
        (plot_error_bound, ErrorBound, "not proven"),
        (plot_slack, WellConnected, "not well-connected"),
    ],
)
def test_bars_tell_apart_what_holds_and_what_is_infinite(ax, plot, kind, word):
    plot(cluster_table(kind, [1.0, np.inf, 2.0, 0.5], [True, True, False, False]), ax)
    height, hatched = bar_values(ax)
    assert height[[0, 2, 3]].tolist() == [1.0, 2.0, 0.5] and height[1] > 2.0
    assert hatched == [False, False, True, True]
    arrow = next(line for line in ax.lines if line.get_marker() == "^")
    assert arrow.get_xdata().tolist() == [1]
    assert [text.get_text() for text in ax.texts] == ["1", "inf", "2", "0.5"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["c0", "c1", "c2", "c3"]
    assert {word, "infinite"} <= set(legend(ax))
    assert {to_hex(bar.get_facecolor()) for bar in ax.patches} == {BLUE.lower(), ORANGE.lower()}


def test_slack_below_zero_points_down(ax):
    values = [-np.inf, -2.0, np.nan]
    plot_slack(cluster_table(WellConnected, values, [False, False, False]), ax)
    assert bar_values(ax)[0][:2].max() < 0 and bar_values(ax)[0][2] == 0
    assert {"minus infinite", "unknown"} <= set(legend(ax))
    assert {"v", "x"} <= {line.get_marker() for line in ax.lines}


@pytest.mark.parametrize("count", [1, 13, 50, 400])
def test_names_of_many_clusters_do_not_overlap(count):
    figure = Figure(layout="constrained")
    ax = figure.add_subplot()
    plot_error_bound(cluster_table(ErrorBound, np.ones(count), [True] * count), ax)
    figure.draw_without_rendering()
    boxes = [tick.get_window_extent() for tick in ax.get_xticklabels() if tick.get_text()]
    boxes.sort(key=lambda box: box.x0)
    assert len(bar_values(ax)[0]) == count and 1 <= len(boxes) <= 30
    assert all(left.x1 <= right.x0 for left, right in zip(boxes, boxes[1:], strict=False))


def test_error_bound_of_a_problem(ax):
    problem, label = planted(1, "l2")
    found = error_bound(problem, label)
    plot_error_bound(found, ax)
    height, hatched = bar_values(ax)
    finite = np.isfinite(found.value)
    assert np.array_equal(height[finite], found.value[finite])
    assert hatched == (~found.proven).tolist()


def test_spread_of_components_and_of_clusters():
    problem = scalar(PARTS, LABELS, penalty="squared_l2", lam=1.0)
    found = consensus_bound(problem)
    height = bar_values(plot_spread(found, Figure().add_subplot()))[0]
    assert np.allclose(height, found.value)
    apart = cluster_bound(solve(problem, tol=1e-8), list("xxxyyyyz"))
    assert np.isinf(apart.value[1])  # d, e are in another component than f, g
    ax = plot_spread(apart, Figure().add_subplot())
    assert bar_values(ax)[1] == np.isinf(apart.value).tolist()
    assert "infinite" in legend(ax)


def test_spread_without_a_finite_bound(ax):
    plot_spread(SpreadBound(np.arange(2), np.full(2, np.inf), np.zeros(2)), ax)
    assert (bar_values(ax)[0] > 0).all()


@pytest.mark.parametrize(("contraction", "accuracy"), [(0.5, 1e-6), (0.999, 1e-3), (0.2, 1e-12)])
def test_contraction_reaches_the_accuracy_at_the_marked_step(ax, contraction, accuracy):
    found = SpectrumBounds(1.0, 3.0, 0.25, contraction, 1.0)
    plot_contraction(found, accuracy, ax)
    curve, level, mark = ax.lines
    steps, error = curve.get_data()
    assert ax.get_yscale() == "log"
    seen = error > 1.001 * ax.get_ylim()[0]
    assert np.allclose(error[seen], contraction ** steps[seen])
    assert level.get_ydata()[0] == accuracy
    assert mark.get_xdata()[0] == found.iterations(accuracy) <= steps[-1]
    assert f"{found.iterations(accuracy)} steps" in legend(ax)


def test_contraction_of_one_and_of_zero(ax):
    plot_contraction(SpectrumBounds(0.0, 3.0, 1 / 3, 1.0, 0.0), ax=ax)
    assert len(ax.lines) == 2 and (ax.lines[0].get_ydata() == 1.0).all()
    assert ax.get_title() == "no rate is proven: contraction 1"
    at_once = plot_contraction(SpectrumBounds(1.0, 1.0, 0.5, 0.0, 0.0), ax=Figure().add_subplot())
    steps, error = at_once.lines[0].get_data()
    assert error[0] == 1.0 and (error[1:] < 1e-6).all() and steps[1] == 1.0
    assert "at most 1 step to" in at_once.get_title()


def test_contraction_of_a_slow_problem_and_a_rough_accuracy(ax):
    slow = SpectrumBounds(1e-9, 1.0, 1.0, 1 - 1e-9, 0.0)
    plot_contraction(slow, ax=ax)
    assert len(ax.lines[0].get_xdata()) <= 300
    rough = plot_contraction(slow, accuracy=2.0, ax=Figure().add_subplot())
    assert "at most 0 steps" in rough.get_title()
    random = spectrum_bounds(random_regression(0, "squared_l2", n=6))
    assert str(random.iterations(1e-6)) in plot_contraction(random).get_title()


def test_sensitivity_is_sorted_and_named(ax):
    problem = scalar(Graph(list("abcd"), [0, 1, 2], [1, 2, 3]), (1.0, 2.0, None, 3.0))
    plot_sensitivity([0.2, 0.9, 0.5], problem, ax)
    assert bar_values(ax)[0].tolist() == [0.9, 0.5, 0.2]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["b", "d", "a"]


def test_sensitivity_is_the_largest_of_a_node(ax):
    problem = random_regression(3, "squared_l2", n=40, m=5, density=0.05)
    values = label_sensitivity(problem)
    plot_sensitivity(values, problem, ax)
    largest = values.reshape(40, 5).max(axis=1)
    assert np.allclose(bar_values(ax)[0], np.sort(largest)[::-1])
    assert str(problem.graph.ids[largest.argmax()]) in ax.get_xlabel()


def test_sensitivity_without_a_unique_solution(ax):
    """Two rows, both of them say the same about two parameters."""
    rows = [([[1.0, 1.0]], [1.0]), ([[1.0, 1.0]], [2.0])]
    graph = Graph([0, 1], [0], [1])
    problem = Problem(graph, LocalData.from_list(rows), "squared", "squared_l2", lam=1.0)
    values = label_sensitivity(problem)
    assert np.isinf(values).all()
    plot_sensitivity(values, problem, ax)
    assert legend(ax) == ["infinite"] and bar_values(ax)[1] == [True, True]


def test_wrong_results_are_refused():
    problem = random_regression(0, "squared_l2", n=6)
    for plot, kind in (
        (plot_error_bound, "ErrorBound"),
        (plot_spread, "SpreadBound"),
        (plot_slack, "WellConnected"),
        (plot_contraction, "SpectrumBounds"),
    ):
        with pytest.raises(ValueError, match=f"found must be a {kind}; got Problem"):
            plot(problem)
    for plot, kind in ((plot_certified, "CertifiedClusters"), (plot_influence, "EdgeInfluence")):
        with pytest.raises(ValueError, match=f"found must be a {kind}; got str"):
            plot("x", problem)
    with pytest.raises(ValueError, match="accuracy must be finite and > 0; got 0"):
        plot_contraction(spectrum_bounds(problem), 0)
    with pytest.raises(ValueError, match="one entry for each of the 24 rows of problem; got 3"):
        plot_sensitivity([1.0, 2.0, 3.0], problem)
    with pytest.raises(ValueError, match="values must be >= 0; got nan"):
        plot_sensitivity(np.full(24, np.nan), problem)


def test_a_picture_needs_pyplot_only_for_new_axes(ax, monkeypatch):
    problem = random_regression(0, "squared_l2", n=6)
    found = edge_influence(problem)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert plot_influence(found, problem, ax=ax) is ax
    for draw in (
        lambda: plot_influence(found, problem),
        lambda: plot_spread(consensus_bound(problem)),
        lambda: plot_contraction(spectrum_bounds(problem)),
    ):
        with pytest.raises(ImportError, match=r'^Pictures need matplotlib: pip install "nefele\['):
            draw()
