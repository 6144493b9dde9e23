"""Where nodes are drawn, their colours, and titles that fit."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from nefele import Graph
from nefele._draw.drawing import GROUPS, ORANGE
from nefele.theory import critical_lambda, edge_influence, plot_critical_flow, plot_influence
from tests.theory.pictures import LABELS, PARTS, scalar


def test_long_ids_do_not_run_out_of_the_picture():
    graph = Graph([f"{'a very long name ' * 5}{i}" for i in range(3)], [0, 1], [1, 2])
    problem = scalar(graph, (0.0, 2.0, 9.0), penalty="squared_l2")
    figure = Figure(layout="constrained")
    ax = plot_influence(edge_influence(problem), problem, ax=figure.add_subplot())
    figure.draw_without_rendering()
    box, page = ax.title.get_window_extent(), figure.bbox
    assert box.x0 >= page.x0 and box.x1 <= page.x1
    assert "…" in ax.get_title()


def test_no_group_of_nodes_has_the_colour_of_warnings():
    assert ORANGE not in GROUPS and len(set(GROUPS)) == len(GROUPS)


def test_positions_by_node_id(ax):
    problem = scalar(PARTS, LABELS)
    spots = np.random.default_rng(0).random((8, 2))
    shuffled = [5, 2, 7, 0, 1, 3, 6, 4]
    by_id = {PARTS.ids[i].item(): tuple(spots[i]) for i in shuffled} | {"elsewhere": (0.0, 0.0)}
    found = critical_lambda(problem)
    plot_critical_flow(found, problem, by_id, ax)
    assert np.array_equal(ax.collections[1].get_offsets(), spots)
    with pytest.raises(ValueError, match=r"positions must hold every node id; missing: 'a', 'h'\."):
        plot_critical_flow(found, problem, {k: by_id[k] for k in "bcdefg"})
    with pytest.raises(ValueError, match="positions must hold every node id; missing: 'a'"):
        plot_critical_flow(found, problem, {})
    with pytest.raises(ValueError, match="rectangular"):
        plot_critical_flow(found, problem, by_id | {"a": (1.0, 2.0, 3.0)})
    with pytest.raises(ValueError, match="positions, row 0, must be finite"):
        plot_critical_flow(found, problem, by_id | {"a": (1.0, np.nan)})
