"""Pictures of graphs, fits, paths and choices, behind the `plot` methods of these."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nefele._checks import Array
from nefele._draw.drawing import (
    BLUE,
    GREY,
    GROUPS,
    ORANGE,
    axes,
    draw_edges,
    draw_nodes,
    finish_graph,
    new_axes,
    place,
    shorten,
)
from nefele._draw.network import Network

_NAMED = 40  # nodes up to which ids are written beside them
_WIDE = 70  # characters of a line above a bar


def draw_graph(
    graph: Network,
    positions: Any = None,
    groups: Any = None,
    names: bool | None = None,
    ax: Any = None,
    title: str | None = None,
) -> Any:
    """A network: heavy edges are thicker, groups of two nodes and more have a colour."""
    where = place(graph, positions)
    ax = axes(ax)
    top = graph.weight.max(initial=0.0) or 1.0
    draw_edges(ax, graph, where, linewidths=0.3 + graph.weight / top, colors=GREY)
    draw_nodes(ax, where, groups)
    if names if names is not None else graph.n_nodes <= _NAMED:
        for name, (x, y) in zip(graph.ids.tolist(), where, strict=True):
            style: dict[str, Any] = dict(textcoords="offset points", fontsize="small")
            ax.annotate(shorten(str(name)), (x, y), (3, 4), parse_math=False, zorder=4, **style)
    finish_graph(ax, f"{graph.n_nodes} nodes, {graph.n_edges} edges" if title is None else title)
    return ax


def draw_models(w: Array, groups: NDArray[np.int64], names: Sequence[str], ax: Any) -> None:
    """The parameters of the nodes: the first two against each other, or one over the nodes."""
    if w.shape[1] == 1:
        order = np.argsort(w[:, 0], kind="stable")
        draw_nodes(ax, np.column_stack([np.arange(len(w)), w[order, 0]]), groups[order])
        ax.set(xlabel="nodes, by their parameter", ylabel=names[0])
        return
    draw_nodes(ax, w[:, :2], groups)
    rest = "" if w.shape[1] == 2 else f" (of {w.shape[1]} parameters)"
    ax.set(xlabel=names[0], ylabel=names[1] + rest)


def draw_result(
    graph: Network,
    w: Array,
    groups: NDArray[np.int64],
    names: Sequence[str],
    title: str,
    positions: Any = None,
    pair: Any = None,
) -> Any:
    """The network coloured by cluster, and the parameters of its nodes beside it."""
    if pair is None:
        pair = new_axes(1, 2, layout="constrained", figsize=(8.0, 3.8))
    first, second = np.ravel(pair)
    draw_graph(graph, positions, groups, ax=first, title=f"{int(groups.max()) + 1} clusters")
    draw_models(w, groups, names, second)
    second.set_title(title, fontsize="medium")
    return pair


def draw_path(
    lams: Array, counts: NDArray[np.int64], w: Array | None, gaps: Array, pair: Any = None
) -> Any:
    """Clusters, and how the parameters of the nodes come together as lam grows."""
    if pair is None:
        pair = new_axes(1, 2, layout="constrained", figsize=(8.0, 3.4))
    first, second = np.ravel(pair)
    shown = lams > 0
    first.step(lams[shown], counts[shown], where="mid", color=BLUE)
    first.set(xscale="log", xlabel="lam", ylabel="clusters")
    if len(counts) and counts.max() > 10:
        first.set_yscale("log")
    worst = float(np.max(gaps, initial=0.0))
    first.set_title(f"certified to a gap of {worst:.1e}" if np.isfinite(worst) else "not certified")
    if w is None:
        second.set_axis_off()
        second.text(0.5, 0.5, 'parameters were not kept: keep="all"', ha="center")
        return pair
    for j in range(w.shape[2]):
        second.plot(lams[shown], w[shown, :, j], color=GROUPS[j % len(GROUPS)], lw=0.8, alpha=0.6)
    second.set(xscale="log", xlabel="lam", ylabel="parameters of the nodes")
    if w.shape[2] > 1:
        second.set_title("one colour per parameter", fontsize="medium")
    return pair


def draw_scores(
    alphas: Array, mean: Array, spread: Array, alpha: float, rivals: dict[str, float], ax: Any
) -> Any:
    """Scores at held-out rows along alpha, the choice, and the models to beat."""
    ax = axes(ax)
    shown = alphas > 0
    ax.fill_between(
        alphas[shown], (mean - spread)[shown], (mean + spread)[shown], color=BLUE, alpha=0.15, lw=0
    )
    ax.plot(alphas[shown], mean[shown], color=BLUE, marker="o", ms=3, label="coupled")
    for style, (name, score) in zip(("--", ":"), rivals.items(), strict=False):
        if np.isfinite(score):
            ax.axhline(score, color="black", linestyle=style, lw=1.0, label=name)
    if alpha > 0:
        ax.axvline(alpha, color=ORANGE, lw=1.2, label=f"chosen, {alpha:.3g}")
    ax.set(xscale="log", xlabel="alpha", ylabel="score at held-out rows, higher is better")
    ax.legend(frameon=False, fontsize="small")
    return ax


def draw_candidates(names: Sequence[str], errors: Array, chosen: str, ax: Any) -> Any:
    """Errors of couplings that were compared at left-out rows, as bars side by side."""
    ax = axes(ax)
    at = np.arange(len(names))[::-1]
    colors = [ORANGE if name == chosen else BLUE for name in names]
    ax.barh(at, errors, height=0.4, color=colors)
    for y, name, error in zip(at, names, errors, strict=True):
        words = textwrap.shorten(name, _WIDE, placeholder=" ...")
        style: dict[str, Any] = dict(va="bottom", fontsize="small", parse_math=False)
        where = ax.get_yaxis_transform()
        ax.text(0.01, y + 0.22, f"{words}: {error:.3g}", transform=where, **style)
    ax.set_ylim(-0.5, len(names) - 0.3)
    ax.set(yticks=[], xlabel="error at left-out rows; the coupling that was chosen in orange")
    return ax
