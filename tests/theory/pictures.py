"""A small problem to draw, and what a picture shows."""

import numpy as np

from nefele import Graph, LocalData, Problem

# two components and an isolated node
PARTS = Graph(list("abcdefgh"), [0, 0, 1, 2, 3, 5], [1, 2, 2, 3, 4, 6])
LABELS = (0.0, 0.1, 0.2, 4.0, 4.1, 1.0, 1.0, 7.0)


def scalar(graph, labels, loss="squared", penalty="l2", lam=0.3):
    rows = [None if y is None else ([[1.0]], [y]) for y in labels]
    return Problem(graph, LocalData.from_list(rows, nodes=graph.ids), loss, penalty, lam=lam)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()] if ax.get_legend() else []


def pairs(lines, place):
    """The edges that a LineCollection shows, as pairs of node positions."""
    where = {tuple(xy): i for i, xy in enumerate(np.asarray(place, dtype=float))}
    return {tuple(sorted(where[tuple(end)] for end in ends)) for ends in lines.get_segments()}


def edge_set(graph, mask):
    return set(zip(graph.head[mask].tolist(), graph.tail[mask].tolist(), strict=True))


def bar_values(ax):
    """Heights from left to right, and whether each is hatched."""
    found = sorted(ax.patches, key=lambda bar: bar.get_x())
    return np.array([bar.get_height() for bar in found]), [bool(b.get_hatch()) for b in found]
