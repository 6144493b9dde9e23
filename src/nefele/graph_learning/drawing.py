"""Pictures of graphs and of their comparison; they need matplotlib."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from nefele._draw.drawing import (
    BLUE,
    DASHED,
    GREY,
    ORANGE,
    axes,
    draw_edges,
    draw_nodes,
    finish_graph,
    key,
    place,
)
from nefele.graph_learning.references import ALONE, CLIQUE

_LONG = 120  # characters of a verdict that still fit above a picture


def draw_graph(found: Any, positions: Any = None, ax: Any = None) -> Any:
    """Nodes coloured by community, edges by weight, suspicious edges in orange dashes.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("agg")
    >>> from nefele import Graph
    >>> from nefele.graph_learning import graph_diagnostics
    >>> graph_diagnostics(Graph([0, 1, 2], [0, 1], [1, 2])).plot().get_title()
    '3 nodes, 2 edges'
    """
    graph = found.graph
    where = place(graph, positions)
    ax = axes(ax)
    odd = np.zeros(graph.n_edges, dtype=bool)
    odd[found.suspicious] = True
    width = graph.weight / graph.weight.max(initial=0.0) if graph.n_edges else graph.weight
    draw_edges(ax, graph, where, ~odd, linewidths=0.3 + width[~odd], colors=GREY)
    draw_edges(ax, graph, where, odd, zorder=2.0, **DASHED)
    draw_nodes(ax, where, found.communities)
    finish_graph(ax, f"{graph.n_nodes} nodes, {graph.n_edges} edges")
    key(ax, [(f"suspicious: {odd.sum()}", DASHED)] if odd.any() else [])
    return ax


def draw_comparison(found: Any, ax: Any = None) -> Any:
    """Gains of the candidates of a fitted GraphSelectorCV with standard errors, the best on top."""
    table = found.cv_results_
    candidate = np.flatnonzero([name not in (ALONE, CLIQUE) for name in table["name"]])
    rows = candidate[np.argsort(table["mean_test_score"][candidate], kind="stable")]
    ax = axes(ax)
    at = np.arange(len(rows))
    ax.axvline(0.0, color="black", linewidth=0.8)
    for column, shift, color, marker, label in (
        ("gain", 0.12, BLUE, "o", f"over {found.reference_}"),
        ("graph_part", -0.12, ORANGE, "s", "over shuffled copies"),
    ):
        value, error = table[column][rows], np.nan_to_num(table[f"{column}_se"][rows])
        if np.isnan(value).all():
            continue  # no shuffled copies were asked for
        points = dict(color=color, fmt=marker, capsize=3)
        ax.errorbar(value, at + shift, xerr=error, label=label, **points)
    for y, k in zip(at, rows, strict=True):
        helps = table["helps"][k]
        name = textwrap.shorten(str(table["name"][k]), 40, placeholder=" ...")
        style: dict[str, Any] = dict(va="center", parse_math=False)
        style |= dict(fontweight="bold" if helps else "normal")
        style |= dict(bbox=dict(facecolor="white", edgecolor="none", pad=1.0))
        # inside the frame: names of any length fit, whatever the margins
        where = ax.get_yaxis_transform()
        ax.text(0.02, y + 0.35, f"{name} (helps)" if helps else name, transform=where, **style)
    ax.set_yticks([])
    ax.set_ylim(-1.1, len(rows) - 0.4)
    ax.set_xlabel("gain in score, with its standard error")
    words = found.summary().splitlines()[-1].split(". ")[0].rstrip(".")
    title = textwrap.fill(words, 60) if len(words) <= _LONG else ""
    ax.set_title(title, fontsize="medium", parse_math=False)
    ax.legend(loc="lower center", ncols=2, frameon=False)  # in the free row below
    return ax
